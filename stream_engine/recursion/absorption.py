"""The rows a site derives, with what it knows of their support (MinShip semantics).

Of every row a part of the annotation has been *sent* on: into the local recursion for the rows of
this site's partition, to another site for the rest. The first derivation is sent at once. With the
lazy policy alternatives are buffered, and sent one witness at a time when what was sent has died,
before the row is given up; with the eager policy they are sent as they come.

The number of buffered supports per row is bounded. A row that had to drop some is *incomplete*:
when everything kept has died it becomes a suspect, which the caller derives again from the join
state.
"""

import enum
from collections.abc import Callable, Collection, Iterable
from typing import Any

from stream_engine.provenance.annotation import AnnotationEncoding, AnnotationTooWideError
from stream_engine.recursion.probing import Annotated
from stream_engine.recursion.tables import Item
from streamsql.data.types import Row

_REBUILD_SLACK = 20_000


class Shipping(enum.StrEnum):
    """When alternative derivations of a row are sent on.

    LAZY: one witness when the last one has died. EAGER: as soon as they are not absorbed by what
    was sent. SHIP_ALL: as EAGER, and between sites even what is absorbed (a baseline).
    """

    LAZY = "lazy"
    EAGER = "eager"
    SHIP_ALL = "ship-all"


class Entry(Item):
    """A derived row.

    Attributes:
        sent: What was sent on; None for a row held back by aggregate selection.
        buffered: Local alternatives not sent, or None.
        received: Annotations from other sites not sent on; never dropped, as their senders count
            on them.
        complete: Whether no derivation was ever dropped.
    """

    __slots__ = ("buffered", "complete", "received")

    def __init__(self, row: Row, sent: Any) -> None:
        super().__init__(row, sent)
        self.buffered: Any = None
        self.received: list[Any] = []
        self.complete = True


Keep = Callable[[Entry, Any], None]


