"""Channels below windows that close remember what is open, and nothing is lost by that."""

from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stream_engine.site.step_result import Forget
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Filter,
    HopWindow,
    Join,
    JoinKind,
    OnClose,
    Plan,
    Project,
    RemoteSource,
    Scan,
    ScanPart,
    SessionWindow,
    SourceKind,
)
from streamsql.data.delta import Delta, accumulate
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.reference import Database, evaluate
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.closing_rules import ClosingRule, closing_rules
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import DeltaBatch

COLUMNS = Schema.of(("k", DataType.TEXT), ("ts", DataType.TIMESTAMP))
OWNERS = Schema.of(("k", DataType.TEXT), ("owner", DataType.TEXT))
GATEWAYS = ("g1", "g2")
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
LATENESS = 5


def scan(part: ScanPart = ScanPart.ROWS) -> Scan:
    return Scan("s", SourceKind.STREAM, COLUMNS, (), 1, None, LATENESS, part)


TABLE = Scan("owners", SourceKind.TABLE, OWNERS)


def shape(name: str, rows: Plan, table: Plan) -> Aggregate:
    """Return groups by the end of a window over (k, ts) rows, with it or without."""
    match name:
        case "hops":
            return Aggregate(HopWindow(rows, 1, size=10, hop=5), (0, 3), (COUNT,))
        case "sessions":
            return Aggregate(SessionWindow(rows, 1, gap=4, partition=(0,)), (0, 3), (COUNT,))
        case "joined":
            joined = Join(HopWindow(rows, 1, size=10, hop=10), table, JoinKind.LEFT, ((0, 0),))
            return Aggregate(joined, (5, 3), (COUNT,))
        case _:
            raise AssertionError(name)


SHAPES = ("hops", "sessions", "joined", "hops at gateways")


def whole(name: str) -> OnClose:
    groups = shape("hops" if name == "hops at gateways" else name, scan(), TABLE)
    return OnClose(groups, scan(ScanPart.PROGRESS), 1)


def bundle_of(name: str) -> FragmentBundle:
    """Cut it as the optimizer does: rows, then progress, to the base."""
    pushed: Plan = scan()
    progress = scan(ScanPart.PROGRESS)
    if name == "hops at gateways":
        pushed = HopWindow(scan(), 1, size=10, hop=5)
        groups = Aggregate(RemoteSource("rows", pushed.schema), (0, 3), (COUNT,))
    else:
        groups = shape(name, RemoteSource("rows", COLUMNS), RemoteSource("table", OWNERS))
    top = OnClose(groups, RemoteSource("marks", progress.schema), 1)
    fragments = [
        Fragment("rows", Engine.GATEWAY, pushed, GATEWAYS, "top", ("base",)),
        Fragment("marks", Engine.GATEWAY, progress, GATEWAYS, "top", ("base",)),
    ]
    if name == "joined":
        fragments.append(Fragment("table", Engine.STATIC, TABLE, ("static",), "top", ("base",)))
    fragments.append(Fragment("top", Engine.BASE, top, ("base",)))
    return FragmentBundle("q", 1, tuple(fragments), top.schema)


