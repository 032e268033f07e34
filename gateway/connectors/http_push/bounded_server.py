"""An HTTP/1.1 server on asyncio and h11 that holds no more than its limits, whoever sends.

Slow senders cost a connection for some seconds at most; when all connections are taken, the one
that has waited longest without a complete request goes.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import h11
import msgspec

from gateway.connectors.http.content import Body, ContentError

_READ_BYTES = 65_536
_HEAD_BYTES = 16_384
_TURNS = 8
_LINGER_BYTES = 2_000_000
_LINGER_SECONDS = 2.0
SEND_SECONDS = 10.0
"""The time that a sender has to read an answer."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for senders.

    Attributes:
        connections: At the same time.
        body: Bytes of one body, unpacked.
        bodies: Bytes of all bodies that are being received or answered.
        head_seconds: From the connection, or the last answer, to a complete head.
        body_seconds: From there to the end of the body.
    """

    connections: int = 64
    body: int = 1_000_000
    bodies: int = 16_000_000
    head_seconds: float = 10.0
    body_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Head:
    """A request without its body; names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a request: a status, and a JSON object."""

    status: int
    content: Mapping[str, object]
    headers: tuple[tuple[str, str], ...] = ()


class Handler(Protocol):
    """Handler of requests."""

    def admit(self, head: Head) -> Answer | None:
        """Return None, or the refusal of a request whose body is then not read."""

    async def take(self, head: Head, body: bytes) -> Answer:
        """Return the answer to a request that was admitted."""

    def refused(self, head: Head, reason: str) -> None:
        """Note why the body of a request that was admitted is not taken."""


@dataclass(eq=False)
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    protocol: h11.Connection = field(
        default_factory=lambda: h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)
    )

    async def event(self) -> object:
        """Return the next part of a request.

        Raises:
            h11.RemoteProtocolError: It is no HTTP.
        """
        while (event := self.protocol.next_event()) is h11.NEED_DATA:
            if self.protocol.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                self.writer.write(self.protocol.send(go_on) or b"")
            self.protocol.receive_data(await self.reader.read(_READ_BYTES))
        return event

    async def send(self, answer: Answer, *, is_last: bool) -> None:
        """Send an answer.

        Raises:
            TimeoutError: The sender does not read it; the connection is ended.
        """
        content = msgspec.json.encode(answer.content) + b"\n"
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(content))),
            *answer.headers,
            *([("Connection", "close")] if is_last else []),
        ]
        for part in (
            h11.Response(status_code=answer.status, headers=headers),
            h11.Data(content),
            h11.EndOfMessage(),
        ):
            self.writer.write(self.protocol.send(part) or b"")
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self.writer.drain()
        except TimeoutError:
            self.writer.transport.abort()  # closing would wait until the rest is read
            raise

    async def linger(self) -> None:
        """Read what the sender still sends: closing at once would take the answer from it."""
        if self.writer.can_write_eof():
            self.writer.write_eof()
        for _ in range(_LINGER_BYTES // _READ_BYTES):
            if not await self.reader.read(_READ_BYTES):
                return


class BoundedServer:
    """Answers requests as a handler says, within limits."""

    def __init__(self, handler: Handler, limits: Limits) -> None:
        self._handler = handler
        self._limits = limits
        self._open: set[asyncio.Task[None]] = set()
        self._waiting: dict[asyncio.Task[None], None] = {}
        self._is_closed = False
        self._bytes = 0

    @contextlib.asynccontextmanager
    async def listening(
        self, host: str, port: int, tls: ssl.SSLContext | None = None
    ) -> AsyncIterator[int]:
        """Answer requests until the block ends; yield the port.

        Raises:
            OSError: The address cannot be listened on.
        """
        server = await asyncio.start_server(self._accept, host, port, ssl=tls, limit=_READ_BYTES)
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            self._is_closed = True
            server.close()
            await _turns()  # what is being accepted now comes to `_accept`, which ends it
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)
            await _turns()  # what was aborted is closed

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_closed:  # accepted just before
            writer.transport.abort()
            return
        if len(self._open) >= self._limits.connections:
            if not self._waiting:
                writer.close()
                return
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.cancel()
        task = asyncio.create_task(self._serve(_Connection(reader, writer)))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        # Not in the task: one that is cancelled before its first turn runs nothing.
        task.add_done_callback(lambda _: self._end(writer))

    def _end(self, writer: asyncio.StreamWriter) -> None:
        if self._is_closed:
            # Nobody waits until the other side has read the rest.
            writer.transport.abort()
        else:
            writer.close()

    async def _serve(self, connection: _Connection) -> None:
        """Answer the requests of a connection until one of both sides ends it."""
        # ssl.SSLError is an OSError; h11 has refused what the other side says.
        with contextlib.suppress(OSError, TimeoutError, h11.ProtocolError):
            while await self._answer_one(connection):
                connection.protocol.start_next_cycle()
            async with asyncio.timeout(_LINGER_SECONDS):
                await connection.linger()

    async def _answer_one(self, connection: _Connection) -> bool:
        """Answer a request; return whether another one may follow."""
        try:
            request = await self._head(connection)
        except h11.RemoteProtocolError as error:
            status = error.error_status_hint or 400
            await connection.send(Answer(status, {"error": str(error)[:200]}), is_last=True)
            return False
        if request is None:
            return False
        head = _head_of(request)
        answer = self._handler.admit(head) or await self._taken(connection, head)
        is_last = connection.protocol.their_state is not h11.DONE
        await connection.send(answer, is_last=is_last)
        return not is_last and connection.protocol.our_state is h11.DONE

    async def _head(self, connection: _Connection) -> h11.Request | None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  (it runs in one)
        self._waiting[task] = None
        try:
            async with asyncio.timeout(self._limits.head_seconds):
                event = await connection.event()
        finally:
            self._waiting.pop(task, None)
        return event if isinstance(event, h11.Request) else None

    async def _taken(self, connection: _Connection, head: Head) -> Answer:
        """Receive a body and return the answer to it."""
        held = 0
        try:
            body = Body(head.headers.get("content-encoding", ""), self._limits.body)
            async with asyncio.timeout(self._limits.body_seconds):
                while isinstance(event := await connection.event(), h11.Data):
                    if self._bytes >= self._limits.bodies:
                        return too_busy("other senders' bodies are still being received")
                    before = len(body)
                    body.add(bytes(event.data))
                    held += len(body) - before
                    self._bytes += len(body) - before
            if not isinstance(event, h11.EndOfMessage):
                raise ConnectionError("the sender has gone")
            return await self._handler.take(head, body.whole())
        except ContentError as error:
            self._handler.refused(head, str(error))
            return Answer(413 if error.too_large else 415, {"error": str(error)})
        except TimeoutError:
            seconds = self._limits.body_seconds
            return Answer(408, {"error": f"the body did not arrive within {seconds:g} s"})
        except h11.RemoteProtocolError as error:
            return Answer(400, {"error": str(error)[:200]})
        finally:
            self._bytes -= held


async def _turns() -> None:
    """Let the event loop do what is due, and what follows from it.

    A loop that ends drops what it was about to accept, and its sockets stay open.
    """
    for _ in range(_TURNS):
        await asyncio.sleep(0)  # time passes: a turn of the loop


def too_busy(reason: str) -> Answer:
    """Return the answer to a sender that is to come again later."""
    return Answer(429, {"error": reason}, (("Retry-After", "1"),))


def _head_of(request: h11.Request) -> Head:
    headers: dict[str, str] = {}
    for name, value in request.headers:
        headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    path = request.target.decode("latin-1").partition("?")[0]
    return Head(request.method.decode("latin-1"), path, headers)
