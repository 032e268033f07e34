"""New content of the files of a folder. Everything here blocks and belongs into a thread."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from gateway.connectors.file.file_options import Each, FileSource
from gateway.connectors.file.place import BATCH_BYTES, MAX_LINE, Place, remembered
from streamsql.mapping.payloads.payload_reader import MAX_PAYLOAD

MAX_PIECES = 20
"""Of a line that is left out at the beginning, 800 kB each."""
MAX_FILES = 500
"""Of a source; the ones that were written last."""


@dataclass
class News:
    """New content of a file.

    Attributes:
        name: Of the file, as the source knows it.
        payloads: Its lines or itself.
        problems: What was wrong.
        notes: What is no fault.
    """

    name: str
    payloads: list[bytes] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Folder:
    """The files of one source.

    Args:
        path: Of the folder.
        options: Of the source.
        has_header: Whether the first line of a file names its columns: it is put before each
            other line.
        memory: What `to_remember` has returned in an earlier life.
    """

    def __init__(
        self, path: Path, options: FileSource, *, has_header: bool, memory: object
    ) -> None:
        self._path = path
        self._options = options
        self._pattern = options.pattern()
        self._has_header = has_header
        plain = memory if isinstance(memory, list) else []
        self._places = {each.inode: each for each in map(remembered, plain) if each is not None}
        self._seen: dict[int, str] = {}
        self._left_out = 0

    def to_remember(self) -> list[object]:
        """Return plain values: how far each file was read."""
        return [place.to_remember() for place in self._places.values()]

    def news(self) -> Iterator[News]:
        """Yield what is new, a batch of a file at a time.

        Raises:
            ConnectionError: The folder cannot be read.
        """
        before = self._left_out
        for name, status in self._files():
            if self._left_out > before:
                before = self._left_out
                yield News(
                    name, problems=[f"{before} older files are left out: {MAX_FILES} are read"]
                )
            try:
                with (self._path / name).open("rb") as file:
                    opened = os.fstat(file.fileno())
                    if stat.S_ISREG(opened.st_mode) and opened.st_ino == status.st_ino:
                        yield from self._news_of(self._own_name(name, opened), file, opened)
            except FileNotFoundError:
                continue  # it has got another name meanwhile
            except OSError as error:
                yield News(name, problems=[f"{name}: cannot be read: {error.strerror}"])

    def facts(self, name: str) -> dict[str, str]:
        """Return what the pattern's names stand for in the name of a file."""
        found = self._pattern.fullmatch(name)
        return found.groupdict() if found else {}

    def _files(self) -> list[tuple[str, os.stat_result]]:
        """Return the source's files, the one that was written last at the end.

        Those that match no more but were begun are among them: a log that was put aside.
        """
        try:
            with os.scandir(self._path) as entries:
                # No links: they may lead out of the folder.
                plain = [each for each in entries if each.is_file(follow_symlinks=False)]
                found = [(each.name, each.stat(follow_symlinks=False)) for each in plain]
        except OSError as error:
            raise ConnectionError(f"folder {self._path}: {error.strerror}") from None
        there = {status.st_ino for _, status in found}
        self._places = {inode: each for inode, each in self._places.items() if inode in there}
        self._seen = {inode: each for inode, each in self._seen.items() if inode in there}
        wanted = [
            (name, status)
            for name, status in found
            if status.st_ino in self._places or self._pattern.fullmatch(name)
        ]
        newest = sorted(wanted, key=lambda file: file[1].st_mtime_ns)[-MAX_FILES:]
        self._left_out = len(wanted) - len(newest)
        read = {status.st_ino for _, status in newest}
        self._places = {inode: each for inode, each in self._places.items() if inode in read}
        return newest

    def _own_name(self, name: str, status: os.stat_result) -> str:
        """Return a file's name, or the one that it had before it was put aside."""
        place = self._places.get(status.st_ino)
        return name if place is None or self._pattern.fullmatch(name) else place.name

    def _news_of(self, name: str, file: BinaryIO, status: os.stat_result) -> Iterator[News]:
        if self._options.each == Each.FILE:
            yield from self._whole(name, file, status)
            return
        place = self._places.setdefault(status.st_ino, Place(status.st_ino, name))
        if place.position == status.st_size and place.position:
            # Written anew it may have the size that it had.
            state = _state(status)
            if self._seen.get(status.st_ino) == state:
                return
            self._seen[status.st_ino] = state
        if place.position and not place.is_of(file, status.st_size):
            place.restart()
            yield News(name, notes=[f"{name} was truncated or replaced; it is read from its start"])
        header = self._header(file)
        if header is None:
            return  # it is still being written
        if place.position < file.tell():
            place.begin(file, file.tell())
        while True:
            is_first = place.position == 0
            lines, too_long = place.lines(file)
            if not lines and not too_long:
                return
            if is_first and lines:
                lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
            payloads = [header + line for line in lines if line]
            yield News(name, payloads, _complaints(name, too_long))

    def _header(self, file: BinaryIO) -> bytes | None:
        """Return the line that names the columns, and stand behind it; None while it is missing.

        Lines that are left out before it may be long: they are read piece by piece.
        """
        file.seek(0)
        for _ in range(self._options.skip):
            for _ in range(MAX_PIECES):
                piece = file.readline(BATCH_BYTES)
                if piece.endswith(b"\n"):
                    break
            else:
                return None
        if not self._has_header:
            return b""
        header = file.readline(MAX_LINE)
        return header if header.endswith(b"\n") else None

    def _whole(self, name: str, file: BinaryIO, status: os.stat_result) -> Iterator[News]:
        """Yield a whole file that has changed, and since the last look has not changed again."""
        state = _state(status)
        place = self._places.get(status.st_ino)
        if place is not None and place.head == state:
            return
        if self._seen.get(status.st_ino) != state:
            self._seen[status.st_ino] = state
            return
        self._places[status.st_ino] = Place(status.st_ino, name, 0, state)
        content = file.read(MAX_PAYLOAD + 1)
        if len(content) > MAX_PAYLOAD:
            yield News(name, problems=[f"{name}: more than {MAX_PAYLOAD:,} bytes; it is not read"])
        else:
            skip = self._options.skip
            yield News(name, content.split(b"\n", skip)[skip:])


def _state(status: os.stat_result) -> str:
    return f"{status.st_size} {status.st_mtime_ns}"


def _complaints(name: str, too_long: int) -> list[str]:
    return [f"{name}: a line of more than {MAX_LINE:,} bytes is left out"] * too_long
