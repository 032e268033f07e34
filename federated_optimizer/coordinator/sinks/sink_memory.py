"""State of sinks that outlives a restart, in the catalog: written together, one write at a time.

Kinds of entries, by sink:

    key     a key that the receiver may have something of (id: a digest, body: the key)
    row     a row of a stream that waits, or was sent a short time ago (id: its number)
    dead    a message that was given up (id: a digest of its key, or its number)
    state   counters (one entry)
    clear   a retained topic of a dropped sink that is to be emptied; "sink" is the endpoint
"""

import asyncio
import hashlib
from enum import StrEnum
from typing import TypeVar

import msgspec

from federated_optimizer.coordinator.contract.sink_model import DeadLetter
from federated_optimizer.coordinator.store.catalog_store import (
    CatalogStore,
    SinkEntries,
    SinkEntry,
)
from streamsql.data.types import Row
from streamsql.errors import WireError
from streamsql.wire.codec import decode_packed, encode_packed

T = TypeVar("T")


class Kind(StrEnum):
    """Kinds of entries."""

    KEY = "key"
    ROW = "row"
    DEAD = "dead"
    STATE = "state"
    CLEAR = "clear"


class SinkCounters(msgspec.Struct, frozen=True):
    """Counters of a sink that go on after a restart.

    Attributes:
        delivered: Messages that the receiver has taken.
        acknowledged: Number of the last row that is done with.
        dropped: Messages that were dropped because there was no room.
        last: When the last one was taken, in microseconds, or None.
    """

    delivered: int = 0
    acknowledged: int = 0
    dropped: int = 0
    last: int | None = None


class Remembered(msgspec.Struct, frozen=True):
    """State of a sink from before the restart.

    Attributes:
        unreadable: What is wrong with each entry that cannot be read.
    """

    keys: tuple[Row, ...] = ()
    rows: tuple[tuple[int, Row], ...] = ()
    dead: tuple[DeadLetter, ...] = ()
    counters: SinkCounters = SinkCounters()
    unreadable: tuple[str, ...] = ()


