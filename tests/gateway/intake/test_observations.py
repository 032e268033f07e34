"""The observation lane: on disk first, deleted after the acknowledgement, history behind live."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.buffer.disk_buffer import DiskBuffer
from gateway.buffer.published_packs import PublishedPacks
from gateway.gateway_settings import BufferSettings
from gateway.intake import observations
from gateway.intake.observations import ObservationLane
from gateway.testing import TEMPERATURES
from host.mqtt import Message
from host.mqtt.in_memory import Faults, InMemoryBroker
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.codec import decode_compressed_json, decode_json
from streamsql.wire.messages import ObservationPack
from streamsql.wire.senml import rows_of
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")


class Lane:
    """A gateway's lane on a broker, and a reader of everything."""

    def __init__(self, folder: Path, max_pending: int = 10_000) -> None:
        self.folder = folder
        self.broker = InMemoryBroker()
        self.max_pending = max_pending
        self.arrived: list[tuple[str, int, int, list[float]]] = []
        self.reader = self.broker.client("reader", clean=False)
        self.reader.on_messages(self._read)
        self.compressed: list[bool] = []
        self.epoch = 0
        self.added = 0

    def _read(self, burst: list[Message]) -> None:
        for message in burst:
            _, _, lane, _ = TOPICS.parts(message.topic)
            self.compressed.append(message.payload[:1] != b"{")
            pack = decode_compressed_json(message.payload, ObservationPack, limit=1_000_000)
            values = [r.v for r in pack.e if r.n == "celsius" and r.v is not None]
            self.arrived.append((lane, pack.epoch, pack.seq, values))

    async def start(self) -> None:
        """Begin another life."""
        self.epoch += 1
        self.client = self.broker.client("gw-1", max_pending=self.max_pending)
        self.buffer = DiskBuffer(self.folder / "buffer.sqlite", BufferSettings())
        self.lane = ObservationLane(
            "gw-1", self.epoch, self.client, TOPICS, self.buffer, PublishedPacks(self.epoch)
        )
        await self.client.connect(timeout=None)

    async def kill(self) -> None:
        """End this life as kill -9 does: nothing is flushed, nothing settled."""
        self.broker.cut("gw-1")
        await self.client.close()
        self.buffer.close()

    def add(self) -> None:
        """Put one reading in, whose value is its number."""
        row = ("t1", float(self.added), 0)
        self.lane.add("temperature", [("t1", 0, row)], TEMPERATURES.schema)
        self.added += 1

    async def turn(self) -> None:
        """Do what the gateway does ten times a second."""
        self.lane.flush()
        self.lane.settle()
        self.lane.replay(5)
        await self.broker.settle()

    def once(self) -> list[float]:
        """Return the values that arrived, each pack counted once."""
        packs = {(epoch, seq): values for _, epoch, seq, values in self.arrived}
        return sorted(value for values in packs.values() for value in values)


def run(folder: Path, scenario: Callable[[Lane], Coroutine[Any, Any, None]], **more: Any) -> None:
    async def whole() -> None:
        lane = Lane(folder, **more)
        await lane.reader.connect()
        await lane.reader.subscribe(TOPICS.observation(), TOPICS.history())
        await lane.start()
        await scenario(lane)
        await lane.kill()
        await lane.reader.close()

    asyncio.run(whole())


def test_readings_go_live_in_one_pack_and_leave_the_disk_when_acknowledged(tmp_path: Path) -> None:
    async def scenario(lane: Lane) -> None:
        lane.add()
        lane.add()
        lane.lane.flush()
        assert len(lane.buffer) == 1, "on disk before it is sent"
        lane.lane.settle()
        assert len(lane.buffer) == 1, "not acknowledged yet"
        await lane.turn()
        await lane.turn()
        assert len(lane.buffer) == 0
        assert lane.arrived == [("obs", 1, 0, [0.0, 1.0])]

    run(tmp_path, scenario)


