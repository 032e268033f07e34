"""Queries of every kind on sites with disks, while all that may change changes.

Schedulers, slices, sharing and measuring are switched, queries come, go and are planned anew, sites
crash, are held for dead and come back from their disks, messages are lost: once all is quiet, every
answer is that of the reference over what each query has been there for.
"""

import random
from dataclasses import dataclass, field

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_engine.simulation.fragmentations import everywhere
from stream_engine.simulation.network import Faults, _Will
from stream_engine.simulation.recorded_network import RecordedNetwork
from stream_engine.site.step_result import StepResult
from stream_engine.testing.histories import COLUMNS, SECOND, SOURCES
from stream_engine.testing.plans import plans
from stream_engine.testing.random_bundles import bundles, expected_result
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Fixpoint,
    HopWindow,
    Join,
    JoinKind,
    OnClose,
    Plan,
    Project,
    RecursiveReference,
    RemoteSource,
    Scan,
    ScanPart,
    SessionWindow,
    SourceKind,
    StreamKind,
    ToStream,
    Window,
    WindowKind,
    walk_plan,
    walk_relation,
)
from streamsql.catalog.system import SYS_STREAM
from streamsql.data.delta import Delta, difference
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.reference import Database, evaluate
from streamsql.reference.reference_database import Judged, contents
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

GATEWAYS = ("g1", "g2")
EVERYWHERE = ("base", *GATEWAYS)
LATENESS = 2 * SECOND
DATED = Scan(
    "dated",
    SourceKind.STREAM,
    Schema.of(("k", DataType.TEXT), ("ts", DataType.TIMESTAMP)),
    time_column=1,
    lateness=LATENESS,
)
KEPT = Scan("kept", SourceKind.STREAM, COLUMNS, ttl=3 * SECOND, lateness=LATENESS)
LATEST = Scan("latest", SourceKind.STREAM, COLUMNS, key=(0,), lateness=LATENESS)
LINK = Scan(
    "link",
    SourceKind.LINK,
    Schema.of(("src", DataType.TEXT), ("dst", DataType.TEXT)),
    key=(0, 1),
    ttl=4 * SECOND,
)
TOLD = Scan("sys_stream", SourceKind.STREAM, SYS_STREAM.schema, time_column=0, ttl=5 * SECOND)
STREAMS = tuple(scan for scan in SOURCES if scan.kind != SourceKind.TABLE)
DECLARED = (*STREAMS, DATED, KEPT, LATEST, LINK, TOLD)
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
NODES = ("a", "b", "c", "d")
WAYS = tuple(
    SiteSettings(scheduler=kind, slice_ms=slice_ms, queue_rows=rows, share_synopses=sharing)
    for kind in SchedulerKind
    for slice_ms in (None, 1.0, 2.0, 5.0)
    for rows in (1, 10, 100_000)
    for sharing in (True, False)
)


def part_of(scan: Scan, part: ScanPart) -> Scan:
    return Scan(
        scan.source,
        scan.kind,
        scan.columns,
        time_column=scan.time_column,
        lateness=scan.lateness,
        part=part,
    )


# --- queries ----------------------------------------------------------------------------------


def to_base(name: str, parts: list[Plan], top: Plan, sites: tuple[str, ...]) -> FragmentBundle:
    """Return parts that run at all sites, and the rest of the plan at the base."""
    fragments = [
        Fragment(f"f{number}", Engine.GATEWAY, part, sites, "top", ("base",))
        for number, part in enumerate(parts)
    ]
    last = Fragment("top", Engine.BASE, top, ("base",))
    return FragmentBundle(name, 1, (*fragments, last), top.schema)


