"""Aggregates that users bring: a class with init, step, retract, merge and final."""

from typing import Any, ClassVar

from typing_extensions import override

from stream_engine.operators.aggregates.accumulator import Accumulator, Changes
from streamsql.algebra.operators import AggregateCall
from streamsql.algebra.user_functions import INSTALLED
from streamsql.data.types import Row, Value


class _Slot:
    """One group.

    Attributes:
        state: What the class made of the rows, or None when it has to be made anew.
        stale: Whether it has.
        kept: Rows of arguments with their weights.
        skipped: Those of them that `step` refuses.
    """

    __slots__ = ("kept", "skipped", "stale", "state")
    UNSAVED: ClassVar[dict[str, Any]] = {"state": None, "stale": True}
    """Whatever the class made: after a restart it is made anew from `kept`."""

    def __init__(self, state: Any) -> None:
        self.state = state
        self.stale = False
        self.kept: dict[Row, int] = {}
        self.skipped: set[Row] = set()


class UserAccumulator(Accumulator):
    """A user's aggregate under insertion and deletion.

    A row that comes is a `step`, one that goes a `retract`. Where `retract` raises (a maximum, say,
    cannot take back its greatest value), the group is computed again from its rows when its result
    is next wanted. A row that `step` refuses is skipped, and its going too.

    State: the class's, and the group's distinct rows of arguments, because only with them can a
    group be computed again. Work: one call a changed copy and one `final` a touched group; one
    `step` a row of the group after a `retract` that raised.
    """

    def __init__(self, call: AggregateCall, position: int) -> None:
        self._aggregate = INSTALLED.aggregate(call.implementation, call.dtype)
        self._arguments = slice(position, position + len(call.arguments))
        self._distinct = call.distinct

    @override
    def empty(self) -> _Slot:
        return _Slot(self._aggregate.init())

    @override
    def update(self, slot: _Slot, changes: Changes) -> _Slot:
        takes, arguments, kept = self._aggregate.takes, self._arguments, slot.kept
        for row, weight in changes:
            values = row[arguments]
            if not takes(values):
                continue
            old = kept.get(values, 0)
            new = old + weight
            if new:
                kept[values] = new
            else:
                kept.pop(values, None)
            if not slot.stale:
                self._change(slot, values, self._copies(new) - self._copies(old))
            if new <= 0:
                slot.skipped.discard(values)
        return slot

    @override
    def result(self, slot: _Slot) -> Value:
        if slot.stale:
            slot.state = self._aggregate.init()
            slot.stale = False
            slot.skipped.clear()
            for values, weight in slot.kept.items():
                self._change(slot, values, self._copies(weight))
        return self._aggregate.final(slot.state)

    @override
    def rows(self, slot: _Slot) -> int:
        return len(slot.kept)

    def _copies(self, weight: int) -> int:
        return max(min(weight, 1) if self._distinct else weight, 0)

    def _change(self, slot: _Slot, values: Row, copies: int) -> None:
        if values in slot.skipped:
            return
        aggregate = self._aggregate
        for _copy in range(copies):
            slot.state, taken = aggregate.step(slot.state, values)
            if not taken:
                slot.skipped.add(values)
                return
        for _copy in range(-copies):
            slot.state, taken = aggregate.retract(slot.state, values)
            if not taken:
                slot.state = None  # it may have been changed before it failed
                slot.stale = True
                return
