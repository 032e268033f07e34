"""Queries that read what others of their site receive: in any order of installs, losses, ends."""

import random
from collections.abc import Iterable

import duckdb
import pytest
from msgspec.structs import replace

from stream_engine.simulation.network import Faults, Network
from stream_engine.site.site_engine import SiteEngine
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.algebra.aggregates import AggregateCall, AggregateFunction
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    BOUNDS_COLUMNS,
    Aggregate,
    Distinct,
    Filter,
    Plan,
    Project,
    RemoteSource,
    Scan,
    SourceKind,
    WindowBounds,
    WindowKind,
    Younger,
)
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.bundles.trimmed_bundles import is_trimmed, trimmed
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle

GATEWAYS = ("gw-1", "gw-2", "gw-3")
ROOM = Scan("room", SourceKind.STREAM, Schema.of(("r", DataType.TEXT), ("s", DataType.TEXT)), (0,))
SENT = RemoteSource("f1", ROOM.columns)
STATUS = Column(1, "s", DataType.TEXT)
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
BASES: dict[str, Plan] = {
    "SELECT r, s FROM room": SENT,
    "SELECT s, COUNT(*) FROM room GROUP BY s": Aggregate(SENT, (1,), (COUNT,)),
    "SELECT DISTINCT s FROM room": Distinct(Project(SENT, (STATUS,), ("s",))),
}


def bundle_of(query: str, text: str, version: int = 1, feed: Feed | None = None) -> FragmentBundle:
    """Return a bundle whose fragment f1 the gateways run, or that is fed by another bundle."""
    base = BASES[text]
    return FragmentBundle(
        query,
        version,
        (
            Fragment("f0", Engine.BASE, base, ("base",)),
            Fragment("f1", Engine.GATEWAY, ROOM, GATEWAYS, "f0", ("base",)),
        ),
        base.schema,
        text=text,
        feeds=() if feed is None else (feed,),
    )


class World:
    """A network on which queries come and go, and the rows that its gateways have."""

    def __init__(self, seed: int, faults: Faults | None = None) -> None:
        self.chance = random.Random(seed)
        self.network = Network((*GATEWAYS, "base"), seed=seed, faults=faults)
        for gateway in GATEWAYS:
            self.network.declare(gateway, ROOM)
        self.rows: dict[str, dict[str, str]] = {gateway: {} for gateway in GATEWAYS}
        self.running: dict[str, FragmentBundle] = {}
        self.number = 0

    def owner(self) -> FragmentBundle | None:
        return next((b for b in self.running.values() if not b.feeds), None)

    def feed(self) -> Feed | None:
        owner = self.owner()
        return None if owner is None else Feed("f1", owner.query, owner.version, "f1")

    def install(self, *bundles: FragmentBundle) -> None:
        """Install bundles at all sites, in an order of each site's own."""
        for bundle in bundles:
            self.running[bundle.query] = bundle
        for site in self.network.sites:
            for bundle in self.chance.sample(bundles, len(bundles)):
                self.network.install(bundle, at=(site,))

    def start(self) -> None:
        self.number += 1
        text = self.chance.choice(tuple(BASES))
        feed = self.feed()
        self.install(bundle_of(f"q{self.number}", text, feed=feed))

    def stop(self) -> None:
        """Stop a query; if others read what it receives, the next one receives that itself."""
        if len(self.running) < 2:
            return
        name = self.chance.choice(tuple(self.running))
        stopped = self.running.pop(name)
        if stopped.feeds:
            self.network.uninstall(name)
            return
        first_stops = self.chance.random() < 0.5
        if first_stops:
            self.network.uninstall(name)
        first, *others = self.running.values()
        heir = replace(first, version=first.version + 1, feeds=())
        self.install(heir, *self.fed_by(heir, others))
        if not first_stops:
            self.network.uninstall(name)

    def fed_by(
        self, owner: FragmentBundle, others: Iterable[FragmentBundle]
    ) -> list[FragmentBundle]:
        feed = Feed("f1", owner.query, owner.version, "f1")
        return [replace(b, version=b.version + 1, feeds=(feed,)) for b in others]

    def redeploy(self) -> None:
        """Deploy the owner and its readers once more."""
        owner = self.owner()
        if owner is not None:
            newer = replace(owner, version=owner.version + 1)
            others = [b for b in self.running.values() if b.query != owner.query]
            self.install(newer, *self.fed_by(newer, others))

    def read(self) -> None:
        gateway = self.chance.choice([site for site in GATEWAYS if site in self.network.sites])
        room = f"{gateway}/{self.chance.randrange(3)}"
        if room in self.rows[gateway] and self.chance.random() < 0.3:
            event = SourceEvent((room, self.rows[gateway].pop(room)), 1, delete=True)
        else:
            self.rows[gateway][room] = self.chance.choice("ab")
            event = SourceEvent((room, self.rows[gateway][room]), 1)
        self.network.ingest(gateway, "room", [event])

    def die(self) -> None:
        """A site dies and comes back; a gateway has nothing then."""
        site = self.chance.choice((*GATEWAYS, "base"))
        self.network.kill(site)
        for _ in range(self.chance.randrange(20)):
            self.network.act()
        self.network.restart(site)
        if site in self.rows:
            self.rows[site] = {}
        for bundle in self.chance.sample(list(self.running.values()), len(self.running)):
            self.network.install(bundle, at=(site,))

    def forget(self) -> None:
        """The base loses the owner, and gets it again as it was; its readers stay installed."""
        owner = self.owner()
        if owner is not None:
            self.network.sites["base"].uninstall(owner.query)
            self.act()
            self.network.install(owner, at=("base",))

    def trim(self) -> None:
        """Let the owner only receive: nobody reads its result any more."""
        owner = self.owner()
        if owner is None or len(self.running) < 2:
            return
        bundle = trimmed(owner, ["f1"])
        assert bundle is not None
        assert is_trimmed(bundle)
        self.install(bundle)

    def act(self) -> None:
        for _ in range(self.chance.randrange(15)):
            self.network.act()

    def check(self) -> None:
        """Compare every answer with DuckDB's."""
        self.network.settle()
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE room (r TEXT, s TEXT)")
            rows = [row for by in self.rows.values() for row in by.items()]
            if rows:
                connection.executemany("INSERT INTO room VALUES (?, ?)", rows)
            for bundle in self.running.values():
                expected = connection.execute(bundle.text).fetchall()
                if is_trimmed(bundle):
                    expected = []
                found = self.network.result(bundle.query)
                assert found == dict.fromkeys(expected, 1), bundle
                assert not self.network.sites["base"].flow(bundle.query).busy  # type: ignore[union-attr]
        assert not self.network.failures


