"""The broker as a service: listens, watches over its connections, stops cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Final

from broker.embedded.connection import Connection
from broker.embedded.embedded_broker import Broker
from broker.embedded.packets.packets import Message

if TYPE_CHECKING:
    import ssl

VERSION = "pando embedded broker 1"


def statistics(broker: Broker, uptime: float) -> dict[str, str]:
    """Return topic and value of every figure, `uptime` seconds after the start."""
    counters = broker.counters
    connected = sum(session.outlet is not None for session in broker.sessions.values())
    figures: dict[str, int | str] = {
        "version": VERSION,
        "uptime": f"{uptime:.0f} seconds",
        "clients/connected": connected,
        "clients/total": len(broker.sessions),
        "publish/messages/received": counters.received,
        "publish/messages/sent": counters.sent,
        "publish/messages/dropped": counters.dropped,
        "publish/messages/not retained": counters.not_retained,
        "packets/malformed": counters.malformed,
        "retained messages/count": len(broker.retained),
        "queues/bytes": counters.queued_bytes,
    }
    return {f"$SYS/broker/{name}": str(value) for name, value in figures.items()}


def publish_statistics(broker: Broker, uptime: float, now: float) -> None:
    """Publish the figures that changed since they were published last."""
    received = broker.counters.received
    for topic, value in statistics(broker, uptime).items():
        payload = value.encode()
        known = broker.retained.get(topic)
        if known is None or known.payload != payload:
            broker.publish(Message(topic, payload, 0, retain=True), now)
    broker.counters.received = received  # the broker's own messages are nobody's publishes


_LOG = logging.getLogger(__name__)

_SHUTTING_DOWN: Final = 0x8B
_TICK: Final = 0.25
_STALL: Final = 1.0
# Sockets that have not sent CONNECT yet, on top of the connected clients.
_SPARE_SOCKETS: Final = 100


class Server:
    """Sockets and timers around a `Broker`."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._connections: set[Connection] = set()
        self._listener: asyncio.Server | None = None
        self._watch: asyncio.Task[None] | None = None
        self._started = time.monotonic()

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Listen; return the port (chosen by the system when `port` is 0).

        Args:
            host: Address; with `check_address` checked before.
            port: TCP port.
            tls: Certificate of the broker; None: no TLS.

        Raises:
            OSError: The port cannot be had.
        """
        loop = asyncio.get_running_loop()
        self._started = time.monotonic()
        publish_statistics(self.broker, 0.0, self._started)  # who comes first finds them, too
        self._listener = await loop.create_server(
            self._accept,
            host,
            port,
            backlog=512,
            ssl=tls,
            ssl_handshake_timeout=None if tls is None else self.broker.limits.connect_timeout,
        )
        self._watch = asyncio.create_task(self._watch_over())
        chosen: int = self._listener.sockets[0].getsockname()[1]
        return chosen

    async def stop(self) -> None:
        """Close every connection, without wills: it is the broker that goes."""
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            if connection.session is not None:
                connection.session.will = None
            connection.close(_SHUTTING_DOWN)
        # Let the last bytes leave; a client that does not read is cut off with the process.
        for _ in range(50):
            if not self._connections:
                break
            await asyncio.sleep(0.01)

    def _accept(self) -> Connection:
        return Connection(self.broker, self._has_room, self._opened, self._connections.discard)

    def _opened(self, connection: Connection) -> None:
        """Watch over a connection from now on: over TLS once the handshake is done."""
        self._connections.add(connection)
        if len(self._connections) > self.broker.limits.max_connections + _SPARE_SOCKETS:
            asyncio.get_running_loop().call_soon(connection.close, 0)

    def _has_room(self) -> bool:
        connected = sum(c.session is not None for c in self._connections)
        return connected < self.broker.limits.max_connections

    async def _watch_over(self) -> None:
        """Check keep-alives, expiries and wills regularly; publish statistics now and then."""
        before = time.monotonic()
        next_statistics = before + self.broker.limits.statistics_interval
        while True:
            await asyncio.sleep(_TICK)
            now = time.monotonic()
            if now - before > _TICK + _STALL:
                # This process was stopped or starved: what clients sent meanwhile is still in
                # their sockets, so nobody is to be declared dead for our own absence.
                _LOG.warning("the event loop of the broker was blocked for %.1f s", now - before)
                for connection in self._connections:
                    connection.forgive(now)
            for connection in list(self._connections):
                connection.check_alive(now)
            self.broker.tick(now)
            if now >= next_statistics:
                publish_statistics(self.broker, now - self._started, now)
                next_statistics = now + self.broker.limits.statistics_interval
            before = time.monotonic()
