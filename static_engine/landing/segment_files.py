"""Segments: files of messages as they came from the broker.

A segment is one Parquet file (zstd) with the columns of `SCHEMA`, one row per message, in order of
arrival. It is written under a hidden name, synced and renamed, so who lists the folder finds whole
segments only. Names sort by the second in which a segment was closed, and are never used twice,
whatever the clock does: `20261127T021530-lander-4-9f03ab-000000017.parquet` is the 17th of the
lander's 4th start, with six digits of chance, because the count of starts may be lost.
"""

import errno
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from host.files.atomic_file import remove_file, replace_file
from streamsql.errors import FederationError
from streamsql.wire.topics import check_id

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("arrived", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
SUFFIX = ".parquet"
UNFINISHED = ".tmp"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class SegmentError(FederationError):
    """A segment cannot be written or read."""

    code = "segment_error"


class NoRoom(SegmentError):  # noqa: N818 - reads as what happened
    """There is no room for a segment: the disk is full, or the folder holds all that it may."""

    code = "landing_full"


class LandedMessage(msgspec.Struct, frozen=True, gc=False):
    """A message of the broker.

    Attributes:
        arrived: Microseconds since 1970 UTC, by the clock of the lander.
    """

    topic: str
    payload: bytes
    arrived: int


@dataclass(slots=True)
class SegmentWriter:
    """Writes the segments of one lander's start. Blocking.

    Attributes:
        folder: Of all segments; several landers may share it.
        lander: The lander's id.
        epoch: Of its start: no two starts of a lander have the same.
        max_bytes: Bound on the segments of the folder, whoever wrote them.
        spare_bytes: Room that is left on the disk for others.
        written: Segments written so far.
        token: Of this writer only.
    """

    folder: Path
    lander: str
    epoch: int
    max_bytes: int
    spare_bytes: int = 0
    written: int = 0
    token: str = field(init=False, default_factory=lambda: secrets.token_hex(3))

    def __post_init__(self) -> None:
        check_id(self.lander, "lander")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for left in self.folder.glob(f".*-{self.lander}-*{SUFFIX}{UNFINISHED}"):
                remove_file(left)
        except OSError as error:
            raise _failed(self.folder, error) from error

    def write(self, messages: Sequence[LandedMessage], now: float) -> Path:
        """Write messages as one segment; when it returns they outlive a power cut.

        Args:
            messages: In the order of arrival.
            now: Seconds since 1970, for the name.

        Raises:
            NoRoom: There is no room for it; nothing is written.
            SegmentError: It cannot be written for another reason; nothing is written.
        """
        size = sum([len(message.payload) for message in messages])
        self._check_room(size)
        path = self.folder / self._name(now)
        table = _table_of(messages)
        try:
            is_durable = replace_file(
                path,
                lambda output: pq.write_table(
                    table,
                    output,
                    compression="zstd",
                    compression_level=1,
                    use_dictionary=["topic"],
                    write_page_checksum=True,
                ),
                temporary=path.with_name(f".{path.name}{UNFINISHED}"),
            )
        except OSError as error:
            raise _failed(path, error) from error
        if not is_durable:
            remove_file(path)
            raise SegmentError(
                f"the folder {self.folder} cannot be synced, so a segment may be lost",
                hint="keep segments on a local disk whose folders can be synced",
            )
        self.written += 1
        return path

    def _name(self, now: float) -> str:
        second = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%S")
        return f"{second}-{self.lander}-{self.epoch}-{self.token}-{self.written + 1:09d}{SUFFIX}"

    def _check_room(self, size: int) -> None:
        held = folder_bytes(self.folder)
        if held + size > self.max_bytes:
            raise NoRoom(
                f"the segments in {self.folder} have {held:,} bytes, and {self.max_bytes:,} are "
                "allowed (max_folder_bytes)",
                hint="see why the pipeline does not take them, or allow more",
            )
        try:
            disk = os.statvfs(self.folder)
        except OSError as error:
            raise _failed(self.folder, error) from error
        free = disk.f_bavail * disk.f_frsize
        if free < size + self.spare_bytes:
            raise NoRoom(
                f"disk full: {free:,} bytes are free where {self.folder} is, and "
                f"{self.spare_bytes:,} are left to others (spare_bytes)",
                hint="make room on that disk; landing goes on by itself",
            )


def segments(folder: Path) -> list[Path]:
    """Return the whole segments in a folder, by name; none if there is no folder."""
    found = folder.glob(f"*{SUFFIX}") if folder.is_dir() else ()
    return sorted(path for path in found if not path.name.startswith("."))


def folder_bytes(folder: Path) -> int:
    """Return the size of the segments in a folder, in bytes; one that just left counts no more."""
    total = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX):
                    try:
                        total += entry.stat(follow_symlinks=False).st_size
                    except FileNotFoundError:
                        continue
    except OSError as error:
        raise _failed(folder, error) from error
    return total


def read_segment(path: Path) -> pa.Table:
    """Return the messages of a segment, with the columns of `SCHEMA`.

    Raises:
        SegmentError: It is gone, damaged, or has other columns.
    """
    try:
        table = pq.read_table(
            path, memory_map=False, partitioning=None, page_checksum_verification=True
        )
    except (OSError, pa.ArrowException) as error:
        raise SegmentError(
            f"segment {path} cannot be read: {error!s:.300}",
            hint="move it out of the folder to keep it; the pipeline goes on without it",
        ) from error
    if not table.schema.equals(SCHEMA):
        try:
            table = table.select(SCHEMA.names).cast(SCHEMA)
        except (KeyError, pa.ArrowException) as error:
            raise SegmentError(
                f"{path} is no segment: its columns are {table.schema.names}"
            ) from error
    return table


def _table_of(messages: Sequence[LandedMessage]) -> pa.Table:
    return pa.table(
        [
            pa.array([message.topic for message in messages], pa.string()),
            pa.array([message.payload for message in messages], pa.binary()),
            pa.array([message.arrived for message in messages], pa.timestamp("us", tz="UTC")),
        ],
        schema=SCHEMA,
    )


def _failed(path: Path, error: OSError) -> SegmentError:
    if error.errno in _NO_ROOM:
        return NoRoom(
            f"disk full: {path} cannot be written ({error.strerror})",
            hint="make room on that disk; landing goes on by itself",
        )
    return SegmentError(
        f"{path} cannot be written: {error.strerror or error}",
        hint="check that the folder exists and may be written by the lander",
    )
