"""Which packs the lake has: what comes again is known, however long ago it was.

A pack is named by gateway, epoch and seq. Numbers of an epoch are dense, so a compressed bitmap per
gateway and epoch holds millions in some bytes. It is kept in SQLite, a version per batch that
changed it, and the one before: a batch that is repeated after a crash sees what it saw first, and
decides the same.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyroaring import BitMap64

from static_engine.lake.lake_errors import LakeError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS seen (
  gateway TEXT NOT NULL, epoch INTEGER NOT NULL, batch INTEGER NOT NULL, packs BLOB NOT NULL,
  PRIMARY KEY (gateway, epoch, batch)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
VERSION = "1"
BEFORE_ALL = -1
"""Number of the batch that stands for what the lake had before the first."""

Packs = Mapping[tuple[str, int], BitMap64]
"""Numbers of packs by gateway and epoch."""


class SeenPacks:
    """The packs of one pipeline. One thread uses it.

    Args:
        path: The database file, made when missing.

    Raises:
        LakeError: It cannot be opened, or is of another release.

    Attributes:
        is_new: Whether nothing was known: what the lake has already is to be added.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.executescript(_SCHEMA)
            version = self.fact("version")
        except (sqlite3.Error, OSError) as error:
            raise LakeError(
                f"the pipeline cannot open {path}: {error}",
                hint="free space, or move the damaged file away: it is made again from the lake",
            ) from error
        if version not in (None, VERSION):
            self._database.close()
            raise LakeError(
                f"{path} was written by another release (version {version}, not {VERSION})",
                hint="start that release, or move the file away: it is made again from the lake",
            )
        self.is_new = version is None

    def fact(self, name: str) -> str | None:
        """Return a fact that `note` has kept, or None."""
        row = self._database.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def note(self, **facts: str) -> None:
        """Keep facts by name."""
        with self._database:
            for name, value in facts.items():
                self._database.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, value))

    def begin(self, packs: Packs) -> None:
        """Take what the lake has already, in place of whatever was known."""
        with self._database:
            self._database.execute("DELETE FROM seen")
            self._put(packs.items(), BEFORE_ALL)
            self._database.execute("INSERT OR REPLACE INTO fact VALUES ('version', ?)", (VERSION,))
        self.is_new = False

    def renumber(self) -> None:
        """Take all that is known as from before the first batch."""
        known = self.before(2**62)
        self.begin({key: BitMap64.deserialize(packs) for key, packs in known.items()})

    def before(self, batch: int) -> dict[tuple[str, int], bytes]:
        """Return all packs that batches before this one had, as serialized bitmaps."""
        rows = self._database.execute(
            "SELECT gateway, epoch, packs, max(batch) FROM seen WHERE batch < ? "
            "GROUP BY gateway, epoch",
            (batch,),
        )
        return {(gateway, epoch): packs for gateway, epoch, packs, _ in rows}

    def add(self, batch: int, new: Packs) -> None:
        """Note the packs of a batch; a batch that is repeated replaces what it noted first."""
        known = self.before(batch)
        with self._database:
            self._database.execute("DELETE FROM seen WHERE batch >= ?", (batch,))
            grown = (
                (key, packs | BitMap64.deserialize(known[key]) if key in known else packs)
                for key, packs in new.items()
            )
            self._put(grown, batch)
            for gateway, epoch in new:
                # The newest from before stays: this batch may be repeated.
                self._database.execute(
                    "DELETE FROM seen WHERE gateway = ? AND epoch = ? AND batch < ("
                    "SELECT max(batch) FROM seen WHERE gateway = ? AND epoch = ? AND batch < ?)",
                    (gateway, epoch, gateway, epoch, batch),
                )

    def extend(self, new: Packs) -> None:
        """Note packs that came otherwise than in a batch: all batches that follow have seen them.

        A batch that is repeated has, too.
        """
        with self._database:
            for (gateway, epoch), packs in new.items():
                versions = self._database.execute(
                    "SELECT batch, packs FROM seen WHERE gateway = ? AND epoch = ?",
                    (gateway, epoch),
                ).fetchall()
                self._database.execute(
                    "DELETE FROM seen WHERE gateway = ? AND epoch = ?", (gateway, epoch)
                )
                if not any(batch == BEFORE_ALL for batch, _ in versions):
                    versions.append((BEFORE_ALL, BitMap64().serialize()))
                for batch, known in versions:
                    self._put([((gateway, epoch), packs | BitMap64.deserialize(known))], batch)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _put(self, packs: Iterable[tuple[tuple[str, int], BitMap64]], batch: int) -> None:
        for (gateway, epoch), numbers in packs:
            numbers.run_optimize()
            self._database.execute(
                "INSERT INTO seen VALUES (?, ?, ?, ?)",
                (gateway, epoch, batch, numbers.serialize()),
            )
