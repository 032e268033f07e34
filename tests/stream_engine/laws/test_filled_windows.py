"""Earlier events handed to a query's windows are as good as events that came at their time."""

import random
from collections.abc import Iterable

import pytest

from federated_optimizer import Topology
from federated_optimizer import plan as place
from stream_engine.site.site_engine import SiteEngine
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.reference import evaluate
from streamsql.reference.reference_database import Database
from streamsql.syntax import Query, parse_statement
from streamsql.syntax.statements import CreateSource
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

SECOND = 1_000_000
QUERIES = (
    "SELECT room, COUNT(*) AS n, SUM(level) AS total FROM noise [RANGE 20 SECONDS] GROUP BY room",
    "SELECT room, level FROM noise [ROWS 3]",
    "SELECT room, MAX(level) AS top FROM noise [PARTITION BY room ROWS 2] GROUP BY room",
    "SELECT room, level FROM noise [PARTITION BY room ROWS 3 RANGE 15 SECONDS]",
    "SELECT COUNT(*) AS n FROM noise [RANGE 10 SECONDS SLIDE 4 SECONDS]",
    "SELECT a.room, a.level, b.level AS before FROM noise [RANGE 8 SECONDS] AS a "
    "JOIN noise [ROWS 4] AS b ON a.room = b.room",
)


def _catalog() -> Catalog:
    catalog = Catalog()
    statement = parse_statement("CREATE SOURCE noise (room TEXT, level INTEGER)")
    assert isinstance(statement, CreateSource)
    catalog.define(define(statement, catalog))
    return catalog


def _bundle(text: str, catalog: Catalog) -> FragmentBundle:
    statement = parse_statement(text)
    assert isinstance(statement, Query)
    bound = bind_query(statement, catalog)
    topology = Topology({"here": frozenset({"noise"})}, bases=("here",))
    return place(bound, topology, query="q", text=text)


def _events(chance: random.Random, count: int) -> list[SourceEvent]:
    """Return readings, a few late, a few equal, a few withdrawn, each before what follows it."""
    events: list[SourceEvent] = []
    for number in range(count):
        ts = max(0, number - chance.choice((0, 0, 0, 1, 5, 12))) * SECOND
        events.append(SourceEvent((chance.choice("abc"), chance.randrange(4)), ts))
        if chance.random() < 0.1:
            gone = chance.choice(events)
            if not gone.delete and events.count(gone) > events.count(_withdrawn(gone)):
                events.append(_withdrawn(gone))
    return events


def _withdrawn(event: SourceEvent) -> SourceEvent:
    return SourceEvent(event.row, event.ts, delete=True)


class _Reader:
    def __init__(self) -> None:
        self._channel: ReceivingChannel = ReceivingChannel(version=1)

    def step(self, engine: SiteEngine, now: int) -> None:
        result = engine.step(now)
        assert not result.failures
        for sent in result.outgoing:
            if sent.destination:
                engine.receive("q", "here", sent.batch)
            else:
                self._channel.accept(sent.batch)

    @property
    def shown(self) -> Delta:
        total: Delta = {}
        for rows in self._channel.contents.values():
            for row, weight in rows.items():
                total[row] = total.get(row, 0) + weight
        return {row: weight for row, weight in total.items() if weight}


def _chunks(chance: random.Random, events: list[SourceEvent]) -> Iterable[list[SourceEvent]]:
    """Return events by their times, cut between two times."""
    chunk: list[SourceEvent] = []
    for event in sorted(events, key=lambda event: event.ts):
        if chunk and chunk[-1].ts != event.ts and chance.random() < 0.3:
            yield chunk
            chunk = []
        chunk.append(event)
    if chunk:
        yield chunk


