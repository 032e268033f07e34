"""A plan may need the rows that fulfil a condition, and for which a predicate is TRUE."""

from collections.abc import Sequence

import pytest

from streamsql.algebra.expressions import Call, Column, Expression, Literal, walk
from streamsql.algebra.operators import (
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    RemoteSource,
    UnionAll,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.bundles.needed_rows import MAX_BRANCHES, MAX_LISTED, NeededRows, needed_rows
from streamsql.wire.bundles.reader_conditions import (
    AnyOf,
    Containing,
    OneOf,
    RowCondition,
    Within,
    term_of,
)

COLUMNS = Schema.of(("k", DataType.TEXT), ("n", DataType.INTEGER), ("x", DataType.DOUBLE))
K, N, X = (Column(i, f.name, f.dtype) for i, f in enumerate(COLUMNS.fields))
FED = RemoteSource("fed", COLUMNS)


def call(name: str, *arguments: Expression) -> Call:
    return Call(name, arguments, DataType.BOOLEAN)


def text(value: str | None) -> Literal:
    return Literal(value, DataType.TEXT)


def number(value: float) -> Literal:
    return Literal(value, DataType.INTEGER if isinstance(value, int) else DataType.DOUBLE)


def columns_in(predicate: Expression) -> list[Column]:
    return [part for part in walk(predicate) if isinstance(part, Column)]


def where(*predicates: Expression) -> NeededRows:
    plan: Plan = FED
    for predicate in predicates:
        plan = Filter(plan, predicate)
    return needed_rows([plan], "fed", COLUMNS)


def condition_of(plans: Sequence[Plan], fragment: str, schema: Schema) -> RowCondition | None:
    return needed_rows(plans, fragment, schema).condition


ABOVE = call(">", N, number(3))


@pytest.mark.parametrize(
    ("predicate", "condition"),
    [
        (call("=", K, text("a")), OneOf(term_of(K), frozenset("a"))),
        (call("=", number(2.0), N), OneOf(term_of(N), frozenset((2.0,)))),
        (call("IN", K, text("a"), text("b"), text(None)), OneOf(term_of(K), frozenset("ab"))),
        (
            call("OR", call("=", K, text("a")), call("IN", K, text("c"))),
            OneOf(term_of(K), frozenset("ac")),
        ),
        (ABOVE, Within(term_of(N), low=(3, 1))),
        (call("<=", number(3), N), Within(term_of(N), low=(3, 0))),
        (call("<", X, number(0.5)), Within(term_of(X), high=(0.5, 0))),
        (call("<=", X, number(1)), Within(term_of(X), high=(1, 1))),
        (call("AND", ABOVE, call("<", X, number(1))), Within(term_of(N), low=(3, 1))),
        (call("AND", ABOVE, call(">=", N, number(3))), Within(term_of(N), low=(3, 1))),
        (call("AND", ABOVE, call("=", K, text("a"))), OneOf(term_of(K), frozenset("a"))),
        (call("AND", ABOVE, call("OR", ABOVE, ABOVE)), Within(term_of(N), low=(3, 1))),
    ],
)
def test_a_filter_gives_a_condition(predicate: Expression, condition: RowCondition) -> None:
    assert where(predicate).condition == condition


SUM = Call("+", (N, number(1)), DataType.INTEGER)
LOWER = Call("LOWER", (K,), DataType.TEXT)


@pytest.mark.parametrize(
    ("predicate", "condition"),
    [
        (call("=", SUM, number(2)), OneOf(term_of(SUM), frozenset((2,)))),
        (call("IN", LOWER, text("a"), text("b")), OneOf(term_of(LOWER), frozenset("ab"))),
        (
            call(">", number(7), Call("ABS", (X,), X.dtype)),
            Within(term_of(Call("ABS", (X,), X.dtype)), high=(7, 0)),
        ),
        (call("LIKE", K, text("ab%")), Within(term_of(K), ("ab", 0), ("ac", 0))),
        (
            call("LIKE ESCAPE", LOWER, text("a!%%%"), text("!")),
            Within(term_of(LOWER), ("a%", 0), ("a&", 0)),
        ),
        (
            call("LIKE", K, text(f"a{chr(0x10FFFF)}%")),
            Within(term_of(K), (f"a{chr(0x10FFFF)}", 0), ("b", 0)),
        ),
        (call("LIKE", K, text("ab")), OneOf(term_of(K), frozenset(("ab",)))),
        (
            call("OR", call("=", K, text("a")), call("OR", ABOVE, call("IN", K, text("b")))),
            AnyOf((OneOf(term_of(K), frozenset("ab")), Within(term_of(N), low=(3, 1)))),
        ),
        (
            call("OR", call("=", K, text("a")), call("AND", ABOVE, call("<", N, number(9)))),
            AnyOf((OneOf(term_of(K), frozenset("a")), Within(term_of(N), (3, 1), (9, 0)))),
        ),
    ],
)
def test_expressions_prefixes_and_disjunctions_are_looked_up(
    predicate: Expression, condition: RowCondition
) -> None:
    assert where(predicate) == NeededRows(condition), "the condition says all of it"


@pytest.mark.parametrize("pattern", ["ab%c", "ab_%", "ab_", "ab%%c%"])
def test_of_other_patterns_the_beginning_is_looked_up_and_the_rest_evaluated(pattern: str) -> None:
    liked = call("LIKE", K, text(pattern))
    assert where(liked) == NeededRows(Within(term_of(K), ("ab", 0), ("ac", 0)), liked)
    branch = call("OR", liked, ABOVE)
    begins, above = Within(term_of(K), ("ab", 0), ("ac", 0)), Within(term_of(N), low=(3, 1))
    assert where(branch) == NeededRows(AnyOf((begins, above)), branch)
    after = call(">=", K, text("abc"))
    assert where(liked, after) == NeededRows(Within(term_of(K), ("abc", 0), ("ac", 0)), liked)


@pytest.mark.parametrize(
    ("pattern", "piece"),
    [("%a", "a"), ("_a%", "a"), ("%ab_c%de%", "ab"), (f"{chr(0x10FFFF)}%", chr(0x10FFFF))],
)
def test_of_patterns_without_a_beginning_the_longest_piece_is_looked_up(
    pattern: str, piece: str
) -> None:
    liked = call("LIKE", K, text(pattern))
    assert where(liked) == NeededRows(Containing(term_of(K), piece), liked)
    inside = call("LIKE", K, text(f"%{piece}%%"))
    assert where(inside) == NeededRows(Containing(term_of(K), piece)), "that says all of it"
    assert where(inside, ABOVE) == NeededRows(Containing(term_of(K), piece), ABOVE)
    begins = call("LIKE", K, text("b%"))
    assert where(inside, begins).condition == Within(term_of(K), ("b", 0), ("c", 0))


def test_a_branch_of_several_conditions_is_found_by_one_of_them() -> None:
    some = call("OR", call("=", K, text("a")), call("AND", call("=", N, X), ABOVE))
    branches = (OneOf(term_of(K), frozenset("a")), Within(term_of(N), low=(3, 1)))
    assert where(some) == NeededRows(AnyOf(branches), some)


def test_bounds_on_both_sides_come_before_branches_and_a_list_before_all() -> None:
    either = call("OR", call("=", K, text("a")), ABOVE)
    both = call("AND", call(">", SUM, number(1)), call("<", SUM, number(5)))
    assert where(either, both) == NeededRows(Within(term_of(SUM), (1, 1), (5, 0)), either)
    key = call("=", LOWER, text("a"))
    found = where(both, key)
    assert found.condition == OneOf(term_of(LOWER), frozenset("a"))
    assert where(key, call("=", N, number(1))).condition == OneOf(term_of(N), frozenset((1,)))


def test_of_disjunctions_of_many_conditions_each_row_is_looked_at() -> None:
    some = [call("<", Call("+", (N, number(i)), N.dtype), number(0)) for i in range(MAX_BRANCHES)]
    found = where(call("OR", *some)).condition
    assert isinstance(found, AnyOf)
    assert len(found.branches) == MAX_BRANCHES
    longer = call("OR", *some, ABOVE)
    assert where(longer) == NeededRows(None, longer)


def test_terms_are_equal_if_they_compute_the_same() -> None:
    plus, minus = (Call("+", (X, number(zero)), X.dtype) for zero in (0.0, -0.0))
    assert plus == minus
    assert term_of(plus) != term_of(minus)
    assert term_of(Column(0, "other", DataType.TEXT)) == term_of(K)
    assert term_of(Column(0, "k", DataType.INTEGER)) != term_of(K)


def test_a_column_that_a_fragment_has_not_is_not_looked_up() -> None:
    plan = Filter(FED, call("=", X, number(1)))
    assert condition_of([plan], "fed", COLUMNS) == OneOf(term_of(X), frozenset((1,)))
    narrow = Schema(COLUMNS.fields[:2])
    assert condition_of([plan], "fed", narrow) is None


def test_filters_above_each_other_are_taken_together() -> None:
    small = call("<", X, number(1))
    found = where(small, ABOVE, call("<=", N, number(9)))
    assert found == NeededRows(Within(term_of(N), low=(3, 1), high=(9, 1)), small)


def test_what_the_condition_says_is_not_evaluated_again() -> None:
    key, other = call("=", K, text("a")), call("IN", K, text("a"), text("b"))
    assert where(call("AND", key, ABOVE)) == NeededRows(OneOf(term_of(K), frozenset("a")), ABOVE)
    assert where(key, other) == NeededRows(OneOf(term_of(K), frozenset("a")), other)
    assert where(call("AND", ABOVE, call(">", N, number(5)))) == NeededRows(
        Within(term_of(N), low=(5, 1))
    )


def test_functions_of_users_are_left_to_the_plan() -> None:
    theirs = call("half:1", N)
    assert where(theirs) == NeededRows()
    assert where(theirs, ABOVE) == NeededRows(Within(term_of(N), low=(3, 1)))
    above = Filter(Project(FED, (theirs,), ("y",)), Column(0, "y", DataType.BOOLEAN))
    assert needed_rows([above], "fed", COLUMNS) == NeededRows()


@pytest.mark.parametrize(
    "predicate",
    [
        call("<>", K, text("a")),
        call("=", K, text(None)),
        call("=", X, number(float("nan"))),
        call("<", X, number(float("nan"))),
        call("IN", X, number(1.0), number(float("nan"))),
        call("IN", N, number(1), X),
        call("=", N, X),
        call("NOT", ABOVE),
        call("OR", call("=", K, text("a")), call("IS NULL", K)),
        call("OR", call("=", K, text("a")), call("AND", call("=", N, X), call("<>", N, X))),
        call("LIKE", K, text("%")),
        call("LIKE", K, text("%_")),
        call("LIKE", K, text(None)),
        call("LIKE", K, K),
        call("LIKE ESCAPE", K, text("a%"), K),
        call("LIKE ESCAPE", K, text("a!"), text("!")),
        call("=", K, number(1)),
        call("=", Column(2, "x", DataType.TEXT), text("of another type")),
    ],
)
def test_other_predicates_are_evaluated(predicate: Expression) -> None:
    is_typed = all(c.position < 2 or c.dtype == X.dtype for c in columns_in(predicate))
    assert where(predicate) == NeededRows(None, predicate if is_typed else None)


def test_of_long_lists_each_row_is_looked_at() -> None:
    most = [number(value) for value in range(MAX_LISTED)]
    listed = where(call("IN", N, *most, number(1)))
    assert listed == NeededRows(OneOf(term_of(N), frozenset(range(MAX_LISTED))))
    longer = call("IN", N, *most, number(-1))
    assert where(longer) == NeededRows(None, longer)
    assert where(longer, ABOVE) == NeededRows(Within(term_of(N), low=(3, 1)), longer)


def test_columns_are_followed_through_projections() -> None:
    narrow = Project(FED, (X, Call("+", (N, number(1)), DataType.INTEGER), K), ("x", "m", "k"))
    key = call("=", Column(2, "k", DataType.TEXT), text("a"))
    sum_ = call("=", Column(1, "m", DataType.INTEGER), number(1))
    assert condition_of([Filter(narrow, key)], "fed", COLUMNS) == OneOf(term_of(K), frozenset("a"))
    moved = call("=", Call("+", (N, number(1)), DataType.INTEGER), number(1))
    found = needed_rows([Filter(narrow, sum_)], "fed", COLUMNS)
    assert found == NeededRows(OneOf(term_of(moved.arguments[0]), frozenset((1,))))


def test_a_filter_counts_where_nothing_is_between_it_and_the_fragment() -> None:
    kept = Filter(FED, ABOVE)
    other = RemoteSource("other", COLUMNS)
    joined = Join(other, kept, JoinKind.LEFT, ((0, 0),))
    assert condition_of([Distinct(kept)], "fed", COLUMNS) == Within(term_of(N), low=(3, 1))
    assert condition_of([joined], "fed", COLUMNS) == Within(term_of(N), low=(3, 1))
    assert condition_of([Filter(Distinct(FED), ABOVE)], "fed", COLUMNS) is None
    assert condition_of([FED], "fed", COLUMNS) is None
    assert condition_of([other, kept], "fed", COLUMNS) == Within(term_of(N), low=(3, 1))


def test_what_is_read_twice_may_be_needed_whole() -> None:
    kept = Filter(FED, ABOVE)
    assert condition_of([UnionAll((kept, kept))], "fed", COLUMNS) is None
    assert condition_of([kept, FED], "fed", COLUMNS) is None
    assert condition_of([], "fed", COLUMNS) is None