def closing(name: str, sites: tuple[str, ...], *, sessions: bool, below: bool) -> FragmentBundle:
    """Return counts of windows that close, which are cut at the gateways or at the base."""

    def windows(plan: Plan) -> Plan:
        if sessions:
            return SessionWindow(plan, 1, gap=SECOND, partition=(0,))
        return HopWindow(plan, 1, size=2 * SECOND, hop=SECOND)

    pushed = windows(DATED) if below else DATED
    remote = RemoteSource("f0", pushed.schema)
    progress = part_of(DATED, ScanPart.PROGRESS)
    groups = Aggregate(remote if below else windows(remote), (0, 3), (COUNT,))
    top = OnClose(groups, RemoteSource("f1", progress.schema), 1)
    return to_base(name, [pushed, progress], top, sites)


def streamed(name: str, kind: StreamKind, query: Plan, sites: tuple[str, ...]) -> FragmentBundle:
    """Return a relation as a stream, its events from all sites."""
    scans = tuple(dict.fromkeys(n for n in walk_relation(query) if isinstance(n, Scan)))
    feeds = [part_of(scan, ScanPart.EVENTS) for scan in scans]
    marks = [part_of(scan, ScanPart.PROGRESS) for scan in scans]
    parts: list[Plan] = [*feeds, *marks]
    remote = tuple(RemoteSource(f"f{n}", part.schema) for n, part in enumerate(parts))
    top = ToStream(kind, query, scans, remote[: len(feeds)], remote[len(feeds) :], "instant")
    return to_base(name, parts, top, sites)


def reachable() -> Plan:
    pair = LINK.columns
    step = Join(LINK, RecursiveReference("reachable", pair), JoinKind.INNER, ((1, 0),))
    ends = (Column(0, "src", DataType.TEXT), Column(3, "dst", DataType.TEXT))
    return Fixpoint("reachable", pair, (LINK,), (Project(step, ends, ("src", "dst")),))


@st.composite
def queries(draw: st.DrawFn, name: str, gateways: tuple[str, ...]) -> FragmentBundle:
    """Return a query of any kind, over all sites or at one of them."""
    sites = ("base", *gateways)
    site = draw(st.sampled_from(sites))
    match draw(st.integers(0, 8)):
        case 0:
            return everywhere(draw(plans(STREAMS, depth=2)), (site,), query=name)
        case 1 if gateways:
            made = draw(bundles(STREAMS, gateways))
            return msgspec.structs.replace(made, query=name)
        case 1 | 2:
            left, right = (
                draw(st.sampled_from(STREAMS)),
                draw(st.sampled_from((*STREAMS, KEPT, LATEST))),
            )
            size = draw(st.sampled_from((1, 2, 3)))
            join = Join(
                Window(left, WindowKind.RANGE, size * SECOND),
                Window(right, WindowKind.ROWS, size),
                draw(st.sampled_from((JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL))),
                ((0, 0),),
            )
            return everywhere(join, (site,), query=name)
        case 3 | 4:
            return closing(name, sites, sessions=draw(st.booleans()), below=draw(st.booleans()))
        case 5:
            late = part_of(draw(st.sampled_from((DATED, KEPT))), ScanPart.LATE)
            counted = Aggregate(RemoteSource("f0", late.schema), (0,), (COUNT,))
            return to_base(name, [late], counted, sites)
        case 6:
            scan = draw(st.sampled_from((KEPT, DATED, LATEST)))
            choices: tuple[Plan, ...] = (
                scan,
                Window(scan, WindowKind.RANGE, SECOND),
                Window(scan, WindowKind.ROWS, 2),
            )
            window = choices[draw(st.integers(0, 2))]
            kind = draw(st.sampled_from(tuple(StreamKind)))
            where = draw(st.sampled_from((sites, ("base",))))
            return streamed(name, kind, Aggregate(window, (0,), (COUNT,)), where)
        case 7:
            return everywhere(reachable(), sites, query=name)
        case _:
            recent = Window(TOLD, WindowKind.RANGE, 2 * SECOND)
            return everywhere(Aggregate(recent, (2, 4), (COUNT,)), (site,), query=name)


# --- what each query has been there for -------------------------------------------------------


