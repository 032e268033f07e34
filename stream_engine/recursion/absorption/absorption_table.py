"""The rows a site derives, with what it knows of their support (MinShip semantics).

Of every row a part of the annotation has been *sent* on: into the local recursion for the rows of
this site's partition, to another site for the rest. The first derivation is sent at once.
Alternatives are treated by policy: with WITNESS one is kept and others are not even made, because
the join state has them all; with LAZY they are buffered, and sent one witness at a time when what
was sent has died, before the row is given up; with EAGER they are sent as they come.

The number of buffered supports per row is bounded. A row that had to drop some, and with WITNESS
any row, is *incomplete*: when everything kept has died it becomes a suspect, which the caller
derives again from the join state.

Only what was sent is restricted at once when tokens die, by an index from tokens to entries, so a
kill costs what it touches. Buffers may mention dead tokens until they are needed or swept.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from stream_engine.provenance.annotation import AnnotationEncoding, AnnotationTooWideError
from stream_engine.recursion.program.item_tables import Item
from stream_engine.recursion.program.probing import Annotated
from streamsql.algebra.choices import Shipping
from streamsql.data.types import Row

_REBUILD_SLACK = 20_000


_PATIENT = (Shipping.WITNESS, Shipping.LAZY)


class Entry(Item):
    """A derived row.

    Attributes:
        sent: What was sent on, or will be once aggregate selection lets the row through.
        shown: Whether the row is in the view; false while aggregate selection holds it back.
        buffered: Local alternatives not sent, or None.
        received: Annotations from other sites not sent on; never dropped, as their senders count
            on them.
        complete: Whether no derivation was ever dropped.
    """

    __slots__ = ("buffered", "complete", "received", "shown")

    def __init__(self, row: Row, sent: Any, *, shown: bool) -> None:
        super().__init__(row, sent)
        self.shown = shown
        self.buffered: Any = None
        self.received: tuple[Any, ...] = ()
        self.complete = True


Keep = Callable[[Entry, Any], None]


class AbsorptionTable:
    """Derived rows of one purpose: the partition of this site, or rows for other sites.

    State: one entry per row, for every token the entries whose sent part mentions it, and the
    tokens that died since the last sweep.

    Attributes:
        released: Entries with what is to be sent on now; taken by the caller.
        suspects: Rows that died although derivations had been dropped; taken by the caller.
        waiting: Entries that hold alternatives back, and perhaps some that do no longer.
        saturated: With WITNESS, rows that need no further derivation: they have an alternative.
    """

    def __init__(self, encoding: AnnotationEncoding[Any], shipping: Shipping) -> None:
        self.encoding = encoding
        self.shipping = shipping
        self.entries: dict[Row, Entry] = {}
        self.released: list[tuple[Entry, Any]] = []
        self.suspects: list[Row] = []
        self.waiting: dict[Entry, None] = {}
        self.saturated: dict[Row, None] = {}
        self._dead: set[int] = set()
        self._holders: dict[int, dict[Entry, None]] = {}
        self.mentions = 0
        self._rebuild_at = _REBUILD_SLACK

    def merge(self, derived: Iterable[Annotated]) -> None:
        """Add derivations made here: pairs of row and annotation."""
        entries, implies, buffer = self.entries, self.encoding.implies, self._buffer
        lazy, witness = self.shipping is Shipping.LAZY, self.shipping is Shipping.WITNESS
        for row, annotation in derived:
            entry = entries.get(row)
            if entry is None:
                self.begin(row, annotation)
            elif witness:
                self._spare(entry, annotation)
            elif implies(annotation, entry.sent):
                if self.shipping is Shipping.SHIP_ALL:
                    self.absorbed_again(entry, annotation)
            elif lazy:
                buffer(entry, annotation)
            else:
                self._send_more(entry, annotation, buffer)

    def merge_received(self, derived: Iterable[Annotated]) -> None:
        """Add derivations another site has sent; none of them is dropped."""
        for row, annotation in derived:
            entry = self.entries.get(row)
            if entry is None:
                self.begin(row, annotation)
            elif not self.encoding.implies(annotation, entry.sent):
                if self.shipping in _PATIENT:
                    self._receive(entry, annotation)
                else:
                    self._send_more(entry, annotation, self._receive)

    def begin(self, row: Row, annotation: Any) -> None:
        """Enter a row that is not there, and send it."""
        entry = self.entries[row] = Entry(row, annotation, shown=True)
        self.mention(entry, annotation)
        self.released.append((entry, annotation))

    def absorbed_again(self, entry: Entry, annotation: Any) -> None:
        """React to a derivation that what was sent absorbs (ship-all only)."""

    def _spare(self, entry: Entry, annotation: Any) -> None:
        """Keep one alternative witness of a row that has none."""
        if entry.buffered is None and not self.encoding.implies(annotation, entry.sent):
            entry.buffered = annotation
            self.waiting[entry] = self.saturated[entry.row] = None

    def _buffer(self, entry: Entry, annotation: Any) -> None:
        encoding = self.encoding
        buffered = entry.buffered
        self.waiting[entry] = None
        if buffered is None:
            entry.buffered = annotation
        elif not encoding.implies(annotation, buffered):
            try:
                entry.buffered = encoding.disjoin(buffered, annotation)
            except AnnotationTooWideError:
                self._buffer_narrowly(entry, annotation)

    def _buffer_narrowly(self, entry: Entry, annotation: Any) -> None:
        """Make room by cutting away what is dead; failing that, drop what does not fit."""
        alive = self.encoding.restrict(entry.buffered, self._dead)
        try:
            entry.buffered = self.encoding.disjoin(alive, annotation)
        except AnnotationTooWideError as error:
            entry.buffered = error.narrower
            entry.complete = False

    def _receive(self, entry: Entry, annotation: Any) -> None:
        implies = self.encoding.implies
        if not any(implies(annotation, held) for held in entry.received):
            self._restrict_received(entry)
            kept = [held for held in entry.received if not implies(held, annotation)]
            entry.received = (*kept, annotation)
            self.waiting[entry] = None

    def _send_more(self, entry: Entry, annotation: Any, keep: Keep) -> None:
        """Send what is new at once; hold it back (`keep`) when too much was sent already."""
        new = self.encoding.difference(annotation, entry.sent)
        if self.encoding.is_false(new):
            return
        try:
            entry.sent = self.encoding.disjoin(entry.sent, new)
        except AnnotationTooWideError:
            keep(entry, new)
            return
        self.mention(entry, new)
        if entry.shown:
            self.released.append((entry, new))

    def kill(self, dead: Collection[int]) -> int:
        """Set tokens to false; return how many entries had sent something that mentions them.

        Entries whose sent part died send an alternative on; those without one leave.
        """
        self._dead.update(dead)
        touched: dict[Entry, None] = {}
        for token in dead:
            holders = self._holders.pop(token, None)
            if holders is not None:
                self.mentions -= len(holders)
                touched.update(holders)
        encoding = self.encoding
        for entry in touched:
            if self.entries.get(entry.row) is entry:
                entry.sent = encoding.restrict(entry.sent, dead)
                if encoding.is_false(entry.sent) and not self._revive(entry):
                    self.forget(entry)
        return len(touched)

    def _revive(self, entry: Entry) -> bool:
        """Send one witness of an entry whose sent part has died, if there is one."""
        self._restrict_alternatives(entry)
        encoding = self.encoding
        found = None if entry.buffered is None else encoding.witness(entry.buffered)
        for held in entry.received:
            other = encoding.witness(held)
            if found is None or encoding.size(other) < encoding.size(found):
                found = other
        if found is None:
            return False
        entry.sent = found
        if entry.buffered is not None:
            rest = encoding.difference(entry.buffered, found)
            self._set_buffered(entry, rest)
        if entry.received:
            rests = [held for held in entry.received if not encoding.implies(held, found)]
            entry.received = tuple(rests)
        self.mention(entry, found)
        if entry.shown:
            self.released.append((entry, found))
        return True

    def _restrict_alternatives(self, entry: Entry) -> None:
        encoding, dead = self.encoding, self._dead
        if entry.buffered is not None:
            self._set_buffered(entry, encoding.restrict(entry.buffered, dead))
        self._restrict_received(entry)

    def _set_buffered(self, entry: Entry, annotation: Any) -> None:
        if self.encoding.is_false(annotation):
            entry.buffered = None
            self.saturated.pop(entry.row, None)
        else:
            entry.buffered = annotation

    def _restrict_received(self, entry: Entry) -> None:
        encoding, dead = self.encoding, self._dead
        if entry.received:
            received = [encoding.restrict(held, dead) for held in entry.received]
            entry.received = tuple([held for held in received if not encoding.is_false(held)])

    def flush(self) -> None:
        """Send all that is buffered, as far as the width allows."""
        waiting, self.waiting = self.waiting, {}
        for entry in waiting:
            if self.entries.get(entry.row) is not entry:
                continue
            self._restrict_alternatives(entry)
            parts = (entry.buffered, *entry.received)
            entry.buffered, entry.received = None, ()
            for part, keep in zip(
                parts, (self._buffer, *[self._receive] * len(parts)), strict=False
            ):
                if part is not None and not self.encoding.implies(part, entry.sent):
                    self._send_more(entry, part, keep)

    def forget(self, entry: Entry) -> None:
        """Remove a row without support."""
        del self.entries[entry.row]
        self.waiting.pop(entry, None)
        self.saturated.pop(entry.row, None)
        if self.shipping is Shipping.WITNESS or not entry.complete:
            self.suspects.append(entry.row)

    def restrict_released(self, dead: Collection[int]) -> None:
        """Set tokens to false in what is to be sent on."""
        encoding = self.encoding
        parts = [(entry, encoding.restrict(part, dead)) for entry, part in self.released]
        self.released = [(entry, part) for entry, part in parts if not encoding.is_false(part)]

    def rewrite(self, rewritten: Callable[[Any], Any]) -> None:
        """Replace every annotation."""
        for entry in self.entries.values():
            entry.sent = rewritten(entry.sent)
            if entry.buffered is not None:
                entry.buffered = rewritten(entry.buffered)
            entry.received = tuple([rewritten(held) for held in entry.received])
        self.released = [(entry, rewritten(part)) for entry, part in self.released]

    def sweep(self) -> None:
        """Cut dead tokens out of every buffer; afterwards nothing mentions them."""
        for entry in list(self.waiting):
            self._restrict_alternatives(entry)
            if entry.buffered is None and not entry.received:
                del self.waiting[entry]
        self._dead = set()

    def mention(self, entry: Entry, annotation: Any) -> None:
        """Note that an entry's sent part mentions the tokens of an annotation."""
        holders = self._holders
        count = 0
        for token in self.encoding.tokens(annotation):
            found = holders.get(token)
            if found is None:
                holders[token] = {entry: None}
            else:
                found[entry] = None
            count += 1
        self.mentions += count
        if self.mentions > self._rebuild_at:
            self._rebuild_holders()

    def _rebuild_holders(self) -> None:
        """Drop mentions by what is gone; amortized, as the bound grows with what is left."""
        holders: dict[int, dict[Entry, None]] = {}
        for entry in self.entries.values():
            for token in self.encoding.tokens(entry.sent):
                holders.setdefault(token, {})[entry] = None
        self._holders = holders
        self.mentions = sum(map(len, holders.values()))
        self._rebuild_at = 2 * self.mentions + _REBUILD_SLACK

    def tokens(self) -> set[int]:
        """Return all tokens that annotations mention, and perhaps some that none does any more."""
        found = set(self._holders)
        for entry in self.entries.values():
            for part in (entry.buffered, *entry.received):
                if part is not None:
                    found.update(self.encoding.tokens(part))
        return found

    def clear(self) -> None:
        """Drop everything."""
        self.entries = {}
        self.released = []
        self.suspects = []
        self.waiting = {}
        self.saturated = {}
        self._dead = set()
        self._holders = {}
        self.mentions = 0
