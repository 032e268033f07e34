"""A server of two addresses: `/metrics` (Prometheus' text form) and `/health`.

A process that has no other web server answers here. It takes GET without a body, answers once, and
closes the connection. It has no accounts: whoever reaches the port may read, so it listens on
loopback unless the settings name another address.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable

from host.metrics.exposition import CONTENT_TYPE, exposition
from host.metrics.families import Sample
from streamsql.errors import DeploymentError

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 16
MAX_HEAD = 8_192
"""Bytes of a request's head."""
REQUEST_SECONDS = 5.0

Collect = Callable[[], Iterable[Sample]]
Health = Callable[[], str]
"""Returns what is wrong, in words, or empty."""


class StatusServer:
    """Answers requests for figures and health.

    Args:
        collect: Called on the event loop for each request of `/metrics`.
        health: Called on the event loop for each request of `/health`.
    """

    def __init__(self, collect: Collect, health: Health) -> None:
        self._collect = collect
        self._health = health
        self._open: set[asyncio.StreamWriter] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self._open.add(writer)
        try:
            if len(self._open) > MAX_CONNECTIONS:
                await _send(writer, 503, "text/plain", f"at most {MAX_CONNECTIONS} connections\n")
                return
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                await _send(writer, *self._response(head))
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            log.debug("a request for figures was not completed")
        finally:
            self._open.discard(writer)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def abort(self) -> None:
        """End the connections of clients that still send their request."""
        for writer in tuple(self._open):
            writer.transport.abort()

    def _response(self, head: bytes) -> tuple[int, str, str]:
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if method != "GET":
            return 405, "text/plain", "only GET is answered here\n"
        if path == "/metrics":
            return 200, CONTENT_TYPE, exposition(self._collect())
        if path == "/health":
            problem = self._health()
            answer = {"status": "failing", "problem": problem} if problem else {"status": "ok"}
            return (503 if problem else 200), "application/json", json.dumps(answer) + "\n"
        return 404, "text/plain", "only /metrics and /health are answered here\n"


async def _send(writer: asyncio.StreamWriter, status: int, kind: str, text: str) -> None:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode("latin-1") + body)
    await writer.drain()


_REASONS = {
    200: "OK",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


@contextlib.asynccontextmanager
async def serving_status(
    host: str, port: int, collect: Collect, health: Health
) -> AsyncIterator[None]:
    """Serve `/metrics` and `/health` meanwhile; nothing if the port is 0.

    Raises:
        DeploymentError: The port is in use or may not be used.
    """
    if port == 0:
        yield
        return
    status = StatusServer(collect, health)
    try:
        server = await asyncio.start_server(status.answer, host, port, limit=MAX_HEAD)
    except OSError as error:
        raise DeploymentError(
            f"cannot serve /metrics on {host} port {port}: {error.strerror or error}",
            hint="choose another metrics_port (or PANDO_METRICS_PORT), or 0 for none",
        ) from error
    try:
        yield
    finally:
        # Not wait_closed: it would wait for clients that send nothing.
        server.close()
        await asyncio.sleep(0)  # who connected just now is known then
        status.abort()
