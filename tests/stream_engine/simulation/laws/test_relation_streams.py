"""A relation as a stream is the same at any batching, order of arrival and number of sites."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stream_engine.circuit import relation_streams
from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.closing_node import ClosingNode
from stream_engine.circuit.compiler import compile_plan
from stream_engine.simulation.network import Faults, Network
from stream_engine.site.site_engine import SiteEngine
from stream_engine.testing.circuit_runs import alone
from stream_engine.testing.histories import COLUMNS, SECOND, rows
from stream_engine.testing.plans import plans
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Join,
    JoinKind,
    Plan,
    RemoteSource,
    Scan,
    ScanPart,
    SourceKind,
    StreamKind,
    StreamWindow,
    ToStream,
    Window,
    WindowKind,
    walk_relation,
)
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Value
from streamsql.reference import Database, evaluate
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

LATENESS = 2 * SECOND
LOG = Scan("log", SourceKind.STREAM, COLUMNS, lateness=LATENESS)
FADING = Scan("fading", SourceKind.STREAM, COLUMNS, ttl=3 * SECOND, lateness=LATENESS)
KEYED = Scan("keyed", SourceKind.STREAM, COLUMNS, key=(0,))
CLOCKED = Scan("clocked", SourceKind.STREAM, COLUMNS, key=(0, 1), ttl=4 * SECOND)
STORED = Scan("stored", SourceKind.TABLE, COLUMNS)
SCANS = (LOG, FADING, KEYED, CLOCKED, STORED)
LATE: Mapping[str, int | None] = {"log": LATENESS, "fading": LATENESS, "keyed": LATENESS}
KINDS = st.sampled_from(tuple(StreamKind))
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")


def events_of(scan: Scan) -> Scan:
    return msgspec.structs.replace(
        scan, key=(), ttl=None, lateness=LATE.get(scan.source), part=ScanPart.EVENTS
    )


def stream(kind: StreamKind, query: Plan) -> ToStream:
    """Return the operator as the binder makes it."""
    nodes = walk_relation(query)
    scans = tuple(dict.fromkeys(node for node in nodes if isinstance(node, Scan)))
    feeds = [s if s.kind == SourceKind.TABLE else events_of(s) for s in scans]
    progress = [
        msgspec.structs.replace(feed, part=ScanPart.PROGRESS)
        for feed in feeds
        if feed.part == ScanPart.EVENTS
    ]
    return ToStream(kind, query, scans, tuple(feeds), tuple(progress), "instant")


class OneSite:
    """A site that runs a plan, and the reference over the same events."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.site = SiteEngine("here", 1)
        fragment = Fragment("f0", Engine.BASE, plan, ("here",))
        self.site.install(FragmentBundle("q", 1, (fragment,), plan.schema))
        self.result = ReceivingChannel(version=1)
        self.database = Database()
        self.now = -SECOND
        self.known = {s.source for s in walk_relation(plan) if isinstance(s, Scan)}
        for child in plan.inputs:
            self.known.update(s.source for s in walk_relation(child) if isinstance(s, Scan))

    def step(self, now: int, events: list[tuple[str, SourceEvent]]) -> None:
        for source, event in events:
            self.database.append(source, [event], clock=self.now)
            if source in self.known:
                self.site.ingest(source, [event])
        self.now = now
        self.site.tell_time()
        for sent in self.site.step(now).outgoing:
            self.result.accept(sent.batch)

    @property
    def shown(self) -> Delta:
        return dict(self.result.contents.get("f0", {}))

    def expected(self) -> Delta:
        return evaluate(self.plan, self.database, self.now)


