"""The sessions of a partition of few times: found anew from its rows whenever one changes.

Most partitions of sessions are of this kind. Putting a few numbers in order takes less than keeping
them so, and they need no room beside their rows.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from stream_engine.state.indexed_relation import Bucket, add_row, rows_in
from streamsql.data.delta import Delta, difference
from streamsql.data.types import Row

Rows = dict[int, Bucket]
"""The rows of a partition by time."""

Bounds = tuple[int, int]
"""Start and end of a session."""


def sessions_of(times: Iterable[int], gap: int) -> dict[int, Bounds]:
    """Return the bounds of the session of each time, in order of the times.

    Examples:
        >>> sessions_of([8, 1, 4], 4)
        {1: (1, 8), 4: (1, 8), 8: (8, 12)}
    """
    found: dict[int, Bounds] = {}
    session: list[int] = []
    for time in sorted(times):
        if session and time - session[-1] >= gap:
            found.update(dict.fromkeys(session, (session[0], session[-1] + gap)))
            session = []
        session.append(time)
    if session:
        found.update(dict.fromkeys(session, (session[0], session[-1] + gap)))
    return found


def change_few(
    rows: Rows, changes: list[tuple[Row, int]], position: int, gap: int, result: Delta
) -> None:
    """Take changed rows into a partition.

    Times that are there before or after are looked at in runs that no gap interrupts: what changes
    in one run shows in no other. Work: O(times log times) to put them in order, the rest in the
    length of the runs with a changed time.
    """
    by_time: dict[Any, Delta] = {}
    for row, weight in changes:
        time: Any = row[position]
        if time in by_time:
            by_time[time][row] = weight
        else:
            by_time[time] = {row: weight}
    came: set[int] = set()
    ordered = list(rows)
    for time, changed in by_time.items():
        if time not in rows:
            came.add(time)
            ordered.append(time)
        for row, weight in changed.items():
            add_row(rows, time, row, weight)
    ordered.sort()
    last = len(ordered) - 1
    while by_time:
        time = next(iter(by_time))
        low = high = bisect_left(ordered, time)
        while low and ordered[low] - ordered[low - 1] < gap:
            low -= 1
        while high < last and ordered[high + 1] - ordered[high] < gap:
            high += 1
        if low == high:
            bounds = (time, time + gap)
            for row, weight in by_time.pop(time).items():
                result[row + bounds] = weight
        else:
            _show_run(ordered[low : high + 1], rows, by_time, came, gap, result)


def _show_run(  # noqa: PLR0913, PLR0917  (a part of `change_few`)
    run: list[int],
    rows: Rows,
    by_time: dict[Any, Delta],
    came: set[int],
    gap: int,
    result: Delta,
) -> None:
    """Show what has changed of the times of a run, and take its changes out of `by_time`."""
    before = sessions_of([time for time in run if time not in came], gap)
    now = sessions_of([time for time in run if time in rows], gap)
    for time in run:
        old, new = before.get(time), now.get(time)
        changed = by_time.pop(time, None)
        if old == new:  # touched, but as before: only its own changes show
            if changed is not None and new is not None:
                for row, weight in changed.items():
                    result[row + new] = weight
            continue
        kept = rows_in(rows.get(time))
        if new is not None:
            for row, weight in kept:
                result[row + new] = weight
        if old is not None:
            if changed is not None:
                kept = difference(dict(kept), changed).items()
            for row, weight in kept:
                result[row + old] = -weight