@pytest.mark.parametrize("scheduler", ["fifo", "greedy"])
@pytest.mark.parametrize("text", QUERIES)
def test_a_filled_window_is_as_if_the_query_had_always_run(text: str, scheduler: str) -> None:
    for seed in range(30):
        chance = random.Random(seed)
        catalog = _catalog()
        events = _events(chance, chance.randrange(5, 60))
        # A withdrawal of what a full window by count has dropped is the source's affair (the
        # engine keeps no more of a log than the window): such scripts are for RANGE alone.
        if "ROWS" in text:
            events = [event for event in events if not event.delete]
        cut = chance.randrange(len(events) + 1)
        engine = SiteEngine("here", 1)
        engine.configure(SiteSettings(scheduler=SchedulerKind(scheduler)))
        definition = catalog.find("noise")
        assert isinstance(definition, SourceDefinition)
        engine.declare(definition.scan())
        reader = _Reader()
        now = 0
        for event in events[:cut]:
            now = max(now, event.ts)
            engine.ingest("noise", [event])
            engine.step(now)
        engine.install(_bundle(text, catalog))
        fills = list(_chunks(chance, events[:cut]))
        for event in events[cut:]:
            if fills and chance.random() < 0.5:
                assert engine.fill("q", "noise", fills.pop(0))
            now = max(now, event.ts)
            engine.ingest("noise", [event])
            if chance.random() < 0.7:
                reader.step(engine, now)
        for fill in fills:
            engine.fill("q", "noise", fill)
            reader.step(engine, now)
        for _ in range(3):
            reader.step(engine, now)
        database = Database()
        for event in events:
            database.append("noise", [event], clock=event.ts)
        statement = parse_statement(text)
        assert isinstance(statement, Query)
        expected = evaluate(bind_query(statement, catalog).plan, database, now)
        assert reader.shown == expected, (seed, cut)


def test_no_other_query_sees_what_fills_a_window() -> None:
    catalog = _catalog()
    engine = SiteEngine("here", 1)
    first = _bundle(QUERIES[0], catalog)
    engine.install(first)
    other = FragmentBundle(
        **{name: getattr(first, name) for name in first.__struct_fields__} | {"query": "other"}
    )
    engine.install(other)
    live = SourceEvent(("a", 1), 5 * SECOND)
    engine.ingest("noise", [live])
    engine.step(5 * SECOND)
    engine.fill("q", "noise", [SourceEvent(("a", 2), 4 * SECOND)])
    engine.step(5 * SECOND)
    engine.ingest("noise", [SourceEvent(("a", 1), 6 * SECOND)])
    shown = {"q": _Reader(), "other": _Reader()}
    engine.resync("q", "")
    engine.resync("other", "")
    for sent in engine.step(6 * SECOND).outgoing:
        shown[sent.query]._channel.accept(sent.batch)
    assert shown["q"].shown == {("a", 3, 4): 1}
    assert shown["other"].shown == {("a", 2, 2): 1}


@pytest.mark.parametrize("text", QUERIES)
def test_a_restart_in_mid_fill_neither_loses_nor_repeats_a_row(text: str) -> None:
    for seed in range(15):
        chance = random.Random(seed)
        catalog = _catalog()
        events = [event for event in _events(chance, 40) if not event.delete]
        definition = catalog.find("noise")
        assert isinstance(definition, SourceDefinition)
        journal: list[bytes] = []
        engine = RecordedSite("here", 1, journal.append)
        engine.declare(definition.scan())
        engine.install(_bundle(text, catalog))
        snapshot: bytes | None = None
        at = 0
        noted: list[object] = []
        now = 0
        fills = list(_chunks(chance, events[:25]))
        # The host asks for what follows its last note: what the note counts is in the state.
        while len(noted) < len(fills):
            now = max(now, fills[len(noted)][-1].ts)
            engine.fill("q", "noise", fills[len(noted)], note=("filled", len(noted) + 1))
            noted.append(len(noted) + 1)
            if chance.random() < 0.6:
                engine.step(now)
            if chance.random() < 0.2 and engine.is_at_rest:
                snapshot, at = engine.snapshot(len(noted)), len(noted)
                journal.clear()
            if chance.random() < 0.3:
                again = RecordedSite("here", engine.epoch + 1, journal.append)
                again.declare(definition.scan())
                restored = again.restore(snapshot, list(journal), now)
                told = [int(value) for kind, value in restored.notes if kind == "filled"]
                known = max([at, *told])
                assert known == len(noted)
                engine = again
        for event in events[25:]:
            now = max(now, event.ts)
            engine.ingest("noise", [event])
            engine.step(now)
        reader = _Reader()
        engine.resync("q", "")
        for _ in range(3):
            reader.step(engine, now)
        database = Database()
        for event in events:
            database.append("noise", [event], clock=event.ts)
        statement = parse_statement(text)
        assert isinstance(statement, Query)
        expected = evaluate(bind_query(statement, catalog).plan, database, now)
        assert reader.shown == expected, seed
