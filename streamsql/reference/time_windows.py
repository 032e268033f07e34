"""Windows over a time column of any relation: hopping (and tumbling) ones, and sessions."""

from typing import Any

from streamsql.algebra.operators import HopWindow, SessionWindow
from streamsql.algebra.scalar import key_of
from streamsql.data.types import Row


def hops(plan: HopWindow, rows: list[Row]) -> list[Row]:
    """Return each row once per window that holds its time."""
    result: list[Row] = []
    for row in rows:
        time: Any = row[plan.time]
        if time is None:
            continue
        start = (time - plan.offset) // plan.hop * plan.hop + plan.offset
        while start + plan.size > time:
            result.append((*row, start, start + plan.size))
            start -= plan.hop
    return result


def sessions(plan: SessionWindow, rows: list[Row]) -> list[Row]:
    """Return each row with the bounds of its session."""
    key = key_of(plan.partition)
    partitions: dict[Row, list[Row]] = {}
    for row in rows:
        if row[plan.time] is not None:
            partitions.setdefault(key(row), []).append(row)
    result: list[Row] = []
    for members in partitions.values():
        times: list[Any] = sorted({row[plan.time] for row in members})
        bounds: dict[Any, tuple[int, int]] = {}
        session: list[Any] = []
        for time in (*times, None):
            if session and (time is None or time - session[-1] >= plan.gap):
                bounds.update(dict.fromkeys(session, (session[0], session[-1] + plan.gap)))
                session = []
            session.append(time)
        result.extend(row + bounds[row[plan.time]] for row in members)
    return result
