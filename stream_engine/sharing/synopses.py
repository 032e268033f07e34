"""All synopses of a site that could be shared, and the stores of the shared ones."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from stream_engine.circuit.circuit import Circuit
from stream_engine.state.wakeups import Wakeups

if TYPE_CHECKING:
    from stream_engine.sharing.slots import Slot, Store

LONGEST_WAIT = 1_024
"""Steps after which a synopsis that differs from all stores is compared with them again."""

MOST_COMPARED = 8
"""Stores and private synopses that one is compared with at a time."""

_ROUND = 64
"""Steps between two checks of whether a stub wants to leave."""

_MOST_CHECKED = 64
"""Max groups of a check; they take turns."""


@dataclass(frozen=True, slots=True)
class StoreReport:
    """A store.

    Attributes:
        number: Unique at the site; numbers are not used again.
        kind: "time" (windows by time), "rows" (windows by count) or "index" (join sides).
        holds: The plan of its rows, as EXPLAIN writes it.
        rows: Of all stubs together.
    """

    number: int
    kind: str
    holds: str
    rows: int
    stubs: int


@dataclass(frozen=True, slots=True)
class SynopsisReport:
    """A synopsis that could be shared; `store` is the number of its store, None if private."""

    query: str
    entity: str
    rows: int
    store: int | None


@dataclass(slots=True, eq=False)
class _Group:
    """Synopses of equal key; after `wait` steps those that are apart are compared again."""

    slots: "list[Slot]" = field(default_factory=list)
    wait: int = 1

    def stores(self) -> "list[Store]":
        """Return the stores in use, oldest first."""
        found = {
            slot.stub.store.number: slot.stub.store for slot in self.slots if slot.stub is not None
        }
        return [found[number] for number in sorted(found)]

    @property
    def is_together(self) -> bool:
        """Whether there is nothing to compare."""
        private = sum(slot.stub is None for slot in self.slots)
        return len(self.stores()) + private < 2


class Synopses:
    """The synopses of a site; equal ones of one key are kept once between steps.

    A synopsis is private as long as no other has the same rows. It is compared with others when its
    query starts, and again after 1, 2, 4, … steps, because queries that start at different times
    over a log come to have the same rows only when their windows have moved on. Work: that of
    comparing contents, at those times; nothing in other steps, however many synopses there are.
    """

    def __init__(self) -> None:
        self._on = True
        self._slots: dict[str, list[Slot]] = {}
        self._groups: dict[Hashable, _Group] = {}
        self._stores = 0
        self._steps = 0
        self._due: Wakeups[_Group] = Wakeups()  # steps
        self._shared: OrderedDict[_Group, None] = OrderedDict()  # checked longest ago first
        self._look = _ROUND

    @property
    def on(self) -> bool:
        """Whether equal synopses are shared."""
        return self._on

    def add(self, queries: Mapping[str, Mapping[str, Circuit]]) -> None:
        """Add the circuits of queries that are about to make their first step.

        All of them get their initial rows in that step, so they may share among themselves now;
        with others only afterwards.
        """
        # Windows and stores come with the first query.
        from stream_engine.sharing.slots import slots_of

        fresh: dict[Hashable, list[Slot]] = {}
        for query, circuits in queries.items():
            slots = self._slots[query] = list(slots_of(query, circuits))
            for slot in slots:
                self._groups.setdefault(slot.key, _Group()).slots.append(slot)
                fresh.setdefault(slot.key, []).append(slot)
        if not self._on:
            return
        for key, slots in fresh.items():
            self._join_stores([], slots)
            group = self._groups[key]
            group.wait = 1
            self._plan(group, self._steps + 1)

    def release(self, query: str) -> None:
        """Let a query's synopses go; stores that are of no more use end."""
        from stream_engine.sharing.slots import release

        for slot in self._slots.pop(query, ()):
            if slot.stub is not None:
                release(slot.stub)
            group = self._groups[slot.key]
            group.slots.remove(slot)
            if group.slots:
                _end_lone_stores(group)
            else:
                del self._groups[slot.key]
                self._due.set(group, None)
                self._shared.pop(group, None)

    def switch(self, *, on: bool) -> None:
        """Share from now on, or let every synopsis have rows of its own."""
        if on == self._on:
            return
        self._on = on
        for group in self._groups.values():
            if on:
                group.wait = 1
                self._gather(group)
            else:
                for slot in group.slots:
                    if slot.stub is not None:
                        slot.leave()

    def settle(self) -> None:
        """Do what is due after a step."""
        self._steps += 1
        if not self._on:
            return
        if self._steps >= self._look:
            self._look = self._steps + _ROUND
            for group in list(islice(self._shared, _MOST_CHECKED)):
                self._shared.move_to_end(group)
                if _let_go(group):
                    group.wait = 1
                    self._due.set(group, self._steps)
        for group in self._due.take_due(self._steps):
            self._gather(group)

    def _gather(self, group: _Group) -> None:
        """Share equal synopses; note when to compare again."""
        _end_lone_stores(group)
        if not group.is_together:
            private = [slot for slot in group.slots if slot.stub is None]
            self._join_stores(group.stores()[:MOST_COMPARED], private)
            self._merge_stores(group)
        group.wait = min(2 * group.wait, LONGEST_WAIT)
        self._plan(group, None if group.is_together else self._steps + group.wait)

    def _plan(self, group: _Group, due: int | None) -> None:
        """Note in which step to compare a group again, and whether it shares anything now."""
        self._due.set(group, due)
        if any(slot.stub is not None for slot in group.slots):
            self._shared.setdefault(group)
        else:
            self._shared.pop(group, None)

    def _join_stores(self, stores: "list[Store]", private: "Iterable[Slot]") -> None:
        """Let private synopses join a store, or another private one to begin a store with."""
        alone: list[Slot] = []
        for slot in private:
            if _join(slot, stores):
                continue
            for other in alone[:MOST_COMPARED]:
                store, first = other.found(self._stores + 1)
                second = slot.admitted(store)
                if second is not None:
                    self._stores += 1
                    other.use(first)
                    slot.use(second)
                    stores.append(store)
                    alone.remove(other)
                    break
            else:
                alone.append(slot)

    def _merge_stores(self, group: _Group) -> None:
        """Let the stubs of a store that has come to hold what an older one holds change over."""
        from stream_engine.sharing.slots import release

        stores = group.stores()[:MOST_COMPARED]
        for position in range(len(stores) - 1, 0, -1):
            later = stores[position]
            for slot in [s for s in group.slots if s.stub is not None and s.stub.store is later]:
                old = slot.stub
                if old is None or not _join(slot, stores[:position]):
                    break
                release(old)
        _end_lone_stores(group)

    def stores(self) -> list[StoreReport]:
        """Return the stores, oldest first."""
        first = {slot.stub.store.number: slot for slot in self._all() if slot.stub is not None}
        return [
            StoreReport(number, slot.kind, slot.label, stub.store.rows(), len(stub.store.stubs))
            for number, slot in sorted(first.items())
            if (stub := slot.stub) is not None
        ]

    def synopses(self) -> list[SynopsisReport]:
        """Return all synopses that could be shared, query by query."""
        return [
            SynopsisReport(
                slot.query,
                slot.entity,
                slot.rows(),
                None if slot.stub is None else slot.stub.store.number,
            )
            for slot in self._all()
        ]

    def _all(self) -> "Iterable[Slot]":
        return (slot for slots in self._slots.values() for slot in slots)


def _join(slot: "Slot", stores: "Iterable[Store]") -> bool:
    """Let a slot use a stub of the first store that admits it."""
    for store in stores:
        stub = slot.admitted(store)
        if stub is not None:
            slot.use(stub)
            return True
    return False


def _let_go(group: _Group) -> bool:
    """Let stubs leave that want to; return whether there were any."""
    leaving = [slot for slot in group.slots if slot.stub is not None and slot.stub.wants_out]
    for slot in leaving:
        slot.leave()
    _end_lone_stores(group)
    return bool(leaving)


def _end_lone_stores(group: _Group) -> None:
    """Make the last synopsis of a store private."""
    for slot in group.slots:
        if slot.stub is not None and len(slot.stub.store.stubs) == 1:
            slot.leave()
