"""Which rows of an ordered partition get other values from window functions when rows change.

Places count copies from 0. A change of an entry is looked at twice: in the partition as it was and
as it is. Whether a row that stays is reached depends on the nearest change before and behind it
only, and the copies between are the same both times; so the same rows are reached in both.
"""

from collections.abc import Callable
from dataclasses import dataclass

from streamsql.algebra.operators import WindowCall, WindowFunction
from streamsql.algebra.over_windows import run_starts

Interval = tuple[int, int]
"""Places from the first to before the second."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a changed entry stands in its partition.

    Attributes:
        start: Place of its first copy, or where it would be.
        group_changed: Whether the first rows with its keys came, or the last ones went.
        total_changed: Whether the partition has more or fewer rows than before.
    """

    start: int
    end: int
    peers: Interval
    total: int
    group_changed: bool
    total_changed: bool


Reach = Callable[[Spot], Interval | None]


def reach_of(call: WindowCall) -> Reach | None:
    """Return which rows besides the changed ones a call has other values for.

    None for an aggregate over whole partitions: all rows, if its value is another; and for NTILE,
    see `around_run_starts`.
    """
    match call.function:
        case WindowFunction.ROW_NUMBER:
            return lambda spot: (spot.start, spot.total)
        case WindowFunction.RANK:
            return lambda spot: (spot.peers[1], spot.total)
        case WindowFunction.DENSE_RANK:
            return lambda spot: (spot.peers[1], spot.total) if spot.group_changed else None
        case WindowFunction.PERCENT_RANK:
            return lambda spot: (0 if spot.total_changed else spot.peers[1], spot.total)
        case WindowFunction.CUME_DIST:
            return lambda spot: (0 if spot.total_changed else spot.peers[0], spot.total)
        case WindowFunction.NTILE:
            return None
        case WindowFunction.LAG | WindowFunction.LEAD:
            return _neighbours(call.shift, call.shift)
        case WindowFunction.FIRST_VALUE:
            return _of_first(call)
        case WindowFunction.LAST_VALUE:
            return _of_last(call)
        case WindowFunction.NTH_VALUE:
            return _of_nth(call)
        case WindowFunction.AGGREGATE:
            frame = call.frame
            if frame.is_whole:
                return None
            return _peers(call) if frame.peers else _neighbours(frame.start, frame.end)


def _neighbours(first: int | None, last: int | None) -> Reach:
    """Return the rows that look at some rows around them; None: at all on that side."""
    ahead = None if last is None else max(last, 0)
    behind = None if first is None else max(-first, 0)

    def reach(spot: Spot) -> Interval:
        start = 0 if ahead is None else spot.start - ahead
        end = spot.total if behind is None else spot.end + behind
        return (start, end)

    return reach


def _peers(call: WindowCall) -> Reach:
    from_start, to_end = call.frame.start is None, call.frame.end is None

    def reach(spot: Spot) -> Interval:
        first, behind = spot.peers
        return (0 if to_end else first, spot.total if from_start else behind)

    return reach


def _of_first(call: WindowCall) -> Reach:
    frame = call.frame
    if frame.start is None:
        if not frame.peers and frame.end is not None and frame.end < 0:
            return _neighbours(None, frame.end)  # some frames are empty
        return lambda spot: (0, spot.total) if spot.start == 0 else None
    return (lambda spot: spot.peers) if frame.peers else _neighbours(frame.start, frame.start)


def _of_last(call: WindowCall) -> Reach:
    frame = call.frame
    if frame.end is None:
        if not frame.peers and frame.start is not None and frame.start > 0:
            return _neighbours(frame.start, None)
        return lambda spot: (0, spot.total) if spot.end == spot.total else None
    return (lambda spot: spot.peers) if frame.peers else _neighbours(frame.end, frame.end)


def _of_nth(call: WindowCall) -> Reach:
    frame, before = call.frame, call.number - 1
    if frame.start is None:
        # All frames begin with the partition: they show the same row, if they hold it. Frames that
        # end before their row come to hold it by rows behind it as well.
        filled = _neighbours(frame.end, 0) if (frame.end or 0) < 0 else None

        def reach(spot: Spot) -> Interval | None:
            if spot.start <= before:
                return (0, spot.total)
            return None if filled is None else filled(spot)

        return reach
    if frame.peers:
        to_end = frame.end is None
        return lambda spot: (spot.start - before if to_end else spot.peers[0], spot.peers[1])
    # Frames that would begin before the partition begin with it, and so show a row further ahead.
    last = max(frame.start, 0) + before
    return _neighbours(frame.start, last if frame.end is None else min(last, frame.end))


def around_run_starts(runs: int, total: int, changed: int) -> list[Interval]:
    """Return the places of a partition whose rows may get another number from NTILE.

    Where `changed` rows come and go, a row's place moves by no more than that, and so does where a
    run begins: only rows as near to such a place as both together change sides.

    Examples:
        >>> around_run_starts(4, 100, 1), around_run_starts(4, 10, 1)
        ([(23, 27), (48, 52), (73, 77)], [(0, 10)])
    """
    near = 2 * changed
    if 2 * near * min(runs, total) >= total:
        return [(0, total)]
    return [(start - near, start + near) for start in run_starts(runs, total)]


def merged(intervals: list[Interval], total: int) -> list[Interval]:
    """Return intervals in order, inside the partition and without overlaps.

    Examples:
        >>> merged([(4, 9), (-2, 1), (5, 6), (1, 2)], 8)
        [(0, 2), (4, 8)]
    """
    result: list[Interval] = []
    for start, end in sorted(intervals):
        low, high = max(start, 0), min(end, total)
        if low >= high:
            continue
        if result and low <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], high))
        else:
            result.append((low, high))
    return result
