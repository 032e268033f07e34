"""Attempts to publish on and to read every topic, as everybody, at a broker with accounts."""

import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from broker.broker_testing import BrokerProcess, ConnectionClosed, RawClient, text, varint
from tests.broker.laws.secured import NOT_AUTHORIZED
from tests.security.broker_rights import (
    CLIENTS,
    Stated,
    stated_filters,
    stated_topics,
    topics_elsewhere,
)

UNDER_WAY = 50
"""Packets that are sent before their answers are read."""
REFUSED_FILTER = (0x80, NOT_AUTHORIZED)
CONTROL = "$CONTROL/dynamic-security/v1"
WIDE = ("#", "+/#", "pando/#", "+/+/+/#", "$SYS/#", "$CONTROL/#", "$SYS/broker/+")
STRANGERS: dict[str, tuple[str | None, bytes | None]] = {
    "nobody": (None, None),
    "wrong password": ("gw-2", b"wrong"),
    "stranger": ("gw-9", b"pw-gw-9"),
    "anothers password": ("gw-2", b"pw-viewer"),
}
"""User names and passwords that let nobody in."""


@dataclass
class Attempts:
    """Counts of attempts; `wrong` says in words which went otherwise than stated."""

    allowed: int = 0
    refused: int = 0
    delivered: int = 0
    wrong: list[str] = field(default_factory=list)

    def note(self, expected: bool, happened: bool, what: str) -> None:
        """Count an attempt."""
        self.allowed += happened
        self.refused += not happened
        if expected != happened:
            self.wrong.append(f"{what}: {'done' if happened else 'refused'}")

    def __str__(self) -> str:
        return f"{self.allowed} allowed, {self.refused} refused, {self.delivered} delivered"


def _batches(stated: Sequence[Stated]) -> Iterator[Sequence[Stated]]:
    for start in range(0, len(stated), UNDER_WAY):
        yield stated[start : start + UNDER_WAY]


def tried_by_all(broker: BrokerProcess, federation: str, version: int) -> Attempts:
    """Let every client subscribe to, then publish on, every topic; see what arrives where."""
    attempts, everything = Attempts(), stated_topics(federation) + topics_elsewhere(federation)
    filters = [*everything, *stated_filters(federation), *_wide_filters(federation)]
    with ExitStack() as stack:
        clients = {
            name: stack.enter_context(RawClient(broker.port, name, version))
            for name in sorted(CLIENTS)
        }
        for name, client in clients.items():
            _, code = client.open(user=name, password=f"pw-{name}".encode())
            assert code == 0, (name, code)
            _subscribe(client, name, filters, attempts)
        for name, client in clients.items():
            _publish(client, name, everything, attempts)
        _compare_deliveries(clients, everything, attempts)
    return attempts


def _wide_filters(federation: str) -> list[Stated]:
    root = f"pando/v1/{federation}"
    ours = frozenset({"coordinator"})
    return [
        *(Stated(f"{root}/{rest}", frozenset(), ours) for rest in ("#", "gw/#", "+/+/+", "q/q1/#")),
        *(
            Stated(wide, frozenset(), ours if wide == "$SYS/broker/+" else frozenset())
            for wide in WIDE
        ),
    ]


def _subscribe(client: RawClient, name: str, filters: Sequence[Stated], attempts: Attempts) -> None:
    for batch in _batches(filters):
        codes = client.subscribe(*((each.topic, 1) for each in batch))
        for each, code in zip(batch, codes, strict=True):
            attempts.note(
                name in each.read,
                code not in REFUSED_FILTER,
                f"{name} subscribes to {each.topic}",
            )


def _publish(client: RawClient, name: str, topics: Sequence[Stated], attempts: Attempts) -> None:
    """Publish; only MQTT 5 says whether that was refused, otherwise what is delivered counts."""
    for batch in _batches(topics):
        codes = published(client, [(each.topic, name.encode()) for each in batch])
        for each, code in zip(batch, codes, strict=True):
            if client.version == 5:
                attempts.note(
                    name in each.write,
                    code != NOT_AUTHORIZED,
                    f"{name} publishes on {each.topic}",
                )


def published(
    client: RawClient, messages: Sequence[tuple[str, bytes]], *, retain: bool = False
) -> list[int]:
    """Publish messages with QoS 1 and return the reasons of their acknowledgements."""
    for topic, payload in messages:
        client.publish(topic, payload, retain=retain, wait=False)
    answers = [client.expect(4) for _ in messages]
    found = {struct.unpack_from(">H", a)[0]: a[2] if len(a) > 2 else 0 for a in answers}
    return [found[number] for number in sorted(found)]


def _compare_deliveries(
    clients: dict[str, RawClient], topics: Sequence[Stated], attempts: Attempts
) -> None:
    """Compare what has come with what should have: (reader, topic, writer), each at least once."""
    expected = {
        (reader, each.topic, writer)
        for each in topics
        for writer in each.write
        for reader in each.read
    }
    arrived: set[tuple[str, str, str]] = set()
    for reader, client in clients.items():
        while not {found for found in expected if found[0] == reader} <= arrived:
            arrived |= _taken(reader, client)
        client.send(b"\xc0\0")
        client.expect(13)
        arrived |= _taken(reader, client, wait=False)
    attempts.delivered += len(arrived)
    attempts.wrong += [
        f"{reader} got what {writer} published on {topic}"
        for reader, topic, writer in sorted(arrived - expected)
        if not topic.startswith("$SYS/") or reader != "coordinator"
    ]


def _taken(reader: str, client: RawClient, *, wait: bool = True) -> set[tuple[str, str, str]]:
    messages = client.wait_for(1) if wait and not client.inbox else client.take()
    return {(reader, m.topic, m.payload.decode("utf-8", "replace")) for m in messages}


def intrusions(broker: BrokerProcess, federation: str, kind: str) -> Attempts:
    """Send CONNECT, SUBSCRIBE and PUBLISH at once for every topic, as somebody without account.

    Whoever watches must see nothing of it.
    """
    user, password = STRANGERS[kind]
    attempts = Attempts()
    with RawClient(broker.port, "coordinator", 5) as watching:
        assert watching.open(user="coordinator", password=b"pw-coordinator")[1] == 0
        watching.subscribe((f"pando/v1/{federation}/#", 1))
        watching.sync()
        for each in stated_topics(federation):
            with RawClient(broker.port, user or "gw-2", 5) as client:
                subscribe = _packet(0x82, b"\0\1\0" + text(each.topic) + b"\1")
                publish = _packet(0x30, text(each.topic) + b"\0" + kind.encode())
                client.send(_connect(client.client_id, user, password) + subscribe + publish)
                attempts.note(False, _let_in(client), f"{kind} connects for {each.topic}")
        seen = {message.topic for message in watching.sync()}
        attempts.wrong += [f"{kind} published on {topic}" for topic in sorted(seen)]
    return attempts


def _packet(first: int, body: bytes) -> bytes:
    return bytes([first]) + varint(len(body)) + body


def _connect(client_id: str, user: str | None, password: bytes | None) -> bytes:
    flags = 2 | (0x80 if user else 0) | (0x40 if password else 0)
    body = text("MQTT") + bytes([5, flags, 0, 0, 0]) + text(client_id)
    return _packet(
        0x10, body + (text(user) if user else b"") + (text(password) if password else b"")
    )


def _let_in(client: RawClient) -> bool:
    """Whether anything but a refusal came before the broker hung up."""
    try:
        while True:
            first, body = client.receive()
            if first >> 4 != 2 or body[1] < 0x80:
                return True
    except ConnectionClosed:
        return False