class AbsorptionTable:
    """Derived rows of one purpose: the partition of this site, or rows for other sites.

    State: one entry per row, and for every token the entries that mention it, so that a kill costs
    what it touches.

    Attributes:
        released: Entries with what is to be sent on now; taken by the caller.
        suspects: Rows that died although derivations had been dropped; taken by the caller.
        dropped: How many derivations were dropped for width.
    """

    def __init__(self, encoding: AnnotationEncoding[Any], shipping: Shipping) -> None:
        self.encoding = encoding
        self.shipping = shipping
        self.entries: dict[Row, Entry] = {}
        self.released: list[tuple[Entry, Any]] = []
        self.suspects: list[Row] = []
        self.dropped = 0
        self._holders: dict[int, set[Entry]] = {}
        self._mentions = 0
        self._rebuild_at = _REBUILD_SLACK

    # -- what subclasses react to -------------------------------------------------------------

    def entered(self, entry: Entry) -> None:
        """React to a row that has support now."""

    def left(self, entry: Entry) -> None:
        """React to a row that has lost all support."""

    # -- derivations --------------------------------------------------------------------------

    def merge(self, derived: Iterable[Annotated]) -> None:
        """Add derivations made here: pairs of row and annotation."""
        entries, implies = self.entries, self.encoding.implies
        lazy = self.shipping is Shipping.LAZY
        for row, annotation in derived:
            entry = entries.get(row)
            if entry is None:
                self._first(row, annotation)
            elif implies(annotation, entry.sent):
                if self.shipping is Shipping.SHIP_ALL:
                    self.absorbed_again(entry, annotation)
            elif lazy:
                self._buffer(entry, annotation)
            else:
                self._send_more(entry, annotation, self._buffer)

    def merge_received(self, derived: Iterable[Annotated]) -> None:
        """Add derivations another site has sent; none of them is dropped."""
        for row, annotation in derived:
            entry = self.entries.get(row)
            if entry is None:
                self._first(row, annotation)
            else:
                self._offer(entry, annotation, self._receive)

    def _offer(self, entry: Entry, annotation: Any, keep: Keep) -> None:
        """Add a derivation to an entry that has sent something."""
        if self.encoding.implies(annotation, entry.sent):
            return
        if self.shipping is Shipping.LAZY:
            keep(entry, annotation)
        else:
            self._send_more(entry, annotation, keep)

    def absorbed_again(self, entry: Entry, annotation: Any) -> None:
        """React to a derivation that what was sent absorbs (ship-all only)."""

    def _first(self, row: Row, annotation: Any) -> None:
        entry = self.entries[row] = Entry(row, annotation)
        self._mention(entry, annotation)
        self.released.append((entry, annotation))
        self.entered(entry)

    def _buffer(self, entry: Entry, annotation: Any) -> None:
        buffered = entry.buffered
        if buffered is None:
            entry.buffered = annotation
        elif self.encoding.implies(annotation, buffered):
            return
        else:
            try:
                entry.buffered = self.encoding.disjoin(buffered, annotation)
            except AnnotationTooWideError as error:
                entry.buffered = error.narrower
                entry.complete = False
                self.dropped += 1
        self._mention(entry, annotation)

    def _send_more(self, entry: Entry, annotation: Any, keep: Keep) -> None:
        """Send what is new at once; hold it back (`keep`) when too much was sent already."""
        new = self.encoding.difference(annotation, entry.sent)
        try:
            entry.sent = self.encoding.disjoin(entry.sent, new)
        except AnnotationTooWideError:
            keep(entry, new)
            return
        self._mention(entry, new)
        self.released.append((entry, new))

    def _receive(self, entry: Entry, annotation: Any) -> None:
        implies = self.encoding.implies
        if not any(implies(annotation, held) for held in entry.received):
            entry.received = [h for h in entry.received if not implies(h, annotation)]
            entry.received.append(annotation)
            self._mention(entry, annotation)

    # -- deaths -------------------------------------------------------------------------------

    def kill(self, dead: Collection[int]) -> int:
        """Set tokens to false; return how many entries that touched.

        Entries whose sent part died send an alternative on; those without one leave.
        """
        touched: dict[Entry, None] = {}
        for token in dead:
            holders = self._holders.pop(token, None)
            if holders is not None:
                self._mentions -= len(holders)
                touched.update(dict.fromkeys(holders))
        for entry in touched:
            if self.entries.get(entry.row) is entry:
                self._restrict(entry, dead)
        return len(touched)

    def _restrict(self, entry: Entry, dead: Collection[int]) -> None:
        encoding = self.encoding
        self._restrict_alternatives(entry, dead)
        sent = encoding.restrict(entry.sent, dead)
        if sent is entry.sent:
            return
        entry.sent = sent
        if encoding.is_false(sent) and not self.promote(entry):
            self._forget(entry)

    def _restrict_alternatives(self, entry: Entry, dead: Collection[int]) -> None:
        encoding = self.encoding
        if entry.buffered is not None:
            buffered = encoding.restrict(entry.buffered, dead)
            entry.buffered = None if encoding.is_false(buffered) else buffered
        if entry.received:
            received = [encoding.restrict(held, dead) for held in entry.received]
            entry.received = [held for held in received if not encoding.is_false(held)]

    def promote(self, entry: Entry) -> bool:
        """Send one buffered witness of an entry whose sent part has died, if there is one."""
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
            entry.buffered = None if encoding.is_false(rest) else rest
        if entry.received:
            entry.received = [h for h in entry.received if not encoding.implies(h, found)]
        self.released.append((entry, found))
        return True

    def _forget(self, entry: Entry) -> None:
        del self.entries[entry.row]
        self.left(entry)
        if not entry.complete:
            self.suspects.append(entry.row)

    # -- the index from tokens to entries -----------------------------------------------------

    def tokens(self) -> Iterable[int]:
        """Return all tokens that annotations mention, and perhaps some that none does any more."""
        return self._holders.keys()

    def restrict_released(self, dead: Collection[int]) -> None:
        """Set tokens to false in what is to be sent on."""
        encoding = self.encoding
        parts = [(entry, encoding.restrict(part, dead)) for entry, part in self.released]
        self.released = [(entry, part) for entry, part in parts if not encoding.is_false(part)]

    def _mention(self, entry: Entry, annotation: Any) -> None:
        holders = self._holders
        for token in self.encoding.tokens(annotation):
            found = holders.get(token)
            if found is None:
                holders[token] = {entry}
            else:
                found.add(entry)
            self._mentions += 1
        if self._mentions > self._rebuild_at:
            self._rebuild_holders()

    def _rebuild_holders(self) -> None:
        """Drop mentions of annotations that are gone; amortized, as the bound then doubles."""
        self._holders = {}
        self._mentions = 0
        for entry in self.entries.values():
            for annotation in self.annotations(entry):
                for token in self.encoding.tokens(annotation):
                    self._holders.setdefault(token, set()).add(entry)
        self._mentions = sum(map(len, self._holders.values()))
        self._rebuild_at = 2 * self._mentions + _REBUILD_SLACK

    def annotations(self, entry: Entry) -> list[Any]:
        """Return the parts of an entry's annotation."""
        parts = [entry.sent, entry.buffered, *entry.received]
        return [part for part in parts if part is not None]

    def clear(self) -> None:
        """Drop everything."""
        self.entries = {}
        self.released = []
        self.suspects = []
        self._holders = {}
        self._mentions = 0