@dataclass
class World:
    """Sites whose messages arrive in order or are lost; the base has a disk, and a console.

    Attributes:
        forgettable: What the base named when it last saved.
        deaf: Whether what the base sends to the console is lost.
        given: What the console has.
    """

    bundle: FragmentBundle
    sites: dict[str, RecordedSite] = field(default_factory=dict)
    saved: bytes | None = None
    forgettable: list[Forget] = field(default_factory=list)
    deaf: bool = False
    given: Delta = field(default_factory=dict)
    taken_back: bool = False

    def __post_init__(self) -> None:
        for name in (*GATEWAYS, "base", "static"):
            self.sites[name] = site = RecordedSite(name, 1)
            if name == "static":
                site.declare(TABLE)
                site.ingest("owners", [SourceEvent(("a", "ann"), 0)])
            elif name != "base":
                site.declare(scan())
            site.install(self.bundle)
        self.console = ReceivingChannel(version=1, streams=self.bundle.streams)

    def settle(self, *, lost: frozenset[str] = frozenset()) -> None:
        """Step and deliver until nothing moves; what these gateways send is lost at first."""
        for _ in range(100):
            moved = False
            for name, site in self.sites.items():
                result = site.step(1)
                assert not result.failures
                for sent in result.outgoing:
                    moved = True
                    if name not in lost:
                        self.deliver(name, sent.destination, sent.batch)
                for _query, sender in result.resyncs:
                    moved = True
                    self.sites[sender].resync("q", name)
                for told in result.forgets:
                    self.sites[told.sender].forget(name, told)
            if not moved:
                return
        raise AssertionError("it does not settle")

    def deliver(self, sender: str, to: str, batch: DeltaBatch) -> None:
        batch = decode_packed(encode_packed(batch), DeltaBatch)
        if to:
            self.sites[to].receive("q", sender, batch)
            return
        if self.deaf:
            return
        _reception, delta = self.console.accept(batch)
        self.taken_back |= any(weight < 0 for weight in delta.values())
        accumulate(self.given, delta)

    def hear(self) -> None:
        """Let the console hear the base again, and ask it for what it has missed."""
        self.deaf = False
        self.sites["base"].resync("q", "")
        self.settle()

    def save(self) -> None:
        self.forgettable = self.sites["base"].forgettable()
        self.saved = self.sites["base"].snapshot(None)

    def crash(self, *, with_disk: bool) -> None:
        base = self.sites["base"] = RecordedSite("base", self.sites["base"].epoch + 1)
        if with_disk and self.saved is not None:
            base.restore(self.saved, [], 1)
        else:
            base.install(self.bundle)
        self.settle()

    def remembered(self, name: str) -> int:
        query = self.sites[name]._queries["q"]
        _circuits, inbox, outbox = query.parts
        kept = [channel.contents for channel in inbox.channels.values()]
        kept += [channel.contents for channel in outbox.channels.values()]
        return sum(len(contents.get("rows", {})) for contents in kept)


def reading(key: str, ts: int) -> SourceEvent:
    return SourceEvent((key, ts), ts)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(GATEWAYS), st.sampled_from("ab"), st.integers(0, 60)),
        st.sampled_from(["save", "tell", "look", "crash", "lose", "deaf", "hear"]),
    ),
    max_size=30,
)


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=60)
@given(steps=STEPS)
@example(steps=["save", "deaf", ("g1", "a", 60), ("g2", "a", 60), "tell", "crash"])
def test_resynchronisation_stays_exact(name: str, steps: list[tuple[str, str, int] | str]) -> None:
    """Crashes come back from the last snapshot; senders are told of snapshots, or not.

    What has been told to nobody yet has to be in the snapshot before senders forget it.
    """
    world = World(bundle_of(name))
    world.sites["base"]._queries["q"].forgetting._left = -500  # look at once
    database = Database()
    database.append("owners", [SourceEvent(("a", "ann"), 0)])
    for gateway in GATEWAYS:
        world.sites[gateway].ingest("s", [reading("a", 0)])
        database.append("s", [reading("a", 0)], gateway)
    lost: frozenset[str] = frozenset()
    world.settle()
    for step in steps:
        match step:
            case "save":
                world.save()
            case "tell":
                world.sites["base"].kept(world.forgettable)
                world.settle()
            case "look":
                forgetting = world.sites["base"]._queries["q"].forgetting
                forgetting._left = -500
            case "crash":
                world.crash(with_disk=True)
            case "deaf":
                world.deaf = True
            case "hear":
                world.hear()
            case "lose":
                lost = frozenset(("g1",))
            case str():
                raise AssertionError(step)
            case (gateway, key, ts):
                world.sites[gateway].ingest("s", [reading(key, ts)])
                database.append("s", [reading(key, ts)], gateway)
                world.settle(lost=lost)
                if lost:
                    lost = frozenset()
                    world.sites["g1"].resync("q", "base")
                    world.settle()
    world.hear()
    assert not world.taken_back
    assert world.given == evaluate(whole(name), database, 1)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("tell_of", ["saved", "unsaved"])
