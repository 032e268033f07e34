"""Other people's messages on a running federation's broker."""

import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path

from host.mqtt import Message, open_client
from tests.end_to_end.federation import PATIENCE

ROOT = "pando/v1/demo/#"
MARK = "eavesdropper/mark"
PENDING = 50


def broker_of(data: Path) -> str:
    """Return the address of a federation's broker."""
    return str(json.loads((data / "run" / "base.json").read_text())["broker"])


def record(
    url: str,
    seconds: float,
    kinds: set[tuple[str, str]],
    asking: Sequence[tuple[str, bytes]] = (),
) -> list[Message]:
    """Return what is published meanwhile, not what was retained before.

    Args:
        url: The broker's address.
        seconds: For how long to listen at least.
        kinds: Kinds of messages (see `kind_of`) that must be among them; fails if one never comes.
        asking: Messages that are published first.
    """

    async def listen() -> list[Message]:
        client = open_client(url, "eavesdropper")
        heard: list[Message] = []
        client.on_messages(heard.extend)
        await client.connect()
        await client.subscribe(ROOT)
        for topic, payload in asking:
            client.publish(topic, payload)
        await asyncio.sleep(seconds)  # time passes: the caller says how long
        async with asyncio.timeout(PATIENCE):
            while not kinds <= {kind_of(m) for m in heard if not m.retain}:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await client.close()
        return [message for message in heard if not message.retain]

    return asyncio.run(listen())


def retained(url: str) -> list[list[str]]:
    """Return the topics of what a broker keeps for whoever comes, as levels below the site.

    A broker sends what it keeps before anything that is published later: a message of our own
    marks the end.
    """

    async def listen() -> list[Message]:
        client = open_client(url, "eavesdropper")
        heard: list[Message] = []
        client.on_messages(heard.extend)
        await client.connect()
        await client.subscribe(ROOT, MARK)
        client.publish(MARK, b"")
        async with asyncio.timeout(PATIENCE):
            while all(message.topic != MARK for message in heard):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await client.close()
        return heard

    kept = (m for m in asyncio.run(listen()) if m.retain and m.payload)
    return [message.topic.split("/")[3:] for message in kept]


def publish(url: str, messages: list[tuple[str, bytes]]) -> None:
    """Publish messages in this order, none retained."""

    async def send() -> None:
        client = open_client(url, "vandal")
        await client.connect()
        for topic, payload in messages:
            ticket = client.publish(topic, payload)
            if client.pending() >= PENDING:
                await ticket.wait(PATIENCE)
        await client.close()

    asyncio.run(send())


def kind_of(message: Message) -> tuple[str, str]:
    """Return what a topic is for, e.g. ("gw", "obs"), whoever it names."""
    levels = message.topic.split("/")
    return levels[3], levels[5] if len(levels) > 5 else ""


def spoiled(message: Message, seed: int) -> list[bytes]:
    """Return payloads that nobody should accept: cut, mixed up, huge, deep, of other types."""
    source = random.Random(f"{seed} {message.topic}")
    cut = message.payload[: len(message.payload) // 2]
    flipped = bytearray(message.payload)
    for _ in range(3):
        if flipped:
            flipped[source.randrange(len(flipped))] ^= 1 << source.randrange(8)
    return [
        cut,
        b"{",
        b"[" * 20_000,
        b'{"a":' * 5_000,
        b"\x81" * 20_000,
        b"\x00" * 300_000,
        b'{"epoch":"one","seq":[],"rows":7,"state":{"x":null}}',
        b'[1,"two",null,{"three":3}]',
        source.randbytes(64),
    ]
