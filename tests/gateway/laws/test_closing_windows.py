"""EMIT ON WINDOW CLOSE over gateway and base processes, the base killed before it has saved."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from broker.broker_testing import BrokerProcess
from gateway.gateway_settings import ClockSettings, GatewaySettings, SnapshotSettings
from gateway.testing import declared_for, keep_declared
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    HopWindow,
    OnClose,
    RemoteSource,
    Scan,
    ScanPart,
    SourceKind,
)
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.codec import encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from tests.gateway.processes import TOPICS, GatewayProcess, Listener, base

pytestmark = [pytest.mark.broker, pytest.mark.timeout(280)]

SECOND = 1_000_000
ORIGIN = 1_000 * SECOND
PER_SECOND = 20
SHORT_IDLE_SECONDS = 5
LONG_IDLE_SECONDS = 60
"""No gateway is silent for so long, however little of the machine it gets."""
RECORDED_SECONDS = 240
SHORT_RECORDED_SECONDS = 25
"""Longer than processes take to start on a busy machine."""
COLUMNS = Schema.of(("lane", DataType.TEXT), ("ts", DataType.TIMESTAMP))
CARS = SourceDefinition("cars", SourceKind.STREAM, COLUMNS, time_column=1)
GATEWAYS = ("gw-1", "gw-2")
KILLS = 3


def part(what: ScanPart, idle: int | None = None) -> Scan:
    return Scan("cars", SourceKind.STREAM, COLUMNS, (), 1, idle, 0, what)


def counted(idle_seconds: int) -> FragmentBundle:
    """Return the number of cars of every second at both gateways."""
    windows = HopWindow(part(ScanPart.ROWS), 1, SECOND, SECOND)
    progress = part(ScanPart.PROGRESS, idle_seconds * SECOND)
    count = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
    groups = Aggregate(RemoteSource("f0", windows.schema), (3,), (count,))
    top = OnClose(groups, RemoteSource("f1", progress.schema), 0)
    return FragmentBundle(
        "q1",
        1,
        (
            Fragment("f0", Engine.GATEWAY, windows, GATEWAYS, "f2", ("base",)),
            Fragment("f1", Engine.GATEWAY, progress, GATEWAYS, "f2", ("base",)),
            Fragment("f2", Engine.BASE, top, ("base",)),
        ),
        top.schema,
    )


class Street:
    """Two gateways that replay cars, a base, and a reader of the seconds that are over."""

    def __init__(
        self,
        folder: Path,
        broker: BrokerProcess,
        bundle: FragmentBundle,
        snapshot_seconds: float,
        recorded_seconds: int,
    ) -> None:
        self._recorded_seconds = recorded_seconds
        self.reader = Listener(broker.url)
        self.reader.out = ReceivingChannel(version=1, streams=bundle.streams)
        self._plan = encode_packed(bundle)
        settings = msgspec.structs.replace(
            base(folder, broker.url), snapshots=SnapshotSettings(seconds=snapshot_seconds)
        )
        self.base = GatewayProcess(folder, settings)
        self.began = time.time()
        self.gateways = [
            GatewayProcess(folder, self._gateway(folder, broker, name)) for name in GATEWAYS
        ]

    def _gateway(self, folder: Path, broker: BrokerProcess, name: str) -> GatewaySettings:
        recording = folder / f"{name}.csv"
        count = self._recorded_seconds * PER_SECOND
        lines = [f"{ORIGIN // SECOND + n / PER_SECOND:.3f},lane" for n in range(count)]
        recording.write_text("ts,lane\n" + "\n".join(lines) + "\n")
        cars = {"connector": "replay", "file": str(recording), "format": "csv"}
        keep_declared(folder / name, [declared_for(CARS, "replay")])
        return GatewaySettings(
            "demo",
            name,
            broker.url,
            str(folder / name),
            endpoints={"cars": cars},
            clock=ClockSettings(1.0, origin_wall=int(self.began * SECOND), origin=ORIGIN),
            keepalive=2,
        )

    def seconds(self) -> dict[int, int]:
        """Return how many cars each second that is over has had."""
        return {int(str(end)) // SECOND: int(str(n)) for end, n in self.reader.rows()}

    def install(self) -> None:
        """Install the query everywhere, whoever is there."""
        for site in (*GATEWAYS, "base"):
            self.reader.client.publish(TOPICS.fragment("q1", site), self._plan, retain=True)

    async def begin(self) -> None:
        """Start everybody; the query comes when both gateways have had a reading.

        A gateway without a reading holds back nobody: windows would close without its first ones.
        """
        for process in (self.base, *self.gateways):
            process.start()
        await self.reader.until(
            lambda: self.reader.observing >= set(GATEWAYS), "both gateways have had a reading"
        )
        self.install()
        await self.reader.until(
            lambda: 2 * PER_SECOND in self.seconds().values(), "both gateways are counted"
        )

    async def more(self, count: int) -> None:
        """Wait until more seconds are over."""
        enough = len(self.seconds()) + count
        await self.reader.until(lambda: len(self.seconds()) >= enough, f"{count} seconds are over")


def run(  # noqa: PLR0913  (where, what, and how long each of it lasts)
    broker: BrokerProcess,
    folder: Path,
    scenario: Callable[[Street], Coroutine[Any, Any, None]],
    *,
    snapshot_seconds: float,
    idle_seconds: int = LONG_IDLE_SECONDS,
    recorded_seconds: int = RECORDED_SECONDS,
) -> None:
    async def whole() -> None:
        plan = counted(idle_seconds)
        street = Street(folder, broker, plan, snapshot_seconds, recorded_seconds)
        processes = [street.base, *street.gateways]
        await street.reader.start()
        try:
            async with asyncio.timeout(250):
                await scenario(street)
        finally:
            print("".join(p.log() for p in processes if p.process))  # noqa: T201 - when it fails
            await street.reader.client.close()
            for process in processes:
                if process.process is not None:
                    process.stop()

    asyncio.run(whole())


def every_second_is_whole(street: Street) -> None:
    """Check that no second was given with the cars of one gateway, nor corrected, at any time.

    The first one is short: logs tell nobody what was.
    """
    seconds = street.seconds()
    for rows in street.reader.versions:
        assert all(seconds[int(str(end)) // SECOND] == n for end, n in rows), (rows, seconds)
    ends = sorted(seconds)
    assert ends == list(range(ends[0], ends[-1] + 1))
    whole = [end for end in ends if seconds[end] == 2 * PER_SECOND]
    assert whole == ends[-len(whole) :], seconds
    assert len(whole) >= KILLS * 2


@pytest.mark.parametrize("snapshot_seconds", [3_600.0, 0.3], ids=["nothing saved", "saved"])
def test_a_base_that_is_killed_closes_no_window_with_the_first_gateway_it_hears(
    embedded_broker: BrokerProcess, tmp_path: Path, snapshot_seconds: float
) -> None:
    async def scenario(street: Street) -> None:
        await street.begin()
        for _kill in range(KILLS):
            await street.more(2)
            street.base.kill()
            street.base.start()
        await street.more(3)
        every_second_is_whole(street)
        assert "Traceback" not in street.base.log()

    run(embedded_broker, tmp_path, scenario, snapshot_seconds=snapshot_seconds)


def test_a_gateway_that_never_comes_is_waited_for_no_longer_than_it_may_be_idle(
    embedded_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(street: Street) -> None:
        street.install()
        street.base.start()
        street.gateways[0].start()
        began = time.monotonic()
        await street.more(3)
        assert time.monotonic() - began >= SHORT_IDLE_SECONDS - 1
        first, *others = [n for _end, n in sorted(street.seconds().items())]
        assert first <= PER_SECOND
        assert set(others) == {PER_SECOND}

    run(
        embedded_broker,
        tmp_path,
        scenario,
        snapshot_seconds=3_600.0,
        idle_seconds=SHORT_IDLE_SECONDS,
    )


@pytest.mark.parametrize("snapshot_seconds", [3_600.0, 0.3], ids=["nothing saved", "saved"])
def test_a_base_that_comes_back_when_all_gateways_are_idle_gives_what_ended_meanwhile(
    embedded_broker: BrokerProcess, tmp_path: Path, snapshot_seconds: float
) -> None:
    async def scenario(street: Street) -> None:
        await street.begin()
        given = set(street.seconds())
        street.base.kill()
        # Only time makes a gateway idle: the rest of the recording, and the idle time.
        end = street.began + SHORT_RECORDED_SECONDS + SHORT_IDLE_SECONDS
        await asyncio.sleep(end - time.time())  # time passes: a gateway gets idle
        street.base.start()
        last = ORIGIN // SECOND + SHORT_RECORDED_SECONDS - 1
        await street.reader.until(lambda: last in street.seconds(), "the last whole second")
        assert given <= set(street.seconds())
        assert sorted(street.seconds()) == list(range(min(street.seconds()), last + 1))

    run(
        embedded_broker,
        tmp_path,
        scenario,
        snapshot_seconds=snapshot_seconds,
        idle_seconds=SHORT_IDLE_SECONDS,
        recorded_seconds=SHORT_RECORDED_SECONDS,
    )
