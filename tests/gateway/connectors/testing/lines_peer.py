"""The device of the manual, for the conformance kit."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Literal

from broker.free_ports import free_port
from gateway.connectors.testing.source_statements import definitions_of
from streamsql.catalog.definitions import SourceDefinition

PASSAGE = """
CREATE SOURCE passage (badge INTEGER, opened BOOLEAN)
WITH (connector = 'lines', endpoint = 'trial', word = 'passage')
"""


class LinesPeer:
    """Sends each line to all who are connected, and keeps it until one of them answers `ok`."""

    lasting = True

    def __init__(self) -> None:
        self.port = free_port()
        self.passwords: list[str] = []
        self._server: asyncio.Server | None = None
        # Of each connection the numbers of the lines that it has not answered.
        self._sent: dict[asyncio.StreamWriter, deque[int | None]] = {}
        self._kept: dict[int, None] = {}
        self._acknowledged: set[int] = set()

    @property
    def address(self) -> tuple[Literal["tcp"], int]:
        return ("tcp", self.port)

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
            for writer in self._sent:
                writer.close()
            await server.wait_closed()

    async def send(self, number: int) -> None:
        self._kept[number] = None
        self._say(_line_of(number), number)

    async def send_bad(self) -> None:
        self._say('passage {"badge": ', None)

    async def send_huge(self, number: int) -> None:
        self._say(_line_of(number) + " " * 1_500_000, None)

    async def flood(self, numbers: range) -> None:
        for number in numbers:
            await self.send(number)
            for writer in list(self._sent):
                await writer.drain()

    def acknowledged(self) -> set[int]:
        return set(self._acknowledged)

    def clients(self) -> int:
        return len(self._sent)

    def _say(self, line: str, number: int | None) -> None:
        for writer, sent in self._sent.items():
            sent.append(number)
            writer.write(f"{line}\n".encode())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.passwords.append((await reader.readline()).decode().strip())
        self._sent[writer] = sent = deque[int | None](self._kept)
        writer.writelines(f"{_line_of(number)}\n".encode() for number in self._kept)
        try:
            while await reader.readline():
                number = sent.popleft()
                if number is not None:
                    self._acknowledged.add(number)
                    self._kept.pop(number, None)
        except ConnectionError:
            pass  # it disconnected
        finally:
            del self._sent[writer]
            writer.close()


def _line_of(number: int) -> str:
    return f'passage {{"badge": {number}, "opened": true}}'
