"""A bounded first-in first-out store of payloads in SQLite.

Bounded in bytes and in age; beyond either the *oldest* payloads are dropped and counted. A disk that
is full or broken never stops the gateway: readings then pass unbuffered, which is counted and shown
in the gateway's state.
"""

import logging
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from gateway.settings import BufferSettings
from streamsql.wire.messages import BufferState

log = logging.getLogger(__name__)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS pack (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  stream TEXT NOT NULL, stored REAL NOT NULL, payload BLOB NOT NULL)
"""
_RATE_SMOOTHING = 0.2


class DiskBuffer:
    """Payloads by number, oldest first.

    Args:
        path: The database file; made when missing, set aside as `….broken` when it is no database.
        settings: Bounds.
        wall: Seconds since 1970.
    """

    def __init__(
        self, path: Path, settings: BufferSettings, wall: Callable[[], float] = time.time
    ) -> None:
        self.path = path
        self.settings = settings
        self.problem = ""
        self.dropped = 0
        self._wall = wall
        self._bytes = 0
        self._stored = 0
        self._rate = 0.0
        self._rate_since = wall()
        self._rate_bytes = 0
        self._database = self._open()
        self._measure()

    def append(self, stream: str, payload: bytes) -> int | None:
        """Store a payload; None when the disk refuses it."""
        try:
            cursor = self._database.execute(
                "INSERT INTO pack (stream, stored, payload) VALUES (?, ?, ?)",
                (stream, self._wall(), payload),
            )
            self._database.commit()
        except sqlite3.Error as error:
            self._failed(error)
            return None
        self.problem = ""
        self._stored += 1
        self._bytes += len(payload)
        self._rate_bytes += len(payload)
        self._enforce_bounds()
        return cursor.lastrowid

    def oldest(self, most: int, skip: Collection[int] = ()) -> list[tuple[int, str, bytes]]:
        """Return up to `most` (number, stream, payload), oldest first, without those in `skip`."""
        try:
            rows = self._database.execute(
                "SELECT number, stream, payload FROM pack ORDER BY number LIMIT ?",
                (most + len(skip),),
            ).fetchall()
        except sqlite3.Error as error:
            self._failed(error)
            return []
        return [row for row in rows if row[0] not in skip][:most]

    def delete(self, numbers: Sequence[int]) -> None:
        """Remove payloads; unknown numbers do not matter."""
        if not numbers:
            return
        try:
            freed = 0
            for number in numbers:
                row = self._database.execute(
                    "DELETE FROM pack WHERE number = ? RETURNING length(payload)", (number,)
                ).fetchone()
                if row is not None:
                    freed += row[0]
                    self._stored -= 1
            self._database.commit()
            self._bytes -= freed
        except sqlite3.Error as error:
            self._failed(error)

    def state(self) -> BufferState:
        """Return fill, drops, and for how many hours the rest lasts at the present rate."""
        elapsed = self._wall() - self._rate_since
        if elapsed >= 1.0:
            rate = self._rate_bytes / elapsed
            self._rate += _RATE_SMOOTHING * (rate - self._rate) if self._rate else rate
            self._rate_since, self._rate_bytes = self._wall(), 0
        left = max(self.settings.max_bytes - self._bytes, 0)
        hours = min(left / self._rate / 3600, self.settings.max_hours) if self._rate else None
        return BufferState(self._stored, self._bytes, self.dropped, hours)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except sqlite3.DatabaseError as error:
            broken = self.path.with_suffix(".broken")
            log.warning("buffer %s is damaged (%s); set aside as %s", self.path, error, broken)
            self.problem = f"the buffer was damaged and set aside as {broken.name}"
            if self.path.exists():
                self.path.replace(broken)
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute(_SCHEMA)
            database.commit()
        except sqlite3.Error:
            database.close()
            raise
        return database

    def _measure(self) -> None:
        row = self._database.execute("SELECT count(*), total(length(payload)) FROM pack").fetchone()
        self._stored, self._bytes = int(row[0]), int(row[1])

    def _enforce_bounds(self) -> None:
        while self._bytes > self.settings.max_bytes:
            if not self._drop("number IN (SELECT number FROM pack ORDER BY number LIMIT 100)"):
                return
        if self._stored % 100 == 0:
            limit = self._wall() - self.settings.max_hours * 3600
            self._drop("stored < ?", limit)

    def _drop(self, condition: str, *arguments: float) -> int:
        try:
            freed = self._database.execute(
                f"DELETE FROM pack WHERE {condition} RETURNING length(payload)",  # noqa: S608  (ours)
                arguments,
            ).fetchall()
            self._database.commit()
        except sqlite3.Error as error:
            self._failed(error)
            return 0
        self._stored -= len(freed)
        self._bytes -= sum(length for (length,) in freed)
        self.dropped += len(freed)
        return len(freed)

    def _failed(self, error: sqlite3.Error) -> None:
        if not self.problem:
            log.warning("buffer %s: %s; readings pass unbuffered", self.path, error)
        self.problem = f"disk buffer: {error}; readings pass unbuffered"
