"""Sharing of subplans, recursion inside circuits, counters, and plans that cannot run."""

import random

import pytest

from stream_engine.circuit.compiler import compile_plan
from stream_engine.testing.circuit_runs import LocalRun, alone
from stream_engine.testing.histories import COLUMNS, SECOND
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    RecursiveReference,
    RemoteSource,
    Scan,
    SourceKind,
    UnionAll,
    Values,
    Window,
    WindowKind,
)
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import InternalError

S = Scan("s", SourceKind.STREAM, COLUMNS)
K, N = Column(0, "k", DataType.TEXT), Column(1, "n", DataType.INTEGER)
PAIR = Schema.of(("src", DataType.TEXT), ("dst", DataType.TEXT))
SRC, DST = Column(0, "src", DataType.TEXT), Column(1, "dst", DataType.TEXT)


def test_equal_subplans_are_computed_once() -> None:
    positive = Filter(S, Call(">", (N, Literal(0, DataType.INTEGER)), DataType.BOOLEAN))
    same = Filter(S, Call(">", (N, Literal(0, DataType.INTEGER)), DataType.BOOLEAN))
    circuit = compile_plan(UnionAll((Distinct(positive), Distinct(same), S)), alone)
    operators = [entry.operator for entry in circuit.statistics()]
    assert operators == ["Scan stream s", "Filter n > 0", "Distinct", "UnionAll"]
    assert circuit.step({S: {(1, ("a", 1, 0.1)): 1}}, {}, 0) == {("a", 1, 0.1): 3}
    rows = [(entry.rows_in, entry.rows_out) for entry in circuit.statistics()]
    assert rows == [(1, 1), (1, 1), (1, 1), (3, 1)]


def test_a_join_with_itself() -> None:
    circuit = compile_plan(Join(S, S, JoinKind.INNER, ((0, 0),)), alone)
    row = ("a", 1, 0.1)
    assert circuit.step({S: {(1, row): 2}}, {}, 0) == {row + row: 4}
    assert circuit.step({S: {(1, row): -2}}, {}, 0) == {row + row: -4}


def test_constants_come_with_the_first_step() -> None:
    circuit = compile_plan(Values(((1,), (1,)), Schema.of(("n", DataType.INTEGER))), alone)
    assert circuit.step({}, {}, 0) == {(1,): 2}
    assert circuit.step({}, {}, 1) == {}


def test_inputs_are_known() -> None:
    window = Window(S, WindowKind.RANGE, size=5)
    remote = RemoteSource("f1", COLUMNS)
    circuit = compile_plan(UnionAll((S, window, remote)), alone)
    assert circuit.scans == (S,)
    assert circuit.remotes == ("f1",)
    assert circuit.fixpoints == []


def test_a_window_and_a_scan_of_one_source_move_apart() -> None:
    circuit = compile_plan(UnionAll((S, Window(S, WindowKind.RANGE, size=5))), alone)
    row = ("a", 1, 0.1)
    assert circuit.step({S: {(1, row): 1}}, {}, 1) == {row: 2}
    assert circuit.next_wakeup() == 6
    assert circuit.step({}, {}, 6) == {row: -1}
    assert circuit.next_wakeup() is None


def test_a_recursive_relation_has_no_meaning_outside() -> None:
    with pytest.raises(InternalError, match="reachable is read outside"):
        compile_plan(Distinct(RecursiveReference("reachable", PAIR)), alone)


def recursion_under_aggregates(link: Plan) -> Plan:
    """Count what every node reaches, below a filter."""
    step = Join(link, RecursiveReference("reachable", PAIR), JoinKind.INNER, ((1, 0),))
    names = ("src", "dst")
    reachable = Fixpoint(
        "reachable",
        PAIR,
        (Project(link, (SRC, DST), names),),
        (Project(step, (SRC, Column(len(link.schema) + 1, "dst", DataType.TEXT)), names),),
    )
    others = Filter(reachable, Call("<>", (SRC, DST), DataType.BOOLEAN))
    count = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
    return UnionAll((Aggregate(others, (0,), (count,)), Aggregate(reachable, (0,), (count,))))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("windowed", [False, True])
def test_recursion_over_windows_and_under_aggregates(seed: int, *, windowed: bool) -> None:
    link = Scan("link", SourceKind.LINK, PAIR, key=() if windowed else (0, 1), ttl=3 * SECOND)
    leaf = Window(link, WindowKind.ROWS, size=6) if windowed else link
    run = LocalRun(recursion_under_aggregates(leaf))
    choice = random.Random(seed)
    for step in range(60):
        now = step * SECOND // 2
        row = (choice.choice("abcd"), choice.choice("abcd"))
        delete = not windowed and choice.random() < 0.3
        assert run.step(now, [("link", SourceEvent(row, now, delete))]) == run.expected(now)
