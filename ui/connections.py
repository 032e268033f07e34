"""Bounds of the HTTP connections: how many, how much, how slow.

uvicorn bounds none of these: it waits for ever for the rest of a request, and reads headers and
bodies of any size. The limits stand here, below the application, so that no route can forget them.
"""

import asyncio
import ipaddress
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from federated_optimizer.coordinator.people.sign_in_attempts import network_of
from ui.request_checks import MAX_BODY, problem

MAX_HEAD = 65_536
"""Bytes of a request's first line and headers, trailers included."""
MAX_DRAINED = 4 * MAX_BODY
"""Bytes of a body, as they come, after which the connection is closed. A body above `MAX_BODY` is
refused earlier; what is on the way still drains, or the client would not see the refusal."""
REFUSED_SECONDS = 2.0
"""Within which a connection too many has to send the request that is refused."""
REFUSED_AT_ONCE = 64
"""Connections too many that may be open to be refused in words; beyond, they are only closed."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one console's connections.

    Attributes:
        total: Connections at once, event streams included.
        per_address: Of them from one address.
        request_seconds: For a whole request, from its first byte or the connection's beginning.
        stalled_seconds: How long a client may take nothing of what is sent to it.
        proxies: Addresses and networks that bring many people, so only `total` counts for them.
    """

    total: int = 500
    per_address: int = 250
    request_seconds: float = 20.0
    stalled_seconds: float = 60.0
    proxies: tuple[str, ...] = ()


class Connections:
    """Open connections, in all and by address."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._by_address: Counter[str] = Counter()
        self._total = 0
        self._proxies = [ipaddress.ip_network(proxy, strict=False) for proxy in limits.proxies]

    def enter(self, address: str) -> str:
        """Count a connection; return why it is one too many, or nothing."""
        self._by_address[address] += 1
        self._total += 1
        limits = self.limits
        if self._total > limits.total:
            return f"{limits.total} connections are open"
        if self._by_address[address] > limits.per_address and not self._is_proxy(address):
            return f"{limits.per_address} connections from {address} are open"
        return ""

    def _is_proxy(self, address: str) -> bool:
        if not self._proxies:
            return False
        try:
            client = ipaddress.ip_network(address)
        except ValueError:
            return False
        return any(client.overlaps(proxy) for proxy in self._proxies)

    @property
    def are_flooded(self) -> bool:
        """Whether there are so many that one more is not even answered."""
        return self._total > self.limits.total + REFUSED_AT_ONCE

    def leave(self, address: str) -> None:
        """Forget a connection."""
        self._total -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with bounds; see `ConnectionLimits`.

    Attributes:
        opened: Who is connected to the server.
    """

    opened: ClassVar[Connections]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = self.opened.limits
        self._address = ""
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._in_head = True
        self._in_request = False
        self._head = 0
        self._body = 0

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Of an IPv6 client all addresses that it may take count as one.
        self._address = network_of(self.client[0]) if self.client else ""
        refusal = self.opened.enter(self._address)
        if refusal and self.opened.are_flooded:
            transport.abort()
            return
        if refusal:
            self.app = _refusing(refusal)
        self._wait_for(REFUSED_SECONDS if refusal else self._limits.request_seconds)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_for(None)
        self.resume_writing()
        self.opened.leave(self._address)
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head += len(data)
        elif self._in_request:
            self._body += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head and self._head > MAX_HEAD:
            self._close("Request headers are too large.")
        elif self._body > MAX_DRAINED:
            self.transport.abort()
        elif self._deadline is None and (self._in_request or not self._answers):
            # Also for empty lines between requests, which the parser passes over.
            self._wait_for(self._limits.request_seconds)

    @property
    def _answers(self) -> bool:
        # None before the first request, though uvicorn's annotation does not say so.
        return bool(self.cycle) and not self.cycle.response_complete

    @override
    def on_message_begin(self) -> None:
        self._in_request = self._in_head = True
        self._body = 0
        super().on_message_begin()

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            # A trailer: nobody reads it, and no other bound counts it among the headers.
            return
        super().on_header(name, value)

    @override
    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head = 0
        super().on_headers_complete()

    @override
    def on_message_complete(self) -> None:
        self._in_request = False
        self._in_head = True
        self._wait_for(None)
        super().on_message_complete()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            seconds = self._limits.stalled_seconds
            self._stalled = self.loop.call_later(seconds, self.transport.abort)

    @override
    def resume_writing(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        super().resume_writing()

    def _wait_for(self, seconds: float | None) -> None:
        """Close the connection after some seconds, unless this is called again."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None
        if seconds is not None:
            self._deadline = self.loop.call_later(seconds, self._too_slow)

    def _too_slow(self) -> None:
        self._deadline = None
        if self._answers:
            self.transport.abort()
        elif self._in_request:
            self._close("The request took too long.", b"408 Request Timeout")
        else:
            self.transport.close()

    def _close(self, words: str, status: bytes = b"431 Request Header Fields Too Large") -> None:
        if self._answers:
            self.transport.abort()
            return
        body = words.encode()
        self.transport.write(
            b"HTTP/1.1 %b\r\ncontent-type: text/plain; charset=utf-8\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (status, len(body), body)
        )
        self.transport.close()


def bounded(limits: ConnectionLimits) -> type[BoundedProtocol]:
    """Return the protocol of the connections of one server."""

    class Bounded(BoundedProtocol):
        opened = Connections(limits)

    return Bounded


def _refusing(reason: str) -> ASGIApp:
    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        answer = problem(503, "refused", reason, "close some pages or programs, then try again")
        answer.headers["Connection"] = "close"
        answer.headers["Retry-After"] = "5"
        await answer(scope, receive, send)

    return refuse
