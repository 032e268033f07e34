"""Position in a file; it outlives a restart, a new name of the file, and its truncation."""

import hashlib
from dataclasses import dataclass
from typing import BinaryIO

MAX_LINE = 100_000
"""Bytes; a longer line is left out."""
BATCH_BYTES = 800_000
BATCH_LINES = 1_000
_HEAD = 256


@dataclass(slots=True)
class Place:
    """Position of the next line of a file.

    Attributes:
        inode: Of the file: it keeps it when it gets another name.
        name: By which it was a file of the source.
        position: Bytes before the next line.
        head: Digest of the file's first bytes, at most 256, at most `position`: another file with
            this inode begins in another way.
        is_in_long_line: Whether the bytes up to the next line end belong to a line that is left
            out.
    """

    inode: int
    name: str
    position: int = 0
    head: str = ""
    is_in_long_line: bool = False

    def to_remember(self) -> list[object]:
        """Return plain values that `remembered` reads."""
        return [self.inode, self.name, self.position, self.head, self.is_in_long_line]

    def is_of(self, file: BinaryIO, size: int) -> bool:
        """Whether the file still holds what was read of it."""
        return size >= self.position and _digest(file, self.position) == self.head

    def restart(self) -> None:
        """Begin with the file's first line."""
        self.position, self.head, self.is_in_long_line = 0, "", False

    def begin(self, file: BinaryIO, position: int) -> None:
        """Leave out what comes before a position."""
        self.position = position
        self.head = _digest(file, position)

    def lines(self, file: BinaryIO) -> tuple[list[bytes], int]:
        """Return the next whole lines, and how many were too long; they are read from then on."""
        file.seek(self.position)
        chunk = file.read(BATCH_BYTES)
        found: list[bytes] = []
        too_long = 0
        begin = 0
        while len(found) < BATCH_LINES and (end := chunk.find(b"\n", begin)) >= 0:
            if self.is_in_long_line:
                self.is_in_long_line = False
            elif end - begin > MAX_LINE:
                too_long += 1
            else:
                found.append(chunk[begin:end].rstrip(b"\r"))
            begin = end + 1
        rest = len(chunk) - begin
        if len(found) < BATCH_LINES and rest > MAX_LINE:
            too_long += not self.is_in_long_line
            self.is_in_long_line = True
            begin = len(chunk)
        if begin:
            self.position += begin
            self.head = _digest(file, self.position)
        return found, too_long


def remembered(plain: object) -> Place | None:
    """Return what `to_remember` has returned, or None if this is nothing of the kind."""
    match plain:
        case [int(inode), str(name), int(position), str(head), bool(is_in_long_line)] if (
            position >= 0
        ):
            return Place(inode, name, position, head, is_in_long_line)
    return None


def _digest(file: BinaryIO, position: int) -> str:
    file.seek(0)
    return hashlib.blake2b(file.read(min(position, _HEAD)), digest_size=8).hexdigest()
