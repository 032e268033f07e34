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
from streamsql.wire.bundles.needed_rows import (
    MAX_LISTED,
    NeededRows,
    OneOf,
    RowCondition,
    Within,
    needed_rows,
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
        (call("=", K, text("a")), OneOf(0, frozenset("a"))),
        (call("=", number(2.0), N), OneOf(1, frozenset((2.0,)))),
        (call("IN", K, text("a"), text("b"), text(None)), OneOf(0, frozenset("ab"))),
        (call("OR", call("=", K, text("a")), call("IN", K, text("c"))), OneOf(0, frozenset("ac"))),
        (ABOVE, Within(1, low=(3, 1))),
        (call("<=", number(3), N), Within(1, low=(3, 0))),
        (call("<", X, number(0.5)), Within(2, high=(0.5, 0))),
        (call("<=", X, number(1)), Within(2, high=(1, 1))),
        (call("AND", ABOVE, call("<", X, number(1))), Within(1, low=(3, 1))),
        (call("AND", ABOVE, call(">=", N, number(3))), Within(1, low=(3, 1))),
        (call("AND", ABOVE, call("=", K, text("a"))), OneOf(0, frozenset("a"))),
        (call("AND", ABOVE, call("OR", ABOVE, ABOVE)), Within(1, low=(3, 1))),
    ],
)
def test_a_filter_gives_a_condition(predicate: Expression, condition: RowCondition) -> None:
    assert where(predicate).condition == condition


def test_a_column_that_a_fragment_has_not_is_not_looked_up() -> None:
    plan = Filter(FED, call("=", X, number(1)))
    assert condition_of([plan], "fed", COLUMNS) == OneOf(2, frozenset((1,)))
    narrow = Schema(COLUMNS.fields[:2])
    assert condition_of([plan], "fed", narrow) is None


def test_filters_above_each_other_are_taken_together() -> None:
    small = call("<", X, number(1))
    found = where(small, ABOVE, call("<=", N, number(9)))
    assert found == NeededRows(Within(1, low=(3, 1), high=(9, 1)), small)


def test_what_the_condition_says_is_not_evaluated_again() -> None:
    key, other = call("=", K, text("a")), call("IN", K, text("a"), text("b"))
    assert where(call("AND", key, ABOVE)) == NeededRows(OneOf(0, frozenset("a")), ABOVE)
    assert where(key, other) == NeededRows(OneOf(0, frozenset("a")), other)
    assert where(call("AND", ABOVE, call(">", N, number(5)))) == NeededRows(Within(1, low=(5, 1)))


def test_functions_of_users_are_left_to_the_plan() -> None:
    theirs = call("half:1", N)
    assert where(theirs) == NeededRows()
    assert where(theirs, ABOVE) == NeededRows(Within(1, low=(3, 1)))
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
        call("=", Call("+", (N, number(1)), DataType.INTEGER), number(2)),
        call("NOT", ABOVE),
        call("OR", call("=", K, text("a")), call("=", N, number(1))),
        call("OR", call("=", K, text("a")), call("IS NULL", K)),
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
    assert listed == NeededRows(OneOf(1, frozenset(range(MAX_LISTED))))
    longer = call("IN", N, *most, number(-1))
    assert where(longer) == NeededRows(None, longer)
    assert where(longer, ABOVE) == NeededRows(Within(1, low=(3, 1)), longer)


def test_columns_are_followed_through_projections() -> None:
    narrow = Project(FED, (X, Call("+", (N, number(1)), DataType.INTEGER), K), ("x", "m", "k"))
    key = call("=", Column(2, "k", DataType.TEXT), text("a"))
    sum_ = call("=", Column(1, "m", DataType.INTEGER), number(1))
    assert condition_of([Filter(narrow, key)], "fed", COLUMNS) == OneOf(0, frozenset("a"))
    moved = call("=", Call("+", (N, number(1)), DataType.INTEGER), number(1))
    assert needed_rows([Filter(narrow, sum_)], "fed", COLUMNS) == NeededRows(None, moved)


def test_a_filter_counts_where_nothing_is_between_it_and_the_fragment() -> None:
    kept = Filter(FED, ABOVE)
    other = RemoteSource("other", COLUMNS)
    joined = Join(other, kept, JoinKind.LEFT, ((0, 0),))
    assert condition_of([Distinct(kept)], "fed", COLUMNS) == Within(1, low=(3, 1))
    assert condition_of([joined], "fed", COLUMNS) == Within(1, low=(3, 1))
    assert condition_of([Filter(Distinct(FED), ABOVE)], "fed", COLUMNS) is None
    assert condition_of([FED], "fed", COLUMNS) is None
    assert condition_of([other, kept], "fed", COLUMNS) == Within(1, low=(3, 1))


def test_what_is_read_twice_may_be_needed_whole() -> None:
    kept = Filter(FED, ABOVE)
    assert condition_of([UnionAll((kept, kept))], "fed", COLUMNS) is None
    assert condition_of([kept, FED], "fed", COLUMNS) is None
    assert condition_of([], "fed", COLUMNS) is None
