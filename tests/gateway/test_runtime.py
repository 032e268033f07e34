"""A gateway as a whole on an in-memory broker: what it says, hears, stores, and when it stops."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway import runtime
from gateway.__main__ import serve
from gateway.connectors import registry
from gateway.gateway_settings import GatewaySettings, SnapshotSettings
from gateway.intake import observations
from gateway.intake.observations import ObservationLane
from gateway.runtime import Gateway
from gateway.session import announcer
from gateway.session.identity import OutdatedEpochError, StolenIdError
from gateway.testing import (
    SEATS,
    declared_for,
    keep_declared,
    link,
    seat,
    settings_for,
    temperature,
    until,
)
from gateway.testing_connectors import TELLING, TellingConnector
from host.mqtt import Message, Will
from host.mqtt.in_memory import InMemoryBroker, InMemoryClient
from stream_engine.site import column_counts
from streamsql.errors import DeploymentError
from streamsql.wire.codec import decode_json, decode_packed, encode_json
from streamsql.wire.messages import Command, ObservationPack
from streamsql.wire.observation_logs import Interest
from streamsql.wire.site_messages import (
    HASH_BYTES,
    Birth,
    SensorDescription,
    SiteState,
    SourceCount,
)
from streamsql.wire.topics import Topics
from tests.loop_turns import loop_turns

TOPICS = Topics("demo")


class World:
    """A broker, somebody who listens, and gateways that are told what to sense."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broker = InMemoryBroker()
        self.console = self.broker.client("console")
        self.console.on_messages(self._hear)
        self.heard: list[Message] = []
        self.begun = 0
        self.tasks: list[asyncio.Task[None]] = []

    def _hear(self, burst: list[Message]) -> None:
        self.heard.extend(burst)

    def client(self, will: Will) -> InMemoryClient:
        return self.broker.client("gw-1", will=will)

    def settings(self, **changes: Any) -> GatewaySettings:
        return settings_for(self.folder, **changes)

    def begin(self, **changes: Any) -> None:
        """Start a gateway process, as it were."""
        self.begun += 1
        self.tasks.append(asyncio.create_task(serve(self.settings(**changes), self.client)))

    def serve(self, **changes: Any) -> asyncio.Task[None]:
        """Start a gateway process, as it were, and return it."""
        self.begun += 1
        task = asyncio.create_task(serve(self.settings(**changes), self.client))
        self.tasks.append(task)
        return task

    async def ready(self) -> TellingConnector:
        """Wait for the newest connector, with the gateway online."""
        await until(lambda: len(TellingConnector.lives) >= self.begun, "its connector runs")
        await until(lambda: self.state() is not None and self.is_online(), "it is online")
        return TellingConnector.lives[-1]

    def bring_back(self) -> None:
        """Let one that was thrown out connect again, as a client's own repair does."""
        for client in self.broker._clients:
            if client.client_id == "gw-1" and not client.connected:
                self.broker._attach(client)
                return

    def is_online(self) -> bool:
        state = self.state()
        return state is not None and state.online

    def state(self) -> SiteState | None:
        message = self.broker.retained.get(TOPICS.state("gw-1"))
        return decode_json(message.payload, SiteState) if message is not None else None

    def birth(self) -> Birth:
        return decode_json(self.broker.retained[TOPICS.birth("gw-1")].payload, Birth)

    def told(self, topic: str) -> list[bytes]:
        return [message.payload for message in self.heard if message.topic == topic]

    def packs(self, lane: str, stream: str) -> list[ObservationPack]:
        topic = f"{TOPICS.root}/gw/gw-1/{lane}/{stream}"
        return [decode_json(payload, ObservationPack) for payload in self.told(topic)]

    def links(self) -> set[tuple[str, str]]:
        prefix = f"{TOPICS.root}/gw/gw-1/link/"
        topics = [t for t in self.broker.retained if t.startswith(prefix)]
        return {(topic.split("/")[-2], topic.split("/")[-1]) for topic in topics}

    def command(self, verb: str, **fields: Any) -> None:
        self.console.publish(TOPICS.command("gw-1", verb), encode_json(Command(**fields)))


