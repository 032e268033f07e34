"""The bounds of a window at a site, told again only when a row crosses one of them by time."""

from collections.abc import Callable

from typing_extensions import override

from stream_engine.operators.rows.operator import TimedOperator
from stream_engine.operators.windows.stretches import ALWAYS, stretch_of
from stream_engine.state.source_relation import TimedDelta, TimedRow
from streamsql.algebra.operators import WindowBounds
from streamsql.algebra.scalar_functions.scalar import compile_predicate
from streamsql.data.delta import Delta, add
from streamsql.data.types import Row
from streamsql.errors import InternalError


class WindowBoundsOperator(TimedOperator):
    """One row: after which event time a window holds rows, and until which; see `WindowBounds`.

    Of all rows of the source, those within the bounds that were told last are those that the window
    holds. So they are told when a row enters or leaves, and when one comes on the other side of
    them than of the bounds of now: a late one, which has never been in.

        now     10           15           20             window [RANGE 10]
        input   {(5, a): 1}
        output  {(0, -): 1}               nothing: a stays until 15 + ...

    State: the event times of rows that are in or will be, with how many rows have them. Work: O(1)
    a changed row (O(log) for a new event time), and O(1) a step at which rows enter or leave.
    """

    def __init__(self, plan: WindowBounds) -> None:
        stretch = stretch_of(plan)
        self._at: Callable[[int], tuple[int, int]] = stretch.at
        self._window = stretch.alone()
        self._holds = None if plan.predicate is None else compile_predicate(plan.predicate)
        self._told: tuple[int, int] | None = None
        self._now = 0

    @override
    def advance(self, now: int) -> Delta:
        self._now = now
        moved = self._window.advance(now)
        return self._tell() if moved or self._told is None else {}

    @override
    def apply_timed(self, delta: TimedDelta) -> Delta:
        if self._told is None:
            raise InternalError("the time of a window comes before its rows")
        (low, high), (new_low, new_high) = self._told, self._at(self._now)
        holds = self._holds
        times: dict[TimedRow, int] = {}
        crossed = False
        for (ts, row), weight in delta.items():
            if holds is None or holds(row):
                timed = (ts, (ts,))
                times[timed] = times.get(timed, 0) + weight
                crossed = crossed or (low < ts <= high) != (new_low < ts <= new_high)
        self._window.apply_timed({timed: weight for timed, weight in times.items() if weight})
        return self._tell() if crossed else {}

    def _tell(self) -> Delta:
        """Return the change from the bounds that were told to those of now."""
        old, self._told = self._told, self._at(self._now)
        change: Delta = {_row(self._told): 1}
        if old is not None:
            add(change, _row(old), -1)
        return change

    @override
    def next_wakeup(self) -> int | None:
        return self._window.next_wakeup()

    @override
    def state_rows(self) -> int:
        return self._window.state_rows()


def _row(bounds: tuple[int, int]) -> Row:
    """Return bounds as a row; a stretch without an end has no second bound."""
    low, high = bounds
    return (max(low, -ALWAYS), None if high == ALWAYS else high)