@pytest.mark.parametrize("seed", range(6))
def test_readers_show_what_duckdb_computes(seed: int) -> None:
    world = World(seed, Faults(loss=0.05, repetition=0.05) if seed % 2 else None)
    world.start()
    actions = (
        *(world.start, world.stop, world.redeploy, world.die, world.forget, world.trim),
        *(world.read, world.read, world.read, world.act, world.act),
    )
    for _ in range(5):
        for _ in range(12):
            world.chance.choice(actions)()
        world.check()


def test_the_gateways_send_once_for_all_readers() -> None:
    costs = []
    for shared in (True, False):
        world = World(1)
        world.start()
        for _ in range(9):
            feed = world.feed() if shared else None
            world.number += 1
            world.install(bundle_of(f"q{world.number}", "SELECT r, s FROM room", feed=feed))
        world.network.settle()
        before = world.network.traffic.total_bytes
        results = sum(n for (_, to), n in world.network.traffic.bytes.items() if to == "console")
        for _ in range(20):
            world.read()
            world.network.settle()
        after = sum(n for (_, to), n in world.network.traffic.bytes.items() if to == "console")
        costs.append(world.network.traffic.total_bytes - before - (after - results))
        world.check()
    assert costs[1] == 10 * costs[0] > 0


def test_an_owner_that_is_trimmed_sends_nothing_again() -> None:
    world = World(1)
    world.start()
    world.install(bundle_of("reader", "SELECT r, s FROM room", feed=world.feed()))
    for _ in range(20):
        world.read()
    world.network.settle()
    before = world.network.traffic.total_bytes
    world.trim()
    world.check()
    assert world.network.traffic.total_bytes == before
    for _ in range(5):
        world.read()
    world.check()


def test_a_reader_keeps_its_rows_and_is_busy_while_its_feeder_is_gone() -> None:
    world = World(1)
    world.start()
    (owner,) = world.running
    reader = bundle_of("reader", "SELECT r, s FROM room", feed=world.feed())
    world.install(reader)
    world.network.ingest("gw-1", "room", [SourceEvent(("a", "x"), 1)])
    world.network.settle()
    base = world.network.sites["base"]
    assert not base.flow("reader").busy  # type: ignore[union-attr]
    base.uninstall(owner)
    base.step(5)
    assert base.flow("reader").busy  # type: ignore[union-attr]
    assert world.network.result("reader") == {("a", "x"): 1}
    newer = replace(world.running[owner], version=9)
    base.install(newer)
    base.step(6)
    assert base.flow("reader").busy, "it was planned for another version"  # type: ignore[union-attr]


