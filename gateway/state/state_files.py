"""A site's snapshot and journal on disk: whole or not there, bounded, checked when read.

`snapshot` is written next to the old one, synced and renamed over it. `journal-N` holds records in
the order in which they were written; the snapshot names the first journal that comes after it. A
record is handed to the operating system before anything it leads to is sent, so it outlives the
process; it outlives a power cut from the next snapshot on. `losses.json` names what restarts have
lost so far.
"""

import hashlib
import logging
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from host.files.atomic_file import remove_file, replace_file

log = logging.getLogger(__name__)

_SNAPSHOT = b"pandoS1\n"
_JOURNAL = b"pandoJ1\n"
_WHOLE, _CUT = b".", b"X"
_GENERATION = struct.Struct("<Q")
_RECORD = struct.Struct("<II")
_HEADER = len(_JOURNAL) + 1
_DIGEST = 32


@dataclass(frozen=True, slots=True)
class Loaded:
    """State found on disk.

    Attributes:
        snapshot: Or None.
        records: Of the journals after it, in order.
        damage: Why the snapshot cannot be used, or empty.
        cut: Why records are missing at the end, or empty.
    """

    snapshot: bytes | None = None
    records: list[bytes] = field(default_factory=list)
    damage: str = ""
    cut: str = ""


_LOSSES = "losses.json"
_MAX_LOSSES_BYTES = 10_000_000


