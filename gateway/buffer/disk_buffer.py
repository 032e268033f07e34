"""A bounded first-in first-out store of payloads in SQLite.

Bounded in bytes and in age; beyond either the *oldest* payloads are dropped and counted. A disk
that is full, or a file that is broken, never stops the gateway: readings then pass unbuffered,
which shows in the gateway's state, and the buffer tries again by itself.
"""

import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

from gateway.gateway_settings import BufferSettings
from streamsql.wire.site_messages import BufferState

log = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_SECONDS = 5.0
AGE_CHECK_SECONDS = 10.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS pack (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  stream TEXT NOT NULL, stored REAL NOT NULL, payload BLOB NOT NULL)
"""
_PAGE_BYTES = 4096
_RATE_SMOOTHING = 0.2
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class DiskBuffer:
    """Payloads by number, oldest first.

    Args:
        path: The database file; made when missing, set aside as `….broken` when it is damaged.
        settings: Bounds.
        wall: Seconds since 1970.

    Attributes:
        problem: What is wrong with the disk now, or empty.
        dropped: Payloads dropped since the start.
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
        self._age_checked = 0.0
        self._retry_at = 0.0
        self._last_number = 0
        self._note = ""
        self._database: sqlite3.Connection | None = None
        self._open()

    def __len__(self) -> int:
        return self._stored

    def append(self, stream: str, payload: bytes) -> int | None:
        """Store a payload; None when the disk refuses it."""
        size = len(payload)

        def insert(database: sqlite3.Connection) -> tuple[int, list[int]]:
            cursor = database.execute(
                "INSERT INTO pack (stream, stored, payload) VALUES (?, ?, ?)",
                (stream, self._wall(), payload),
            )
            dropped = self._over_bytes(database, self._bytes + size - self.settings.max_bytes)
            return cursor.lastrowid or 0, dropped + self._over_age(database)

        done = self._do(insert)
        if done is None:
            return None
        number, dropped = done
        self.problem = self._note
        self._last_number = number
        self._stored += 1
        self._bytes += size
        self._rate_bytes += size
        self._forget(dropped)
        self.dropped += len(dropped)
        return number

    def oldest(self, most: int, after: int = 0) -> list[tuple[int, str, bytes]]:
        """Return up to `most` (number, stream, payload) with larger numbers, oldest first."""

        def select(database: sqlite3.Connection) -> list[tuple[int, str, bytes]]:
            return database.execute(
                "SELECT number, stream, payload FROM pack WHERE number > ? ORDER BY number LIMIT ?",
                (after, most),
            ).fetchall()

        return self._do(select) or []

    def delete(self, numbers: Sequence[int]) -> bool:
        """Remove payloads; unknown numbers do not matter. False when the disk refuses."""

        def remove(database: sqlite3.Connection) -> list[int]:
            return [
                size
                for number in numbers
                for (size,) in database.execute(
                    "DELETE FROM pack WHERE number = ? RETURNING length(payload)", (number,)
                )
            ]

        freed = self._do(remove) if numbers else []
        self._forget(freed or [])
        return freed is not None

    def count_lost(self) -> None:
        """Note that a payload was lost because neither disk nor broker took it."""
        self.dropped += 1

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
        if self._database is not None:
            self._database.close()
            self._database = None
        self._retry_at = float("inf")

    # The database -----------------------------------------------------------------------------

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do something to the database in one transaction; None when the disk refuses it."""
        if self._database is None and self._wall() >= self._retry_at:
            self._open()
        database = self._database
        if database is None:
            return None
        try:
            result = work(database)
            database.commit()
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                database.rollback()
            self._failed(error)
            return None
        return result

    def _open(self) -> None:
        """Open the file, setting a damaged one aside; without success try again later."""
        try:
            try:
                self._connect()
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._set_aside(error)
                self._connect()
        except (sqlite3.Error, OSError) as error:
            self._retry_at = self._wall() + RETRY_SECONDS
            self._failed(error)

    def _connect(self) -> None:
        database = sqlite3.connect(self.path)
        # Numbers of the database itself, so that a full disk cannot hide behind the bounds: pages
        # in use, with room for what SQLite keeps beside the payloads.
        most = 2 * self.settings.max_bytes // _PAGE_BYTES + 1_000
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute(f"PRAGMA max_page_count = {most}")
            database.execute(_SCHEMA)
            self._go_on_counting(database)
            database.commit()
            row = database.execute("SELECT count(*), total(length(payload)) FROM pack").fetchone()
        except BaseException:
            database.close()
            raise
        self._stored, self._bytes = int(row[0]), int(row[1])
        self._database = database

    def _go_on_counting(self, database: sqlite3.Connection) -> None:
        """Use no number twice, also after a damaged file: some may still be in flight."""
        if self._last_number:
            database.execute("DELETE FROM sqlite_sequence WHERE name = 'pack'")
            database.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES ('pack', ?)", (self._last_number,)
            )

    def _set_aside(self, error: sqlite3.Error) -> None:
        """Move a damaged file out of the way; what was in it counts as dropped."""
        self.close()
        self._retry_at = 0.0
        broken = self.path.with_suffix(".broken")
        log.warning("buffer %s is damaged (%s); set aside as %s", self.path, error, broken.name)
        self.problem = self._note = f"the buffer was damaged and set aside as {broken.name}"
        if self.path.exists():
            self.path.replace(broken)
        for suffix in ("-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        self.dropped += self._stored
        self._stored = self._bytes = 0

    def _failed(self, error: sqlite3.Error | OSError) -> None:
        problem = f"disk buffer: {error}; readings are not buffered"
        if self.problem != problem:
            log.warning("buffer %s: %s; readings are not buffered", self.path, error)
        self.problem = problem
        if isinstance(error, sqlite3.Error) and _is_damage(error) and self._database is not None:
            try:
                self._set_aside(error)
            except OSError as refusal:
                self._retry_at = self._wall() + RETRY_SECONDS
                log.warning("buffer %s cannot be set aside: %s", self.path, refusal)

    # Bounds -----------------------------------------------------------------------------------

    def _over_bytes(self, database: sqlite3.Connection, excess: int) -> list[int]:
        """Delete the oldest payloads that hold at least so many bytes; return their sizes."""
        if excess <= 0:
            return []
        last, sizes = 0, []
        for number, size in database.execute(
            "SELECT number, length(payload) FROM pack ORDER BY number"
        ):
            last = number
            sizes.append(size)
            excess -= size
            if excess <= 0:
                break
        database.execute("DELETE FROM pack WHERE number <= ?", (last,))
        return sizes

    def _over_age(self, database: sqlite3.Connection) -> list[int]:
        """Delete what is too old, now and then; return the sizes."""
        now = self._wall()
        if abs(now - self._age_checked) < AGE_CHECK_SECONDS:
            return []
        self._age_checked = now
        limit = now - self.settings.max_hours * 3600
        rows = database.execute(
            "DELETE FROM pack WHERE stored < ? RETURNING length(payload)", (limit,)
        )
        return [size for (size,) in rows]

    def _forget(self, sizes: Collection[int]) -> None:
        self._stored -= len(sizes)
        self._bytes -= sum(sizes)


def _is_damage(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and (code & 0xFF) in _DAMAGED