def test_what_was_stored_while_the_broker_was_away_follows_as_history_in_order(
    tmp_path: Path,
) -> None:
    async def scenario(lane: Lane) -> None:
        lane.broker.cut("gw-1")
        for _ in range(12):
            lane.add()
            await lane.turn()
        assert lane.arrived == []
        assert len(lane.buffer) == 12
        lane.broker.restore("gw-1")
        lane.add()
        await lane.turn()
        assert [(kind, seq) for kind, _, seq, _ in lane.arrived] == [
            ("obs", 12),
            *[("hist", seq) for seq in range(5)],
        ], "the live lane goes first, history is rate-limited"
        for _ in range(4):
            await lane.turn()
        assert [seq for kind, _, seq, _ in lane.arrived if kind == "hist"] == list(range(12))
        assert len(lane.buffer) == 0

    run(tmp_path, scenario)


def test_what_a_full_queue_refuses_follows_as_history(tmp_path: Path) -> None:
    async def scenario(lane: Lane) -> None:
        for _ in range(6):
            lane.add()
            lane.lane.flush()  # nobody sends meanwhile
        for _ in range(5):
            await lane.turn()
        assert lane.once() == [float(n) for n in range(6)]
        assert {kind for kind, *_ in lane.arrived} == {"obs", "hist"}
        assert len(lane.arrived) == 6, "and none is sent twice"
        assert len(lane.buffer) == 0

    run(tmp_path, scenario, max_pending=2)


def test_history_waits_while_much_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observations, "MAX_AHEAD", 3)

    async def scenario(lane: Lane) -> None:
        lane.broker.cut("gw-1")
        lane.add()
        await lane.turn()
        lane.broker.restore("gw-1")
        for number in range(5):
            lane.client.publish(f"other/{number}", b"")
        assert lane.lane.replay(5) == 0
        await lane.broker.settle()
        assert lane.lane.replay(5) == 1

    run(tmp_path, scenario)


def test_when_the_disk_refuses_readings_pass_through_memory(tmp_path: Path) -> None:
    async def scenario(lane: Lane) -> None:
        lane.buffer.close()
        lane.add()
        await lane.turn()
        lane.broker.cut("gw-1")
        for _ in range(4):
            lane.add()
            await lane.turn()
        assert lane.buffer.state().dropped == 1, "the queue of three is full"
        lane.broker.restore("gw-1")
        await lane.turn()
        assert lane.once() == [0.0, 1.0, 2.0, 3.0]

    run(tmp_path, scenario, max_pending=3)


def test_a_disk_that_refuses_to_delete_does_not_make_us_send_again(tmp_path: Path) -> None:
    async def scenario(lane: Lane) -> None:
        delete = lane.buffer.delete
        lane.buffer.delete = lambda numbers: not numbers  # type: ignore[method-assign]
        for _ in range(3):
            lane.add()
            await lane.turn()
        for _ in range(5):
            await lane.turn()
        assert len(lane.arrived) == 3
        lane.buffer.delete = delete  # type: ignore[method-assign]
        await lane.turn()
        assert len(lane.buffer) == 0

    run(tmp_path, scenario)


def test_packs_stay_small(tmp_path: Path) -> None:
    async def scenario(lane: Lane) -> None:
        row = ("x" * 4_000, 1.0, 0)
        for _ in range(100):
            lane.lane.add("temperature", [("t1", 0, row)], TEMPERATURES.schema)
        await lane.turn()
        assert len(lane.arrived) >= 4

    run(tmp_path, scenario)


ACTIONS = st.lists(
    st.sampled_from(["add", "add", "turn", "flush", "cut", "restore", "kill", "forget"]),
    max_size=30,
)


@given(ACTIONS, st.integers(0, 5))
def test_nothing_stored_is_lost_and_every_pack_counts_once(
    tmp_path_factory: pytest.TempPathFactory, actions: list[str], seed: int
) -> None:
    async def scenario(lane: Lane) -> None:
        stored: list[float] = []
        collected: list[float] = []
        lane.broker._random.seed(seed)
        lane.broker.faults = Faults(reorder=True, duplicate=0.3)
        for action in actions:
            if action == "add":
                collected.append(float(lane.added))
                lane.add()
            elif action == "flush":
                lane.lane.flush()
                stored, collected = stored + collected, []
            elif action == "turn":
                await lane.turn()
                stored, collected = stored + collected, []
            elif action == "cut":
                lane.broker.cut("gw-1")
            elif action == "restore":
                lane.broker.restore("gw-1")
            elif action == "forget":
                lane.broker.stop()
                lane.broker.start()
            else:
                await lane.kill()
                collected = []  # was in memory for less than a tenth of a second
                await lane.start()
        lane.broker.restore("gw-1")
        for _ in range(10):
            await lane.turn()
        assert lane.once() == sorted(stored + collected)
        assert len(lane.buffer) == 0

    run(tmp_path_factory.mktemp("lane"), scenario)


