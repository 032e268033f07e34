"""A circuit without branches gives the same rows and counts as one whose nodes are run by turns."""

from collections.abc import Callable
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.compiler import compile_plan
from stream_engine.testing.circuit_runs import RemoteRun, alone
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    RemoteSource,
    UnionAll,
)
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

PAIR = Schema.of(("k", DataType.TEXT), ("x", DataType.DOUBLE))
SOURCE = RemoteSource("f1", PAIR)
K, X = Column(0, "k", DataType.TEXT), Column(1, "x", DataType.DOUBLE)
VALUES = (-1.0, 0.0, 2.5, float("inf"), None)
ROWS = st.tuples(st.sampled_from(("a", "b", None)), st.sampled_from(VALUES))


def filtered(plan: Plan) -> Plan:
    return Filter(plan, Call(">", (X, Literal(-0.5, DataType.DOUBLE)), DataType.BOOLEAN))


def turned(plan: Plan) -> Plan:
    """Exchange the values of x with others; rows become equal."""
    positive = Call(">", (X, Literal(1.0, DataType.DOUBLE)), DataType.BOOLEAN)
    one, zero = Literal(1.0, DataType.DOUBLE), Literal(0.0, DataType.DOUBLE)
    x = Call("CASE", (positive, one, zero), DataType.DOUBLE)
    return Project(plan, (K, x), ("k", "x"))


def greatest(plan: Plan) -> Plan:
    return Aggregate(plan, (0,), (AggregateCall(AggregateFunction.MAX, (X,), "x"),))


STAGES = st.lists(st.sampled_from((filtered, turned, Distinct, greatest)), max_size=4)


@st.composite
def histories(draw: st.DrawFn) -> list[Delta]:
    """Return changes of a bag: no weight of it is ever negative."""
    held: Delta = {}
    changes = []
    for _ in range(draw(st.integers(1, 5))):
        change: Delta = {}
        for row in draw(st.lists(ROWS, max_size=4, unique=True)):
            weight = draw(st.integers(-held.get(row, 0), 2))
            if weight:
                change[row] = weight
                held[row] = held.get(row, 0) + weight
        changes.append(change)
    return changes


def counts(circuit: Circuit) -> list[tuple[int, int, int]]:
    return [(s.rows_in, s.rows_out, s.state_rows) for s in circuit.statistics()]


@given(STAGES, histories())
def test_a_chain_gives_what_its_nodes_give(
    stages: list[Callable[[Plan], Plan]], history: list[Delta]
) -> None:
    plan: Plan = SOURCE
    for stage in stages:
        plan = stage(plan)
    run = RemoteRun(plan)
    by_turns, clock = compile_plan(plan, alone), count()
    by_turns.step({}, {}, 0)
    for change in history:
        # A measured step runs its nodes one by one.
        expected = by_turns.step({}, {"f1": change}, 0, lambda: next(clock))
        assert run.step(f1=change) == expected
        assert run.output == run.expected()
    assert counts(run.circuit) == counts(by_turns)


def test_what_has_branches_is_run_by_turns() -> None:
    row, doubled = ("a", 2.5), ("a", 2.5, "a", 2.5)
    joined = RemoteRun(Join(filtered(SOURCE), filtered(SOURCE), JoinKind.INNER, ((0, 0),)))
    assert joined.step(f1={row: 2}) == {doubled: 4}
    added = RemoteRun(UnionAll((filtered(SOURCE), SOURCE)))
    assert added.step(f1={row: 1}) == {row: 2}


def test_a_chain_that_is_given_nothing_gives_nothing() -> None:
    run = RemoteRun(filtered(SOURCE))
    assert run.step() == run.step(f1={}) == run.step(other={("a", 2.5): 1}) == {}
    assert counts(run.circuit) == [(0, 0, 0), (0, 0, 0)]
