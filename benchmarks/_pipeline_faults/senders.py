"""Gateways that send numbered readings, with the lanes, buffers and answers of real ones."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gateway.buffer.disk_buffer import DiskBuffer
from gateway.buffer.published_packs import PublishedPacks
from gateway.gateway_settings import BufferSettings
from gateway.intake.observations import ObservationLane
from gateway.observations.pack_answers import PackAnswers
from host.clocks import wall_clock
from host.mqtt import Message, open_client
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.codec import decode_json, encode_json
from streamsql.wire.observation_logs import PacksWanted
from streamsql.wire.site_messages import Birth, SiteRole, SiteState
from streamsql.wire.source_shapes import shape_of
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")
CLIMATE = SourceDefinition(
    "climate",
    SourceKind.STREAM,
    Schema.of(("sensor", DataType.TEXT), ("number", DataType.INTEGER), ("ts", DataType.TIMESTAMP)),
    time_column=2,
)
ROWS = 10
"""Of a pack: reading n of a gateway is row n % ROWS of its pack n // ROWS."""
TURN_SECONDS = 0.05
REPLAYED = 50


class Sender:
    """A gateway that takes a pack a turn, whatever happens around it.

    Attributes:
        name: Its id.
        packs: How many it has taken so far.
    """

    def __init__(self, url: str, name: str, folder: Path) -> None:
        self.name, self.packs = name, 0
        self._client = open_client(url, name)
        published = PublishedPacks(1)
        self._buffer = DiskBuffer(folder / f"{name}.sqlite", BufferSettings())
        self._lane = ObservationLane(name, 1, self._client, TOPICS, self._buffer, published)
        self._answers = PackAnswers(name, self._client, TOPICS, published)
        self._client.on_messages(self._take)
        self._client.on_connection(self._announce)

    async def start(self) -> None:
        """Connect, in the background from then on."""
        await self._client.connect(timeout=None)
        await self._client.subscribe(TOPICS.request(self.name))

    async def run(self, ended: asyncio.Event) -> None:
        """Take packs until the event is set, and send what waits until this is cancelled."""
        while True:
            if not ended.is_set():
                self._add_pack()
            self._lane.flush()
            self._lane.settle()
            self._lane.replay(REPLAYED)
            await asyncio.sleep(TURN_SECONDS)  # time passes: the load

    async def close(self) -> None:
        """Disconnect."""
        await self._client.close()
        self._buffer.close()

    def _add_pack(self) -> None:
        now, first = wall_clock(), self.packs * ROWS
        rows = [
            (f"s{place}", now + place, (f"s{place}", first + place, now + place))
            for place in range(ROWS)
        ]
        self._lane.add(CLIMATE.name, rows, CLIMATE.schema)
        self.packs += 1

    def _announce(self, connected: bool) -> None:
        if connected:
            # A broker that has forgotten everything is told again.
            shapes = (shape_of(CLIMATE.scan()),)
            birth = Birth(self.name, 1, 0, 1, sources=(CLIMATE.name,), shapes=shapes)
            state = SiteState(True, 1, wall_clock(), SiteRole.GATEWAY, sources=(CLIMATE.name,))
            self._client.publish(TOPICS.birth(self.name), encode_json(birth), retain=True)
            self._client.publish(TOPICS.state(self.name), encode_json(state), retain=True)

    def _take(self, burst: list[Message]) -> None:
        now = asyncio.get_running_loop().time()
        for message in burst:
            wanted = decode_json(message.payload, PacksWanted)
            self._answers.answer(TOPICS.parts(message.topic)[-1], wanted, now, is_known=False)
