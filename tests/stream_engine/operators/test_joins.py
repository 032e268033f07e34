"""Every join: incremental equals from scratch, for any batching, on both ports at once."""

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stream_engine.circuit.compiler import compile_plan
from stream_engine.circuit.join_nodes import join_operator
from stream_engine.operators.joins import join_state
from stream_engine.operators.joins.band_bounds import find_band
from stream_engine.operators.joins.join import BandJoinOperator
from stream_engine.testing.circuit_runs import alone, evaluated_over
from stream_engine.testing.histories import delta_sequences
from streamsql.algebra.expressions import Call, Column, Expression, Literal, conjunction, shifted
from streamsql.algebra.operators import AsOfJoin, Join, JoinKind, RemoteSource
from streamsql.algebra.scalar_functions.scalar import compile_predicate
from streamsql.data.delta import Delta, accumulate
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value

INTEGER, DOUBLE, TEXT, BOOLEAN = (
    DataType.INTEGER,
    DataType.DOUBLE,
    DataType.TEXT,
    DataType.BOOLEAN,
)
COLUMNS = Schema.of(("k", TEXT), ("n", INTEGER), ("x", DOUBLE))
LEFT, RIGHT = RemoteSource("left", COLUMNS), RemoteSource("right", COLUMNS)
WIDTH = len(COLUMNS)
KEYS = st.sampled_from(((), ((0, 0),), ((0, 0), (1, 1)), ((1, 1),), ((1, 1), (1, 1))))
K, N, X = (Column(i, COLUMNS.names[i], COLUMNS.dtypes[i]) for i in range(WIDTH))
RK, RN, RX = (shifted(column, WIDTH) for column in (K, N, X))


@pytest.fixture(autouse=True, scope="module")
def _small_changes_are_put_in_order() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_state, "_WORTH_SORTING", 3)
        yield


def call(function: str, *arguments: Expression, dtype: DataType = BOOLEAN) -> Call:
    return Call(function, arguments, dtype)


def number(value: Value) -> Literal:
    return Literal(value, DOUBLE if isinstance(value, float) else INTEGER)


@st.composite
def moved(draw: st.DrawFn, column: Expression, dtype: DataType) -> Expression:
    """Return a column, perhaps with constants added to it."""
    result = column
    for _ in range(draw(st.sampled_from((0, 0, 1, 2)))):
        constants = (0.1, 0.3, 1e16, -2.5) if dtype == DOUBLE else (1, 2, -3, 2**63 - 2)
        constant = number(draw(st.sampled_from(constants)))
        sides: tuple[Expression, Expression] = (result, constant)
        function = draw(st.sampled_from(("+", "-")))
        if function == "+" and draw(st.booleans()):
            sides = (constant, result)
        result = Call(function, sides, dtype)
    return result


@st.composite
def ranges(draw: st.DrawFn) -> Expression:
    """Return a comparison between a left and a right value, written in any way."""
    operator = draw(st.sampled_from(("<", "<=", ">", ">=", "=")))
    if draw(st.integers(0, 4)) == 0:
        return call(operator, *draw(st.permutations((K, RK))))
    pair, dtype = draw(st.sampled_from((((N, RN), INTEGER), ((X, RX), DOUBLE), ((N, RX), DOUBLE))))
    a, b = draw(st.permutations(pair))
    limit = number(draw(st.sampled_from((0, 1, 2) if dtype == INTEGER else (0.1, 0.2, 1.0))))
    apart = call("-", a, b, dtype=dtype)
    match draw(st.integers(0, 4)):
        case 0:
            return call(operator, apart, limit)
        case 1:
            return call(operator, limit, call("ABS", apart, dtype=dtype))
        case 2:
            distance = call("DISTANCE", X, N, RX, RN, dtype=DOUBLE)
            return call(draw(st.sampled_from(("<", "<="))), distance, number(1.5))
        case _:
            return call(operator, draw(moved(a, dtype)), draw(moved(b, dtype)))


@st.composite
def residuals(draw: st.DrawFn) -> Expression | None:
    """Return any condition; most have a band in them."""
    parts = draw(st.lists(ranges(), max_size=3))
    if draw(st.integers(0, 3)) == 0:
        parts.append(call("OR", call("=", K, RK), call("IS NULL", K), call("IS NULL", RK)))
    return conjunction(list(parts))