class Since(Database):
    """What has happened at a site, as a query knows it that has not been there from the start."""

    def __init__(self, start: int, held: dict[str, tuple[int, list[SourceEvent]]]) -> None:
        super().__init__()
        self._start = start
        self._held = held
        self._numbers: dict[str, list[int]] = {}
        self._count = 0

    def append(
        self, source: str, events: list[SourceEvent], site: str = "", clock: int = 0
    ) -> None:
        super().append(source, events, site, clock)
        self._numbers.setdefault(source, []).extend(range(self._count, self._count + len(events)))
        self._count += len(events)

    def judged(self, scan: Scan) -> Judged:
        judged = super().judged(scan)
        if not scan.is_log:
            return judged
        start, before = self._held.get(scan.source, (self._start, []))
        if scan.part != ScanPart.EVENTS:
            start, before = self._start, []
        known = {
            id(event)
            for event, number in zip(
                self.events(scan.source), self._numbers.get(scan.source, []), strict=True
            )
            if number >= start
        }
        judged.accepted = [*before, *(e for e in judged.accepted if id(e) in known)]
        judged.late = [e for e in judged.late if id(e) in known]
        return judged


@dataclass
class Begun:
    """When a query has begun at a site.

    Attributes:
        at: How many of the site's events it does not know.
        held: By source what it has begun with, and from which event on it knows the events.
    """

    at: int
    held: dict[str, tuple[int, list[SourceEvent]]] | None = None


@dataclass
class Query:
    """A query that should run.

    Attributes:
        begun: By site.
        inexact: Whether some site was given up: what became final meanwhile stays so.
        shown: The rows of a final result that have been seen.
    """

    bundle: FragmentBundle
    begun: dict[str, Begun] = field(default_factory=dict)
    inexact: bool = False
    shown: Delta = field(default_factory=dict)

    @property
    def is_final(self) -> bool:
        nodes = [n for f in self.bundle.fragments for n in walk_plan(f.plan)]
        return any(isinstance(node, OnClose | ToStream) for node in nodes)

    def producers(self) -> set[str]:
        return {site for f in self.bundle.fragments if f.consumer for site in f.sites}


