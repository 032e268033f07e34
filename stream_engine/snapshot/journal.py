"""What happened to a site since its last snapshot, as records.

The engine is pure, so what it was given, in order, and the times it was given, are enough to bring
it where it was. What other sites have sent is not among it: they are asked for all of it again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stream_engine.site.site_engine import SiteEngine
from streamsql.data.events import SourceEvent
from streamsql.errors import FederationError
from streamsql.wire.fragments import FragmentBundle

Note = tuple[str, Any]
"""Something of the host's that belongs to events: a kind, and plain values."""


class Taken(msgspec.Struct, frozen=True, tag="taken", array_like=True):
    """Events came in, by source; all or none of them.

    Attributes:
        origin: The gateway that had taken them in before, or empty: this site.
    """

    events: dict[str, tuple[SourceEvent, ...]]
    note: Note | None = None
    origin: str = ""


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
    """Another site was declared lost; with a query: to that one only."""

    site: str
    epoch: int | None = None
    query: str = ""


class Removed(msgspec.Struct, frozen=True, tag="removed", array_like=True):
    """Another site was removed for good."""

    site: str


class Restarted(msgspec.Struct, frozen=True, tag="restarted", array_like=True):
    """The site came back from its disk: nothing that waits or comes counts before that."""

    now: int


Record = Taken | Stepped | Installed | Uninstalled | Lost | Removed | Restarted

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


def encode_record(record: Record) -> bytes:
    """Return a record as bytes."""
    return _encode(record)


@dataclass(slots=True)
class Lived:
    """What came of living through a journal.

    Attributes:
        notes: Of the host, in order.
        complaints: What went wrong, as it did the first time.
        cut: Why the rest could not be read, or empty.
    """

    notes: list[Note] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    cut: str = ""


def replay(engine: SiteEngine, records: Iterable[bytes]) -> Lived:
    """Let a site live through records again; what it sends is dropped."""
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