class StateFiles:
    """The files of one site, used by one process.

    Args:
        folder: Made when missing.
        max_bytes: Of the snapshot, and of all journals together; more is refused.

    Attributes:
        problem: What is wrong with the disk now, or empty.
        journal_bytes: Of the journals since the last snapshot.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self.problem = ""
        self.journal_bytes = 0
        self._generation = 0
        self._journal: IO[bytes] | None = None
        self._cut_in: int | None = None

    @property
    def wants_snapshot(self) -> bool:
        """Whether a snapshot should be taken early: the journals are half full, or one is cut."""
        return self._journal is None or self.journal_bytes > self.max_bytes // 2

    @property
    def holds_all(self) -> bool:
        """Whether everything that was handed over outlives this process."""
        return self._cut_in is None and self._journal is not None

    # --- reading ----------------------------------------------------------------------------

    def load(self) -> Loaded:
        """Return what an earlier life has left; nothing is changed."""
        try:
            generations = sorted(self._journals())
            self._generation = max(generations, default=0)
            if not (self.folder / "snapshot").exists():
                # From the very beginning, or of no use.
                first, snapshot = 1, None
            else:
                first, snapshot = self._read_snapshot()
                self._generation = max(self._generation, first)
        except (OSError, ValueError) as error:
            return Loaded(damage=str(error))
        records: list[bytes] = []
        for generation in range(first, self._generation + 1):
            try:
                content = self._journal_path(generation).read_bytes()
            except OSError as error:
                return Loaded(snapshot, records, cut=f"journal {generation}: {error.strerror}")
            self.journal_bytes += len(content)
            try:
                records.extend(_records(content))
            except _CutError as error:
                records.extend(error.records)
                return Loaded(snapshot, records, cut=f"journal {generation} {error}")
        return Loaded(snapshot, records)

    def losses(self) -> bytes:
        """Return what earlier lives have said to be lost; empty: nothing.

        Raises:
            OSError: It cannot be read.
        """
        path = self.folder / _LOSSES
        if not path.exists():
            return b""
        if path.stat().st_size > _MAX_LOSSES_BYTES:
            raise OSError(27, "it is too large")
        return path.read_bytes()

    def _read_snapshot(self) -> tuple[int, bytes]:
        """Return the snapshot and the first journal after it.

        Raises:
            ValueError: It is damaged.
        """
        content = (self.folder / "snapshot").read_bytes()
        start = len(_SNAPSHOT) + _DIGEST
        rest = content[start:]
        if not content.startswith(_SNAPSHOT) or len(rest) < _GENERATION.size:
            raise ValueError("the snapshot is not of this version")
        if hashlib.sha256(rest).digest() != content[len(_SNAPSHOT) : start]:
            raise ValueError("the snapshot is damaged")
        (generation,) = _GENERATION.unpack_from(rest)
        return int(generation), rest[_GENERATION.size :]

    def _journals(self) -> Iterator[int]:
        if self.folder.exists():
            for path in self.folder.glob("journal-*"):
                number = path.name.removeprefix("journal-")
                if number.isdecimal():
                    yield int(number)

    def _journal_path(self, generation: int) -> Path:
        return self.folder / f"journal-{generation}"

    # --- writing ----------------------------------------------------------------------------

    def next_journal(self) -> int | None:
        """Begin another journal.

        Returns:
            Its number, for the snapshot taken at this moment; None when the disk refuses it: then
            records go where they went.
        """
        path = self._journal_path(self._generation + 1)
        journal: IO[bytes] | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            journal = path.open("wb", buffering=0)
            _write(journal, _JOURNAL + _WHOLE)
        except OSError as error:
            self._complain(f"cannot create a journal: {error.strerror}")
            if journal is not None:
                journal.close()
            remove_file(path)
            if self._journal is None:
                self._mark_cut()
            return None
        self._close()
        self._journal = journal
        self._generation += 1
        self.journal_bytes += _HEADER
        return self._generation

    def append(self, record: bytes) -> None:
        """Write a record; never raises. After a failure nothing more is written to this journal."""
        journal = self._journal
        if journal is None:
            return
        size = _RECORD.size + len(record)
        if self.journal_bytes + size > self.max_bytes:
            self._failed(f"the journal has reached snapshots.max_bytes = {self.max_bytes}")
            return
        try:
            _write(journal, _RECORD.pack(len(record), zlib.crc32(record)) + record)
        except OSError as error:
            self._failed(f"the journal cannot be written: {error.strerror}")
        else:
            self.journal_bytes += size

    def cut(self, problem: str) -> None:
        """Note that something is missing from here on: a snapshot follows soon."""
        if self._journal is not None:
            self._failed(problem)

    def save(self, snapshot: bytes, generation: int) -> bool:
        """Replace the snapshot; remove the journals before it. May be called by another thread.

        Args:
            snapshot: Its content.
            generation: Number of the journal that was begun when it was taken.

        Returns:
            Whether it is on disk; else `problem` says why, and what was there before still is.
        """
        if len(snapshot) > self.max_bytes:
            size = f"{len(snapshot)} bytes, snapshots.max_bytes is {self.max_bytes}"
            self._complain(f"the state of this site is not saved: {size}")
            return False
        try:
            body = _GENERATION.pack(generation) + snapshot
            self._replace("snapshot", _SNAPSHOT + hashlib.sha256(body).digest() + body)
            old = [number for number in self._journals() if number < generation]
            for number in old:
                self._journal_path(number).unlink(missing_ok=True)
        except OSError as error:
            self._complain(f"the state of this site cannot be saved: {error.strerror}")
            return False
        self.problem = ""
        if self._cut_in is not None and generation > self._cut_in:
            self._cut_in = None  # what the journal misses is in the snapshot
        return True

    def save_losses(self, content: bytes) -> bool:
        """Replace what is said to be lost; return whether it is on disk."""
        try:
            if content:
                self._replace(_LOSSES, content)
            else:
                (self.folder / _LOSSES).unlink(missing_ok=True)
        except OSError as error:
            self._complain(f"the record of losses cannot be saved: {error.strerror}")
            return False
        return True

    def _replace(self, name: str, content: bytes) -> None:
        """Put a file in place of another, as a whole.

        Raises:
            OSError: It is as it was, or a power cut may bring back what it was.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if not replace_file(self.folder / name, content):
            raise OSError(5, "its folder cannot be synced")

    def set_aside(self) -> None:
        """Move a snapshot that cannot be used out of the way, for whoever wants to look at it."""
        try:
            if (self.folder / "snapshot").exists():
                (self.folder / "snapshot").replace(self.folder / "snapshot.broken")
        except OSError as error:
            self._complain(f"the snapshot cannot be set aside: {error.strerror}")

    def count_again(self) -> None:
        """Count what the journals hold, after a snapshot has made some of them unnecessary."""
        try:
            self.journal_bytes = sum(
                self._journal_path(number).stat().st_size for number in self._journals()
            )
        except OSError as error:
            self._complain(f"the journals cannot be listed: {error.strerror}")

    def close(self) -> None:
        """Close the journal."""
        self._close()

    def _failed(self, problem: str) -> None:
        """Mark the journal as cut: what follows is not in it."""
        self._complain(problem)
        self._close()
        self._mark_cut()

    def _mark_cut(self) -> None:
        """Mark the last journal; this takes no room on the disk."""
        self._cut_in = self._generation
        try:
            path = self._journal_path(self._generation)
            if path.exists():
                with path.open("r+b", buffering=0) as journal:
                    journal.seek(len(_JOURNAL))
                    _write(journal, _CUT)
        except OSError as error:
            log.warning("the journal cannot be marked as cut: %s", error.strerror)

    def _complain(self, problem: str) -> None:
        if self.problem != problem:
            log.warning("%s; after a crash some queries would restart without their state", problem)
        self.problem = problem

    def _close(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None


class _CutError(Exception):
    """A journal ends before its end; says why, and carries the records before."""

    def __init__(self, reason: str, records: list[bytes]) -> None:
        super().__init__(reason)
        self.records = records


def _records(content: bytes) -> list[bytes]:
    """Return the records of a journal; one that was being written when the process died is none.

    Raises:
        _CutError: Records are missing at its end.
    """
    records: list[bytes] = []
    if len(content) < _HEADER:
        return records
    if not content.startswith(_JOURNAL):
        raise _CutError("is not a journal of this version", records)
    place = _HEADER
    while place + _RECORD.size <= len(content):
        length, check = _RECORD.unpack_from(content, place)
        end = place + _RECORD.size + length
        if end > len(content):
            break
        record = content[place + _RECORD.size : end]
        if zlib.crc32(record) != check:
            raise _CutError("is damaged", records)
        records.append(record)
        place = end
    if content[len(_JOURNAL) : _HEADER] != _WHOLE:
        raise _CutError(
            "was cut: the disk was full, or the journal had reached its max size", records
        )
    return records


def _write(file: IO[bytes], content: bytes) -> None:
    """Write all of it in one call.

    Raises:
        OSError: The system took a part of it only.
    """
    if file.write(content) != len(content):
        raise OSError(28, "the disk is full")
