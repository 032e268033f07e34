"""Somebody who sends readings, for the conformance kit: the connector is the server."""

import asyncio
from collections.abc import Mapping, Sequence

import httpx

from broker.free_ports import free_port
from streamsql.catalog.definitions import SourceDefinition
from tests.gateway.connectors.serving import definitions_of

COUNTED = """
CREATE SOURCE counted (number INTEGER) WITH (connector = 'http_push', endpoint = 'trial')
"""
TOKEN = "token-of-the-sender"


class SenderPeer:
    """Posts readings; a reading that was answered with 202 is acknowledged."""

    calls_us = True

    def __init__(self) -> None:
        self.port = free_port()
        self._acknowledged: set[int] = set()
        self._requests: set[asyncio.Task[None]] = set()

    @property
    def endpoint(self) -> Mapping[str, object]:
        return {"port": self.port, "token": TOKEN}

    @property
    def sources(self) -> Sequence[SourceDefinition]:
        return definitions_of(COUNTED)

    async def start(self) -> None:
        """Nothing: it connects for each reading."""

    async def stop(self) -> None:
        for request in self._requests:
            request.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)

    async def send(self, number: int) -> None:
        self._post(f'{{"number": {number}}}', number)

    async def send_bad(self) -> None:
        self._post('{"number": ', None)

    def acknowledged(self) -> set[int]:
        return set(self._acknowledged)

    def _post(self, text: str, number: int | None) -> None:
        request = asyncio.create_task(self._request(text, number))
        self._requests.add(request)
        request.add_done_callback(self._requests.discard)

    async def _request(self, text: str, number: int | None) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        url = f"http://127.0.0.1:{self.port}/counted"
        try:
            async with httpx.AsyncClient(trust_env=False) as client:
                answer = await client.post(url, content=text, headers=headers)
        except httpx.HTTPError:
            return  # the connector does not listen yet
        if answer.status_code == 202 and number is not None:
            self._acknowledged.add(number)
