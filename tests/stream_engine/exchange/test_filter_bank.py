"""The bank finds exactly the readers whose condition a row fulfils, and all whose filter it passes.

The oracle is each condition, and each filter's generated code, on each row.
"""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from stream_engine.exchange import filter_bank
from stream_engine.exchange.fed_port import FedPort
from stream_engine.exchange.filter_bank import FilterBank
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import Filter, RemoteSource
from streamsql.algebra.scalar_functions.scalar import compile_predicate
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value
from streamsql.wire.bundles.needed_rows import NeededRows, OneOf, RowCondition, Within, needed_rows

COLUMNS = Schema.of(
    ("k", DataType.TEXT), ("n", DataType.INTEGER), ("x", DataType.DOUBLE), ("b", DataType.BOOLEAN)
)
VALUES: dict[DataType, tuple[Value, ...]] = {
    DataType.TEXT: ("", "a", "b", "é", None),
    DataType.INTEGER: (-1, 0, 1, 2, 2**53, 2**53 + 1, None),
    DataType.DOUBLE: (-0.0, 0.0, 1.0, 1.5, 2.0**53, float("inf"), float("nan"), None),
    DataType.BOOLEAN: (True, False, None),
}
ROWS = st.tuples(*(st.sampled_from(VALUES[dtype]) for dtype in COLUMNS.dtypes))


@st.composite
def comparisons(draw: st.DrawFn) -> Expression:
    """Return a comparison of a column with constants, or a list or range of them."""
    position = draw(st.integers(0, len(COLUMNS) - 1))
    field = COLUMNS.fields[position]
    column = Column(position, field.name, field.dtype)
    kinds = [field.dtype]
    if field.dtype.is_numeric:
        kinds = [DataType.INTEGER, DataType.DOUBLE]
    kind = draw(st.sampled_from(kinds))
    literals = st.sampled_from(VALUES[kind]).map(lambda value: Literal(value, kind))
    if draw(st.booleans()):
        found = draw(st.lists(literals, min_size=1, max_size=3))
        return Call("IN", (column, *found), DataType.BOOLEAN)
    name = draw(st.sampled_from(("=", "=", "<", "<=", ">", ">=", "<>")))
    literal = draw(literals)
    sides = (column, literal) if draw(st.booleans()) else (literal, column)
    return Call(name, sides, DataType.BOOLEAN)


@st.composite
def predicates(draw: st.DrawFn) -> Expression:
    parts = draw(st.lists(comparisons(), min_size=1, max_size=3))
    name = draw(st.sampled_from(("AND", "AND", "OR")))
    return parts[0] if len(parts) == 1 else Call(name, tuple(parts), DataType.BOOLEAN)


def fulfils(row: Row, condition: RowCondition) -> bool:
    value = row[condition.column]
    if isinstance(condition, OneOf):
        return any(value == other for other in condition.values)
    if value is None:
        return False
    assert isinstance(condition, Within)
    low, high = condition.low, condition.high
    above = low is None or value > low[0] or (not low[1] and value == low[0])  # type: ignore[operator]
    return above and (high is None or value < high[0] or (bool(high[1]) and value == high[0]))  # type: ignore[operator]


@given(
    st.lists(predicates(), max_size=12),
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
    for name, (predicate, condition) in kept.items():
        found = parts.get(name, {})
        assert set(found) == {row for row in rows if fulfils(row, condition)}
        passes = compile_predicate(predicate)
        assert {row for row in rows if passes(row)} <= set(found)
        assert set(found.values()) <= {2}


def test_a_few_conditions_with_bounds_are_compared_one_by_one() -> None:
    bank = FilterBank()
    for number in range(filter_bank.FEW + 1):
        bank.add(f"q{number}", Within(1, low=(number, 0)))
    bounds = bank._bounds[1]
    assert not bounds.are_few
    bank.remove("q0")
    assert bounds.are_few
    assert set(bounds.each(1, {("a", 2, 0.0, True): 1})) == set(list(bounds._conditions)[:2])


@given(st.lists(predicates(), max_size=12), st.lists(ROWS, min_size=1, max_size=20))
def test_a_port_hands_on_what_passes_filters(filters: list[Expression], rows: list[Row]) -> None:
    port, given_to = FedPort(), dict[int, Delta]()
    for number, predicate in enumerate(filters):

        def give(delta: Delta, _ts: int | None, number: int = number) -> None:
            assert number not in given_to
            given_to[number] = delta

        plan = Filter(RemoteSource("fed", COLUMNS), predicate)
        port.add(f"q{number}", give, needed_rows([plan], "fed", COLUMNS))
    delta = dict.fromkeys(rows, -1)
    port(delta, 7)
    for number, predicate in enumerate(filters):
        passing = list(filter(compile_predicate(predicate), delta))
        assert given_to.get(number, {}) == dict.fromkeys(passing, -1)


def test_a_predicate_that_fails_is_left_to_its_reader() -> None:
    port, found = FedPort(), list[Delta]()
    wrong = Call("<", (Column(0, "k", DataType.TEXT), Literal(1, DataType.TEXT)), DataType.BOOLEAN)
    port.add("q1", lambda delta, _ts: found.append(delta), NeededRows(None, wrong))
    port({("a",): 1}, None)
    assert found == [{("a",): 1}]


def test_an_empty_bank_keeps_nothing() -> None:
    bank = FilterBank()
    for name, condition in (
        ("a", OneOf(0, frozenset("xy"))),
        ("b", Within(1, low=(1, 0))),
        ("c", Within(1, high=(1, 0))),
        ("d", Within(2, low=(1, 0), high=(2, 0))),
    ):
        bank.add(name, condition)
        assert len(bank) == 1
        bank.remove(name)
    assert not bank._equal
    assert not bank._bounds


def test_readers_of_equal_filters_get_one_part() -> None:
    port, found = FedPort(), list[Delta]()
    n, k = Column(1, "n", DataType.INTEGER), Column(0, "k", DataType.TEXT)
    above = Call(">", (n, Literal(0, DataType.INTEGER)), DataType.BOOLEAN)
    named = Call("LIKE", (k, Literal("a%", DataType.TEXT)), DataType.BOOLEAN)
    both = Call("AND", (above, named), DataType.BOOLEAN)
    plans = [Filter(RemoteSource("fed", COLUMNS), p) for p in (above, above, both, both, named)]
    for number, plan in enumerate(plans):
        needed = needed_rows([plan], "fed", COLUMNS)
        port.add(f"q{number}", lambda delta, _ts: found.append(delta), needed)
    a, b, c = ("a", 1, 0.5, None), ("b", 1, 0.5, None), ("a", 0, 0.5, None)
    port(dict.fromkeys((a, b, c), 1), None)
    by_name, all_of_one, _same, both_of_one, _same_too = found
    assert (by_name, all_of_one, both_of_one) == ({a: 1, c: 1}, {a: 1, b: 1}, {a: 1})
    assert found[1] is found[2]
    assert found[3] is found[4]
    port.remove("q0")
    found.clear()
    port({a: -1}, None)
    assert found == [{a: -1}] * 4, "the others still read"