@st.composite
def joins(draw: st.DrawFn) -> Join:
    right = draw(st.sampled_from((LEFT, RIGHT, RIGHT)))
    kind = draw(st.sampled_from(tuple(JoinKind)))
    return Join(LEFT, right, kind, draw(KEYS), draw(residuals()))


@st.composite
def as_of_joins(draw: st.DrawFn) -> AsOfJoin:
    right = draw(st.sampled_from((LEFT, RIGHT, RIGHT)))
    time = draw(st.sampled_from((1, 1, 2, 0)))
    keys = draw(st.sampled_from(((), ((0, 0),), ((0, 0), (2, 2)))))
    kind = draw(st.sampled_from((JoinKind.INNER, JoinKind.LEFT)))
    return AsOfJoin(LEFT, right, kind, time, time, draw(st.booleans()), keys)


def check(plan: Join | AsOfJoin, lefts: list[Delta], rights: list[Delta]) -> None:
    """After every batch the sum of the outputs is the answer from scratch."""
    circuit = compile_plan(plan, alone)
    inputs: dict[str, Delta] = {"left": {}, "right": {}}
    output = circuit.step({}, {}, 0)
    assert output == evaluated_over(plan, inputs)
    nothing: Delta = {}
    for left, right in itertools.zip_longest(lefts, rights, fillvalue=nothing):
        accumulate(inputs["left"], left)
        accumulate(inputs["right"], right)
        change = circuit.step({}, {"left": left, "right": right}, 0)
        assert 0 not in change.values()
        accumulate(output, change)
        assert output == evaluated_over(plan, inputs)
    back = {name: {row: -w for row, w in relation.items()} for name, relation in inputs.items()}
    accumulate(output, circuit.step({}, back, 0))
    assert output == {}
    assert [entry.state_rows for entry in circuit.statistics()][-1] == 0


SEQUENCES = delta_sequences(COLUMNS, max_steps=6)


@given(joins(), SEQUENCES, SEQUENCES)
def test_joins_equal_the_reference(join: Join, lefts: list[Delta], rights: list[Delta]) -> None:
    check(join, lefts, rights)


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.FULL])
@pytest.mark.parametrize("left_first", [True, False])
def test_a_partner_of_nulls_is_told_from_padding(kind: JoinKind, *, left_first: bool) -> None:
    """A computed value of a row of NULLs need not be NULL, so such a row may have partners."""
    residual = call("<=", N, call("COALESCE", RN, number(0), dtype=INTEGER))
    rows: list[Delta] = [{("a", 0, 1.0): 1}, {(None, None, None): 1, ("b", -1, 1.0): 1}]
    nothing: list[Delta] = [{}]
    lefts = rows[:1] if left_first else nothing + rows[:1]
    rights = nothing + rows[1:] if left_first else rows[1:]
    check(Join(LEFT, RIGHT, kind, (), residual), lefts, rights)


@given(as_of_joins(), SEQUENCES, SEQUENCES)
def test_as_of_joins_equal_the_reference(
    join: AsOfJoin, lefts: list[Delta], rights: list[Delta]
) -> None:
    check(join, lefts, rights)


@pytest.mark.parametrize("kind", list(JoinKind))
@given(sequence=SEQUENCES, keys=KEYS, residual=residuals())
def test_one_input_on_both_ports(
    kind: JoinKind, sequence: list[Delta], keys: tuple[tuple[int, int], ...], residual: Expression
) -> None:
    check(Join(LEFT, LEFT, kind, keys, residual), sequence, [])


FINITE = st.floats(-1e18, 1e18) | st.sampled_from((0.1, 0.2, 0.3, 1e16, 1e16 + 2, -0.0))


@given(FINITE, FINITE, FINITE, FINITE, st.sampled_from(("<", "<=", ">", ">=", "=")))
@example(0.3, 0.1, 0.0, 0.2, "<=")
def test_a_band_is_never_too_narrow(
    a: float, b: float, first: float, second: float, operator: str
) -> None:
    """What the condition accepts lies inside the band, from either side, whatever rounds."""
    sum_of = call("+", X, number(first), dtype=DOUBLE), call("-", RX, number(second), dtype=DOUBLE)
    for condition in (
        call(operator, *sum_of),
        call(operator, call("-", X, RX, dtype=DOUBLE), number(first)),
        call("<", call("DISTANCE", X, N, RX, RN, dtype=DOUBLE), number(abs(first))),
    ):
        found = find_band(condition, WIDTH)
        assert found is not None
        assert found.rest == found.careful == condition
        row: Row = ("", 0, a, "", 0, b)
        if compile_predicate(condition)(row):
            for side, there, value in ((0, b, a), (1, a, b)):
                low, high, *_ = found.band.ends(side)
                assert low is None or found.band.moved(there, low, -1) <= value
                assert high is None or value <= found.band.moved(there, high, 1)


