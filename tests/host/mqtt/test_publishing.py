"""Messages that may be left out are left out with a word in the log."""

import asyncio

import pytest

from host.mqtt import Message, QueueFull
from host.mqtt.in_memory import InMemoryBroker
from host.mqtt.publishing import publish_or_warn


class Full:
    """A client whose queue is full."""

    def publish(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> None:
        raise QueueFull(f"{topic} {payload!r} {qos} {retain}")


@pytest.mark.parametrize(
    ("otherwise", "said"), [("", "a/b not sent"), ("jobs are not reported",) * 2]
)
def test_a_full_queue_is_said_and_survived(
    otherwise: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert not publish_or_warn(Full(), "a/b", b"x", otherwise=otherwise)  # type: ignore[arg-type]
    assert caplog.messages == [f"too many messages wait for the broker; {said}"]


def test_a_message_is_published_as_asked() -> None:
    async def scenario() -> None:
        broker = InMemoryBroker()
        sender, late = broker.client("sender"), broker.client("late")
        heard: asyncio.Queue[list[Message]] = asyncio.Queue()
        late.on_messages(heard.put_nowait)
        await sender.connect()
        assert publish_or_warn(sender, "a/b", b"kept", retain=True)
        assert publish_or_warn(sender, "a/c", b"gone")
        await sender.close()
        await late.connect()
        await late.subscribe("a/+")
        burst = await asyncio.wait_for(heard.get(), 5)
        assert [(m.topic, m.payload, m.retain) for m in burst] == [("a/b", b"kept", True)]

    asyncio.run(scenario())