def test_a_pack_says_which_rows_are_withdrawals_where_others_have_no_records(
    tmp_path: Path,
) -> None:
    async def scenario(lane: Lane) -> None:
        heard: list[ObservationPack] = []
        lane.reader.on_messages(
            lambda burst: heard.extend(
                decode_json(message.payload, ObservationPack) for message in burst
            )
        )
        schema = Schema.of(("desk", DataType.TEXT), ("weight", DataType.DOUBLE))
        rows = [("a", 1.0), (None, None), ("b", None), (None, None), ("a", None)]
        observed = [(f"seat-{n}", n, row) for n, row in enumerate(rows)]
        lane.lane.add("seats", observed[:2], schema)
        lane.lane.add("seats", observed[2:], schema, withdrawn={0, 1, 2})
        await lane.turn()
        (pack,) = heard
        places = list(rows_of(pack.e))
        assert [values for _device, _time, values in places] == [
            {"desk": "a", "weight": 1.0},
            {"desk": "b"},
            {"desk": "a"},
        ]
        assert pack.d == (1, 2)

    run(tmp_path, scenario)


def test_a_cut_parts_what_was_taken_before_from_what_comes_after(tmp_path: Path) -> None:
    async def scenario(lane: Lane) -> None:
        cuts = []
        for _ in range(4):
            for _ in range(3):
                lane.add()
            cuts.append((lane.added, lane.lane.cut("temperature")))
        lane.add()
        await lane.turn()
        assert lane.once() == [float(n) for n in range(lane.added)]
        for added, cut in cuts:
            before = {
                (epoch, number): values
                for _lane, epoch, number, values in lane.arrived
                if (epoch, number) < (cut.epoch, cut.number)
            }
            assert sorted(v for values in before.values() for v in values) == [
                float(n) for n in range(added)
            ]
            assert cut.awaited[-1] == ("gw-1", *max(before))

    run(tmp_path, scenario)


def test_what_only_the_lake_reads_is_collected_and_compressed(tmp_path: Path) -> None:
    async def scenario(lane: Lane) -> None:
        lane.lane.is_waited_for = lambda stream: stream != "temperature"
        for tenth in range(65):
            lane.add()
            lane.lane.flush_due(100.0 + tenth / 10)
            await lane.broker.settle()
        assert [len(values) for *_, values in lane.arrived] == [21, 21, 21]
        assert all(lane.compressed)
        lane.lane.is_waited_for = lambda _stream: True
        lane.lane.flush_due(107.0)
        await lane.broker.settle()
        assert len(lane.arrived) == 4, "somebody began to wait for it"
        assert not lane.compressed[-1]
        assert lane.once() == [float(number) for number in range(65)]

    run(tmp_path, scenario)


def test_what_somebody_waits_for_is_sent_with_the_next_look(tmp_path: Path) -> None:
    async def scenario(lane: Lane) -> None:
        lane.lane.flush_due(0.0)
        lane.add()
        lane.lane.flush_due(0.1)
        lane.lane.flush_due(0.2)
        await lane.broker.settle()
        assert [len(values) for *_, values in lane.arrived] == [1]
        assert lane.compressed == [False]

    run(tmp_path, scenario)


def test_compressed_packs_follow_as_history_under_their_new_numbers(tmp_path: Path) -> None:
    async def scenario(lane: Lane) -> None:
        lane.lane.is_waited_for = lambda _stream: False
        lane.broker.cut("gw-1")
        for _ in range(3):
            lane.add()
            await lane.turn()
        lane.broker.restore("gw-1")
        await lane.turn()
        await lane.turn()
        assert {kind for kind, *_ in lane.arrived} == {"hist"}
        assert all(lane.compressed)
        assert lane.once() == [0.0, 1.0, 2.0]

    run(tmp_path, scenario)
