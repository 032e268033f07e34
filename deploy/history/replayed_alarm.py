"""An alarm on the past: when its rows raise it, are cleared, or become unknown."""

import itertools
from collections.abc import Iterator

from federated_optimizer.alarm_life_cycle import AlarmBook, AlarmRow, AlarmState
from federated_optimizer.coordinator.trials.history_runner import HistoryAlarm
from streamsql.catalog.notice_definitions import AlarmDefinition
from streamsql.data.delta import Delta


class ReplayedAlarm:
    """The life cycle of live alarms, in which nobody acknowledges anything.

    Rows that go while a gateway is away are unknown; they are decided when all are back.
    """

    def __init__(self, definition: AlarmDefinition) -> None:
        self._book = AlarmBook(definition, itertools.count(1).__next__)
        self._told: dict[int, AlarmState] = {}

    def follow(self, delta: Delta, view: Delta, now: int, *, away: bool) -> Iterator[HistoryAlarm]:
        """Ingest a change of the query's rows, and the passage of time; yield what happens.

        Args:
            delta: The rows that come or go.
            view: All rows there are then.
            now: Microseconds since 1970 UTC.
            away: Whether a gateway that feeds the query is away.
        """
        book = self._book
        if book.has_room_again:
            book.meet(view, now, in_doubt=away)
        book.follow(delta, view, now, in_doubt=away)
        if not away and book.has_unknown:
            book.decide(view, now)
        changed = [entry for entry in book.take_changes().values() if entry is not None]
        for entry in sorted(changed, key=_time_of):
            if entry.state != AlarmState.WAITING and self._told.get(entry.id) != entry.state:
                yield from self._told_of(entry)

    def _told_of(self, entry: AlarmRow) -> Iterator[HistoryAlarm]:
        before = self._told.get(entry.id)
        if before is None and entry.state != AlarmState.RAISED:
            yield HistoryAlarm(entry.raised or entry.since, AlarmState.RAISED, entry.row)
        if entry.state == AlarmState.CLEARED:
            self._told.pop(entry.id, None)
        else:
            self._told[entry.id] = entry.state
        yield HistoryAlarm(_time_of(entry), entry.state, entry.row)

    @property
    def unlisted(self) -> int:
        """Number of rows that are there and not followed, because there are too many."""
        return self._book.unlisted


def _time_of(entry: AlarmRow) -> int:
    match entry.state:
        case AlarmState.CLEARED:
            return entry.cleared or entry.since
        case AlarmState.UNKNOWN:
            return entry.unknown or entry.since
        case _:
            return entry.raised or entry.since
