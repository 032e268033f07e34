"""Last values: retained for every sensor, and cheap."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from gateway.intake.last_values import (
    CHANGED_SECONDS,
    NUMBERS_SECONDS,
    SAME_SECONDS,
    LastValues,
)
from gateway.testing import SEATS, SECOND
from host.mqtt.in_memory import InMemoryBroker
from streamsql.data.events import SourceEvent
from streamsql.wire.codec import decode_json
from streamsql.wire.messages import ObservationPack
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")


class Field:
    """A broker and the last values of one gateway."""

    def __init__(self) -> None:
        self.broker = InMemoryBroker()
        self.client = self.broker.client("gw-1", max_pending=5)
        self.last = LastValues("gw-1", 7, self.client, TOPICS)

    def note(self, sensor: str, weight: float | None, ts: int = 0, text: str = "m") -> None:
        event = SourceEvent((text, weight, ts * SECOND), ts * SECOND)
        self.last.note(sensor, event, SEATS)

    async def publish(self, now: float) -> int:
        published = self.last.publish_due(now)
        await self.broker.settle()
        return published

    def retained(self, sensor: str) -> ObservationPack | None:
        message = self.broker.retained.get(TOPICS.last("gw-1", sensor))
        return decode_json(message.payload, ObservationPack) if message is not None else None


def run(scenario: Callable[[Field], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        field = Field()
        await field.client.connect()
        await scenario(field)
        await field.client.close()

    asyncio.run(whole())


def test_a_change_is_published_at_once_then_after_a_rest() -> None:
    async def scenario(field: Field) -> None:
        field.note("s1", 1.0)
        assert await field.publish(0.0) == 1
        pack = field.retained("s1")
        assert pack is not None
        assert (pack.epoch, [record.v for record in pack.e if record.n == "weight"]) == (7, [1.0])
        field.note("s1", 1.0, 1, text="n")
        assert await field.publish(CHANGED_SECONDS - 1) == 0
        assert await field.publish(CHANGED_SECONDS) == 1
        assert await field.publish(CHANGED_SECONDS * 2) == 0
        field.note("s1", None, 2, text="n")
        assert await field.publish(CHANGED_SECONDS * 2) == 1, "it has no value any more"

    run(scenario)


def test_numbers_alone_have_more_time() -> None:
    async def scenario(field: Field) -> None:
        times = []
        for second in range(0, 1_000, 5):
            field.note("s1", float(second), second)
            if await field.publish(float(second)):
                times.append(second)
        assert times == [0, NUMBERS_SECONDS, 2 * NUMBERS_SECONDS, 3 * NUMBERS_SECONDS]

    run(scenario)


def test_the_same_value_is_repeated_now_and_then_only() -> None:
    async def scenario(field: Field) -> None:
        times = []
        for second in range(0, 2_000, 5):
            field.note("s1", 1.0, second)
            if await field.publish(float(second)):
                times.append(second)
        assert times == [0, SAME_SECONDS, 2 * SAME_SECONDS, 3 * SAME_SECONDS]

    run(scenario)


def test_a_full_queue_or_a_broken_link_only_delays() -> None:
    async def scenario(field: Field) -> None:
        for number in range(12):
            field.note(f"s{number}", 1.0)
        assert await field.publish(0.0) == 5
        field.broker.cut("gw-1")
        assert await field.publish(1.0) == 0
        field.broker.restore("gw-1")
        assert await field.publish(2.0) == 5
        assert await field.publish(3.0) == 2
        assert field.retained("s11") is not None

    run(scenario)


def test_a_broker_without_memory_gets_everything_again() -> None:
    async def scenario(field: Field) -> None:
        field.note("s1", 1.0)
        await field.publish(0.0)
        field.broker.stop(forget=True)
        field.broker.start()
        field.last.forget()
        assert await field.publish(1.0) == 1

    run(scenario)


def test_ids_that_are_no_topic_levels_have_no_last_value() -> None:
    async def scenario(field: Field) -> None:
        for sensor in ("a/b", "+", "#", "x" * 65, "é"):
            field.note(sensor, 1.0)
        assert await field.publish(0.0) == 0
        assert field.broker.retained == {}

    run(scenario)


def test_last_values_of_a_source_that_is_dropped_are_cleared_and_leave_room() -> None:
    async def scenario(field: Field) -> None:
        for number in range(4):
            field.note(f"s{number}", 1.0)
        assert await field.publish(0.0) == 4
        field.last.define([SEATS.name])
        assert await field.publish(1.0) == 0
        assert field.retained("s0") is not None
        field.last.define([])
        field.note("s3", 2.0, 1)  # the device has another source by now
        for second in range(2, 9):
            await field.publish(float(second))
        assert [field.retained(f"s{number}") is None for number in range(4)] == [True] * 3 + [False]
        field.last.forget()
        await field.publish(CHANGED_SECONDS)
        assert field.retained("s0") is None

    run(scenario)


def test_last_values_are_cleared_when_the_broker_is_there_again() -> None:
    async def scenario(field: Field) -> None:
        field.note("s1", 1.0)
        await field.publish(0.0)
        field.broker.cut("gw-1")
        field.last.define([])
        assert await field.publish(1.0) == 0
        assert field.retained("s1") is not None
        field.broker.restore("gw-1")
        await field.publish(2.0)
        assert field.retained("s1") is None

    run(scenario)