def test_a_band_with_two_ends_is_preferred_and_replaces_bare_comparisons() -> None:
    other = call("<", K, RK)
    low, high = call(">=", N, RN), call("<", N, RN)
    found = find_band(conjunction([other, low, high]), WIDTH)
    assert found is not None
    assert found.band.ends(0) == (0, 0, False, True)
    assert found.band.ends(1) == (0, 0, True, False)
    assert found.rest == found.careful == other


def test_a_band_of_integers_is_checked_again_only_where_sums_may_not_fit() -> None:
    moved_up = call("<", call("+", N, number(5), dtype=INTEGER), RN)
    near = call("<=", call("ABS", call("-", N, RN, dtype=INTEGER), dtype=INTEGER), number(9))
    parts: list[Expression] = [moved_up, near]
    condition = conjunction(parts)
    found = find_band(condition, WIDTH)
    assert found is not None
    assert found.band.ends(0) == (-9, -5, False, True)
    assert found.rest is None
    assert found.careful == condition


HUGE = st.sampled_from((0, 1, -1, 2**62, -(2**62), 2**63 - 1, 2**63 - 4, -(2**63), -(2**63) + 3))


@given(st.data(), residuals().filter(lambda residual: residual is not None))
def test_bands_of_huge_integers_equal_the_reference(
    data: st.DataObject, residual: Expression
) -> None:
    """Sums that do not fit 64 bits are NULL and compare with nothing."""
    rows: st.SearchStrategy[Row] = st.tuples(
        st.sampled_from(("a", "b")), HUGE, st.sampled_from((0.5, None))
    )
    deltas = st.lists(st.dictionaries(rows, st.just(1), max_size=3), max_size=3)
    kind = data.draw(st.sampled_from(tuple(JoinKind)))
    check(Join(LEFT, RIGHT, kind, (), residual), data.draw(deltas), data.draw(deltas))


def test_a_band_join_looks_at_what_is_in_the_band_only() -> None:
    """The predicate is asked for the rows inside and not for the thousand others."""
    within: list[Expression] = [
        call(">=", N, call("-", RN, number(10), dtype=INTEGER)),
        call("<=", N, call("+", RN, number(10), dtype=INTEGER)),
    ]
    operator = join_operator(Join(LEFT, RIGHT, JoinKind.INNER, (), conjunction(within)))
    assert isinstance(operator, BandJoinOperator)
    operator.apply(0, {("a", n, 0.5): 1 for n in range(1_000)})
    matches = operator._sides[0].matching(("b", 500, 0.5))
    assert [pair[1] for _, pair, _ in matches] == list(range(490, 511))
    assert len(operator.apply(1, {("b", 500, 0.5): 1})) == 21


def test_an_as_of_join_touches_one_stretch() -> None:
    """A right row between two others takes the left rows up to the next one, no more."""
    plan = AsOfJoin(LEFT, RIGHT, JoinKind.INNER, 1, 1, strict=False, keys=((0, 0),))
    operator = join_operator(plan)
    operator.apply(0, {("a", n, 0.5): 1 for n in range(100)})
    operator.apply(1, {("a", 10, 1.0): 1, ("a", 50, 2.0): 1})
    change = operator.apply(1, {("a", 47, 3.0): 1})
    assert change == {
        **{("a", n, 0.5, "a", 10, 1.0): -1 for n in (47, 48, 49)},
        **{("a", n, 0.5, "a", 47, 3.0): 1 for n in (47, 48, 49)},
    }


def test_a_semi_join_is_silent_while_partners_are_left() -> None:
    operator = join_operator(Join(LEFT, RIGHT, JoinKind.ANTI, ((0, 0),)))
    operator.apply(0, {("a", 1, 0.5): 2})
    assert operator.apply(1, {("a", 1, 0.5): 1}) == {("a", 1, 0.5): -2}
    assert operator.apply(1, {("a", 2, 0.5): 5}) == {}
    assert operator.apply(1, {("a", 1, 0.5): -1, ("a", 2, 0.5): -4}) == {}
    assert operator.apply(1, {("a", 2, 0.5): -1}) == {("a", 1, 0.5): 2}