@pytest.mark.parametrize("wrong", ["f9", "f0", "fed"])
def test_a_feed_of_another_fragment_gives_nothing(wrong: str) -> None:
    base = SiteEngine("base", 1)
    base.install(bundle_of("q1", "SELECT r, s FROM room"))
    if wrong == "fed":  # what is fed itself feeds nobody
        base.install(bundle_of("q3", "SELECT r, s FROM room", feed=Feed("f1", "q1", 1, "f1")))
        feed = Feed("f1", "q3", 1, "f1")
    else:
        feed = Feed("f1", "q1", 1, wrong)
    base.install(bundle_of("q2", "SELECT r, s FROM room", feed=feed))
    base.step(1)
    report = base.flow("q2")
    assert report is not None
    assert report.busy
    base.install(
        replace(bundle_of("q4", "SELECT r, s FROM room"), feeds=(Feed("f7", "q1", 1, "f1"),))
    )
    report = base.flow("q4")
    assert report is not None
    assert base.senders() >= {("q4", "gw-1")}, "a feed of nothing that it has changes nothing"


def test_a_recorded_base_comes_back_with_its_feeds() -> None:
    journal: list[bytes] = []
    first = RecordedSite("base", 1, journal.append)
    owner = bundle_of("q1", "SELECT r, s FROM room")
    reader = bundle_of("q2", "SELECT DISTINCT s FROM room", feed=Feed("f1", "q1", 1, "f1"))
    first.install(reader)
    first.install(owner)
    first.step(1)
    for snapshot, records in ((None, journal), (first.snapshot(), [])):
        again = RecordedSite("base", 2)
        again.restore(snapshot, records, 2)
        gateway = SiteEngine("gw-1", 1)
        gateway.declare(ROOM)
        gateway.install(owner)
        gateway.ingest("room", [SourceEvent(("a", "x"), 1)])
        for outgoing in gateway.step(2).outgoing:
            again.receive(outgoing.query, "gw-1", outgoing.batch)
        rows = [
            row.row
            for outgoing in again.step(3).outgoing
            if outgoing.query == "q2"
            for row in outgoing.batch.deltas
        ]
        assert rows == [("x",)]
        assert gateway.senders() == set()
        assert again.senders() == {("q1", gateway) for gateway in GATEWAYS}


def test_a_reader_of_younger_rows_is_given_those_that_its_filter_lets_pass() -> None:
    """A bank of filters serves rows with their sites as well: thousands of readers cost as one."""
    columns = Schema.of(("k", DataType.INTEGER), ("ts", DataType.TIMESTAMP))
    source = Scan("s", SourceKind.STREAM, columns, time_column=1, ttl=1_000)
    told = WindowBounds(source, WindowKind.RANGE, 10)
    network = Network((*GATEWAYS, "base"))
    for gateway in GATEWAYS:
        network.declare(gateway, source)
    sent = RemoteSource("f1", columns)
    owner = FragmentBundle(
        "q0",
        1,
        (
            Fragment("f0", Engine.BASE, sent, ("base",)),
            Fragment("f1", Engine.GATEWAY, source, GATEWAYS, "f0", ("base",)),
        ),
        columns,
    )
    network.install(owner)
    for number in range(1, 6):
        equal = Call(
            "=",
            (Column(0, "k", DataType.INTEGER), Literal(number, DataType.INTEGER)),
            DataType.BOOLEAN,
        )
        younger = Younger(
            Filter(sent, equal), RemoteSource("f2", BOUNDS_COLUMNS), 1, WindowKind.RANGE, 10
        )
        fragments = (
            Fragment("f0", Engine.BASE, younger, ("base",)),
            Fragment("f1", Engine.GATEWAY, source, GATEWAYS, "f0", ("base",)),
            Fragment("f2", Engine.GATEWAY, told, GATEWAYS, "f0", ("base",)),
        )
        feed = Feed("f1", "q0", 1, "f1")
        network.install(FragmentBundle(f"q{number}", 1, fragments, columns, feeds=(feed,)))
    network.advance(100)
    network.settle()
    before = given(network)
    network.ingest("gw-1", "s", [SourceEvent((3, 99), 99)])
    network.ingest("gw-2", "s", [SourceEvent((3, 60), 60)])
    network.settle()
    assert network.result("q3") == {(3, 99): 1}
    assert {
        query: n - before[query] for query, n in given(network).items() if n - before[query]
    } == {
        "q0": 2,
        "q3": 2,
    }


def given(network: Network) -> dict[str, int]:
    """Return how many rows the leaves of the fragments at the base were given, by query."""
    found: dict[str, int] = {}
    for fragment in network.sites["base"].statistics():
        rows = sum(
            o.rows_in for o in fragment.operators if o.operator.startswith("RemoteSource[f1")
        )
        found[fragment.query] = found.get(fragment.query, 0) + rows
    return found
