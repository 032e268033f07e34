"""Gateway processes on real brokers: killed, cut off, robbed of their id, told nonsense."""

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from broker.broker_testing import BrokerProcess
from gateway.gateway_settings import ClockSettings
from gateway.testing import fill_disk
from host.clocks import wall_clock
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import Command
from streamsql.wire.site_messages import SiteState
from tests.gateway.processes import (
    SECONDS,
    TOPICS,
    GatewayProcess,
    Listener,
    base,
    replaying,
)

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]


class World:
    """A broker, gateway processes, and a listener."""

    def __init__(self, broker: BrokerProcess, folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        self.listener = Listener(broker.url)
        self.processes: list[GatewayProcess] = []
        self.program: tuple[str, ...] = ("-m", "gateway")

    def start(self, name: str, **changes: Any) -> GatewayProcess:
        """Start a gateway, or the base site."""
        settings = (
            base(self.folder, self.broker.url, **changes)
            if name == "base"
            else replaying(self.folder, self.broker.url, name, **changes)
        )
        self.processes.append(GatewayProcess(self.folder, settings, self.program).start())
        return self.processes[-1]

    async def three(
        self, grace: float = 1.0
    ) -> tuple[GatewayProcess, GatewayProcess, GatewayProcess]:
        """Start a base site, patient for so many seconds, and two gateways; query over both."""
        started = (self.start("base", grace=grace), self.start("gw-1"), self.start("gw-2"))
        self.listener.install("gw-1", "gw-2")
        await self.listener.until(lambda: self.mids() == self.all(), "all rows are there")
        return started

    def online(self, name: str, epoch: int = 0) -> bool:
        """Whether a site is online, in an epoch or later."""
        state = self.listener.states.get(name)
        return state is not None and state.online and state.epoch >= epoch

    async def until_state(self, name: str, condition: Callable[[SiteState], bool]) -> None:
        """Wait for a state of a site; it is asked for one twice a second."""
        for _ in range(int(2 * SECONDS)):
            if condition(self.listener.states[name]):
                return
            self.listener.client.publish(TOPICS.command(name, "ping"), encode_json(Command()))
            await asyncio.sleep(0.5)
        raise AssertionError(f"the state stays {self.listener.states[name]}")

    def mids(self) -> list[object]:
        return [row[0] for row in self.listener.rows()]

    @staticmethod
    def all() -> list[object]:
        return ["gw-1-m1", "gw-1-m2", "gw-2-m1", "gw-2-m2"]


def run(
    broker: BrokerProcess, folder: Path, scenario: Callable[[World], Coroutine[Any, Any, None]]
) -> None:
    async def whole() -> None:
        world = World(broker, folder)
        await world.listener.start()
        try:
            async with asyncio.timeout(280):
                await scenario(world)
        finally:
            logs = "".join(f"--- {p.name}\n{p.log()}" for p in world.processes)
            print(logs)  # noqa: T201 - shown when the test fails
            await world.listener.client.close()
            for process in world.processes:
                process.stop()

    asyncio.run(whole())


def test_a_killed_gateways_rows_leave_and_are_back_with_it_and_none_is_doubled(
    real_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        _, gateway, _ = await world.three()
        gateway.kill()
        rest = ["gw-2-m1", "gw-2-m2"]
        await world.listener.until(lambda: world.mids() == rest, "its rows leave")
        state = world.listener.states["gw-1"]
        assert (state.online, state.reason) == (False, "lost")
        gateway.start()
        await world.listener.until(lambda: world.mids() == world.all(), "its rows are back")
        assert world.listener.states["gw-1"].epoch == 2
        assert all(len(rows) == len(set(rows)) for rows in world.listener.versions)

    run(real_broker, tmp_path, scenario)


def test_a_gateway_that_is_back_in_time_never_left(
    embedded_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        _, gateway, _ = await world.three(grace=60.0)
        world.listener.versions.clear()
        gateway.kill()
        gateway.start()
        await world.listener.until(lambda: world.online("gw-1", epoch=2), "it is back")
        again = lambda: world.listener.flows["base"].lives.get("gw-1") == 2  # noqa: E731
        await world.listener.until(again, "the base site has its rows once more")
        assert world.mids() == world.all()
        for version in world.listener.versions:
            assert [row[0] for row in version] == world.all()

    run(embedded_broker, tmp_path, scenario)


def test_a_clean_stop_says_so(embedded_broker: BrokerProcess, tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        process = world.start("gw-1")
        await world.listener.until(lambda: "gw-1" in world.listener.states, "it is there")
        assert process.stop() == 0
        stopped = lambda: not world.listener.states["gw-1"].online  # noqa: E731
        await world.listener.until(stopped, "it says good bye")
        assert world.listener.states["gw-1"].reason == "stopped"
        assert "Traceback" not in process.log()

    run(embedded_broker, tmp_path, scenario)


SOON_GIVEN_UP = """
import sys
from host import heartbeats
heartbeats.HEARTBEAT_SECONDS, heartbeats.TRUST_SECONDS = 3.0, 8.0
from gateway.__main__ import main
sys.exit(main())
"""
"""A gateway that says three times as often that it is there, and is missed as much sooner."""


def test_a_broker_that_is_away_for_a_while_changes_no_answer(
    embedded_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        world.program = ("-c", SOON_GIVEN_UP)
        _, gateway, other = await world.three()
        embedded_broker.stop(signal.SIGKILL)
        gateway.kill()  # it leaves no will
        await asyncio.sleep(2)  # time passes: more than the grace of the base site
        embedded_broker.start()
        world.listener.install("gw-1", "gw-2")  # as the coordinator does on every connect
        rest = ["gw-2-m1", "gw-2-m2"]
        missed = lambda: world.mids() == rest  # noqa: E731
        await world.listener.until(missed, "it is missed")
        gateway.start()
        await world.listener.until(lambda: world.mids() == world.all(), "everybody is back")
        assert not other.ended()

    run(embedded_broker, tmp_path, scenario)


def test_a_frozen_broker_changes_no_answer(real_broker: BrokerProcess, tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        processes = await world.three()
        real_broker.freeze()
        lost = lambda: all("broker lost" in process.log() for process in processes)  # noqa: E731
        await world.listener.until(lost, "all miss it")
        real_broker.thaw()
        everything = {"gw-1", "gw-2", "base"}
        await world.listener.until(
            lambda: everything <= {n for n, s in world.listener.states.items() if s.online},
            "all are online",
        )
        await world.listener.until(
            lambda: world.mids() == world.all() and world.listener.out.synchronised, "all rows"
        )
        assert not any(process.ended() for process in processes)

    run(real_broker, tmp_path, scenario)


def test_of_two_processes_with_one_id_exactly_one_stays_with_a_clear_message(
    real_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        first = world.start("gw-1")
        await world.listener.until(lambda: "gw-1" in world.listener.states, "the first is there")
        first.stop()
        first.start()  # its epoch is 2 now
        await world.listener.until(lambda: world.listener.states["gw-1"].epoch == 2, "epoch 2")
        second = world.start("gw-1", data_dir=str(tmp_path / "stolen"))
        await world.listener.until(lambda: first.ended() or second.ended(), "one gives up")
        assert first.ended(), "the newer session stays"
        assert first.stop() == 2
        assert "another process runs as 'gw-1' with a newer session" in first.log()
        assert "give every gateway its own id" in first.log()
        there = lambda: world.online("gw-1", epoch=3)  # noqa: E731
        await world.listener.until(there, "it is online")
        instance = world.listener.states["gw-1"].instance
        for _ in range(3):
            last = world.listener.states["gw-1"].ts
            await world.until_state("gw-1", lambda state, ts=last: state.ts > ts)  # type: ignore[misc]
        assert not second.ended()
        assert world.listener.states["gw-1"].instance == instance, "no flapping"
        # On a busy machine the broker may take it for dead for a moment; it contradicts then.
        await world.listener.until(there, "it stays online")

    run(real_broker, tmp_path, scenario)


def test_two_processes_on_one_data_directory_are_refused(
    embedded_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        world.start("gw-1")
        await world.listener.until(lambda: "gw-1" in world.listener.states, "the first is there")
        second = world.start("gw-1")
        await world.listener.until(second.ended, "the second ends")
        assert second.stop() == 2
        assert "is in use by another process" in second.log()

    run(embedded_broker, tmp_path, scenario)


def sensing(folder: Path, count: int, clock: ClockSettings) -> dict[str, Any]:
    """Changes of settings: readings of temperature, ten a second of the wall."""
    recording = folder / "temperatures.csv"
    lines = [f"{number / 10},t1,{float(number)}" for number in range(1, count + 1)]
    recording.write_text("\n".join(["ts,sensor,celsius", *lines]) + "\n")
    warm = {"connector": "replay", "file": str(recording), "format": "csv"}
    return {"endpoints": {"warm": warm}, "clock": clock}


@pytest.mark.parametrize("how", ["stopped", "frozen"])
def test_readings_of_an_outage_follow_once_also_after_a_kill(
    real_broker: BrokerProcess, tmp_path: Path, how: str
) -> None:
    """Every number of an epoch comes once: none is missing, none has two contents."""

    async def scenario(world: World) -> None:
        clock = ClockSettings(1.0, origin_wall=wall_clock(), origin=0)
        process = world.start("gw-1", **sensing(tmp_path, 2_000, clock))
        heard = world.listener.packs

        def complete(epoch: int) -> bool:
            numbers = sorted(seq for e, seq in heard if e == epoch)
            return bool(numbers) and numbers == list(range(numbers[-1] + 1))

        await world.listener.until(lambda: len(heard) >= 5, "it senses")
        before = len(world.listener.values())
        if how == "stopped":
            real_broker.stop(signal.SIGKILL)
        else:
            real_broker.freeze()
        await world.listener.until(lambda: "broker lost" in process.log(), "it misses the broker")
        await asyncio.sleep(2)  # time passes: twenty readings of the outage
        process.kill()
        process.start()
        epoch = tmp_path / "gw-1" / "epoch"
        await world.listener.until(lambda: epoch.read_text().strip() == "2", "it runs again")
        if how == "stopped":
            # Whoever is not there when the broker gets them hears neither live nor history lane.
            process.freeze()
            real_broker.start()
            await world.listener.listening()
            process.thaw()
        else:
            real_broker.thaw()
        await world.listener.until(lambda: any(epoch == 2 for epoch, _ in heard), "a new life")
        # What the broker had taken but not acknowledged comes once more on the history lane.
        await world.listener.until(lambda: "hist" in world.listener.lanes, "the history lane")
        await world.until_state("gw-1", lambda s: s.epoch == 2 and s.buffer.stored < 5)
        assert world.listener.states["gw-1"].buffer.dropped == 0
        await world.listener.until(lambda: complete(1), "the first life's numbers")
        await world.listener.until(lambda: complete(2), "the second life's numbers")
        # All readings of the first life are there, in order, but for the last tenth of a second.
        first = [value for key, values in sorted(heard.items()) if key[0] == 1 for value in values]
        assert first == [float(number) for number in range(1, len(first) + 1)]
        assert len(first) > before + 10, "those of the outage, too"

    run(real_broker, tmp_path, scenario)


def test_a_full_disk_harms_nothing_but_the_buffer(
    embedded_broker: BrokerProcess, tmp_path: Path, small_disk: Path
) -> None:
    async def scenario(world: World) -> None:
        other = small_disk / "other"
        clock = ClockSettings(1.0, origin_wall=wall_clock(), origin=0)
        changes = {**sensing(tmp_path, 2_000, clock), "data_dir": str(small_disk / "gw-1")}
        world.start("base")
        process = world.start("gw-1", **changes)
        await world.listener.until(lambda: len(world.listener.values()) > 5, "it senses")
        fill_disk(other)
        await world.until_state("gw-1", lambda state: "readings are not buffered" in state.detail)
        count = len(world.listener.values())
        await world.listener.until(lambda: len(world.listener.values()) > count + 20, "they pass")
        process.kill()
        process.start()  # on a disk without any room
        await world.listener.until(lambda: world.online("gw-1", epoch=2), "it starts all the same")
        heard = world.listener.packs
        await world.listener.until(lambda: len([k for k in heard if k[0] == 2]) > 5, "they pass")
        other.unlink()
        await world.until_state("gw-1", lambda state: state.detail == "")
        assert world.listener.states["gw-1"].buffer.dropped == 0
        assert not process.ended()

    run(embedded_broker, tmp_path, scenario)


NONSENSE = {
    "frag": TOPICS.fragment("q9", "gw-1"),
    "x": TOPICS.exchange("q1", "gw-1", "gw-2"),
    "cmd": TOPICS.command("gw-1", "rebirth"),
    "state": TOPICS.state("gw-7"),
    "own state": TOPICS.state("gw-1"),
}


def test_nonsense_on_every_topic_is_counted_and_kept_and_harms_nobody(
    embedded_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        processes = await world.three()
        publish = world.listener.client.publish
        payloads = [
            b"\xff" * 10,
            b"[" * 50_000,
            b"\x91" * 50_000,
            b'{"epoch":"x","id":1}',
            bytes(500_000),
        ]
        for topic in NONSENSE.values():
            for payload in payloads:
                publish(topic, payload)
        await world.listener.until(
            lambda: set(NONSENSE.values()) <= set(world.listener.letters), "all are kept"
        )
        await world.until_state("gw-1", lambda state: state.counters["bad_payloads"] == 25)
        assert world.mids() == world.all()
        assert not any(process.ended() for process in processes)

    run(embedded_broker, tmp_path, scenario)


def test_wrong_settings_end_with_status_2_and_a_message(tmp_path: Path) -> None:
    settings = replaying(tmp_path, "mqtt://127.0.0.1:1", "gw-1")
    process = GatewayProcess(tmp_path, settings)
    for content, complaint in (
        (b"{}", "missing required field"),
        (b'{"site":"demo","gateway":"a b","broker":"x","data_dir":"d"}', "is not an id"),
        (process.config.read_bytes().replace(b"mqtt://", b"http://"), "no usable scheme"),
        (b'{"wrappers": [{"kind": "dowsing"}]}', "wrappers are no longer settings of a gateway"),
    ):
        process.config.write_bytes(content)
        process.start()
        assert process.process is not None
        assert process.process.wait(SECONDS) == 2
        assert complaint in process.log()
        assert "Traceback" not in process.log()


def test_it_waits_for_a_broker_that_is_not_there_yet_and_stops_when_told(tmp_path: Path) -> None:
    process = GatewayProcess(tmp_path, replaying(tmp_path, "mqtt://127.0.0.1:1", "gw-1")).start()
    deadline = time.monotonic() + SECONDS
    while not (tmp_path / "gw-1" / "epoch").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(1)  # time passes: it tries again and again
    assert not process.ended()
    assert process.stop() == 0
    assert "Traceback" not in process.log()
