"""Rows of one alarm: when they appeared, raised the alarm, were acknowledged, and went.

Pure: rows and times are handed in. A row that appears waits for the alarm's hold time, then it is
raised. A raised row that goes is cleared, or unknown where a gateway that may have fed it is away;
an unknown row is decided when the answer is complete again. A cleared row is history once somebody
has acknowledged it. The life cycle follows ISA-18.2, with "unknown" added for the lost source.
"""

import enum
from collections.abc import Callable, Iterable, Mapping

import msgspec

from streamsql.catalog.notice_definitions import AlarmDefinition
from streamsql.data.types import Row, Value

MAX_OPEN = 1_000
"""Open rows of an alarm that are kept; more are counted only."""
MAX_UNACKNOWLEDGED = 1_000
"""Cleared rows of an alarm that are kept for somebody to acknowledge; then the oldest go."""
MAX_HISTORY = 200
"""Cleared and acknowledged rows of an alarm that are kept."""


class AlarmState(enum.StrEnum):
    """State of a row of an alarm."""

    WAITING = "waiting"  # there, but not for long enough
    RAISED = "raised"
    ACKNOWLEDGED = "acknowledged"  # raised, and somebody has seen it
    UNKNOWN = "unknown"  # was raised; the site that would tell is away
    CLEARED = "cleared"


class AlarmRow(msgspec.Struct, frozen=True):
    """A row that an alarm's query has or had. Times are microseconds.

    Attributes:
        since: When the row appeared.
        raised: When it had been there for long enough.
        acknowledged: When somebody said that they have seen it.
        cleared: When it went.
        unknown: Since when nobody can tell whether it is there; None where that is known.
    """

    id: int
    alarm: str
    row: tuple[Value, ...]
    state: AlarmState
    since: int
    raised: int | None = None
    acknowledged: int | None = None
    cleared: int | None = None
    unknown: int | None = None

    @property
    def needs_acknowledgement(self) -> bool:
        """Whether it was raised and nobody has said that they have seen it."""
        return self.acknowledged is None and self.state != AlarmState.WAITING


