"""A query that is trimmed goes on with what it delivers: nothing is lost, or sent again."""

import random

import pytest

from stream_engine.simulation.network import Faults, Network
from streamsql.algebra.operators import (
    Join,
    JoinKind,
    RemoteSource,
    Scan,
    SourceKind,
    Window,
    WindowKind,
)
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.bundles.trimmed_bundles import trimmed
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle

GATEWAYS = ("gw-1", "gw-2")
SCHEMA = Schema.of(("k", DataType.TEXT), ("v", DataType.TEXT))
SEAT = Scan("seat", SourceKind.STREAM, SCHEMA, (0,))
ROOM = Scan("room", SourceKind.STREAM, SCHEMA, (0,))
SCANS = {"f1": SEAT, "f2": ROOM}
LEAVES = {name: RemoteSource(name, scan.columns) for name, scan in SCANS.items()}


def leaf(name: str) -> Fragment:
    return Fragment(name, Engine.GATEWAY, SCANS[name], GATEWAYS, "f0", ("base",))


def whole() -> FragmentBundle:
    """Return a join of both sources at the base."""
    join = Join(LEAVES["f1"], LEAVES["f2"], JoinKind.INNER, ((1, 1),))
    root = Fragment("f0", Engine.BASE, join, ("base",))
    return FragmentBundle("q1", 1, (root, leaf("f1"), leaf("f2")), join.schema)


def reader(query: str, *names: str) -> FragmentBundle:
    """Return a bundle that shows what the whole one has of a leaf."""
    (name,) = names
    root = Fragment("f0", Engine.BASE, LEAVES[name], ("base",))
    feed = Feed(name, "q1", 1, name)
    return FragmentBundle(query, 1, (root, leaf(name)), SCHEMA, feeds=(feed,))


class World:
    """A network whose gateways have rows of two sources."""

    def __init__(self, seed: int, faults: Faults | None = None) -> None:
        self.chance = random.Random(seed)
        self.network = Network((*GATEWAYS, "base"), seed=seed, faults=faults)
        self.rows: dict[tuple[str, str, str], str] = {}
        self.bundles: dict[str, FragmentBundle] = {}
        for gateway in GATEWAYS:
            self.declare(gateway)

    def declare(self, gateway: str) -> None:
        for scan in SCANS.values():
            self.network.declare(gateway, scan)

    def install(self, *bundles: FragmentBundle) -> None:
        """Install bundles at the sites in an order of each one's own, with work between them."""
        for bundle in bundles:
            self.bundles[bundle.query] = bundle
            for site in self.chance.sample((*GATEWAYS, "base"), 3):
                self.network.install(bundle, at=(site,))
                self.act()

    def act(self) -> None:
        for _ in range(self.chance.randrange(12)):
            self.network.act()

    def read(self) -> None:
        gateway = self.chance.choice(GATEWAYS)
        source = self.chance.choice(("seat", "room"))
        key = f"{gateway}/{self.chance.randrange(4)}"
        place = (gateway, source, key)
        if place in self.rows and self.chance.random() < 0.3:
            event = SourceEvent((key, self.rows.pop(place)), 1, delete=True)
        else:
            self.rows[place] = self.chance.choice("abc")
            event = SourceEvent((key, self.rows[place]), 1)
        self.network.ingest(gateway, source, [event])

    def die(self) -> None:
        site = self.chance.choice((*GATEWAYS, "base"))
        self.network.kill(site)
        self.act()
        self.network.restart(site)
        self.rows = {place: row for place, row in self.rows.items() if place[0] != site}
        for bundle in self.chance.sample(list(self.bundles.values()), len(self.bundles)):
            self.network.install(bundle, at=(site,))

    def check(self, query: str, source: str) -> None:
        self.network.settle()
        expected = {(p[2], row): 1 for p, row in self.rows.items() if p[1] == source}
        assert self.network.result(query) == expected
        assert not self.network.failures