def test_senders_forget_only_what_is_saved(name: str, tell_of: str) -> None:
    """A window closed behind the snapshot, of which nobody has heard, is made again from its rows.

    With bounds that are not on disk it could not be: the senders would have forgotten them.
    """
    world = World(bundle_of(name))
    for gateway in GATEWAYS:
        world.sites[gateway].ingest("s", [reading("a", 1)])
    world.settle()
    world.save()
    world.deaf = True
    for gateway in GATEWAYS:
        world.sites[gateway].ingest("s", [reading("a", 60)])
    world.settle()
    base = world.sites["base"]
    base.kept(world.forgettable if tell_of == "saved" else base.forgettable())
    world.settle()
    world.crash(with_disk=True)
    world.hear()
    assert bool(world.given) == (tell_of == "saved")


@pytest.mark.parametrize("name", SHAPES)
def test_both_ends_stay_as_large_as_the_open_windows(name: str) -> None:
    world = World(bundle_of(name))
    for ts in range(0, 30_000, 1):
        for gateway in GATEWAYS:
            world.sites[gateway].ingest("s", [reading("a" if ts % 8 < 4 else "b", ts)])
        if ts % 500 == 0:
            world.settle()
        if ts % 2_000 == 0:
            world.save()
            world.sites["base"].kept(world.forgettable)
    world.settle()
    for site in ("g1", "g2", "base"):
        assert world.remembered(site) < 12_000, site
    (statistics,) = world.sites["base"].statistics()
    assert sum(operator.state_rows for operator in statistics.operators) < 12_000
    assert sum(world.given.values()) > 5_000


@pytest.mark.parametrize("name", SHAPES)
def test_a_base_that_loses_everything_contradicts_nothing(name: str) -> None:
    """It hears from the senders what has closed, and gives none of it again, nor a part of it."""
    world = World(bundle_of(name))
    for ts in range(0, 60, 2):
        for gateway in GATEWAYS:
            world.sites[gateway].ingest("s", [reading("ab"[ts % 3 == 0], ts)])
        world.settle()
        if ts == 30:
            world.save()
            world.sites["base"].kept(world.forgettable)
            world.settle()
    before = dict(world.given)
    world.crash(with_disk=False)
    assert world.given == before
    for gateway in GATEWAYS:
        world.sites[gateway].ingest("s", [reading("a", 100)])
    world.settle()
    assert not world.taken_back
    assert all(weight == 1 for weight in world.given.values())
    ends = {(row[0], row[1]) for row in world.given}
    assert len(ends) == len(world.given)  # no window twice, with other counts


def test_rows_that_are_read_elsewhere_too_are_not_forgotten() -> None:
    remote = RemoteSource("rows", COLUMNS)
    windows = HopWindow(Filter(remote, Column(0, "x", DataType.BOOLEAN)), 1, size=10, hop=10)
    named = Project(windows, (Column(3, "e", DataType.TIMESTAMP),), ("e",))
    top = OnClose(
        Aggregate(named, (0,), (COUNT,)), RemoteSource("marks", scan(ScanPart.PROGRESS).schema), 0
    )

    def rules(plan: Plan) -> dict[str, ClosingRule]:
        fragment = Fragment("top", Engine.BASE, plan, ("base",))
        return closing_rules(FragmentBundle("q", 1, (fragment,), plan.schema))

    assert rules(top) == {"rows": ClosingRule(1, size=10, hop=10)}
    assert rules(Join(top, remote, JoinKind.INNER, ((0, 1),))) == {}


@given(
    st.integers(1, 20),
    st.integers(1, 20),
    st.integers(-5, 5),
    st.integers(0, 99),
    st.integers(0, 99),
)
def test_the_bound_is_exact(size: int, hop: int, offset: int, time: int, closed: int) -> None:
    rule = ClosingRule(0, size, hop, offset)
    starts = [s for s in range(offset - 40 * hop, 200, hop) if s <= time]
    last = max(starts)
    assert (time < rule.bound(closed)) == (last + size <= closed)
