"""The rows of one alarm: since when they are there, when they raised it, when they went.

Pure: rows and times are handed in. A row that appears waits until it has been there for as long as
the alarm says, then it is raised; when it goes it is cleared and becomes history.
"""

import enum
from collections import deque
from collections.abc import Callable, Iterable, Mapping

import msgspec

from streamsql.catalog.notices import AlarmDefinition
from streamsql.data.types import Row, Value

MAX_OPEN = 1_000
"""Rows of an alarm that are followed at once; more are counted only."""
MAX_HISTORY = 200
"""Rows of an alarm that are remembered after they were cleared."""


class AlarmState(enum.StrEnum):
    """Where a row of an alarm stands."""

    WAITING = "waiting"  # there, but not for long enough
    RAISED = "raised"
    ACKNOWLEDGED = "acknowledged"  # raised, and somebody has seen it
    CLEARED = "cleared"


class AlarmRow(msgspec.Struct, frozen=True):
    """A row that an alarm's query has or had. Times are microseconds.

    Attributes:
        since: When the row appeared.
        raised: When it had been there for long enough.
        acknowledged: When somebody said that they have seen it.
        cleared: When it went.
    """

    id: int
    alarm: str
    row: tuple[Value, ...]
    state: AlarmState
    since: int
    raised: int | None = None
    acknowledged: int | None = None
    cleared: int | None = None


class AlarmBook:
    """The open rows of one alarm, and the last ones that were cleared.

    Bounded: `MAX_OPEN` rows are followed, `MAX_HISTORY` remembered.

    Args:
        definition: The alarm.
        next_id: Gives a number that no row of any alarm ever had.
        known: What was known before a restart.

    Attributes:
        unlisted: Rows there are beyond the bound, which are not followed.
    """

    def __init__(
        self,
        definition: AlarmDefinition,
        next_id: Callable[[], int],
        known: Iterable[AlarmRow] = (),
    ) -> None:
        self.definition = definition
        self.unlisted = 0
        self._next_id = next_id
        self._open: dict[Row, AlarmRow] = {}
        self._waiting: set[Row] = set()
        self._history: deque[AlarmRow] = deque(maxlen=MAX_HISTORY)
        self._changed: dict[int, AlarmRow | None] = {}
        for entry in sorted(known, key=lambda entry: entry.id):
            self._take(entry)

    @property
    def rows(self) -> tuple[AlarmRow, ...]:
        """All rows, open ones first, each newest first."""
        opened = sorted(self._open.values(), key=lambda entry: -entry.id)
        return (*opened, *reversed(self._history))

    @property
    def raised(self) -> int:
        """How many rows have raised the alarm and are still there."""
        return len(self._open) - len(self._waiting)

    @property
    def has_room_again(self) -> bool:
        """Whether rows are left out that there is room for by now: call `meet`."""
        return self.unlisted > 0 and len(self._open) < MAX_OPEN

    def meet(self, relation: Mapping[Row, int], now: int) -> None:
        """Take the answer as it is, whatever was known before."""
        self.unlisted = 0
        self.follow({*self._open, *relation}, relation, now)

    def follow(self, touched: Iterable[Row], relation: Mapping[Row, int], now: int) -> None:
        """Take in that rows may have come or gone.

        Args:
            touched: The rows in question; others are as before.
            relation: The answer: row to how often it is there.
            now: When.
        """
        for row in touched:
            is_there = relation.get(row, 0) > 0
            if is_there and row not in self._open:
                self._appeared(row, now)
            elif not is_there and row in self._open:
                self._went(row, now)
        self.look(now)

    def look(self, now: int) -> None:
        """Raise what has been there for long enough."""
        for row in tuple(self._waiting):
            self._raise_if_due(row, now)

    def acknowledge(self, number: int, now: int) -> AlarmRow:
        """Take note that somebody has seen a raised row.

        Raises:
            KeyError: No open row of this number is raised.
        """
        found = next((entry for entry in self._open.values() if entry.id == number), None)
        if found is None or found.state not in (AlarmState.RAISED, AlarmState.ACKNOWLEDGED):
            raise KeyError(number)
        if found.state == AlarmState.RAISED:
            found = msgspec.structs.replace(found, state=AlarmState.ACKNOWLEDGED, acknowledged=now)
            self._note(found)
        return found

    def take_changes(self) -> dict[int, AlarmRow | None]:
        """Return the rows that are to be stored, and the numbers to be forgotten, once."""
        changed, self._changed = self._changed, {}
        return changed

    def _take(self, entry: AlarmRow) -> None:
        if entry.state == AlarmState.CLEARED:
            self._history.append(entry)
            return
        self._open[entry.row] = entry
        if entry.state == AlarmState.WAITING:
            self._waiting.add(entry.row)

    def _appeared(self, row: Row, now: int) -> None:
        if len(self._open) >= MAX_OPEN:
            self.unlisted += 1
            return
        self._waiting.add(row)
        name = self.definition.name
        self._note(AlarmRow(self._next_id(), name, row, AlarmState.WAITING, now))

    def _raise_if_due(self, row: Row, now: int) -> None:
        entry = self._open[row]
        due = entry.since + self.definition.hold
        if now < due:
            return
        self._waiting.discard(row)
        self._note(msgspec.structs.replace(entry, state=AlarmState.RAISED, raised=due))

    def _went(self, row: Row, now: int) -> None:
        if row in self._waiting:
            self._raise_if_due(row, now)
        entry = self._open.pop(row)
        if row in self._waiting:  # it was not there for long enough: nothing has happened
            self._waiting.discard(row)
            self._changed[entry.id] = None
            return
        cleared = msgspec.structs.replace(entry, state=AlarmState.CLEARED, cleared=now)
        if len(self._history) == MAX_HISTORY:
            self._changed[self._history[0].id] = None
        self._history.append(cleared)
        self._changed[cleared.id] = cleared

    def _note(self, entry: AlarmRow) -> None:
        self._open[entry.row] = entry
        self._changed[entry.id] = entry
