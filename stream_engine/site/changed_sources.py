"""Rows and events of a source whose definition has changed, by the names of its columns."""

from collections.abc import Callable, Collection, Iterable

from stream_engine.state.source_relation import TimedDelta
from streamsql.algebra.operators import Scan
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row

Conversion = Callable[[SourceEvent], SourceEvent | None]


def conversion(old: Scan, new: Scan, afresh: Collection[str] = ()) -> Conversion:
    """Return what makes an event of an old definition one of the new.

    A column keeps its value where the old definition has one of its name and type; else it is NULL.
    The event time stays. An event whose key has a NULL by then is none any more.

    Args:
        old: The definition that the event was made for.
        new: The one that counts now.
        afresh: Columns whose values mean something else now, such as one in another unit.
    """
    before = {field: place for place, field in enumerate(old.columns.fields)}
    places = [None if field.name in afresh else before.get(field) for field in new.columns.fields]
    time, key = new.time_column, new.key

    def converted(event: SourceEvent) -> SourceEvent | None:
        values = [None if place is None else event.row[place] for place in places]
        if time is not None:
            values[time] = event.ts
        if any(values[position] is None for position in key):
            return None
        return SourceEvent(tuple(values), event.ts, event.delete)

    return converted


def carried_over(
    old: Scan, new: Scan, rows: TimedDelta, afresh: Collection[str] = ()
) -> list[SourceEvent]:
    """Return the rows that a source keeps when its definition changes, as events.

    Those of a keyed source stay if its key does: each is the newest of its key, and would else be
    missing until its device reports again. Rows of a bag are past readings of another definition.
    """
    if not old.key or _key(old) != _key(new) or not _key(new).isdisjoint(afresh):
        return []
    convert = conversion(old, new, afresh)
    return present(convert(SourceEvent(row, ts)) for ts, row in sorted(rows, key=_time))


def replaced(scan: Scan, rows: TimedDelta, afresh: Collection[str]) -> list[SourceEvent]:
    """Return the events by which a source goes on some of whose values mean something else now.

    Rows of a keyed source lose the values; those of a bag, past readings, are withdrawn.
    """
    kept = carried_over(scan, scan, rows, afresh)
    if kept or not rows:
        return kept
    return [SourceEvent(row, ts, delete=True) for ts, row in sorted(rows, key=_time)]


def present(events: Iterable[SourceEvent | None]) -> list[SourceEvent]:
    """Return the events that are some."""
    return [event for event in events if event is not None]


def _time(timed: tuple[int, Row]) -> int:
    return timed[0]


def _key(scan: Scan) -> frozenset[str]:
    return frozenset(scan.columns.names[position] for position in scan.key)
