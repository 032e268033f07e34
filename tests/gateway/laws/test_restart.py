"""Gateway processes that are killed, and go on counting where they were."""

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
from host.mqtt import Message
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    SourceKind,
    Window,
    WindowKind,
)
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.codec import decode_json, encode_json, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import Command, QueryProblem
from tests.gateway.processes import TOPICS, GatewayProcess, Listener

pytestmark = [pytest.mark.broker, pytest.mark.timeout(280)]

SECOND = 1_000_000
CARS = SourceDefinition(
    "cars",
    SourceKind.STREAM,
    Schema.of(("lane", DataType.TEXT), ("speed", DataType.DOUBLE), ("ts", DataType.TIMESTAMP)),
    time_column=2,
)
"""A log: passed on, not kept."""
PER_SECOND = 40
ORIGIN = 1_000 * SECOND
HURRY = 20.0


def counted(hours: int = 1) -> FragmentBundle:
    """Return the number of cars of an hour, per lane."""
    window = Window(CARS.scan(), WindowKind.RANGE, hours * 3600 * SECOND)
    plan = Aggregate(window, (0,), (AggregateCall(AggregateFunction.COUNT_ALL, (), "n"),))
    return FragmentBundle("q1", 1, (Fragment("f0", Engine.GATEWAY, plan, ("gw-1",)),), plan.schema)


class Reader(Listener):
    """Reads the counts of a gateway."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.problems: list[str] = []

    def ask(self) -> None:
        command = encode_json(Command(query="q1", channel="out"))
        self.client.publish(TOPICS.command("gw-1", "resync"), command)

    def count(self) -> int:
        return sum(int(str(row[1])) for row in self.rows())

    async def more(self) -> None:
        """Wait until twenty more cars have passed."""
        enough = self.count() + 20
        await self.until(lambda: self.count() > enough, "cars pass")

    def _take(self, burst: list[Message]) -> None:
        super()._take(burst)
        for message in burst:
            if message.topic == TOPICS.error("q1", "gw-1"):
                self.problems += (
                    [decode_json(message.payload, QueryProblem).message] if message.payload else []
                )


def now() -> int:
    return time.time_ns() // 1000


class Street:
    """A gateway that replays cars, and its reader."""

    def __init__(self, folder: Path, broker: BrokerProcess, seconds: int) -> None:
        self.cars = seconds * PER_SECOND
        recording = folder / "cars.csv"
        lines = [
            f"{ORIGIN // SECOND + n / PER_SECOND:.3f},lane{n % 3},{n}.5" for n in range(self.cars)
        ]
        recording.write_text("ts,lane,speed\n" + "\n".join(lines) + "\n")
        cars = {"connector": "replay", "file": str(recording), "format": "csv"}
        keep_declared(folder / "gw-1", [declared_for(CARS, "replay")])
        self.folder = folder
        self.settings = GatewaySettings(
            "demo",
            "gw-1",
            broker.url,
            str(folder / "gw-1"),
            endpoints={"cars": cars},
            clock=ClockSettings(1.0, origin_wall=now(), origin=ORIGIN - 3600 * SECOND),
            snapshots=SnapshotSettings(seconds=0.5),
            keepalive=2,
        )
        self.state = folder / "gw-1" / "state"
        self.process = GatewayProcess(folder, self.settings)
        self.opened = 0
        self.reader = Reader(broker.url)

    async def open(self) -> None:
        """Let the first car come now, that the query is there: a log tells nobody what was."""
        installed = "query q1 version 1 installed"
        await self.reader.until(lambda: installed in self.process.log(), installed)
        self.opened = now()
        self._again(ClockSettings(1.0, origin_wall=self.opened, origin=ORIGIN))

    def hurry(self) -> None:
        """Let the rest of the cars pass quickly, from where they are now."""
        reached = now()
        origin = ORIGIN + reached - self.opened
        self._again(ClockSettings(HURRY, origin_wall=reached, origin=origin))

    def _again(self, clock: ClockSettings) -> None:
        """Kill it and start it with another clock."""
        self.process.kill()
        settings = msgspec.structs.replace(self.settings, clock=clock)
        self.process = GatewayProcess(self.folder, settings)
        self.process.start()


def run(
    broker: BrokerProcess,
    folder: Path,
    seconds: int,
    scenario: Callable[[Street], Coroutine[Any, Any, None]],
) -> None:
    async def whole() -> None:
        street = Street(folder, broker, seconds)
        await street.reader.start()
        bundle = encode_packed(counted())
        street.reader.client.publish(TOPICS.fragment("q1", "gw-1"), bundle, retain=True)
        street.process.start()
        try:
            async with asyncio.timeout(250):
                await scenario(street)
        finally:
            print(street.process.log())  # noqa: T201 - shown when the test fails
            await street.reader.client.close()
            street.process.stop()

    asyncio.run(whole())


def test_a_count_over_a_log_goes_on_after_each_of_several_kills(
    embedded_broker: BrokerProcess, tmp_path: Path
) -> None:
    """No car is missing and none counts twice: each was read from the recording once."""

    async def scenario(street: Street) -> None:
        reader = street.reader
        await street.open()
        for _kill in range(3):
            await reader.more()
            street.process.kill()
            street.process.start()
        await reader.more()
        street.hurry()
        await reader.until(lambda: reader.count() >= street.cars, "all cars have passed")
        told = len(reader.versions)
        reader.ask()
        await reader.until(lambda: len(reader.versions) > told, "an answer after all of them")
        assert reader.count() == street.cars
        log = street.process.log()
        assert log.count("records after the snapshot") >= 4
        assert "Traceback" not in log
        assert reader.problems == []

    run(embedded_broker, tmp_path, 120, scenario)


def test_a_damaged_snapshot_is_set_aside_and_what_is_missing_is_said(
    embedded_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(street: Street) -> None:
        reader = street.reader
        snapshot = street.state / "snapshot"
        await street.open()
        await reader.until(lambda: reader.count() > 20 and snapshot.exists(), "it is saved")
        street.process.kill()
        content = bytearray(snapshot.read_bytes())
        content[len(content) // 2] ^= 1
        snapshot.write_bytes(content)
        street.process.start()
        await reader.until(lambda: bool(reader.problems), "it says what is missing")
        assert "the result lacks the input" in reader.problems[-1]
        assert "snapshot cannot be used: the snapshot is damaged" in reader.problems[-1]
        assert (street.state / "snapshot.broken").exists()
        assert "Traceback" not in street.process.log()

    run(embedded_broker, tmp_path, 120, scenario)