class World(RecordedNetwork):
    """The network, and what has happened in it."""

    def __init__(self, gateways: tuple[str, ...], seed: int, loss: float) -> None:
        super().__init__(("base", *gateways), seed=seed, faults=Faults(loss, loss))
        self.gateways = gateways
        self.happened: dict[str, list[tuple[str, SourceEvent, str]]] = {s: [] for s in self.disks}
        self.stepped = dict.fromkeys(self.disks, 0)
        self.queries: dict[str, Query] = {}
        self.now = 10 * SECOND
        for site in self.disks:
            for scan in DECLARED:
                self.declare(site, scan)
            begin = SourceEvent(("a", 5 * SECOND), 5 * SECOND)
            for origin in ("", "p1"):
                self.read(site, "dated", begin, origin)  # or it would count as idle
            for source in ("kept", "latest"):
                self.read(site, source, SourceEvent(("a", 1, 0.5), 5 * SECOND))

    def read(self, site: str, source: str, event: SourceEvent, origin: str = "") -> None:
        if site in self.sites:
            self.ingest(site, source, [event], origin)
            self.happened[site].append((source, event, origin or site))

    def run_query(self, bundle: FragmentBundle) -> None:
        query = self.queries[bundle.query] = Query(bundle)
        under_way = (message for queue in self._channels.values() for message in queue)
        wills = any(isinstance(message, _Will) for message in under_way)
        query.inexact = wills or bool(set(self.disks) - set(self.sites))
        self.install(bundle)
        for site in self.sites:
            query.begun[site] = Begun(self.stepped[site])

    def stop_query(self, name: str) -> None:
        del self.queries[name]
        self.uninstall(name)

    def step(self, site: str) -> StepResult:
        for query in self.queries.values():
            begun = query.begun.get(site)
            if begun is not None and begun.held is None:
                begun.held = self.held(site)
        self.stepped[site] = len(self.happened[site])
        return super().step(site)

    def held(self, site: str) -> dict[str, tuple[int, list[SourceEvent]]]:
        """Return what a stream that begins now at a site begins with."""
        database = self.database(site, 0, {})
        count = len(self.happened[site])
        return {
            scan.source: (
                count,
                [SourceEvent(row, ts) for ts, row in contents(scan, database, self.now)],
            )
            for scan in (KEPT, LATEST)
        }

    def database(
        self, site: str, start: int, held: dict[str, tuple[int, list[SourceEvent]]]
    ) -> Since:
        found = Since(start, held)
        for source, event, origin in self.happened[site]:
            found.append(source, [event], origin)
        return found

    def given_up(self, site: str) -> None:
        for query in self.queries.values():
            query.inexact |= site in query.producers()

    def back(self, site: str) -> None:
        running = self.recorded(site).queries if site in self.sites else {}
        assert not running
        restored = self.come_back(site)
        assert not restored.unsaved
        assert not restored.complaints
        for query in self.queries.values():
            if site not in query.begun:
                query.begun[site] = Begun(self.stepped[site])

    def tell(self, site: str) -> None:
        engine = self.sites[site]
        for p in engine.properties(self.now) if engine.told else ():
            row = (self.now, site, p.query, p.entity, p.kind, p.property, p.value)
            self.read(site, "sys_stream", SourceEvent(row, self.now))

    def check(self) -> None:
        self.advance(self.now)
        self.settle()
        assert self.failures == []
        for engine in self.sites.values():
            wakeup = engine.next_wakeup()
            assert wakeup is None or wakeup > self.now, "it never settles"
            for name in engine.queries:
                flow = engine.flow(name)
                assert flow is not None
                assert not flow.busy
        for name, query in self.queries.items():
            shown = self.result(name)
            if query.is_final:
                assert query.shown.items() <= shown.items(), (name, "something was taken back")
                query.shown = shown
            if not (query.is_final and query.inexact) and not self.lacks(query):
                expected = self.expected(query)
                assert difference(shown, expected) == {}, name

    def lacks(self, query: Query) -> bool:
        """Whether a site is away that keeps a part of a recursion for the others."""
        (last,) = query.bundle.fragments[-1:]
        return isinstance(last.plan, Fixpoint) and not self.sites.keys() >= set(last.sites)

    def expected(self, query: Query) -> Delta:
        databases: dict[str, Database] = {
            site: self.database(site, begun.at, begun.held or {})
            for site, begun in query.begun.items()
            if site in self.sites
        }
        (last,) = query.bundle.fragments[-1:]
        if isinstance(last.plan, Fixpoint):
            merged = Database()
            for database in databases.values():
                merged.append("link", database.events("link"))
            return evaluate(last.plan, merged, self.now)
        return expected_result(query.bundle, databases, self.now)

    def end(self) -> None:
        """Stop everything: nothing is held any more."""
        for name in list(self.queries):
            self.stop_query(name)
        self.settle()
        for engine in self.sites.values():
            assert engine.synopses.stores() == []
            assert engine.synopses.synopses() == []
            assert not engine.synopses._groups
            assert not engine._work._queries
            assert not engine._work._tasks
            assert not engine._work._ready
            assert engine.queues.rows == engine.queues.batches == 0
            assert {s for scans in engine._sources.relations.values() for s in scans} == set(
                DECLARED
            )