@pytest.mark.parametrize("seed", range(8))
def test_readers_notice_nothing(seed: int) -> None:
    world = World(seed, Faults(loss=0.05, repetition=0.05) if seed % 2 else None)
    world.install(whole())
    world.install(reader("seats", "f1"), reader("rooms", "f2"))
    left = {"seats": "seat", "rooms": "room"}
    for leaves in (["f1", "f2"], ["f2"]):
        for _ in range(40):
            world.chance.choice((world.read, world.read, world.act))()
        if leaves == ["f2"]:
            del left["seats"], world.bundles["seats"]
            world.network.uninstall("seats")
        bundle = trimmed(world.bundles["q1"], leaves)
        assert bundle is not None
        world.install(bundle)
        for _ in range(30):
            world.chance.choice((world.read, world.read, world.act))()
        for query, source in left.items():
            world.check(query, source)
        if seed % 4 > 1:
            world.die()
        for query, source in left.items():
            world.check(query, source)
    assert world.network.result("q1") == {}


@pytest.mark.parametrize("leaves", [["f1"], ["f2"], ["f1", "f2"]])
def test_a_base_may_be_trimmed_long_before_its_gateways(leaves: list[str]) -> None:
    world = World(3)
    query = "seats" if "f1" in leaves else "rooms"
    world.install(whole(), reader(query, leaves[0]))
    for _ in range(30):
        world.read()
    world.network.settle()
    bundle = trimmed(whole(), leaves)
    assert bundle is not None
    world.network.kill("base")
    world.network._bundles.clear()
    world.network.restart("base")
    for each in (bundle, reader(query, leaves[0])):
        world.network.install(each, at=("base",))
    for _ in range(30):
        world.read()  # gateways still send both leaves, and whole snapshots
        world.act()
    for gateway in GATEWAYS:
        world.network.install(bundle, at=(gateway,))
    world.check(query, "seat" if query == "seats" else "room")


def sent(world: World) -> int:
    return sum(n for (_, to), n in world.network.traffic.bytes.items() if to == "base")


def test_nothing_is_sent_again_nor_what_nobody_reads() -> None:
    world = World(1)
    world.install(whole(), reader("rooms", "f2"))
    for _ in range(30):
        world.read()
    world.check("rooms", "room")
    before = sent(world)
    bundle = trimmed(whole(), ["f2"])
    assert bundle is not None
    world.install(bundle)
    world.check("rooms", "room")
    assert sent(world) == before
    world.network.ingest("gw-1", "seat", [SourceEvent(("new", "a"), 1)])
    world.network.settle()
    assert sent(world) == before
    world.network.ingest("gw-1", "room", [SourceEvent(("gw-1/0", "z"), 1)])
    world.rows["gw-1", "room", "gw-1/0"] = "z"
    world.check("rooms", "room")
    assert sent(world) > before


def test_the_base_keeps_no_rows_of_what_it_has_computed() -> None:
    world = World(2)
    world.install(whole(), reader("rooms", "f2"))
    for _ in range(30):
        world.read()
    world.network.settle()
    assert world.network.state_rows()["base"] > 0
    bundle = trimmed(whole(), ["f1", "f2"])
    assert bundle is not None
    world.install(bundle)
    world.network.settle()
    assert world.network.state_rows()["base"] == 0


def test_rows_leave_their_window_though_nothing_arrives() -> None:
    window = Window(SEAT, WindowKind.RANGE, size=50)

    def windowed() -> Fragment:
        return Fragment("f1", Engine.GATEWAY, window, GATEWAYS, "f0", ("base",))

    leaf_there = RemoteSource("f1", window.schema)
    root = Fragment("f0", Engine.BASE, leaf_there, ("base",))
    feed = Feed("f1", "q1", 1, "f1")
    first = FragmentBundle("q1", 1, (root, windowed()), SCHEMA)
    second = FragmentBundle("seats", 1, (root, windowed()), SCHEMA, feeds=(feed,))
    network = Network((*GATEWAYS, "base"), seed=1)
    for gateway in GATEWAYS:
        network.declare(gateway, SEAT)
    network.install(first)
    network.install(second)
    network.ingest("gw-1", "seat", [SourceEvent(("a", "x"), 1)])
    network.settle()
    assert network.result("seats") == {("a", "x"): 1}
    bundle = trimmed(first, ["f1"])
    assert bundle is not None
    network.install(bundle)
    network.settle()
    network.advance(1_000)
    network.settle()
    assert network.result("seats") == {}
