"""Settled answers equal the reference over the data that survives, whatever the network does."""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.simulation.fragmentations import (
    counted_at_base,
    joined_by_hash,
    joined_with_copies,
)
from stream_engine.simulation.network import Faults, Network
from stream_engine.testing.histories import COLUMNS, SECOND
from stream_engine.testing.random_bundles import bundles, expected_result
from streamsql.algebra.expressions import Call, Column
from streamsql.algebra.operators import (
    Distinct,
    Filter,
    Project,
    Scan,
    SourceKind,
    Window,
    WindowKind,
)
from streamsql.data.events import SourceEvent
from streamsql.data.types import DataType, Row
from streamsql.reference.reference_database import Database
from streamsql.wire.fragments import FragmentBundle

EXAMPLES = settings(max_examples=settings().max_examples * 2 // 3)
GATEWAYS = ("gw-1", "gw-2", "gw-3")
SITES = (*GATEWAYS, "base")
LOG = Scan("log", SourceKind.STREAM, COLUMNS)
FADING = Scan("fading", SourceKind.STREAM, COLUMNS, ttl=4 * SECOND)
KEYED = Scan("keyed", SourceKind.STREAM, COLUMNS, key=(0, 1), ttl=9 * SECOND)

K, N = Column(0, "k", DataType.TEXT), Column(1, "n", DataType.INTEGER)
RECENT = Filter(
    Window(LOG, WindowKind.RANGE, size=3 * SECOND), Call("IS NOT NULL", (N,), DataType.BOOLEAN)
)
NAMES = Project(KEYED, (K, N), ("k", "n"))

BUNDLES = [
    counted_at_base(RECENT, GATEWAYS),
    counted_at_base(Distinct(NAMES), GATEWAYS),
    joined_by_hash(NAMES, Project(FADING, (K, N), ("k", "n")), GATEWAYS, ("gw-1", "gw-2", "base")),
    joined_with_copies(FADING, Distinct(NAMES), SITES),
]


class World:
    """A network with the history each site would tell the reference."""

    def __init__(
        self, bundle: FragmentBundle, seed: int, faults: Faults, sites: Sequence[str] = SITES
    ) -> None:
        self.random = random.Random(seed)
        self.bundle = bundle
        self.network = Network(sites, seed=seed, faults=faults)
        self.databases = {site: Database() for site in sites}
        for site in sites:
            for scan in (LOG, FADING, KEYED):
                self.network.declare(site, scan)

    def run(self, actions: int) -> None:
        """Let readings come among deliveries, steps and time that passes."""
        for _ in range(actions):
            self._something_happens()

    def _something_happens(self) -> None:
        network, choice = self.network, self.random
        site = choice.choice(list(network.sites))
        match choice.randrange(12):
            case 0:
                network.advance(network.now + choice.choice((0, SECOND, 2 * SECOND)))
            case 1 | 2 | 3 | 4 | 5:
                self.read(site)
            case _:
                network.act()

    def read(self, site: str) -> None:
        choice, now = self.random, self.network.now
        source = choice.choice(("log", "fading", "keyed"))
        row: Row = (
            choice.choice(("a", "b", "c", None)),
            choice.choice((1, 2, None)),
            choice.choice((0.1, 0.2, 1e16)),
        )
        event = SourceEvent(row, now - choice.choice((0, 0, SECOND)))
        if source == "keyed" and choice.random() < 0.2:
            event = SourceEvent(row, now, delete=True)
        self.network.ingest(site, source, [event])
        self.databases[site].append(source, [event])

    def die(self) -> str:
        victims = [site for site in self.network.sites if site != "base"]
        site = self.random.choice(victims)
        self.network.kill(site, in_flight_survives=self.random.random() < 0.5)
        del self.databases[site]
        return site

    def come_back(self, site: str) -> None:
        self.network.restart(site)
        self.databases[site] = Database()

    def check(self) -> None:
        self.network.settle()
        assert self.network.failures == []
        expected = expected_result(self.bundle, self.databases, self.network.now)
        assert self.network.result("q") == expected


def nothing(_world: World) -> None:
    """All sites stay."""


def death_and_return(world: World) -> None:
    """A gateway dies, and begins anew without what it had."""
    dead = world.die()
    world.run(world.random.randrange(15))
    if world.random.random() < 0.5:
        world.check()
    world.come_back(dead)
    world.run(15)


def disconnection(world: World) -> None:
    """A gateway is held for dead, and returns without doubling what it has."""
    world.network.disconnect(world.random.choice(GATEWAYS))
    world.run(10)


class Trial(NamedTuple):
    """So many rounds of some actions, a happening, and a check, under some faults."""

    rounds: int
    actions: int
    faults: Faults
    happening: Callable[[World], None]


TRIALS = {
    "any order of delivery": Trial(3, 20, Faults(), nothing),
    "loss and repetition": Trial(2, 25, Faults(loss=0.2, repetition=0.2), nothing),
    "deaths": Trial(2, 20, Faults(loss=0.05, repetition=0.05), death_and_return),
    "a site held for dead": Trial(2, 20, Faults(), disconnection),
}


@EXAMPLES
@pytest.mark.parametrize("bundle", BUNDLES)
@pytest.mark.parametrize("trial", TRIALS.values(), ids=TRIALS)
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_it_settles_to_the_reference(
    bundle: FragmentBundle, trial: Trial, seed: int
) -> None:
    world = World(bundle, seed, trial.faults)
    world.network.install(bundle)
    for _ in range(trial.rounds):
        world.run(trial.actions)
        trial.happening(world)
        world.check()


@given(
    bundle=bundles((LOG, FADING, KEYED), GATEWAYS),
    seed=st.integers(0, 2**32),
    loss=st.sampled_from((0.0, 0.1)),
)
def test_random_bundles(bundle: FragmentBundle, seed: int, loss: float) -> None:
    world = World(bundle, seed, Faults(loss=loss, repetition=loss))
    world.network.install(bundle)
    for _ in range(2):
        world.run(25)
        world.check()


@EXAMPLES
@pytest.mark.parametrize("bundle", BUNDLES[1:])
@given(seed=st.integers(0, 2**32))
def test_sites_install_in_any_order_while_data_flows(bundle: FragmentBundle, seed: int) -> None:
    """Declared sources keep their rows, so only in logs does a late query miss something."""
    world = World(bundle, seed, Faults())
    order = list(SITES)
    world.random.shuffle(order)
    world.network.install(bundle, at=[])
    for site in order:
        world.run(world.random.randrange(6))
        world.network.install(bundle, at=[site])
    world.run(10)
    world.check()


def test_messages_and_bytes_are_counted() -> None:
    bundle = counted_at_base(RECENT, GATEWAYS)
    world = World(bundle, 1, Faults())
    world.network.install(bundle)
    world.network.settle()
    before = world.network.traffic.total_messages
    world.network.ingest("gw-2", "log", [SourceEvent(("a", 1, 0.1), 0)])
    world.network.settle()
    traffic = world.network.traffic
    assert traffic.total_messages == before + 2
    assert traffic.messages[("gw-2", "base")] >= 2
    assert 0 < traffic.bytes[("gw-2", "base")] < traffic.total_bytes < 3_000
    assert world.network.result("q") == {("a", 1, 1, 1): 1}


def test_a_run_repeats_exactly() -> None:
    def run() -> tuple[int, int]:
        world = World(BUNDLES[2], 7, Faults(loss=0.1, repetition=0.1))
        world.network.install(BUNDLES[2])
        world.run(50)
        world.check()
        traffic = world.network.traffic
        return (traffic.total_messages, traffic.total_bytes)

    assert run() == run()