def reading(dice: random.Random, now: int) -> tuple[str, SourceEvent, str]:
    """Return an event of any source, and which gateway had taken it in before."""
    scan = dice.choice((*DECLARED[:-1], DATED, DATED, KEPT))
    ts = now + dice.choice((0, 0, 0, -1, -2, -4, -6, 1)) * (SECOND // 2)
    if scan is DATED:
        event = SourceEvent((dice.choice("ab"), ts), ts)
        return (scan.source, event, dice.choice(("", "", "p1")))
    if scan is LINK:
        row = (dice.choice(NODES), dice.choice(NODES))
        return (scan.source, SourceEvent(row, now, dice.random() < 0.2), "")
    delete = bool(scan.key) and dice.random() < 0.2
    values = (dice.choice(("a", "b", None)), dice.choice((0, 1, None)), dice.choice((0.1, 1e16)))
    return (scan.source, SourceEvent(values, ts, delete), "")


def act(  # noqa: C901  (one case a kind of thing that may happen)
    world: World, dice: random.Random, data: st.DataObject, number: int
) -> None:
    """Let one thing happen."""
    up = sorted(world.sites)
    site = dice.choice(up)
    match dice.choice(ACTIONS):
        case "read":
            for _ in range(dice.randint(1, 6)):
                source, event, origin = reading(dice, world.now)
                where = dice.choice(up)
                if source == LINK.source:  # who has a node has the links that leave it
                    where = sorted(world.disks)[NODES.index(event.row[0]) % len(world.disks)]
                world.read(where, source, event, origin)
        case "install" if len(world.queries) < 6:
            world.run_query(data.draw(queries(f"q{number}", world.gateways)))
        case "again" if world.queries:
            name = dice.choice(sorted(world.queries))
            old = world.queries[name].bundle
            made = old if dice.random() < 0.5 else data.draw(queries(name, world.gateways))
            world.run_query(msgspec.structs.replace(made, version=old.version + 1))
        case "uninstall" if world.queries:
            world.stop_query(dice.choice(sorted(world.queries)))
        case "configure":
            world.sites[site].configure(dice.choice(WAYS))
        case "measure":
            engine = world.sites[site]
            engine.measured = not engine.measured
        case "time":
            world.advance(world.now + dice.choice((1, SECOND // 2, SECOND, 3 * SECOND)))
        case "tell":
            world.tell(site)
        case "save":
            world.save(site)
        case "crash":
            world.crash(site, in_flight_survives=dice.random() < 0.5)
        case "kill" if len(up) > 1:
            world.kill(site, in_flight_survives=dice.random() < 0.5)
            world.given_up(site)
        case "back":
            for dead in sorted(set(world.disks) - set(up)):
                world.back(dead)
        case "away":
            world.disconnect(site)
            world.given_up(site)
        case "check":
            world.check()
        case _:
            for _ in range(dice.randint(1, 15)):
                world.act()


ACTIONS = (
    *("read",) * 6,
    *("install",) * 4,
    *("act",) * 5,
    *("check",) * 2,
    *("configure",) * 2,
    *("time",) * 3,
    *("save",) * 2,
    "again",
    "uninstall",
    "measure",
    "tell",
    "crash",
    "kill",
    "back",
    "back",
    "away",
)


@settings(
    deadline=None,
    max_examples=settings().max_examples * 2 // 3,
    suppress_health_check=list(HealthCheck),
)
@given(st.data(), st.integers(0, 2**32), st.integers(5, 60))
def test_every_answer_is_that_of_the_reference(data: st.DataObject, seed: int, length: int) -> None:
    dice = random.Random(seed)
    gateways = dice.choice((GATEWAYS, GATEWAYS, ()))
    world = World(gateways, seed, dice.choice((0.0, 0.0, 0.2)))
    for _ in range(dice.randint(0, 4)):
        world.run_query(data.draw(queries(f"p{len(world.queries)}", gateways)))
    for number in range(length):
        act(world, dice, data, number)
    for dead in sorted(set(world.disks) - set(world.sites)):
        world.back(dead)
    world.check()
    world.advance(world.now + 20 * SECOND)
    for site in world.sites:
        for source in ("dated", "kept", "latest"):
            values = ("z", world.now) if source == "dated" else ("z", 1, 0.5)
            for origin in ("", "p1") if source == "dated" else ("",):
                world.read(site, source, SourceEvent(values, world.now), origin)
    world.check()
    world.end()