class AlarmBook:
    """The open rows of one alarm, those to be acknowledged, and the last of the others.

    Bounded by `MAX_OPEN`, `MAX_UNACKNOWLEDGED` and `MAX_HISTORY` rows.

    Args:
        definition: The alarm.
        next_id: Gives a number that no row of any alarm ever had.
        known: What was known before a restart.

    Attributes:
        unlisted: Rows beyond the bound of open rows, which are not kept.
        dropped: Cleared rows that nobody had acknowledged when newer ones took their place.
        holds_back: Whether new rows wait, because the answer is being filled again.
    """

    def __init__(
        self,
        definition: AlarmDefinition,
        next_id: Callable[[], int],
        known: Iterable[AlarmRow] = (),
    ) -> None:
        self.definition = definition
        self.unlisted = 0
        self.dropped = 0
        self.holds_back = False
        self._next_id = next_id
        self._open: dict[Row, AlarmRow] = {}
        self._waiting: set[Row] = set()
        self._unknown: set[Row] = set()
        # Rows that were unknown and came back while a site was still away: it may feed them too.
        self._doubted: set[Row] = set()
        self._unacknowledged: dict[int, AlarmRow] = {}
        self._history: dict[int, AlarmRow] = {}
        self._changed: dict[int, AlarmRow | None] = {}
        for entry in sorted(known, key=lambda entry: entry.id):
            self._take(entry)

    @property
    def rows(self) -> tuple[AlarmRow, ...]:
        """All rows: open ones, cleared ones to be acknowledged, the others; each newest first."""
        opened = sorted(self._open.values(), key=lambda entry: -entry.id)
        cleared = (*reversed(self._unacknowledged.values()), *reversed(self._history.values()))
        return (*opened, *cleared)

    @property
    def raised(self) -> int:
        """Number of rows that have raised the alarm and are known to be there."""
        return len(self._open) - len(self._waiting) - len(self._unknown)

    @property
    def waiting(self) -> int:
        """Number of rows that have not been there for long enough."""
        return len(self._waiting)

    @property
    def unknown(self) -> int:
        """Number of rows that have raised the alarm and may be there or not."""
        return len(self._unknown)

    @property
    def unacknowledged(self) -> int:
        """Number of rows that nobody has acknowledged, cleared ones included."""
        opened = sum(entry.needs_acknowledgement for entry in self._open.values())
        return opened + len(self._unacknowledged)

    @property
    def since(self) -> int | None:
        """When the oldest of the raised and unknown rows was raised."""
        raised = (entry.raised for entry in self._open.values())
        return min((at for at in raised if at is not None), default=None)

    @property
    def has_unknown(self) -> bool:
        """Whether rows wait for `decide`."""
        return bool(self._unknown or self._doubted)

    @property
    def has_room_again(self) -> bool:
        """Whether rows are left out that there is room for by now: call `meet`."""
        return self.unlisted > 0 and len(self._open) < MAX_OPEN

    def meet(self, relation: Mapping[Row, int], now: int, *, in_doubt: bool = False) -> None:
        """Ingest the whole answer, whatever was known before."""
        self.unlisted = 0
        self.follow(dict.fromkeys((*self._open, *relation)), relation, now, in_doubt=in_doubt)

    def follow(
        self,
        touched: Iterable[Row],
        relation: Mapping[Row, int],
        now: int,
        *,
        in_doubt: bool = False,
    ) -> None:
        """Ingest that rows may have come or gone.

        Args:
            touched: The rows in question; others are as before.
            relation: The answer: row to its multiplicity.
            now: When.
            in_doubt: Rows that go may have gone because a site is away.
        """
        for row in touched:
            is_there = relation.get(row, 0) > 0
            entry = self._open.get(row)
            if is_there and entry is None:
                self._appeared(row, now)
            elif is_there and row in self._unknown:
                self._returned(row, in_doubt=in_doubt)
            elif not is_there and entry is not None and row not in self._unknown:
                self._went(row, now, in_doubt=in_doubt or row in self._doubted)
        self.look(now)

    def decide(self, relation: Mapping[Row, int], now: int) -> None:
        """Clear the unknown rows that are not in the answer, which is complete again."""
        self._doubted.clear()
        for row in sorted(self._unknown, key=lambda row: self._open[row].id):
            if relation.get(row, 0) > 0:
                self._returned(row, in_doubt=False)
            else:
                self._clear(row, now)

    def look(self, now: int) -> None:
        """Raise what has been there for long enough."""
        for row in tuple(self._waiting):
            self._raise_if_due(row, now)

    def acknowledge(self, number: int, now: int) -> AlarmRow:
        """Note that somebody has seen a row that was raised; a second time changes nothing.

        Raises:
            KeyError: No row of this number has been raised.
        """
        if number in self._history:
            return self._history[number]
        found = self._unacknowledged.pop(number, None)
        if found is not None:
            found = msgspec.structs.replace(found, acknowledged=now)
            self._changed[number] = found
            self._remember(found)
            return found
        found = next((entry for entry in self._open.values() if entry.id == number), None)
        if found is None or found.state == AlarmState.WAITING:
            raise KeyError(number)
        if found.acknowledged is None:
            found = msgspec.structs.replace(found, state=_seen(found.state), acknowledged=now)
            self._note(found)
        return found

    def acknowledge_all(self, now: int) -> int:
        """Note that somebody has seen all rows that were raised; return how many are new."""
        numbers = [entry.id for entry in self._open.values() if entry.needs_acknowledgement]
        numbers += self._unacknowledged
        for number in numbers:
            self.acknowledge(number, now)
        return len(numbers)

    def take_changes(self) -> dict[int, AlarmRow | None]:
        """Return the rows that are to be stored, and the numbers to be discarded, once."""
        changed, self._changed = self._changed, {}
        return changed

    def _take(self, entry: AlarmRow) -> None:
        if entry.state == AlarmState.CLEARED:
            kept = self._unacknowledged if entry.acknowledged is None else self._history
            kept[entry.id] = entry
            return
        self._open[entry.row] = entry
        if entry.state == AlarmState.WAITING:
            self._waiting.add(entry.row)
        elif entry.state == AlarmState.UNKNOWN:
            self._unknown.add(entry.row)

    def _appeared(self, row: Row, now: int) -> None:
        if len(self._open) >= MAX_OPEN:
            self.unlisted += 1
            return
        self._waiting.add(row)
        name = self.definition.name
        self._note(AlarmRow(self._next_id(), name, row, AlarmState.WAITING, now))

    def _returned(self, row: Row, *, in_doubt: bool) -> None:
        entry = self._open[row]
        self._unknown.discard(row)
        if in_doubt:
            self._doubted.add(row)
        state = AlarmState.RAISED if entry.acknowledged is None else AlarmState.ACKNOWLEDGED
        self._note(msgspec.structs.replace(entry, state=state, unknown=None))

    def _raise_if_due(self, row: Row, now: int) -> None:
        entry = self._open[row]
        due = entry.since + self.definition.hold
        if now < due or self.holds_back:
            return
        self._waiting.discard(row)
        self._note(msgspec.structs.replace(entry, state=AlarmState.RAISED, raised=due))

    def _went(self, row: Row, now: int, *, in_doubt: bool) -> None:
        if row in self._waiting:
            self._raise_if_due(row, now)
        if row in self._waiting:  # it was not there for long enough: nothing has happened
            self._waiting.discard(row)
            self._changed[self._open.pop(row).id] = None
        elif in_doubt:
            self._doubted.discard(row)
            self._unknown.add(row)
            entry = self._open[row]
            self._note(msgspec.structs.replace(entry, state=AlarmState.UNKNOWN, unknown=now))
        else:
            self._clear(row, now)

    def _clear(self, row: Row, now: int) -> None:
        self._unknown.discard(row)
        entry = self._open.pop(row)
        cleared = msgspec.structs.replace(
            entry, state=AlarmState.CLEARED, cleared=now, unknown=None
        )
        self._changed[cleared.id] = cleared
        if cleared.acknowledged is not None:
            self._remember(cleared)
            return
        self._unacknowledged[cleared.id] = cleared
        if len(self._unacknowledged) > MAX_UNACKNOWLEDGED:
            self.dropped += 1
            self._drop_oldest(self._unacknowledged)

    def _remember(self, entry: AlarmRow) -> None:
        self._history[entry.id] = entry
        if len(self._history) > MAX_HISTORY:
            self._drop_oldest(self._history)

    def _drop_oldest(self, kept: dict[int, AlarmRow]) -> None:
        oldest = next(iter(kept))
        del kept[oldest]
        self._changed[oldest] = None

    def _note(self, entry: AlarmRow) -> None:
        self._open[entry.row] = entry
        self._changed[entry.id] = entry


def _seen(state: AlarmState) -> AlarmState:
    return AlarmState.ACKNOWLEDGED if state == AlarmState.RAISED else state
