"""The simulated past is published on the history lane, in packs that count once."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.buffer.disk_buffer import DiskBuffer
from gateway.buffer.published_packs import PublishedPacks
from gateway.connectors.reading import PastPack, Reading
from gateway.gateway_settings import BufferSettings
from gateway.intake.observations import ObservationLane
from gateway.intake.simulated_past import Answer, publish_past
from gateway.testing import TEMPERATURES
from host.mqtt import Message
from host.mqtt.in_memory import InMemoryBroker
from streamsql.data.types import Value
from streamsql.wire.codec import decode_json
from streamsql.wire.messages import ObservationPack
from streamsql.wire.past_packs import HOUR, PAST_EPOCH
from streamsql.wire.senml import rows_of
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")
NOW = 500_000 * HOUR + 7
ORDER: dict[str, Value] = {"first": 499_990, "hours": 2, "every": HOUR}


class Simulated:
    """One reading an hour."""

    def past(self, hour: int, every: int) -> Iterator[PastPack]:
        assert every == HOUR
        values = {"sensor": "t1", "celsius": 20.0}
        reading = Reading("temperature", values, hour * HOUR + 5, "t1")
        yield PastPack(hour * 10, "temperature", [reading])
        yield PastPack(hour * 10 + 1, "nobody", [reading])
        yield PastPack(hour * 10 + 2, "temperature", [])


class Nothing:
    def past(self, hour: int, every: int) -> Iterator[PastPack]:
        raise ValueError(f"nothing is simulated here in hour {hour} every {every}")


def published(
    folder: Path,
    order: dict[str, Value],
    past: Simulated | Nothing | None = None,
    read: bool = True,
) -> tuple[Answer, list[Message]]:
    async def whole() -> tuple[Answer, list[Message]]:
        broker = InMemoryBroker()
        client, reader = broker.client("gw-1"), broker.client("lander")
        heard: list[Message] = []
        reader.on_messages(heard.extend)
        await client.connect()
        await reader.connect()
        await reader.subscribe(TOPICS.history())
        lane = ObservationLane(
            *("gw-1", 7, client, TOPICS),
            DiskBuffer(folder / "buffer.db", BufferSettings()),
            PublishedPacks(7),
        )
        lane.stamps = {"temperature": (3, 44)}
        lane.is_read = lambda _stream: read
        sources = {"temperature": TEMPERATURES}
        answer = await publish_past(past or Simulated(), lane, lambda: sources, lambda: NOW, order)
        await broker.settle()
        return answer, heard

    return asyncio.run(whole())


def test_each_hour_is_a_pack_of_its_own_life_and_number(tmp_path: Path) -> None:
    answer, heard = published(tmp_path, ORDER)
    assert answer == {"done": True, "message": "", "readings": 2}
    assert {message.topic for message in heard} == {TOPICS.history("gw-1", "temperature")}
    packs = [decode_json(message.payload, ObservationPack) for message in heard]
    assert [(p.epoch, p.seq, p.n, p.version, p.layout) for p in packs] == [
        (PAST_EPOCH, hour * 10, None, 3, 44) for hour in (499_990, 499_991)
    ]
    rows = [row for pack in packs for row in rows_of(pack.e)]
    assert [(name, values["celsius"]) for name, _time, values in rows] == [("t1", 20.0)] * 2


def test_what_nobody_reads_is_not_published(tmp_path: Path) -> None:
    assert published(tmp_path, ORDER, read=False) == (
        {"done": True, "message": "", "readings": 0},
        [],
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hours": 25}, "out of range"),
        ({"hours": 0}, "out of range"),
        ({"hours": True}, "out of range"),
        ({"every": 1}, "out of range"),
        ({"first": 499_999}, "the past ends with the last full hour"),
        ({"first": -1}, "the past ends with the last full hour"),
        ({"first": "x"}, "the past ends with the last full hour"),
    ],
)
def test_a_wrong_order_is_refused(tmp_path: Path, changed: dict[str, Value], message: str) -> None:
    answer, heard = published(tmp_path, {**ORDER, **changed})
    assert not answer["done"]
    assert message in str(answer["message"])
    assert not heard


def test_a_gateway_that_simulates_nothing_says_so(tmp_path: Path) -> None:
    answer, _heard = published(tmp_path, ORDER, Nothing())
    assert answer["done"] is False
    assert str(answer["message"]).startswith("nothing is simulated here")
