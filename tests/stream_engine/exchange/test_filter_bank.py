"""The bank finds exactly the readers whose condition a row fulfils, and all whose filter it passes.

The oracle is each condition, and each filter's generated code, on each row.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.exchange import fed_port, filter_bank
from stream_engine.exchange.channel_inbox import Reader
from stream_engine.exchange.fed_port import FedPort
from stream_engine.exchange.filter_bank import FilterBank
from streamsql.algebra.expressions import Call, Column, Expression, Literal, walk
from streamsql.algebra.operators import Filter, RemoteSource
from streamsql.algebra.scalar_functions.scalar import compile_expression, compile_predicate
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value
from streamsql.wire.bundles.needed_rows import NeededRows, needed_rows
from streamsql.wire.bundles.reader_conditions import (
    AnyOf,
    Bound,
    Containing,
    OneOf,
    RowCondition,
    Turning,
    Within,
    branches,
    predicate_of,
    term_of,
)

COLUMNS = Schema.of(
    ("k", DataType.TEXT), ("n", DataType.INTEGER), ("x", DataType.DOUBLE), ("b", DataType.BOOLEAN)
)
LAST = chr(sys.maxunicode)
VALUES: dict[DataType, tuple[Value, ...]] = {
    DataType.TEXT: ("", "a", "ab", "Ab", "abc", "ac", "b", "é", f"a{LAST}", LAST, None),
    DataType.INTEGER: (-1, 0, 1, 2, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, None),
    DataType.DOUBLE: (-0.0, 0.0, 1.0, 1.5, 2.0**53, float("inf"), float("nan"), None),
    DataType.BOOLEAN: (True, False, None),
}
PATTERNS = (
    "a%",
    "ab%",
    "a%c",
    "ab",
    "_b%",
    "%b%",
    "%",
    "",
    "a_",
    "\U0010ffff%",
    "a\U0010ffff%",
    None,
)
ROWS = st.tuples(*(st.sampled_from(VALUES[dtype]) for dtype in COLUMNS.dtypes))
K, N, X, B = (Column(i, f.name, f.dtype) for i, f in enumerate(COLUMNS.fields))


def call(name: str, *arguments: Expression, dtype: DataType = DataType.BOOLEAN) -> Call:
    return Call(name, arguments, dtype)


ONE = Literal(1, DataType.INTEGER)
TERMS: tuple[Expression, ...] = (
    *(K, N, X, B) * 2,
    call("+", N, ONE, dtype=N.dtype),  # NULL for 2^63 - 1
    call("%", ONE, N, dtype=N.dtype),  # NULL for 0
    call("-", N, X, dtype=X.dtype),
    call("*", X, Literal(-0.0, X.dtype), dtype=X.dtype),
    call("ABS", N, dtype=N.dtype),
    call("FLOOR", X, dtype=X.dtype),  # fails for infinity and NaN
    call("LOWER", K, dtype=K.dtype),
    call("CAST", X, dtype=K.dtype),
    call("COALESCE", K, Literal("ab", K.dtype), dtype=K.dtype),
    call("<", N, X, dtype=B.dtype),
)


@st.composite
def comparisons(draw: st.DrawFn) -> Expression:
    """Return a comparison of an expression with constants, or a list or pattern of them."""
    term = draw(st.sampled_from(TERMS))
    kinds = [term.dtype]
    if term.dtype.is_numeric:
        kinds = [DataType.INTEGER, DataType.DOUBLE]
    kind = draw(st.sampled_from(kinds))
    if kind == DataType.TEXT and draw(st.booleans()):
        pattern = Literal(draw(st.sampled_from(PATTERNS)), DataType.TEXT)
        return Call("LIKE", (term, pattern), DataType.BOOLEAN)
    literals = st.sampled_from(VALUES[kind]).map(lambda value: Literal(value, kind))
    if draw(st.booleans()):
        found = draw(st.lists(literals, min_size=1, max_size=3))
        return Call("IN", (term, *found), DataType.BOOLEAN)
    name = draw(st.sampled_from(("=", "=", "<", "<=", ">", ">=", "<>")))
    literal = draw(literals)
    sides = (term, literal) if draw(st.booleans()) else (literal, term)
    return Call(name, sides, DataType.BOOLEAN)


@st.composite
def turning_comparisons(draw: st.DrawFn) -> Expression:
    """Return a comparison of two expressions, one of which has a constant inside."""
    kind = draw(st.sampled_from((DataType.INTEGER, DataType.DOUBLE)))
    # Some terms have the same shape, and some constants lie close to each other.
    few = (0, 1, 2, -3) if kind == DataType.INTEGER else (0.0, 0.1, 0.3, -2.5)
    value = draw(st.sampled_from((*few, *VALUES[kind])))
    inside: list[Expression] = [draw(st.sampled_from((N, X))), Literal(value, kind)]
    dtype = draw(st.sampled_from((N.dtype, X.dtype)))
    side = call(draw(st.sampled_from("+-*")), *draw(st.permutations(inside)), dtype=dtype)
    if draw(st.booleans()):
        side = call(draw(st.sampled_from("+-")), side, draw(st.sampled_from((N, X))), dtype=X.dtype)
    if draw(st.booleans()):
        side = call("NEGATE", side, dtype=side.dtype)
    sides: list[Expression] = [side, draw(st.sampled_from((N, X)))]
    name = draw(st.sampled_from(("=", "<", "<=", ">", ">=")))
    return Call(name, tuple(draw(st.permutations(sides))), DataType.BOOLEAN)


def joined(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    lists = st.lists(parts, min_size=2, max_size=3).map(tuple)
    names = st.sampled_from(("AND", "OR"))
    return st.builds(Call, names, lists, st.just(DataType.BOOLEAN))


predicates = st.recursive(comparisons() | turning_comparisons(), joined, max_leaves=4)
FAILED = object()


def value_of(row: Row, expression: Expression) -> object:
    try:
        return compile_expression(expression)(row)
    except (OverflowError, ValueError):
        return FAILED


def may_turn_twice(row: Row, condition: RowCondition, among: Iterable[RowCondition]) -> bool:
    """Return whether a comparison is NULL, or fails, with the least or greatest constant inside."""
    others = [branch for each in among for branch in branches(each) if isinstance(branch, Turning)]
    for one in branches(condition):
        if isinstance(one, Turning):
            alike = sorted((o for o in others if o.term == one.term), key=lambda o: o.constant)
            ends = (value_of(row, predicate_of(end)) for end in (alike[0], alike[-1]))
            if any(value is None or value is FAILED for value in ends):
                return True
    return False


def passes(row: Row, predicate: Expression) -> bool:
    """Return whether a predicate is TRUE for a row; one that fails is not."""
    try:
        return compile_predicate(predicate)(row)
    except (OverflowError, ValueError):
        return False


def fulfils(row: Row, condition: RowCondition) -> bool:
    """Return whether a condition holds for a row, or fails."""
    if isinstance(condition, AnyOf):
        return any(fulfils(row, branch) for branch in condition.branches)
    if isinstance(condition, Turning):
        return passes(row, predicate_of(condition))
    value: Any = value_of(row, condition.term.expression)
    if isinstance(condition, OneOf):
        return value is FAILED or any(value == other for other in condition.values)
    if isinstance(condition, Containing):
        return value is FAILED or (value is not None and condition.piece in value)
    if value is None or value is FAILED:
        return value is FAILED
    low, high = condition.low, condition.high
    above = low is None or value > low[0] or (not low[1] and value == low[0])
    return above and (high is None or value < high[0] or (bool(high[1]) and value == high[0]))


@given(
    st.lists(predicates, max_size=12),
    st.lists(st.integers(0, 11)),
    st.lists(ROWS, min_size=1, max_size=20),
    st.sampled_from((0, filter_bank.FEW, 100)),
)
def test_found_are_those_whose_condition_holds(
    filters: list[Expression], gone: list[int], rows: list[Row], few: int
) -> None:
    bank = FilterBank()
    kept: dict[str, tuple[Expression, RowCondition]] = {}
    for number, predicate in enumerate(filters):
        plan = Filter(RemoteSource("fed", COLUMNS), predicate)
        condition = needed_rows([plan], "fed", COLUMNS).condition
        if condition is not None:
            kept[f"q{number}"] = (predicate, condition)
            bank.add(f"q{number}", condition)
    for number in gone:
        bank.remove(f"q{number}")
        kept.pop(f"q{number}", None)
    assert len(bank) == len(kept)
    with patch.object(filter_bank, "FEW", few):
        found_parts = bank.parts(dict.fromkeys(rows, 2))
    told = [(reader, part) for names, part in found_parts for reader in names]
    parts = dict(told)
    assert len(parts) == len(told), "no reader is named twice"
    asked = [condition for _predicate, condition in kept.values()]
    for name, (predicate, condition) in kept.items():
        found = parts.get(name, {})
        wanted = {row for row in rows if fulfils(row, condition)}
        assert wanted <= set(found)
        assert all(row in wanted or may_turn_twice(row, condition, asked) for row in found)
        assert {row for row in rows if passes(row, predicate)} <= set(found)
        assert set(found.values()) <= {2}


def test_a_few_conditions_with_bounds_are_compared_one_by_one() -> None:
    bank = FilterBank()
    for number in range(filter_bank.FEW + 1):
        bank.add(f"q{number}", Within(term_of(N), low=(number, 0)))
    bounds = bank._terms[term_of(N)]._bounds
    assert not bounds.are_few
    bank.remove("q0")
    assert bounds.are_few
    assert [rows for _alike, rows in bounds.each({(2,): 1}, [2])] == [{(2,): 1}] * 2


@given(
    st.lists(predicates, max_size=12),
    st.lists(st.integers(0, 11)),
    st.lists(ROWS, min_size=1, max_size=20),
    st.sampled_from((0, fed_port.FEW, 100)),
)
def test_a_port_hands_on_what_passes_filters(
    filters: list[Expression], gone: list[int], rows: list[Row], few: int
) -> None:
    port, given_to, every = FedPort(), dict[int, Delta](), list[NeededRows]()
    for number, predicate in enumerate(filters):

        def give(delta: Delta, _ts: int | None, number: int = number) -> None:
            assert number not in given_to, "a reader gets all its rows at once"
            given_to[number] = delta

        plan = Filter(RemoteSource("fed", COLUMNS), predicate)
        every.append(needed_rows([plan], "fed", COLUMNS))
        port.add(f"q{number}", give, every[-1])
    for number in gone:
        port.remove(f"q{number}")
    assert port.is_read == (not {*range(len(filters))} <= {*gone})
    delta = dict.fromkeys(rows, -1)
    with patch.object(fed_port, "FEW", few):
        port(delta, 7)
    for number, predicate in enumerate(filters):
        passing = [row for row in delta if number not in gone and passes(row, predicate)]
        given_rows = given_to.get(number, {})
        assert set(passing) <= set(given_rows) <= set(delta)
        assert set(given_rows.values()) <= {-1}
        if not any(fails(row, predicate) for row in delta):
            asked = [needed.condition for needed in every if needed.condition is not None]
            condition = every[number].condition
            extra = set(given_rows) - set(passing)
            assert not extra or condition is not None
            assert all(condition and may_turn_twice(row, condition, asked) for row in extra)


def fails(row: Row, predicate: Expression) -> bool:
    """Return whether a part of a predicate fails for a row."""
    return any(value_of(row, part) is FAILED for part in walk(predicate))


def over(term: Expression, name: str, value: Bound) -> NeededRows:
    """Return what a filter needs that compares a term with a constant."""
    test = Call(name, (term, Literal(value, term.dtype)), DataType.BOOLEAN)
    return needed_rows([Filter(RemoteSource("fed", COLUMNS), test)], "fed", COLUMNS)


READERS = 10_000
MANY: dict[str, Callable[[int], Expression]] = {
    "an expression": lambda i: call("=", TERMS[8], Literal(i + 1, N.dtype)),
    "a function": lambda i: call("=", call("ABS", N, dtype=N.dtype), Literal(i, N.dtype)),
    "two columns": lambda i: call("=", call("-", N, X, dtype=X.dtype), Literal(i, N.dtype)),
    "a range": lambda i: call(
        "AND",
        call(">=", TERMS[8], Literal(i + 1, N.dtype)),
        call("<", TERMS[8], Literal(i + 2, N.dtype)),
    ),
    "a prefix": lambda i: call("LIKE", K, Literal(f"{i:04}%", K.dtype)),
    "a prefix and more": lambda i: call("LIKE", K, Literal(f"{i:04}%x", K.dtype)),
    "two branches": lambda i: call(
        "OR", call("=", N, Literal(i, N.dtype)), call("=", K, Literal(f"{i:04}x", K.dtype))
    ),
    "a piece": lambda i: call("LIKE", K, Literal(f"%{i:04}%", K.dtype)),
    "a piece and more": lambda i: call("LIKE", K, Literal(f"%{i:04}_%", K.dtype)),
    "equal predicates of no term": lambda _: call("<>", K, K),
}


@pytest.mark.parametrize("predicate", MANY.values(), ids=MANY)
def test_of_ten_thousand_readers_only_those_are_touched_that_get_rows(
    predicate: Callable[[int], Expression],
) -> None:
    port, given_to = FedPort(), dict[int, Delta]()
    for number in range(READERS):
        plan = Filter(RemoteSource("fed", COLUMNS), predicate(number))

        def give(delta: Delta, _ts: int | None, number: int = number) -> None:
            given_to[number] = delta

        port.add(f"q{number}", give, needed_rows([plan], "fed", COLUMNS))
    rows: Delta = {(f"{number:04}x", number, 0.0, None): 1 for number in (17, 4711)}
    touched = list[object]()

    def counted(alike: fed_port._Alike, part: Delta, ts: int | None) -> None:
        touched.append(alike)
        give_part(alike, part, ts)

    give_part = fed_port._Alike.give
    with patch.object(fed_port._Alike, "give", counted):
        port(rows, None)
    expected = {
        number: part
        for number in (17, 4711)
        if (part := {row: 1 for row in rows if passes(row, predicate(number))})
    }
    assert given_to == expected
    assert len(touched) == max(len(expected), 1)


def test_a_term_is_evaluated_once_a_row_for_all_its_readers() -> None:
    bank = FilterBank()
    for number in range(20):
        for name in ("=", "<", ">="):
            condition = over(TERMS[8], name, number).condition
            assert condition is not None
            bank.add(f"{name} {number}", condition)
    (readers,) = bank._terms.values()
    asked = list[Row]()
    value = readers._value

    def counted(row: Row) -> object:
        asked.append(row)
        return value(row)

    readers._value = counted
    rows = [("a", number, 0.0, None) for number in range(5)]
    assert bank.parts(dict.fromkeys(rows, 1))
    assert asked == rows


def test_rows_for_which_a_term_fails_go_to_all_its_readers() -> None:
    bank, whole = FilterBank(), Literal(1.0, X.dtype)
    floor = call("FLOOR", X, dtype=X.dtype)
    for name in ("=", ">"):
        condition = over(floor, name, 1.0).condition
        assert condition is not None
        bank.add(name, condition)
    endless, small, middle = ((None, None, x, None) for x in (float("inf"), 0.5, 1.5))
    found = bank.parts(dict.fromkeys((small, endless, middle), 1))
    assert {name: set(part) for names, part in found for name in names} == {
        "=": {endless, middle},
        ">": {endless},
    }
    assert compile_predicate(call("=", floor, whole))(middle)


def test_a_predicate_that_fails_is_left_to_its_reader() -> None:
    port, found = FedPort(), list[Delta]()
    wrong = Call("<", (Column(0, "k", DataType.TEXT), Literal(1, DataType.TEXT)), DataType.BOOLEAN)
    port.add("q1", lambda delta, _ts: found.append(delta), NeededRows(None, wrong))
    port({("a",): 1}, None)
    assert found == [{("a",): 1}]


def test_an_empty_bank_keeps_nothing() -> None:
    bank = FilterBank()
    k, n = term_of(K), term_of(N)
    listed, below = OneOf(k, frozenset("xy")), Within(n, high=(1, 0))
    for name, condition in (
        ("a", listed),
        ("b", Within(n, low=(1, 0))),
        ("c", below),
        ("d", Within(n, low=(1, 0), high=(2, 0))),
        ("e", Containing(k, "xy")),
        ("f", AnyOf((listed, below, Within(n, low=(7, 0))))),
    ):
        bank.add(name, condition)
        assert len(bank) == 1
        bank.remove(name)
        assert not bank._single
        bank.add("first", condition)
        bank.add(name, AnyOf((*branches(condition), OneOf(n, frozenset((3,))))))
        terms = [bank._terms[branch.term] for branch in branches(condition)]
        bank.remove("first")
        bank.remove(name)
        assert not any(
            term._equal or term._bounds or term._bounds._low or term._pieces for term in terms
        )
    assert not any((bank._terms, bank._single, bank._alike))


def test_a_reader_that_comes_back_with_another_filter_is_a_reader_of_its_own() -> None:
    port, found = FedPort(), dict[str, Delta]()
    a, b = ("a", 1, None, None), ("b", 2, None, None)

    def giver(name: str) -> Reader:
        return lambda delta, _ts: found.__setitem__(name, delta)

    for name in ("q1", "q2"):
        port.add(name, giver(name), over(N, "=", 1))
    port.remove("q1")
    port.add("q1", giver("q1"), over(N, "=", 2))
    port({a: 1, b: 1}, None)
    assert found == {"q1": {b: 1}, "q2": {a: 1}}


@pytest.mark.parametrize("few", [0, fed_port.FEW])
def test_readers_of_equal_filters_get_one_part(few: int) -> None:
    port, found = FedPort(), dict[int, Delta]()
    above = call(">", N, Literal(0, N.dtype))
    named = call("<>", call("LIKE", K, Literal("%a%", K.dtype)), Literal(False, B.dtype))
    both = call("AND", above, named)
    plans = [Filter(RemoteSource("fed", COLUMNS), p) for p in (above, above, both, both, named)]
    for number, plan in enumerate(plans):

        def give(delta: Delta, _ts: int | None, number: int = number) -> None:
            found[number] = delta

        port.add(f"q{number}", give, needed_rows([plan], "fed", COLUMNS))
    a, b, c = ("a", 1, 0.5, None), ("b", 1, 0.5, None), ("a", 0, 0.5, None)
    with patch.object(fed_port, "FEW", few):
        port(dict.fromkeys((a, b, c), 1), None)
        assert found[0] == {a: 1, b: 1}
        assert (found[2], found[4]) == ({a: 1}, {a: 1, c: 1})
        assert found[0] is found[1]
        assert found[2] is found[3]
        port.remove("q0")
        found.clear()
        port({a: -1}, None)
    assert found == {key: {a: -1} for key in (1, 2, 3, 4)}, "the others still read"
