"""Windows that close: once, exactly, and remembered no longer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.circuit.closing_node import ClosingNode
from stream_engine.circuit.compiler import compile_plan
from stream_engine.operators.windows.on_close import OnCloseOperator
from stream_engine.site.site_engine import SiteEngine
from stream_engine.testing.circuit_runs import alone
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.leaves import PROGRESS_COLUMNS
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Filter,
    HopWindow,
    OnClose,
    Plan,
    RemoteSource,
    Scan,
    ScanPart,
    SessionWindow,
    SourceKind,
    UnionAll,
)
from streamsql.data.delta import Delta, accumulate
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.reference import Database, evaluate
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

COLUMNS = Schema.of(("k", DataType.TEXT), ("v", DataType.INTEGER), ("ts", DataType.TIMESTAMP))
LATENESS = 5


def scan(part: ScanPart = ScanPart.ROWS, source: str = "s") -> Scan:
    return Scan(source, SourceKind.STREAM, COLUMNS, (), 2, None, LATENESS, part)


CALLS = (
    AggregateCall(AggregateFunction.COUNT_ALL, (), "n"),
    AggregateCall(AggregateFunction.SUM, (Column(1, "v", DataType.INTEGER),), "total"),
)
BIG = Call(">", (Column(1, "v", DataType.INTEGER), Literal(1, DataType.INTEGER)), DataType.BOOLEAN)


def closing(windows: Plan) -> OnClose:
    """Count and sum per key and window."""
    return OnClose(Aggregate(windows, (0, 3, 4), CALLS), scan(ScanPart.PROGRESS), 2)


PLANS = {
    "tumble": closing(HopWindow(scan(), 2, size=10, hop=10)),
    "hop": closing(HopWindow(Filter(scan(), BIG), 2, size=10, hop=4, offset=1)),
    "session": closing(SessionWindow(scan(), 2, gap=4, partition=(0,))),
    "sessions of several keys": OnClose(
        Aggregate(SessionWindow(scan(), 2, gap=4, partition=(0,)), (3, 4), CALLS),
        scan(ScanPart.PROGRESS),
        1,
    ),
    "sessions of all": closing(Filter(SessionWindow(scan(), 2, gap=3), BIG)),
}

EVENTS = st.lists(
    st.builds(
        lambda k, v, ts, delete: SourceEvent((k, v, ts), ts, delete),
        st.sampled_from(["a", "b", None]),
        st.integers(0, 3),
        st.integers(0, 60),
        st.sampled_from([False, False, False, True]),
    ),
    max_size=40,
)


def follow(plan: Plan, batches: list[list[SourceEvent]]) -> tuple[Delta, bool, SiteEngine]:
    """Return what a site gives in these batches, and whether it ever took a row back."""
    site = SiteEngine("base", 1)
    fragment = Fragment("f1", Engine.BASE, plan, ("base",))
    site.install(FragmentBundle("q", 1, (fragment,), plan.schema))
    total: Delta = {}
    taken_back = False
    for now, batch in enumerate([[], *batches]):
        if batch:
            site.ingest("s", batch)
        step = site.step(now)
        assert not step.failures
        for sent in step.outgoing:
            delta = {row.row: row.weight for row in sent.batch.deltas}
            taken_back |= any(weight < 0 for weight in delta.values())
            accumulate(total, delta)
    return total, taken_back, site


@given(st.sampled_from(sorted(PLANS)), EVENTS, st.data())
def test_any_batching_gives_each_closed_window_once(
    name: str, events: list[SourceEvent], data: st.DataObject
) -> None:
    # A withdrawal of a row that never came is not legal for a log: it is trusted.
    sent = [event for event in events if not event.delete]
    batches: list[list[SourceEvent]] = [[]]
    for event in sent:
        if data.draw(st.booleans()):
            batches.append([])
        batches[-1].append(event)
    plan = PLANS[name]
    found, taken_back, _ = follow(plan, batches)
    database = Database()
    database.append("s", sent, "base")
    assert found == evaluate(plan, database, 0)
    assert not taken_back


def test_a_closed_window_is_forgotten_and_open_ones_are_not_shown() -> None:
    events = [SourceEvent(("a", 1, ts), ts) for ts in range(1_000)]
    for name in ("tumble", "hop"):
        _, _, site = follow(PLANS[name], [events[:500], events[500:]])
        (statistics,) = site.statistics()
        assert sum(entry.state_rows for entry in statistics.operators) < 100
    sparse = [SourceEvent(("a", 2, ts), ts) for ts in range(0, 10_000, 10)]
    _, _, site = follow(PLANS["session"], [sparse])
    (statistics,) = site.statistics()
    assert sum(entry.state_rows for entry in statistics.operators) < 10


def test_open_sessions_are_remembered_and_what_comes_for_a_closed_one_is_counted() -> None:
    """A stored table may still change what has closed; a row inside an open session is in time."""
    source = RemoteSource("s", COLUMNS)
    progress = RemoteSource("p", PROGRESS_COLUMNS)
    window = SessionWindow(source, 2, gap=4, partition=(0,))
    plan = OnClose(Aggregate(window, (0, 3, 4), CALLS), progress, 2)
    circuit = compile_plan(plan, alone)
    assert circuit.step({}, {"s": {("a", 1, 1): 1, ("a", 1, 3): 1, ("b", 1, 5): 1}}, 0) == {}
    assert circuit.step({}, {"p": {("gw", 8): 1}}, 0) == {("a", 1, 7, 2, 2): 1}
    (closing,) = [node for node in circuit.nodes if isinstance(node, ClosingNode)]
    operator = closing.operator
    assert isinstance(operator, OnCloseOperator)
    assert operator.sessions is not None
    assert operator.sessions.oldest() == 5
    late: Delta = {("a", 1, 2): 2, ("c", 1, 4): 1, ("b", 1, 4): 1}
    assert circuit.step({}, {"s": late}, 0) == {}
    assert operator.too_late == 3
    assert operator.sessions.oldest() == 4
    moved: Delta = {("gw", 8): -1, ("gw", 20): 1}
    assert circuit.step({}, {"p": moved}, 0) == {("b", 4, 9, 2, 2): 1}
    assert operator.state_rows() == 0


@pytest.mark.parametrize("sessions", [False, True])
def test_windows_that_a_former_life_has_given_are_dropped_and_not_given_again(
    *, sessions: bool
) -> None:
    """One sender has said its rows when another one tells that the windows closed long ago."""
    source = RemoteSource("s", COLUMNS)
    window: Plan = HopWindow(source, 2, size=4, hop=4)
    if sessions:
        window = SessionWindow(source, 2, gap=4, partition=(0,))
    plan = OnClose(Aggregate(window, (0, 3, 4), CALLS), RemoteSource("p", PROGRESS_COLUMNS), 2)
    circuit = compile_plan(plan, alone)
    (operator,) = [n.operator for n in circuit.nodes if isinstance(n, ClosingNode)]
    assert isinstance(operator, OnCloseOperator)
    assert circuit.step({}, {"s": {("a", 1, 0): 1, ("b", 1, 4): 1, ("c", 1, 8): 1}}, 0) == {}
    for told in (4, 8, 4):  # what the last one knows is older: nothing opens again
        operator.begin_after(told)
    assert operator.closed == 8
    assert circuit.step({}, {"s": {("d", 1, 4): 1}}, 0) == {}
    assert operator.too_late == 1
    if not sessions:  # a row that goes is none that has come too late
        assert circuit.step({}, {"s": {("d", 1, 4): -1}}, 0) == {}
        assert operator.too_late == 1
    assert circuit.step({}, {"p": {("gw", 8): 1}}, 0) == {}
    moved: Delta = {("gw", 8): -1, ("gw", 30): 1}
    assert circuit.step({}, {"p": moved}, 0) == {("c", 8, 12, 1, 1): 1}
    assert operator.state_rows() == 0


def test_sessions_of_an_unknown_key_close_too() -> None:
    events = [SourceEvent((key, 1, ts), ts) for ts in (1, 30) for key in ("a", None, "b")]
    apart, _, _ = follow(PLANS["session"], [events])
    assert apart == {("a", 1, 5, 1, 1): 1, (None, 1, 5, 1, 1): 1, ("b", 1, 5, 1, 1): 1}
    together, _, _ = follow(PLANS["sessions of several keys"], [events])
    assert together == {(1, 5, 3, 3): 1}


def test_every_site_must_have_passed_the_end() -> None:
    other = scan(ScanPart.PROGRESS, "other")
    plan = OnClose(
        Aggregate(HopWindow(scan(), 2, 10, 10), (4,), CALLS[:1]),
        UnionAll((scan(ScanPart.PROGRESS), other)),
        0,
    )
    site = SiteEngine("base", 1)
    site.install(
        FragmentBundle("q", 1, (Fragment("f1", Engine.BASE, plan, ("base",)),), plan.schema)
    )
    site.step(0)

    def rows() -> list[tuple[object, ...]]:
        return [r.row for sent in site.step(1).outgoing for r in sent.batch.deltas]

    site.ingest("other", [SourceEvent(("x", 1, 3), 3)])
    site.ingest("s", [SourceEvent(("a", 1, 1), 1), SourceEvent(("a", 1, 40), 40)])
    assert rows() == []
    site.ingest("other", [SourceEvent(("x", 1, 15), 15)])
    assert rows() == [(10, 1)]


def test_late_events_are_a_stream_of_their_own() -> None:
    late = scan(ScanPart.LATE)
    found, _, _ = follow(late, [[SourceEvent(("a", 1, 20), 20), SourceEvent(("b", 2, 14), 14)]])
    assert found == {("b", 2, 14): 1}
    rows, _, _ = follow(scan(), [[SourceEvent(("a", 1, 20), 20), SourceEvent(("b", 2, 14), 14)]])
    assert rows == {("a", 1, 20): 1}


def test_an_idle_site_holds_back_nobody_until_it_is_heard_again() -> None:
    progress = Scan("s", SourceKind.STREAM, COLUMNS, (), 2, 100, LATENESS, ScanPart.PROGRESS)
    site = SiteEngine("gw", 1)
    site.install(
        FragmentBundle("q", 1, (Fragment("f1", Engine.BASE, progress, ("gw",)),), progress.schema)
    )
    view: Delta = {}

    def at(now: int, *events: SourceEvent) -> Delta:
        if events:
            site.ingest("s", list(events))
        for sent in site.step(now).outgoing:
            accumulate(view, {row.row: row.weight for row in sent.batch.deltas})
        return dict(view)

    assert at(1_000, SourceEvent(("a", 1, 20), 20)) == {("gw", 15): 1}
    assert site.next_wakeup() == 1_100
    assert at(1_099) == {("gw", 15): 1}
    assert at(1_100) == {(None, 15): 1}
    assert site.next_wakeup() is None
    assert at(1_200, SourceEvent(("a", 1, 3), 3)) == {("gw", 15): 1}
    assert at(1_250, SourceEvent(("a", 1, 30), 30)) == {("gw", 25): 1}
    assert site.next_wakeup() == 1_350
