"""A look into segments before their batch: which sources they have, births, and damage."""

import errno
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from static_engine.landing.segment_files import SCHEMA
from static_engine.pipeline.pack_rows import LANES
from streamsql.errors import WireError
from streamsql.wire.codec import decode_json
from streamsql.wire.site_messages import Birth
from streamsql.wire.source_shapes import SourceShape
from streamsql.wire.topics import Topics

ASIDE = "damaged"
"""Folder beside the segments for those that cannot be read."""
MAX_BIRTH_BYTES = 2_000_000
_PASSING = (
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR, errno.ESTALE),
    *(errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN, errno.EHOSTUNREACH),
)
"""Of the machine, not of the file: the batch is repeated."""


@dataclass(slots=True)
class SegmentContents:
    """Facts of the segments of a batch.

    Attributes:
        sources: Names of the sources that they have packs of.
        gateways: Senders of these packs.
        shapes: Of the sources that births in them tell of.
        messages: How many they have.
        arrived: When the first message arrived, in microseconds; None: there is none.
        damaged: Those that cannot be read, with the reason.
    """

    sources: set[str] = field(default_factory=set)
    gateways: set[str] = field(default_factory=set)
    shapes: list[SourceShape] = field(default_factory=list)
    messages: int = 0
    arrived: int | None = None
    damaged: list[tuple[Path, str]] = field(default_factory=list)


def contents_of(segments: Iterable[Path], topics: Topics) -> SegmentContents:
    """Look into segments; one that is gone has been kept before.

    Raises:
        OSError: A segment cannot be read at this moment.
    """
    contents = SegmentContents()
    for path in segments:
        try:
            _look(path, topics, contents)
        except FileNotFoundError:
            continue
        except (OSError, pa.ArrowException, KeyError) as error:
            contents.damaged.append((path, damage_of(error)))
    return contents


def damage_of(error: Exception) -> str:
    """Return what is wrong with a segment, or raise the error: what passes is no damage."""
    if isinstance(error, OSError) and error.errno in _PASSING:
        raise error
    return f"{error!s:.300}"


def set_aside(path: Path) -> Path:
    """Move a damaged segment where it is not read; return its new place.

    Raises:
        OSError: It cannot be moved.
    """
    folder = path.parent.parent / ASIDE
    folder.mkdir(parents=True, exist_ok=True)
    return path.replace(folder / path.name)


def _look(path: Path, topics: Topics, contents: SegmentContents) -> None:
    with pq.ParquetFile(path, memory_map=False, page_checksum_verification=True) as file:
        schema = file.schema_arrow
        if schema.names != SCHEMA.names or not schema.equals(SCHEMA, check_metadata=False):
            raise KeyError(f"it is no segment: its columns are {', '.join(schema.names)}")
        look = file.read(["topic", "arrived"])
        look.validate(full=True)
        contents.messages += look.num_rows
        first = pc.min(look.column("arrived")).cast(pa.int64()).as_py()
        if first is not None and (contents.arrived is None or first < contents.arrived):
            contents.arrived = first
        births = False
        for topic in pc.unique(look.column("topic")).to_pylist():
            try:
                levels = topics.parts(topic)
            except WireError:
                continue
            match levels:
                case ["gw", gateway, lane, stream] if lane in LANES:
                    contents.sources.add(stream)
                    contents.gateways.add(gateway)
                case ["gw", _, "birth"]:
                    births = True
                case _:
                    pass
        if births:
            table = file.read(["topic", "payload"])
            ends = pc.ends_with(table.column("topic"), pattern="/birth")
            for payload in table.filter(ends).column("payload").to_pylist():
                contents.shapes += shapes_of(payload)


def shapes_of(payload: bytes) -> tuple[SourceShape, ...]:
    """Return what a birth says of sources; nothing if it cannot be read, or is over."""
    if not payload:
        return ()
    try:
        return decode_json(payload, Birth, limit=MAX_BIRTH_BYTES).shapes
    except WireError:
        return ()
