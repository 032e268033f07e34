"""The sender counts by fragment what the broker took of a query."""

import asyncio
from typing import Any, cast

from host.mqtt import MessageClient
from static_engine.evaluation.bags import Bag
from static_engine.service.batch_sender import Sender
from static_engine.service.installed_fragments import InstalledQuery
from streamsql.algebra.operators import Scan, SourceKind
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.topics import Topics

SCHEMA = Schema.of(("k", DataType.INTEGER), ("v", DataType.TEXT))


class Ticket:
    """A message that the broker has acknowledged."""

    def done(self) -> bool:
        return True


class Broker:
    """Takes every message.

    Attributes:
        connected: As of a client.
        sizes: Of the payloads.
    """

    connected = True

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def publish(self, _topic: str, payload: bytes) -> Any:
        self.sizes.append(len(payload))
        return Ticket()


def fragment(name: str) -> Fragment:
    plan = Scan(f"t_{name}", SourceKind.TABLE, SCHEMA)
    return Fragment(name, Engine.STATIC, plan, ("static",), "top", ("base",))


def bag(rows: Delta) -> Bag:
    return Bag.of_rows(SCHEMA, rows)


def test_batches_are_counted_by_fragment() -> None:
    bundle = FragmentBundle("q", 1, (fragment("f1"), fragment("f2")), SCHEMA)
    query, broker = InstalledQuery(bundle, "static", 1, 0), Broker()
    sender = Sender(cast("MessageClient", broker), Topics("demo"), "static")
    query.update("f1", bag({(1, "x"): 1, (2, "y"): 1}))
    query.update("f2", bag({}))
    asyncio.run(sender.send(query, lambda: True))
    first = query.flow(busy=False).traffic
    assert (first.batches, first.snapshots, first.rows) == (2, 2, 2)
    assert first.bytes == first.snapshot_bytes == sum(broker.sizes)
    query.update("f1", bag({(1, "x"): 1}))
    asyncio.run(sender.send(query, lambda: True))
    traffic = query.flow(busy=False).traffic
    assert (traffic.batches, traffic.snapshots, traffic.rows) == (3, 2, 3)
    assert traffic.bytes == sum(broker.sizes)
    parts = {part.fragment: part for part in traffic.parts}
    assert {name: (p.batches, p.rows) for name, p in parts.items()} == {"f1": (2, 3), "f2": (1, 0)}
    assert parts["f1"].bytes - parts["f1"].snapshot_bytes == broker.sizes[-1]