@st.composite
def moments(draw: st.DrawFn) -> list[tuple[int, list[tuple[str, SourceEvent]]]]:
    """Return times of steps with events; some are late, of the future, or withdrawals."""
    now = 0
    found = [(0, [("stored", SourceEvent(row, 0)) for row in draw(st.lists(rows(COLUMNS)))])]
    for _ in range(draw(st.integers(1, 4))):
        now += draw(st.sampled_from((0, 1, SECOND // 2, SECOND, 3 * SECOND)))
        events = []
        for _ in range(draw(st.integers(0, 6))):
            scan = draw(st.sampled_from(SCANS[:-1]))
            offset = draw(st.sampled_from((-6, -4, -2, -1, 0, 0, 1))) * (SECOND // 2)
            delete = bool(scan.key) and draw(st.integers(0, 4)) == 0
            ts = now if scan is CLOCKED else now + offset
            events.append((scan.source, SourceEvent(draw(rows(COLUMNS)), ts, delete)))
        found.append((now, events))
    return found


def is_timed(query: Plan) -> bool:
    scans = [node for node in walk_relation(query) if isinstance(node, Scan)]
    return any(scan.kind != SourceKind.TABLE for scan in scans)


@settings(max_examples=150)
@given(KINDS, plans(SCANS, depth=2).filter(is_timed), moments())
@example(
    StreamKind.ISTREAM,
    Join(LOG, Window(STORED, WindowKind.NOW), JoinKind.INNER),
    [
        (0, [("stored", SourceEvent(("a", 0, 0.1), 0))]),
        (0, [("log", SourceEvent(("a", 0, 0.1), -3 * SECOND))]),
    ],
)
@example(
    StreamKind.DSTREAM,
    Join(LOG, Window(STORED, WindowKind.RANGE, 2 * SECOND), JoinKind.INNER),
    [
        (0, [("stored", SourceEvent(("a", 0, 0.1), 0))]),
        (SECOND, [("log", SourceEvent(("a", 0, 0.1), SECOND // 2))]),
    ],
)
def test_any_query_gives_the_stream_of_the_reference(
    kind: StreamKind, query: Plan, history: list[tuple[int, list[tuple[str, SourceEvent]]]]
) -> None:
    run = OneSite(stream(kind, query))
    shown: Delta = {}
    for now, events in history:
        run.step(now, events)
        assert run.shown == run.expected()
        assert shown.items() <= run.shown.items()  # nothing is taken back
        shown = run.shown
    run.step(run.now + 10 * SECOND, [(s.source, at_end(s, run.now)) for s in SCANS[:-1]])
    assert run.shown == run.expected()


def at_end(scan: Scan, now: int) -> SourceEvent:
    """Return an event after which everything before it is over."""
    ts = now + 10 * SECOND
    return SourceEvent(("end", 0, 0.5), now if LATE.get(scan.source) is None else ts)


@settings(max_examples=60)
@given(
    KINDS,
    KINDS,
    plans(SCANS, depth=1).filter(is_timed),
    st.sampled_from((WindowKind.RANGE, WindowKind.ROWS, WindowKind.NOW)),
    moments(),
)
def test_streams_of_streams(
    outer: StreamKind,
    inner: StreamKind,
    query: Plan,
    kind: WindowKind,
    history: list[tuple[int, list[tuple[str, SourceEvent]]]],
) -> None:
    given_stream = stream(inner, query)
    size = {WindowKind.RANGE: SECOND, WindowKind.ROWS: 2}.get(kind)
    time = len(given_stream.schema) - 1
    counted = Aggregate(StreamWindow(given_stream, time, kind, size), (), (COUNT,))
    whole = stream(outer, counted)
    plain = OneSite(StreamWindow(given_stream, time, kind, size))
    nested = OneSite(whole)
    for now, events in history:
        for run in (plain, nested):
            run.step(now, events)
            assert run.shown == run.expected()


@settings(max_examples=60)
@given(
    KINDS,
    st.lists(st.tuples(rows(COLUMNS), st.integers(0, 8)), max_size=12),
    st.permutations(range(12)),
    st.lists(st.integers(1, 4), max_size=8),
)
def test_arrival_within_the_lateness_says_nothing(
    kind: StreamKind,
    readings: list[tuple[tuple[object, ...], int]],
    order: list[int],
    sizes: list[int],
) -> None:
    query = Aggregate(Window(FADING, WindowKind.RANGE, SECOND), (0,), (COUNT,))
    events = [SourceEvent(row, ts * SECOND // 4) for row, ts in readings]  # type: ignore[arg-type]
    end = ("fading", SourceEvent(("z", 0, 0.5), 20 * SECOND))
    in_order = OneSite(stream(kind, query))
    for event in sorted(events, key=lambda event: event.ts):
        in_order.step(event.ts, [("fading", event)])
    in_order.step(20 * SECOND, [end])
    shuffled = OneSite(stream(kind, query))
    arrivals = [("fading", events[n]) for n in order if n < len(events)]
    for size in sizes:
        shuffled.step(20 * SECOND, arrivals[:size])
        arrivals = arrivals[size:]
    shuffled.step(20 * SECOND, [*arrivals, end])
    assert shuffled.shown == in_order.shown


GATEWAYS = ("g1", "g2", "g3")


def over_gateways(plan: ToStream) -> FragmentBundle:
    """Return the shape the optimizer makes: events before the progress, both to the base."""
    fragments = [
        Fragment(f"f{number}", Engine.GATEWAY, part, GATEWAYS, "top", ("base",))
        for number, part in enumerate(plan.inputs)
    ]
    remote = tuple(RemoteSource(f.id, f.plan.schema) for f in fragments)
    count = len(plan.feeds)
    top = msgspec.structs.replace(plan, feeds=remote[:count], progress=remote[count:])
    last = Fragment("top", Engine.BASE, top, ("base",))
    return FragmentBundle("q", 1, (*fragments, last), plan.schema)


READINGS = st.lists(
    st.tuples(st.sampled_from(GATEWAYS), rows(COLUMNS), st.integers(0, 40)), max_size=20
)


@settings(max_examples=40)
@given(KINDS, READINGS, st.integers(0, 1_000), st.sampled_from([0.0, 0.2]), st.data())
def test_any_interleaving_of_sites_gives_the_stream_of_the_reference(
    kind: StreamKind,
    readings: list[tuple[str, tuple[object, ...], int]],
    seed: int,
    loss: float,
    data: st.DataObject,
) -> None:
    """Messages are late, lost and repeated."""
    query = Aggregate(Window(FADING, WindowKind.RANGE, 2 * SECOND), (0,), (COUNT,))
    plan = stream(kind, query)
    net = Network(("base", *GATEWAYS), seed=seed, faults=Faults(loss, loss))
    net.install(over_gateways(plan))
    database = Database()
    begin = [(gateway, ("a", 0, 0.5), 0) for gateway in GATEWAYS]
    shown: Delta = {}
    for gateway, row, quarter in (*begin, *readings):
        event = SourceEvent(row, quarter * SECOND // 4)  # type: ignore[arg-type]
        database.append("fading", [event], gateway)
        net.ingest(gateway, "fading", [event])
        if event.ts:
            for _ in range(data.draw(st.integers(0, 4))):
                net.act()
        now = net.result("q")
        assert shown.items() <= now.items()  # nothing is taken back
        shown = now
    net.settle()
    assert net.result("q") == evaluate(plan, database, 0)


def test_a_site_that_does_not_go_on_stops_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relation_streams, "MAX_WAITING", 5)
    both = Join(LOG, FADING, JoinKind.INNER, ((0, 0),))
    run = OneSite(stream(StreamKind.ISTREAM, both))
    failures = []
    for number in range(6):
        run.site.ingest("log", [SourceEvent(("a", number, 0.5), number * SECOND)])
        failures += run.site.step(number).failures
    ((query, error),) = failures
    assert query == "q"
    assert "more than 5 events wait for the watermark of fading" in error.message


def fed(kind: StreamKind, query: Plan) -> Circuit:
    """Return the circuit of a stream that is fed by f0, f1, …: sources, then their progress."""
    plan = stream(kind, query)
    remote = tuple(RemoteSource(f"f{n}", p.schema) for n, p in enumerate(plan.inputs))
    count = len(plan.feeds)
    parts = msgspec.structs.replace(plan, feeds=remote[:count], progress=remote[count:])
    return compile_plan(parts, alone)


def event(ts: int, number: int = 1) -> tuple[Value, ...]:
    """Return a row of the events of a source."""
    return (ts, 0, False, ts, "a", number, 0.5)


def test_events_that_were_worked_on_do_not_count_as_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relation_streams, "MAX_WAITING", 5)
    circuit = fed(StreamKind.ISTREAM, LOG)
    marks: Delta = {}
    for ts in range(20):
        progress: Delta = {**dict.fromkeys(marks, -1), ("g1", ts + 1): 1}
        marks = {("g1", ts + 1): 1}
        found = circuit.step({}, {"f0": {event(ts): 1}, "f1": progress}, 0)
        assert found == {("a", 1, 0.5, ts): 1}


def test_a_stored_table_counts_once_however_many_instants_follow() -> None:
    circuit = fed(StreamKind.ISTREAM, Join(LOG, STORED, JoinKind.INNER, ((0, 0),)))
    stored: Delta = {("a", 7, 1.5): 1}
    given_rows = circuit.step(
        {}, {"f0": {event(5): 1, event(6, 2): 1}, "f1": stored, "f2": {("g1", 9): 1}}, 0
    )
    assert given_rows == {("a", n, 0.5, "a", 7, 1.5, 4 + n): 1 for n in (1, 2)}


def test_of_one_instant_the_event_that_was_read_last_counts() -> None:
    """Channels may hand the events of an instant over in any order."""
    circuit = fed(StreamKind.RSTREAM, msgspec.structs.replace(FADING, key=(0,)))
    last, first = ((5, number, False, 5, "a", number, 0.5) for number in (1, 0))
    given_rows = circuit.step({}, {"f0": {last: 1, first: 1}, "f1": {("g1", 9): 1}}, 0)
    assert given_rows == {("a", 1, 0.5, 5): 1}


def test_what_comes_for_an_instant_that_is_over_is_counted() -> None:
    circuit = fed(StreamKind.ISTREAM, LOG)
    operator = next(n.operator for n in circuit.nodes if isinstance(n, ClosingNode))
    early, late = ((ts, 0, False, ts, "a", 1, 0.5) for ts in (5, 3))
    given_rows = circuit.step({}, {"f0": {early: 2}, "f1": {("g1", 9): 1}}, 0)
    assert given_rows == {("a", 1, 0.5, 5): 2}
    assert circuit.step({}, {"f0": {late: 1}, "f1": {("g2", 1): 1}}, 0) == {}
    assert isinstance(operator, relation_streams.InstantsOperator)
    assert (operator.too_late, operator.state_rows()) == (1, 0)
    assert circuit.step({}, {"f0": {late: -1}}, 0) == {}  # its site is gone
    assert (operator.too_late, operator.state_rows()) == (1, 0)


def test_instants_end_when_all_sites_are_idle_and_later_readings_still_count() -> None:
    plan = stream(StreamKind.ISTREAM, LOG)
    progress = msgspec.structs.replace(plan.progress[0], ttl=100)
    site = SiteEngine("base", 1)
    top = msgspec.structs.replace(plan, progress=(progress,))
    site.install(FragmentBundle("q", 1, (Fragment("f0", Engine.BASE, top, ("base",)),), top.schema))
    shown: list[object] = []

    def step(now: int, *events: tuple[str, str, int]) -> list[str]:
        for gateway, name, seconds in events:
            row = (name, 1, 1.0)
            site.ingest("log", [SourceEvent(row, seconds * SECOND)], gateway)
        for sent in site.step(now).outgoing:
            shown.extend(row.row[0] for row in sent.batch.deltas)
        return sorted(map(str, shown))

    assert step(0, ("g1", "a", 1), ("g2", "b", 4), ("g2", "c", 9)) == []
    assert step(60, ("g1", "a", 1)) == []
    assert step(110) == [], "g1 is waited for"
    assert step(200) == ["a", "b"], "nobody is waited for: g2 has come to 7"
    later = (("g1", "d", 6), ("g1", "e", 20), ("g2", "f", 20))
    assert step(201, *later) == ["a", "b", "c", "d"], "no instant after that of b was over"
