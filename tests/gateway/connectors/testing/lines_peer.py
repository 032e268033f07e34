"""A device of the manual: a word and a JSON object a line over TCP, each answered with `ok`."""

import asyncio
import json
from collections import deque
from collections.abc import Mapping, Sequence

from broker.free_ports import free_port
from streamsql.catalog.definitions import SourceDefinition
from tests.gateway.connectors.serving import definitions_of

PASSAGE = """
CREATE SOURCE passage (badge INTEGER, opened BOOLEAN)
WITH (connector = 'lines', endpoint = 'trial', word = 'passage')
"""


class LinesPeer:
    """Serves one connection at a time."""

    def __init__(self) -> None:
        self.port = free_port()
        self.passwords: list[str] = []
        self._server: asyncio.Server | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._open: deque[int | None] = deque()
        self._acknowledged: set[int] = set()

    @property
    def endpoint(self) -> Mapping[str, object]:
        return {"host": "127.0.0.1", "port": self.port, "password": "hunter2"}

    @property
    def sources(self) -> Sequence[SourceDefinition]:
        return definitions_of(PASSAGE)

    async def start(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
            if self._writer is not None:
                self._writer.close()
            await server.wait_closed()

    async def send(self, number: int) -> None:
        self._write("passage", json.dumps({"badge": number, "opened": True}), number)

    async def send_bad(self) -> None:
        self._write("passage", '{"badge": ', None)

    async def flood(self, numbers: range) -> None:
        for number in numbers:
            await self.send(number)
            if self._writer is not None:
                await self._writer.drain()

    def acknowledged(self) -> set[int]:
        return set(self._acknowledged)

    def _write(self, word: str, text: str, number: int | None) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._open.append(number)
            self._writer.write(f"{word} {text}\n".encode())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.passwords.append((await reader.readline()).decode().strip())
        self._writer, self._open = writer, deque()
        while await reader.readline():
            number = self._open.popleft()
            if number is not None:
                self._acknowledged.add(number)
        writer.close()
