"""A small HTTP server of a test that answers with any bytes, and keeps what it was asked."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

Answer = bytes | Callable[[str, asyncio.StreamWriter], Awaitable[None]]


def answer(body: str | bytes, *headers: str, status: str = "200 OK") -> bytes:
    """Return an answer with its headers and the length of its body."""
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(content)}", "", ""]
    return "\r\n".join(lines).encode() + content


@dataclass
class Pages:
    """The server's side: what it answers, by path or for all; what it was asked."""

    port: int = 0
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def put(self, path: str, *answers: Answer) -> None:
        """Give these answers to the next requests; the last one to all that follow."""
        self.answers[path] = list(answers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                request = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.asked.append(request)
                await self._answer(request, writer)
                await writer.drain()
        self.at_once -= 1
        writer.close()

    async def _answer(self, request: str, writer: asyncio.StreamWriter) -> None:
        path = request.split(" ")[1]
        answers = self.answers.get(path, [answer("not here", status="404 Not Found")])
        given = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(given, bytes):
            writer.write(given)
        else:
            await given(request, writer)


@contextlib.asynccontextmanager
async def pages(port: int = 0) -> AsyncIterator[Pages]:
    """Run a server on loopback."""
    found = Pages()
    connections: set[asyncio.Task[None]] = set()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            await found.serve(reader, writer)
        except asyncio.CancelledError:
            writer.close()
        finally:
            connections.discard(task)

    server = await asyncio.start_server(connection, "127.0.0.1", port)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        for task in tuple(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
