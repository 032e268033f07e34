"""Somebody who sends readings, for the conformance kit: the connector is the server."""

import asyncio
import ssl
from collections.abc import Mapping, Sequence

import httpx

from broker.free_ports import free_port
from gateway.connectors.testing.source_statements import definitions_of
from streamsql.catalog.definitions import SourceDefinition

COUNTED = """
CREATE SOURCE counted (number INTEGER) WITH (connector = 'http_push', endpoint = 'trial')
"""
TOKEN = "token-of-the-sender"


BATCH = 250
AT_ONCE = 48
"""Requests of a flood: more than may wait to be kept, fewer than there may be connections."""
LINES = "application/x-ndjson"


class SenderPeer:
    """Posts readings; a reading that was answered with 202 is acknowledged.

    Attributes:
        put_off: How many requests of a flood were to be sent again later.
    """

    calls_us = True

    def __init__(self) -> None:
        self.port = free_port()
        self.put_off = 0
        self._turns = asyncio.Semaphore(AT_ONCE)
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

    async def send_huge(self, number: int) -> None:
        self._post(f'{{"number": {number}, "padding": "{"x" * 1_500_000}"}}', number)

    async def flood(self, numbers: range) -> None:
        starts = range(0, len(numbers), BATCH)
        await asyncio.gather(*(self._insist(numbers[at : at + BATCH]) for at in starts))

    def acknowledged(self) -> set[int]:
        return set(self._acknowledged)

    async def _insist(self, numbers: range) -> None:
        """Post lines until they are taken, as late as the receiver asks for."""
        text = "".join(f'{{"number": {number}}}\n' for number in numbers)
        while True:
            async with self._turns:
                answer = await self._answer(text, LINES)
            if answer.status_code == 202:
                break
            assert answer.status_code in {429, 503}, answer.text
            self.put_off += answer.status_code == 429
            await asyncio.sleep(float(answer.headers["Retry-After"]))
        self._acknowledged.update(numbers)

    def _post(self, text: str, number: int | None) -> None:
        request = asyncio.create_task(self._request(text, number))
        self._requests.add(request)
        request.add_done_callback(self._requests.discard)

    async def _request(self, text: str, number: int | None) -> None:
        try:
            answer = await self._answer(text, "application/json")
        except httpx.HTTPError:
            return  # the connector does not listen yet, or listens no further
        if answer.status_code == 202 and number is not None:
            self._acknowledged.add(number)

    async def _answer(self, text: str, kind: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind}
        url = f"http://127.0.0.1:{self.port}/counted"
        # Without TLS: to load certificates for each request takes longer than the request.
        async with httpx.AsyncClient(
            trust_env=False, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), timeout=30
        ) as client:
            return await client.post(url, content=text, headers=headers)
