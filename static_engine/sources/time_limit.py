"""A limit on the silence of a database: a read that waits for it stops all other work."""

import contextlib
import logging
import os
import socket
import sqlite3
import threading
import time
from typing import Any

from sqlalchemy import Engine, event

_AGAIN_SECONDS = 0.5

log = logging.getLogger(__name__)


class TimeLimit:
    """Cuts the connections of an engine when its time is over; whoever waits gets an error.

    A server that has stopped, or a network that swallows everything, does not even answer that a
    statement takes too long. So the socket is shut down from here, whatever the server does.

    Args:
        seconds: From now on, or from the last `extend`.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._timers: dict[int, threading.Timer] = {}
        self._cut = False

    @property
    def is_over(self) -> bool:
        """Whether the time is over, or a connection was cut because it was."""
        return self._cut or time.monotonic() >= self._end

    def extend(self) -> None:
        """Restart the time: the database has answered."""
        self.give(self.seconds)

    def give(self, seconds: float) -> None:
        """Let connections, those that are opened from here on too, go on for some seconds."""
        self._end = time.monotonic() + seconds

    def watch(self, engine: Engine) -> None:
        """Watch all connections of an engine from when they are open to when they are closed."""

        # First of all: SQLAlchemy itself asks a new connection for the version of the server.
        @event.listens_for(engine, "connect", insert=True)
        def opened(connection: Any, _: object) -> None:
            with self._lock:
                self._start(connection, self._end - time.monotonic())

        @event.listens_for(engine, "close")
        def closed(connection: Any, _: object) -> None:
            with self._lock:  # after this its file number may be somebody else's
                timer = self._timers.pop(id(connection), None)
            if timer is not None:
                timer.cancel()

    def _start(self, connection: Any, seconds: float) -> None:
        if id(connection) in self._timers:
            self._timers[id(connection)].cancel()
        timer = threading.Timer(max(seconds, 0.0), self._look, (connection,))
        timer.daemon = True
        self._timers[id(connection)] = timer
        timer.start()

    def _look(self, connection: Any) -> None:
        with self._lock:
            if id(connection) not in self._timers:
                return
            left = self._end - time.monotonic()
            if left > 0:
                self._start(connection, left)
                return
            self._cut = True
            _cut(connection)
            if isinstance(connection, sqlite3.Connection):
                # SQLite ignores it while no statement runs: repeated until it is closed.
                self._start(connection, _AGAIN_SECONDS)


def _cut(connection: Any) -> None:
    """End whatever a driver's connection is doing."""
    if isinstance(connection, sqlite3.Connection):
        connection.interrupt()
        return
    try:
        number = os.dup(connection.fileno())
    except Exception:  # noqa: BLE001 - each driver has errors of its own
        log.warning("a connection by %s cannot be cut", type(connection).__module__)
        return
    with contextlib.suppress(OSError), socket.socket(fileno=number) as shared:
        shared.shutdown(socket.SHUT_RDWR)
