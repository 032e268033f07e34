"""Bounds of TLS handshakes of the HTTP server: how many at once, and how slow.

Connections are counted when they speak HTTP (`connections.py`). Before that a client that opens
connections and says nothing would take all file descriptors, for a minute each.
"""

import asyncio
import ssl
from typing import Any

from typing_extensions import override
from uvicorn.config import Config
from uvicorn.server import ServerState

from federated_optimizer.coordinator.people.sign_in_attempts import network_of
from ui.connections import BoundedProtocol, ConnectionLimits, Connections

SECONDS = 5.0
LIMITS = ConnectionLimits(total=200, per_address=50)
"""Handshakes at once; more connections are closed without a word, which only TLS could say."""


class TlsStart(asyncio.Protocol):
    """A connection until its handshake is done; then `inner` has it."""

    def __init__(
        self, inner: BoundedProtocol, context: ssl.SSLContext, handshakes: Connections
    ) -> None:
        self._inner = inner
        self._context = context
        self._handshakes = handshakes
        self._address = ""
        self._counted = False
        self._early: list[bytes] = []
        self._handshake: asyncio.Task[None] | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer = transport.get_extra_info("peername")
        self._address = network_of(str(peer[0])) if peer else ""
        self._counted = True
        if self._handshakes.enter(self._address):
            self._done()
            transport.abort()  # type: ignore[attr-defined]
            return
        self._handshake = asyncio.get_running_loop().create_task(self._begin(transport))

    async def _begin(self, transport: Any) -> None:
        loop = asyncio.get_running_loop()
        try:
            encrypted = await loop.start_tls(
                transport,
                self,
                self._context,
                server_side=True,
                ssl_handshake_timeout=SECONDS,
            )
        except (OSError, ssl.SSLError, TimeoutError):  # no TLS, too slow, or gone
            transport.abort()
            return
        finally:
            self._done()
        if encrypted is None or encrypted.is_closing():
            return
        encrypted.set_protocol(self._inner)
        self._inner.connection_made(encrypted)
        for data in self._early:
            self._inner.data_received(data)

    @override
    def data_received(self, data: bytes) -> None:
        """Keep what comes with the last message of the handshake."""
        self._early.append(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._done()

    def _done(self) -> None:
        if self._counted:
            self._counted = False
            self._handshakes.leave(self._address)


class _Factory:
    """Makes protocols as uvicorn asks for them."""

    def __init__(self, protocol: type[BoundedProtocol], context: ssl.SSLContext) -> None:
        self._protocol = protocol
        self._context = context
        self._handshakes = Connections(LIMITS)

    def __call__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> TlsStart:
        inner = self._protocol(config, server_state, app_state, _loop)
        return TlsStart(inner, self._context, self._handshakes)


def over_tls(protocol: type[BoundedProtocol], context: ssl.SSLContext) -> Any:
    """Return what uvicorn takes for a protocol class: `protocol` over TLS."""
    return _Factory(protocol, context)
