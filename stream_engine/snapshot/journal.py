"""What happened to a site since its last snapshot, as records.

The engine is pure, so what it was given, in order, and the times it was given, are enough to bring
it where it was. What other sites have sent is not among it: they are asked for all of it again.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from stream_engine.site import SiteEngine
from streamsql.data.events import SourceEvent
from streamsql.errors import FederationError, InternalError
from streamsql.wire.fragments import FragmentBundle

Note = tuple[str, Any]
"""Something of the host's that belongs to events: a kind, and plain values."""


class Taken(msgspec.Struct, frozen=True, tag="taken", array_like=True):
    """Events came in, by source; all or none of them."""

    events: dict[str, tuple[SourceEvent, ...]]
    note: Note | None = None


class Stepped(msgspec.Struct, frozen=True, tag="stepped", array_like=True):
    """A step began."""

    now: int


class Installed(msgspec.Struct, frozen=True, tag="installed", array_like=True):
    """A query was installed."""

    bundle: FragmentBundle


class Uninstalled(msgspec.Struct, frozen=True, tag="uninstalled", array_like=True):
    """A query was stopped."""

    query: str


class Lost(msgspec.Struct, frozen=True, tag="lost", array_like=True):
    """Another site was declared lost."""

    site: str
    epoch: int | None = None


Record = Taken | Stepped | Installed | Uninstalled | Lost

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


def encode_record(record: Record) -> bytes:
    """Return a record as bytes."""
    return _encode(record)


def replay(engine: SiteEngine, records: Iterable[bytes]) -> tuple[list[Note], list[str]]:
    """Let a site live through records again; what it sends is dropped.

    Returns:
        The notes of the host in order, and what went wrong, as it did the first time.

    Raises:
        InternalError: A record cannot be read; those before it have been lived through.
    """
    notes: list[Note] = []
    complaints: list[str] = []
    for content in records:
        try:
            record: Record = _decode(content)
        except (msgspec.MsgspecError, FederationError, ValueError) as error:
            raise InternalError(f"a record of the journal cannot be read: {error}") from error
        try:
            _apply(engine, record, notes)
        except FederationError as error:
            complaints.append(error.message)
    return notes, complaints


def _apply(engine: SiteEngine, record: Record, notes: list[Note]) -> None:
    match record:
        case Taken(events=events, note=note):
            if note is not None:
                notes.append(note)
            for source, happened in events.items():
                engine.ingest(source, happened)
        case Stepped(now=now):
            engine.step(now)
        case Installed(bundle=bundle):
            engine.install(bundle)
        case Uninstalled(query=query):
            engine.uninstall(query)
        case Lost(site=site, epoch=epoch):
            engine.site_lost(site, epoch)
