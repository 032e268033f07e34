"""A broker on which a device publishes, for the conformance kit."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from broker.broker_launch import Preference
from broker.broker_testing import BrokerProcess
from gateway.connectors.testing.absence import Transport
from gateway.connectors.testing.source_statements import definitions_of
from host.mqtt import MessageClient, open_client
from streamsql.catalog.definitions import SourceDefinition
from tests.gateway.connectors.mqtt.packet_tap import PacketTap

COUNTED = """
CREATE SOURCE counted (device TEXT, number INTEGER)
WITH (connector = 'mqtt', endpoint = 'trial', topic = 'count/{device}')
"""
HUGE = 1_050_000
"""Of what is larger than 1.1 MB the connector has told the broker that it takes none."""
FLOOD_PENDING = 100_000


class BrokerPeer:
    """A broker process, a device that is connected to it, and a tap at which connectors are."""

    lasting = True

    def __init__(self, kind: Preference, folder: Path) -> None:
        self.broker = BrokerProcess(kind, folder)
        self._tap = PacketTap(self.broker.port)
        self._running = False
        self._device: MessageClient | None = None

    @property
    def address(self) -> tuple[Transport, int]:
        return ("tcp", self._tap.port)

    @property
    def endpoint(self) -> Mapping[str, object]:
        return {"address": f"mqtt://127.0.0.1:{self._tap.port}", "session_hours": 1.0}

    @property
    def sources(self) -> Sequence[SourceDefinition]:
        return definitions_of(COUNTED)

    async def start(self) -> None:
        if not self._running:
            self.broker.start()
            self._running = True
            await self._tap.start()
            self._device = open_client(self.broker.url, "device", max_pending=FLOOD_PENDING)
            await self._device.connect()

    async def stop(self) -> None:
        if self._running:
            self._running = False
            await self._tap.stop()
            self.broker.stop()
            assert self._device is not None
            await self._device.close()

    async def send(self, number: int) -> None:
        self._publish(json.dumps({"number": number}))

    async def send_bad(self) -> None:
        self._publish('{"number": ')

    async def send_huge(self, number: int) -> None:
        self._publish(json.dumps({"number": number, "padding": "x" * HUGE}))

    async def flood(self, numbers: range) -> None:
        for number in numbers:
            await self.send(number)
        # A broker drops what is too much for it; the end of the flood is to come all the same.
        while numbers[-1] not in self.acknowledged():
            await asyncio.sleep(0.5)
            await self.send(numbers[-1])

    def acknowledged(self) -> set[int]:
        return self._tap.acknowledged()

    def clients(self) -> int:
        return self._tap.clients()

    def _publish(self, text: str) -> None:
        assert self._device is not None
        self._device.publish("count/d1", text.encode())
