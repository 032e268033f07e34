"""Tables of the system that know what has changed of them: a look costs what the changes do.

Fragments that only filter such a table and choose columns are evaluated over its changes alone.
"""

from collections import deque
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from streamsql.algebra.operators import Filter, Plan, Project, Scan, walk_plan
from streamsql.data.delta import Delta, accumulate, negated
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate

MOST_LOGGED = 20_000
"""Changes that are kept for whoever looks seldom; who has missed some begins with all rows."""


@runtime_checkable
class ChangingTable(Protocol):
    """A table whose changes are known; no two of its rows are equal."""

    def __call__(self) -> tuple[Row, ...]:
        """Return its rows, the same tuple while nothing changes."""
        ...

    def look(self) -> int:
        """Take up what has happened; return a number that grows with every change."""
        ...

    def since(self, version: int) -> Delta | None:
        """Return what has changed since `look` gave a number; None: that is not known any more."""
        ...


class ChangedRows:
    """Rows by their key, and the last changes of them.

    State: the rows, and at most `MOST_LOGGED` changes.
    """

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._log: deque[tuple[int, Row, int]] = deque(maxlen=MOST_LOGGED)
        self._all: tuple[Row, ...] | None = None
        self.version = 0

    def put(self, key: str, row: Row | None) -> None:
        """Put a row in place of the one of its key; None: it is gone."""
        before = self._rows.get(key)
        if row == before:
            return
        self.version += 1
        self._all = None
        if before is not None:
            self._log.append((self.version, before, -1))
        if row is None:
            del self._rows[key]
        else:
            self._rows[key] = row
            self._log.append((self.version, row, 1))

    def keys(self) -> tuple[str, ...]:
        """Return the keys of all rows."""
        return tuple(self._rows)

    def all(self) -> tuple[Row, ...]:
        """Return all rows, the same tuple while nothing changes."""
        if self._all is None:
            self._all = tuple(self._rows.values())
        return self._all

    def since(self, version: int) -> Delta | None:
        """Return the sum of the changes after a version; None: not all of them are known."""
        if version == self.version:
            return {}
        if len(self._log) == self._log.maxlen and self._log[0][0] > version:
            return None  # changes of the next version may have been dropped
        found: Delta = {}
        for changed, row, weight in reversed(self._log):
            if changed <= version:
                break
            accumulate(found, {row: weight})
        return found


def is_linear(plan: Plan) -> bool:
    """Whether a plan only filters the rows of one relation and computes columns of each."""
    return all(isinstance(node, Scan | Filter | Project) for node in walk_plan(plan))


def changes_of(plan: Plan, changes: Mapping[str, Delta], now: int) -> Delta:
    """Return what has changed of a linear plan when these changes of tables have happened."""
    found: Delta = {}
    for sign in (-1, 1):
        database = Database()
        for table, delta in changes.items():
            rows = [row for row, weight in delta.items() if weight * sign > 0]
            database.append(table, [SourceEvent(row, now) for row in rows])
        part = evaluate(plan, database, now)
        accumulate(found, part if sign > 0 else negated(part))
    return found
