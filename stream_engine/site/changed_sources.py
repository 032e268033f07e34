"""Rows and events of a source whose definition has changed, by the names of its columns."""

from collections.abc import Callable, Iterable

from stream_engine.state.source_relation import TimedDelta
from streamsql.algebra.operators import Scan
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Field
from streamsql.data.types import Row

Conversion = Callable[[SourceEvent], SourceEvent | None]


def conversion(old: Scan, new: Scan) -> Conversion:
    """Return what makes an event of an old definition one of the new.

    A column keeps its value where the old definition has one of its name, type and unit; else it is
    NULL. The event time stays. An event whose key has a NULL by then is none any more.

    Args:
        old: The definition that the event was made for.
        new: The one that counts now.
    """
    before = {meaning: place for place, meaning in enumerate(_meanings(old))}
    places = [before.get(meaning) for meaning in _meanings(new)]
    time, key = new.time_column, new.key

    def converted(event: SourceEvent) -> SourceEvent | None:
        values = [None if place is None else event.row[place] for place in places]
        if time is not None:
            values[time] = event.ts
        if any(values[position] is None for position in key):
            return None
        return SourceEvent(tuple(values), event.ts, event.delete)

    return converted


def carried_over(old: Scan, new: Scan, rows: TimedDelta) -> list[SourceEvent]:
    """Return the rows that a source keeps when its definition changes, as events.

    Those of a keyed source stay if its key does: each is the newest of its key, and would else be
    missing until its device reports again. Rows of a bag are past readings of another definition.
    """
    if not old.key or _key(old) != _key(new):
        return []
    convert = conversion(old, new)
    return present(convert(SourceEvent(row, ts)) for ts, row in sorted(rows, key=_time))


def present(events: Iterable[SourceEvent | None]) -> list[SourceEvent]:
    """Return the events that are some."""
    return [event for event in events if event is not None]


def _time(timed: tuple[int, Row]) -> int:
    return timed[0]


def _key(scan: Scan) -> frozenset[tuple[str, str]]:
    """Return the names of a key's columns with their units."""
    units = _units(scan)
    return frozenset((scan.columns.names[position], units[position]) for position in scan.key)


def _meanings(scan: Scan) -> list[tuple[Field, str]]:
    """Return what makes the values of one column those of another: name, type and unit."""
    return list(zip(scan.columns.fields, _units(scan), strict=True))


def _units(scan: Scan) -> tuple[str, ...]:
    return scan.units or ("",) * len(scan.columns)
