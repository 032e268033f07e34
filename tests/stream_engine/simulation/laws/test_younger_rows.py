"""A shorter window from the rows of a longer one is that of the sites, whatever their clocks say.

One query has the longer window, or no window, and another one the shorter window over what the
first receives. A third has the shorter window by itself. Whenever the network has come to rest, the
last two have equal rows, and these are what DuckDB finds among the readings of each gateway by the
clock of that gateway.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import pytest

from stream_engine.simulation.network import Faults, Network
from stream_engine.site.site_engine import SiteEngine
from stream_engine.site.step_result import StepResult
from streamsql.algebra.operators import (
    BOUNDS_COLUMNS,
    Plan,
    RemoteSource,
    Scan,
    SourceKind,
    Window,
    WindowBounds,
    WindowKind,
    Younger,
)
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

SECOND = 1_000_000
GATEWAYS = ("gw-1", "gw-2", "gw-3")
START = 1_000 * SECOND
COLUMNS = Schema.of(("k", DataType.INTEGER), ("v", DataType.INTEGER), ("ts", DataType.TIMESTAMP))
BAG = Scan("s", SourceKind.STREAM, COLUMNS, time_column=2, ttl=200 * SECOND)
KEYED = Scan("s", SourceKind.STREAM, COLUMNS, key=(0,), time_column=2)


@dataclass(frozen=True)
class Shorter:
    """A shorter window, and the rows that it holds in SQL over the clock of a gateway."""

    kind: WindowKind
    size: int | None
    slide: int | None
    condition: str


SHORTER = (
    Shorter(WindowKind.RANGE, 10 * SECOND, None, "ts > now - 10000000"),
    Shorter(
        WindowKind.RANGE,
        10 * SECOND,
        4 * SECOND,
        "ts > now - now % 4000000 - 10000000 AND ts <= now - now % 4000000",
    ),
    Shorter(WindowKind.NOW, None, None, "ts // 1000000 = now // 1000000"),
)


SETTINGS = (
    SiteSettings(),
    SiteSettings(scheduler=SchedulerKind.CHAIN),
    SiteSettings(share_synopses=False),
    SiteSettings(slice_ms=0.1),
)
"""Whole steps, queues between operators, windows by themselves, and steps that end in between."""


class Clocks(Network):
    """Sites whose clocks are wrong by a time of their own, which may grow."""

    def __init__(self, seed: int, faults: Faults | None) -> None:
        self.settings = SETTINGS[seed % len(SETTINGS)]
        super().__init__((*GATEWAYS, "base"), seed=seed, faults=faults)
        self.ahead = dict.fromkeys((*GATEWAYS, "base"), 0)

    def new_site(self, site: str, epoch: int) -> SiteEngine:
        made = super().new_site(site, epoch)
        made.configure(self.settings)
        return made

    def clock(self, site: str) -> int:
        return self.now + self.ahead[site]

    def step(self, site: str) -> StepResult:
        return self.sites[site].step(self.clock(site))


def bundle(
    query: str, root: Plan, *sent: tuple[str, Plan], feeds: tuple[Feed, ...] = ()
) -> FragmentBundle:
    fragments = [Fragment("f0", Engine.BASE, root, ("base",))]
    fragments += [
        Fragment(name, Engine.GATEWAY, plan, GATEWAYS, "f0", ("base",)) for name, plan in sent
    ]
    return FragmentBundle(query, 1, tuple(fragments), root.schema, feeds=feeds)


def bundles(scan: Scan, longer: Plan, shorter: Shorter) -> Iterator[FragmentBundle]:
    """Yield the query of the longer window, its reader, and the shorter window by itself."""
    sent = RemoteSource("f1", COLUMNS)
    window = (shorter.kind, shorter.size, shorter.slide)
    yield bundle("q1", sent, ("f1", longer))
    younger = Younger(sent, RemoteSource("f2", BOUNDS_COLUMNS), 2, *window)
    told = WindowBounds(scan, *window)
    yield bundle("q2", younger, ("f1", longer), ("f2", told), feeds=(Feed("f1", "q1", 1, "f1"),))
    yield bundle("q3", sent, ("f1", Window(scan, *window)))


class World:
    """A network, and the readings that its gateways keep."""

    def __init__(self, seed: int, scan: Scan, longer: Plan, shorter: Shorter) -> None:
        self.chance = random.Random(seed)
        faults = Faults(loss=0.05, repetition=0.05) if seed % 3 == 0 else None
        self.network = Clocks(seed, faults)
        self.network.now = START
        self.scan, self.shorter = scan, shorter
        self.bundles = {each.query: each for each in bundles(scan, longer, shorter)}
        self.readings: dict[str, list[tuple[int, int, int]]] = {g: [] for g in GATEWAYS}
        for gateway in GATEWAYS:
            self.network.declare(gateway, scan)
            self.network.ahead[gateway] = self.chance.choice((0, 3, 700, -400)) * SECOND
        self.network.ahead["base"] = self.chance.choice((0, -3_000, 5_000)) * SECOND

    def happen(self) -> None:
        network, chance = self.network, self.chance
        match chance.randrange(8):
            case 0:
                network.advance(network.now + chance.choice((1, SECOND, 3 * SECOND, 9 * SECOND)))
            case 1 if chance.random() < 0.5:  # a clock is set forward, or runs ahead
                gateway = chance.choice(GATEWAYS)
                network.ahead[gateway] += chance.choice((1, 2 * SECOND, 30 * SECOND))
                network.advance(network.now)
            case 2 if chance.random() < 0.3:
                self.die(chance.choice((*GATEWAYS, "base")))
            case 3 if chance.random() < 0.3:
                query = chance.choice(("q1", "q2", "q3"))
                if query in network._bundles:
                    network.uninstall(query)
                else:
                    network.install(self.bundles[query])
            case _:
                self.read()
        for _ in range(chance.randrange(12)):
            network.act()

    def read(self) -> None:
        """Let a gateway have a reading: of now, late, or of a device whose clock is ahead."""
        gateway = self.chance.choice(GATEWAYS)
        clock = self.network.clock(gateway)
        late = self.chance.choice((0, 0, 0, 5, 11, 40, -2, -8)) * SECOND
        row = (self.chance.randrange(4), self.chance.randrange(3), clock - late)
        self.readings[gateway].append(row)
        self.network.ingest(gateway, "s", [SourceEvent(row, row[2])])

    def die(self, site: str) -> None:
        self.network.kill(site)
        for _ in range(self.chance.randrange(12)):
            self.network.act()
        self.network.restart(site)
        if site in self.readings:
            self.readings[site] = []

    def check(self, peer: duckdb.DuckDBPyConnection) -> None:
        network = self.network
        for query, each in self.bundles.items():
            if query not in network._bundles:
                network.install(each)
        network.advance(network.now)
        network.settle()
        assert not network.failures
        base = network.sites["base"]
        assert not any((flow := base.flow(query)) is None or flow.busy for query in self.bundles)
        found = network.result("q2")
        assert found == network.result("q3")
        assert found == self.expected(peer)

    def expected(self, peer: duckdb.DuckDBPyConnection) -> Delta:
        peer.execute("CREATE OR REPLACE TABLE r (gateway TEXT, k INT, v INT, ts BIGINT, n INT)")
        peer.execute("CREATE OR REPLACE TABLE clocks (gateway TEXT, now BIGINT)")
        for gateway, rows in self.readings.items():
            peer.execute("INSERT INTO clocks VALUES (?, ?)", [gateway, self.network.clock(gateway)])
            if rows:
                told = [(gateway, *row, n) for n, row in enumerate(rows)]
                peer.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?)", told)
        newest = (
            "QUALIFY row_number() OVER (PARTITION BY gateway, k ORDER BY ts DESC, n DESC) = 1"
            if self.scan.key
            else "WHERE ts + 200000000 > now"
        )
        rows = peer.execute(
            f"WITH kept AS (SELECT * FROM r JOIN clocks USING (gateway) {newest}) "
            f"SELECT k, v, ts, COUNT(*) FROM kept WHERE {self.shorter.condition} GROUP BY ALL"
        ).fetchall()
        return {row[:-1]: row[-1] for row in rows}


@pytest.fixture(scope="module")
def peer() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


@pytest.mark.parametrize("shorter", SHORTER, ids=lambda each: each.condition)
@pytest.mark.parametrize("is_keyed", [False, True])
@pytest.mark.parametrize("is_windowed", [False, True])
def test_shorter_windows_from_longer_ones(
    shorter: Shorter, is_keyed: bool, is_windowed: bool, peer: duckdb.DuckDBPyConnection
) -> None:
    scan = KEYED if is_keyed else BAG
    longer = Window(scan, WindowKind.RANGE, 60 * SECOND) if is_windowed else scan
    for seed in range(8):
        world = World(seed, scan, longer, shorter)
        for query in world.bundles.values():
            world.network.install(query)
        for _ in range(6):
            for _ in range(10):
                world.happen()
            world.check(peer)
