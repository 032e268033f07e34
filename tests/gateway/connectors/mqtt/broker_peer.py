"""A broker on which a device publishes, for the conformance kit."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from broker.broker_launch import Preference
from broker.broker_testing import BrokerProcess
from host.mqtt import MessageClient, open_client
from streamsql.catalog.definitions import SourceDefinition
from tests.gateway.connectors.serving import definitions_of

COUNTED = """
CREATE SOURCE counted (device TEXT, number INTEGER)
WITH (connector = 'mqtt', endpoint = 'trial', topic = 'count/{device}')
"""


class BrokerPeer:
    """A broker process and a device."""

    def __init__(self, kind: Preference, folder: Path) -> None:
        self.broker = BrokerProcess(kind, folder)
        self._running = False
        self._device: MessageClient | None = None

    @property
    def endpoint(self) -> Mapping[str, object]:
        return {"address": self.broker.url, "session_hours": 0.0}

    @property
    def sources(self) -> Sequence[SourceDefinition]:
        return definitions_of(COUNTED)

    async def start(self) -> None:
        if not self._running:
            self.broker.start()
            self._running = True
            self._device = open_client(self.broker.url, "device", max_pending=100_000)
            await self._device.connect()

    async def stop(self) -> None:
        if self._running:
            self._running = False
            self.broker.stop()
            assert self._device is not None
            await self._device.close()

    async def send(self, number: int) -> None:
        self._publish(json.dumps({"number": number}))

    async def send_bad(self) -> None:
        self._publish('{"number": ')

    def _publish(self, text: str) -> None:
        assert self._device is not None
        self._device.publish("count/d1", text.encode())
