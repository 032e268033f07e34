"""The input of a site since its last snapshot, as records.

The engine is pure, so its input in order, with the times, reproduces its state. Batches of other
sites are not recorded: they are asked for a snapshot again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.operators import Scan
from streamsql.data.events import SourceEvent
from streamsql.errors import FederationError
from streamsql.wire.fragments import FragmentBundle

Note = tuple[str, Any]
"""A note of the host that belongs to events: a kind, and plain values."""


class Taken(msgspec.Struct, frozen=True, tag="taken", array_like=True):
    """Events were ingested, by source, all or none; `origin` is the gateway that had them first."""

    events: dict[str, tuple[SourceEvent, ...]]
    note: Note | None = None
    origin: str = ""


class Filled(msgspec.Struct, frozen=True, tag="filled", array_like=True):
    """Earlier events of a source were given to a query; the note says how far it has come."""

    query: str
    source: str
    events: tuple[SourceEvent, ...]
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
    """Another site was declared lost; with a query: only for that one."""

    site: str
    epoch: int | None = None
    query: str = ""


class Removed(msgspec.Struct, frozen=True, tag="removed", array_like=True):
    """Another site was permanently removed."""

    site: str


class Restarted(msgspec.Struct, frozen=True, tag="restarted", array_like=True):
    """The site was restored from its disk: no pending or later event counts before that."""

    now: int


class Declared(msgspec.Struct, frozen=True, tag="declared", array_like=True):
    """A source was declared, or replaced."""

    scan: Scan


class Undeclared(msgspec.Struct, frozen=True, tag="undeclared", array_like=True):
    """A source is no more declared."""

    source: str


class Defined(msgspec.Struct, frozen=True, tag="defined", array_like=True):
    """A source of others is defined so from now on."""

    scan: Scan


Record = (
    Taken
    | Filled
    | Stepped
    | Installed
    | Uninstalled
    | Lost
    | Removed
    | Restarted
    | Declared
    | Undeclared
    | Defined
)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


def encode_record(record: Record) -> bytes:
    """Return a record as bytes."""
    return _encode(record)


@dataclass(slots=True)
class Lived:
    """The outcome of replaying a journal.

    Attributes:
        notes: Of the host, in order.
        complaints: What went wrong, as it did the first time.
        cut: Why the rest could not be read, or empty.
    """

    notes: list[Note] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    cut: str = ""


def replay(engine: SiteEngine, records: Iterable[bytes]) -> Lived:
    """Replay records at a site; its output is dropped."""
    lived = Lived()
    for content in records:
        try:
            record: Record = _decode(content)
        except (msgspec.MsgspecError, FederationError, ValueError) as error:
            lived.cut = f"a record of the journal cannot be read: {error}"
            break
        try:
            _apply(engine, record, lived)
        except FederationError as error:
            lived.complaints.append(error.message)
    return lived


def _apply(engine: SiteEngine, record: Record, lived: Lived) -> None:
    match record:
        case Taken(events=events, note=note, origin=origin):
            if note is not None:
                lived.notes.append(note)
            for source, happened in events.items():
                engine.ingest(source, happened, origin)
        case Filled(query=query, source=source, events=happened, note=note):
            if note is not None:
                lived.notes.append(note)
            engine.fill(query, source, happened)
        case Stepped(now=now):
            failures = engine.step(now).failures
            lived.complaints.extend(f"{query}: {failure.message}" for query, failure in failures)
        case Installed(bundle=bundle):
            engine.install(bundle)
        case Uninstalled(query=query):
            engine.uninstall(query)
        case Lost(site=site, epoch=epoch, query=query):
            engine.site_lost(site, epoch, query)
        case Removed(site=site):
            engine.site_removed(site)
        case Restarted(now=now):
            engine.not_before(now)
        case Declared(scan=scan):
            engine.declare(scan)
        case Undeclared(source=source):
            engine.undeclare(source)
        case Defined(scan=scan):
            engine.define(scan)