class SinkMemory:
    """The entries of all sinks."""

    def __init__(self, store: CatalogStore, found: SinkEntries) -> None:
        self._store = store
        self._found = found
        self._unwritten: dict[SinkEntry, bytes | None] = {}
        self._writing = asyncio.Lock()
        self._noted = self._written = 0
        self._newest_key: dict[str, int] = {}
        self._frozen: set[str] = set()

    def of(self, sink: str) -> Remembered:
        """Return what was known of a sink when the catalog was opened.

        Of a sink with an entry that cannot be read nothing more is written: what is there may come
        from a newer release.
        """
        wrong: list[str] = []
        keys = self._read(sink, Kind.KEY, tuple, wrong)
        rows = self._read(sink, Kind.ROW, tuple, wrong)
        dead = self._read(sink, Kind.DEAD, DeadLetter, wrong)
        states = self._read(sink, Kind.STATE, SinkCounters, wrong)
        wrong += [
            f"{Kind.ROW} {number:.40}: no number" for number, _ in rows if not _is_number(number)
        ]
        if wrong:
            self._frozen.add(sink)
        return Remembered(
            keys=tuple(body for _, body in keys),
            rows=tuple((int(number), body) for number, body in rows if _is_number(number)),
            dead=tuple(sorted((body for _, body in dead), key=lambda letter: letter.given_up)),
            counters=states[0][1] if states else SinkCounters(),
            unreadable=tuple(wrong),
        )

    def topics_to_clear(self) -> dict[str, list[str]]:
        """Return the retained topics of dropped sinks, by endpoint."""
        found = self._found.get(Kind.CLEAR, {})
        return {place: [body.decode() for _, body in entries] for place, entries in found.items()}

    def note(self, sink: str, kind: Kind, number: str, body: bytes | None) -> None:
        """Remember an entry, or with None discard it, with the next `write`."""
        if sink in self._frozen and kind != Kind.CLEAR:  # whose "sink" is an endpoint
            return
        self._noted += 1
        entry = (sink, kind, number)
        is_new = kind == Kind.ROW and self._unwritten.get(entry) is not None
        if body is None and is_new and not self._writing.locked():
            # A row is noted once: this one is not in the catalog, where nobody misses it.
            del self._unwritten[entry]
        else:
            self._unwritten[entry] = body

    def note_key(self, sink: str, key: Row, *, known: bool) -> None:
        """Remember that the receiver may have something of a key, or that it has nothing."""
        packed = encode_packed(key)
        self.note(sink, Kind.KEY, digest(packed), packed if known else None)
        if known:
            self._newest_key[sink] = self._noted

    def note_row(self, sink: str, number: int, row: Row | None) -> None:
        """Remember a row of a stream, or with None discard it."""
        body = None if row is None else encode_packed(row)
        self.note(sink, Kind.ROW, f"{number:020d}", body)

    def note_dead(self, sink: str, number: int, key: Row, letter: DeadLetter | None) -> None:
        """Remember a dead letter, or with None discard it."""
        name = f"{number:020d}" if number else digest(encode_packed(key))
        self.note(sink, Kind.DEAD, name, None if letter is None else encode_packed(letter))

    def note_counters(self, sink: str, counters: SinkCounters | None) -> None:
        """Remember counters, or with None discard them."""
        self.note(sink, Kind.STATE, "", None if counters is None else encode_packed(counters))

    def note_clearing(self, endpoint: str, topic: str, *, due: bool) -> None:
        """Remember that a retained topic is to be emptied, or that it is empty."""
        body = topic.encode()
        self.note(endpoint, Kind.CLEAR, digest(body), body if due else None)

    async def write(self) -> None:
        """Write all that was noted before; others' notes go with ours.

        Raises:
            DeploymentError: The catalog cannot be written; what was noted is kept.
        """
        async with self._writing:
            if not self._unwritten:
                return
            written, noted = dict(self._unwritten), self._noted
            await asyncio.to_thread(self._store.put_sink_entries, written)
            for entry, body in written.items():
                if entry in self._unwritten and self._unwritten[entry] is body:
                    del self._unwritten[entry]
            self._written = noted

    async def write_keys(self, sink: str) -> None:
        """Write the keys of a sink that became known, if they are not written.

        Raises:
            DeploymentError: The catalog cannot be written.
        """
        while self._newest_key.get(sink, 0) > self._written:
            await self.write()

    async def forget(self, sink: str) -> None:
        """Discard all that is known of a sink, before another one may have its name.

        Raises:
            DeploymentError: The catalog cannot be written.
        """
        async with self._writing:  # what is being written now must not outlive the sink
            mine = [e for e in self._unwritten if e[0] == sink and e[1] != Kind.CLEAR]
            for entry in mine:
                del self._unwritten[entry]
            for kind, by_sink in self._found.items():
                if kind != Kind.CLEAR:
                    by_sink.pop(sink, None)
            await asyncio.to_thread(self._store.drop_sink, sink, kept=Kind.CLEAR)
            self._frozen.discard(sink)

    def _entries(self, kind: Kind, sink: str) -> list[tuple[str, bytes]]:
        return self._found.get(kind, {}).get(sink, [])

    def _read(self, sink: str, kind: Kind, form: type[T], wrong: list[str]) -> list[tuple[str, T]]:
        """Return the entries of a kind; what is wrong with others is added to `wrong`."""
        found: list[tuple[str, T]] = []
        for number, body in self._entries(kind, sink):
            try:
                found.append((number, decode_packed(body, form)))
            except WireError as error:
                wrong.append(f"{kind} {number}: {error.message}")
        return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 20


def digest(text: bytes) -> str:
    """Return a short name of bytes."""
    return hashlib.blake2b(text, digest_size=16).hexdigest()