def run(folder: Path, scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        world = World(folder)
        await world.console.connect()
        await world.console.subscribe(f"{TOPICS.root}/#")
        try:
            async with asyncio.timeout(60):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setitem(registry.BUILT_IN, "telling", TELLING)
                    TellingConnector.forget()
                    await scenario(world)
        finally:
            for task in world.tasks:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, DeploymentError):
                    await task
            await world.console.close()

    asyncio.run(whole())


def test_birth_state_and_a_clean_stop(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        task = world.serve()
        connector = await world.ready()
        assert connector.context is not None
        lamp = SensorDescription("l1", "seatsensor", room="L101")
        connector.context.describe((lamp,), ("L101",))
        await until(lambda: world.birth().rooms != (), "its rooms are announced")
        birth, state = world.birth(), world.state()
        assert state is not None
        assert (birth.gateway, birth.epoch, birth.rooms) == ("gw-1", 1, ("L101",))
        assert birth.sensors == (lamp,)
        assert birth.sources == ("seatsensor", "temperature", "link")
        assert [connector.kind for connector in birth.connectors] == ["telling"]
        assert (state.epoch, state.role, state.detail) == (1, "gateway", "")
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        stopped = world.state()
        assert stopped is not None
        assert (stopped.online, stopped.reason, stopped.epoch) == (False, "stopped", 1)
        world.begin()
        await world.ready()
        assert world.birth().epoch == 2

    run(tmp_path, scenario)


def test_a_broken_link_brings_out_the_will_and_a_new_birth_follows(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.begin()
        connector = await world.ready()
        connector.emit(seat("m1", 3.0))
        await until(lambda: bool(world.packs("obs", "seatsensor")), "the site has taken it in")
        world.broker.cut("gw-1")
        will = world.state()
        assert will is not None
        assert (will.online, will.reason, will.epoch) == (False, "lost", 1)
        await loop_turns()
        world.broker.restore("gw-1")
        await until(world.is_online, "it is back")
        await until(lambda: len(world.told(TOPICS.birth("gw-1"))) == 2, "the new birth is heard")
        (rows,) = [s.rows for s in world.birth().current if s.source == "seatsensor"]
        assert [row[:2] for row in rows] == [("m1", 3.0)]

    run(tmp_path, scenario)


def test_what_is_in_columns_is_told_where_only_the_coordinator_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcer, "HEARTBEAT_SECONDS", 0.2)
    monkeypatch.setattr(announcer, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(column_counts, "LOOK_MICROSECONDS", 0)

    async def scenario(world: World) -> None:
        world.begin()
        connector = await world.ready()
        connector.emit(*(seat(f"m{n}", float(n)) for n in range(20)))
        topic = TOPICS.columns("gw-1")
        await until(lambda: bool(world.told(topic)), "the columns are told")
        count = decode_packed(world.told(topic)[-1], SourceCount)
        assert (count.source, count.rows) == ("seatsensor", 20)
        assert set(count.columns) == {"mid", "weight"}
        assert len(count.columns["mid"].hashes) == 20 * HASH_BYTES
        assert topic not in world.broker.retained
        states = world.told(TOPICS.state("gw-1"))
        assert states
        assert not any(b"columns" in told for told in states)

    run(tmp_path, scenario)


def test_readings_are_observed_kept_as_last_value_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcer, "HEARTBEAT_SECONDS", 0.2)
    monkeypatch.setattr(announcer, "LOOK_SECONDS", 0.05)

    async def scenario(world: World) -> None:
        world.begin()
        connector = await world.ready()
        connector.emit(seat("m1", 3.0), temperature("t1", 20.0), seat("m2", float("nan")))
        await until(lambda: bool(world.packs("obs", "seatsensor")), "observed")
        await until(lambda: TOPICS.last("gw-1", "t1") in world.broker.retained, "last value")

        def counted() -> bool:
            state = world.state()
            return state is not None and state.counters["readings"] == 2 and bool(state.connectors)

        await until(counted, "the state is fresh")
        state = world.state()
        assert state is not None
        assert [(w.readings, w.errors) for w in state.connectors] == [(2, 1)]
        assert "not finite" in state.connectors[0].last_error
        assert "not finite" in state.detail

    run(tmp_path, scenario)


def test_a_stream_is_published_as_its_readers_want_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observations, "PATIENT_SECONDS", 0.1)

    async def scenario(world: World) -> None:
        def say(stream: str, *, wanted: bool, soon: bool) -> None:
            topic = TOPICS.interest(stream)
            world.console.publish(topic, encode_json(Interest(wanted, soon)), retain=True)

        def first_bytes(stream: str) -> list[bytes]:
            return [payload[:1] for payload in world.told(TOPICS.observation("gw-1", stream))]

        say("seatsensor", wanted=True, soon=False)
        say("temperature", wanted=False, soon=False)
        world.begin()
        connector = await world.ready()
        connector.emit(seat("m1", 3.0), temperature("t1", 21.0))
        await until(lambda: first_bytes("seatsensor") == [b"x"], "for the lake alone: compressed")
        assert not first_bytes("temperature")
        say("seatsensor", wanted=True, soon=True)
        await world.broker.settle()
        connector.emit(seat("m1", 4.0), temperature("t1", 22.0))
        await until(lambda: first_bytes("seatsensor") == [b"x", b"{"], "somebody waits for it")
        assert not first_bytes("temperature")

    run(tmp_path, scenario)


def test_links_are_retained_and_cleared_also_those_of_an_earlier_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "LINK_SECONDS", 0.05)

    forgetful = SnapshotSettings(keep=False)

    async def scenario(world: World) -> None:
        task = world.serve(snapshots=forgetful)
        connector = await world.ready()
        connector.emit(link("a", "b"), link("b", "a"))
        await until(lambda: world.links() == {("a", "b"), ("b", "a")}, "published")
        connector.emit(link("b", "a", delete=True))
        await until(lambda: world.links() == {("a", "b")}, "cleared")
        world.broker.cut("gw-1")  # as kill -9
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert world.links() == {("a", "b")}
        world.begin(snapshots=forgetful)
        again = await world.ready()
        again.emit(link("c", "d"))
        await until(lambda: world.links() == {("c", "d")}, "what the earlier life left is gone")

    run(tmp_path, scenario)


def test_links_on_topics_of_an_earlier_version_or_of_a_source_that_is_gone_are_cleared(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        for levels in (("a", "b"), ("cable", "a", "b"), ("a",), ("link", "a", "b", "c")):
            topic = TOPICS.link("gw-1", *levels)
            world.console.publish(topic, b'{"source":"a","target":"b","cost":0}', retain=True)
        await world.broker.settle()
        world.begin()
        connector = await world.ready()
        connector.emit(link("a", "b"))
        await until(lambda: len(world.links()) == 1, "only what is there now")
        assert TOPICS.link("gw-1", "link", "a", "b") in world.broker.retained

    run(tmp_path, scenario)


def test_links_whose_time_is_not_over_are_known_to_the_next_life(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        task = world.serve()
        (await world.ready()).emit(link("a", "b"), seat("m1", 2.0))
        await until(lambda: world.links() == {("a", "b")}, "published")
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        world.begin()
        (await world.ready()).emit(link("c", "d"))
        await until(lambda: world.links() == {("a", "b"), ("c", "d")}, "both are there")
        world.command("rebirth")

        def current() -> dict[str, int]:
            return {rows.source: len(rows.rows) for rows in world.birth().current}

        await until(lambda: current().get("seatsensor") == 1, "the seat is known")

    run(tmp_path, scenario)


def test_commands_are_answered(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.begin()
        await world.ready()
        await world.broker.settle()
        births = len(world.told(TOPICS.birth("gw-1")))
        for number, verb in enumerate(("rebirth", "flush", "simulate", "dance")):
            world.command(verb, id=f"c{number}")

        def answers() -> list[bool]:
            payloads = [world.told(TOPICS.response("gw-1", f"c{number}")) for number in range(4)]
            return [bool(decode_json(p[0], Command).arguments["done"]) for p in payloads if p]

        await until(lambda: len(answers()) == 4, "all are answered")
        assert answers() == [True, True, False, False]
        await until(lambda: len(world.told(TOPICS.birth("gw-1"))) > births, "a new birth")
        world.command("dance", id="bad id/+")
        world.command("dance")  # wants no answer
        await world.broker.settle()
        assert not [t for t in (m.topic for m in world.heard) if "bad id" in t]

    run(tmp_path, scenario)


def test_a_wrong_option_is_shown_and_tried_again_while_the_rest_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcer, "LOOK_SECONDS", 0.05)
    wrong = {"rooms": {"connector": "calendar", "place": "here"}, "told": {"connector": "telling"}}
    booked = declared_for(msgspec.structs.replace(SEATS, name="booked"), "calendar")

    async def scenario(world: World) -> None:
        settings = world.settings(endpoints=wrong)
        keep_declared(Path(settings.data_dir), [declared_for(SEATS), booked])
        world.tasks.append(asyncio.create_task(serve(settings, world.client)))
        world.begun += 1
        connector = await world.ready()

        def shown() -> bool:
            state = world.state()
            return state is not None and "endpoint rooms has no option `place`" in state.detail

        await until(shown, "the console can show it")
        connector.emit(seat("m1", 1.0))
        await until(lambda: bool(world.packs("obs", "seatsensor")), "the other connector works")

    run(tmp_path, scenario)


def test_store_and_forward_over_outages_and_a_kill(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        task = world.serve()
        connector = await world.ready()
        number = 0
        for _round in range(3):
            connector.emit(temperature("t1", float(number)))
            number += 1
            await asyncio.sleep(0.15)  # time passes: each reading is a pack of its own
        world.broker.cut("gw-1")
        for _round in range(3):
            connector.emit(temperature("t1", float(number)))
            number += 1
            await asyncio.sleep(0.15)  # time passes: each reading is a pack of its own
        task.cancel()  # it never speaks to the broker again
        with contextlib.suppress(asyncio.CancelledError):
            await task
        world.begin()
        await world.ready()
        TellingConnector.lives[-1].emit(temperature("t1", float(number)))

        def values() -> list[float]:
            packs = {
                (pack.epoch, pack.seq): [r.v for r in pack.e if r.n == "celsius"]
                for lane in ("obs", "hist")
                for pack in world.packs(lane, "temperature")
            }
            return sorted(v for vs in packs.values() for v in vs if v is not None)

        await until(lambda: values() == [float(n) for n in range(number + 1)], "all arrive once")

    run(tmp_path, scenario)


# Identity -------------------------------------------------------------------------------------


def test_a_new_data_directory_starts_above_what_the_broker_remembers(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        old = SiteState(False, 41, 0, reason="lost", instance="earlier")
        world.console.publish(TOPICS.state("gw-1"), encode_json(old), retain=True)
        await world.broker.settle()
        world.begin()
        await until(lambda: (s := world.state()) is not None and s.epoch == 42 and s.online)
        await world.ready()
        assert world.birth().epoch == 42
        assert (tmp_path / "gw-1" / "epoch").read_text() == "42\n"

    run(tmp_path, scenario)


def test_of_two_processes_with_one_id_the_newer_one_stays(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        old = world.serve()
        await world.ready()
        for _ in range(3):  # it has lived a while
            world.command("rebirth")
        new = world.serve(data_dir=str(tmp_path / "thief"))

        for _ in range(600):
            await asyncio.sleep(0.1)
            world.bring_back()
            if old.done() or new.done():
                break
        assert old.done()
        with pytest.raises(StolenIdError, match="another process runs as 'gw-1'"):
            await old
        world.tasks.remove(old)
        for _ in range(5):
            await asyncio.sleep(0.1)
            world.bring_back()
            assert not new.done()
        await until(world.is_online, "the newer one is online")

    run(tmp_path, scenario)


def test_one_that_stops_for_another_leaves_no_state_that_says_it_is_online(tmp_path: Path) -> None:
    """The other may be gone before it has spoken again: nobody would ever retract the rows."""

    async def scenario(world: World) -> None:
        old = world.serve()
        await world.ready()
        other = SiteState(True, 1, 0, instance="other", started=2**60)
        world.console.publish(TOPICS.state("gw-1"), encode_json(other))
        with pytest.raises(StolenIdError):
            await old
        world.tasks.remove(old)
        await world.broker.settle()
        assert (state := world.state()) is not None
        assert (state.online, state.reason) == (False, "lost")

    run(tmp_path, scenario)


def test_a_forged_state_without_instance_makes_it_start_above_but_not_stop(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        task = world.serve()
        await world.ready()
        world.console.publish(TOPICS.state("gw-1"), encode_json(SiteState(False, 99, 0)))
        await until(lambda: world.birth().epoch == 100, "above the forged one")
        assert not task.done()
        world.console.publish(TOPICS.state("gw-1"), encode_json(SiteState(False, 2**60, 0)))
        # The next one is heard after it, and starts it above itself, not above that one.
        world.console.publish(TOPICS.state("gw-1"), encode_json(SiteState(False, 199, 0)))
        await until(lambda: world.birth().epoch == 200, "above the one that is possible")
        assert not task.done()

    run(tmp_path, scenario)


def test_it_gives_up_when_it_always_finds_a_higher_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def always(self: Gateway) -> None:
        await asyncio.sleep(0)
        raise OutdatedEpochError(self.session.epoch)

    monkeypatch.setattr(Gateway, "run", always)

    async def scenario(world: World) -> None:
        with pytest.raises(StolenIdError, match="keep starting"):
            await serve(world.settings(), world.client)

    run(tmp_path, scenario)


def test_it_stops_when_it_is_told_while_it_finds_a_higher_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal that came while a life ended was lost, and the process ran on."""
    lives: list[int] = []
    found, ending, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def look_back(self: Gateway) -> None:
        await found.wait()
        raise OutdatedEpochError(self.session.epoch)

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await may_end.wait()

    async def life(self: Gateway) -> None:
        lives.append(self.session.epoch)
        ended: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(look_back(self))
                group.create_task(work())
        except* OutdatedEpochError as errors:
            ended = errors.exceptions[0]
        if ended is not None:
            raise ended from None

    monkeypatch.setattr(Gateway, "run", life)

    async def scenario(world: World) -> None:
        task = asyncio.create_task(serve(world.settings(), world.client))
        await until(lambda: bool(lives), "it lives")
        found.set()
        await ending.wait()
        task.cancel()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(lives) == 1

    run(tmp_path, scenario)


def test_a_will_or_an_older_state_in_its_place_is_put_right(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.begin()
        await world.ready()
        late = SiteState(False, 0, 0, reason="lost", instance="earlier")
        world.console.publish(TOPICS.state("gw-1"), encode_json(late), retain=True)
        await world.broker.settle()
        await until(world.is_online, "the state is right again")
        assert (state := world.state()) is not None
        assert state.epoch == 1

    run(tmp_path, scenario)


def test_a_defect_in_a_job_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        task = world.serve()
        await world.ready()

        def broken(_self: object) -> None:
            raise AssertionError("a defect")

        monkeypatch.setattr(ObservationLane, "settle", broken)
        done, _ = await asyncio.wait({task}, timeout=60)
        assert done
        world.tasks.clear()
        with pytest.raises((ExceptionGroup, AssertionError)):
            await task

    run(tmp_path, scenario)


def test_a_broker_address_that_is_none_is_explained(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, broker="http://somewhere")
    with pytest.raises(DeploymentError, match=r"settings: broker address .* expected mqtt://"):
        asyncio.run(serve(settings))
