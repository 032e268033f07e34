"""Times at which tables are read, and problems of tables.

A table that a query reads is read when it is first needed, when its file's size or time of change
differs, and after its `refresh` interval. Of the others only the options and the presence of the
file are checked, so that a typing error shows before a query needs the table.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from static_engine.sources.databases.database_groups import NoGroupsError
from static_engine.sources.declared_options import TableOptions, table_options
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Fingerprint
from static_engine.sources.table_parts import Narrowed
from static_engine.tables.table_store import (
    SHRUNKEN_SECONDS,
    TableChangedError,
    TableShrunkenError,
    TableStore,
)
from streamsql.catalog.definitions import SourceDefinition

log = logging.getLogger(__name__)

_SETTLE_SECONDS = 0.2
_RETRY_SECONDS = 30.0
_RETRY_FACTOR = 5
"""A reading that fails after a long time is tried again after this many times that long."""
_SLOW_SECONDS = 5.0
_UNUSED_SECONDS = 600.0
GROUPS_AGAIN_SECONDS = 600.0
"""A database that has computed no groups is asked again after this; the pause doubles each time."""
MOST_GROUPS_SECONDS = 86_400.0


@dataclass(slots=True)
class _Watched:
    """One table.

    Attributes:
        problem: Why it cannot be read, or None.
        tried: The state of its files at the last attempt, successful or not.
        attempted: Whether there was one since the files were last missing.
        due: When to read it again even if nothing seems to have changed.
        in_use: Whether a query needs it.
        used: When a query last needed it.
        unsettled: Whether its file was changing at the last poll.
        revision: How often somebody has asked to read it again.
        shrunken: Since when it has lost nearly all of its rows, or None.
        may_shrink: Whether it may have lost nearly all of its rows since the last reading: it was
            changed through us.
        accepted: Whether somebody takes what is there now, though it has lost nearly all rows.
    """

    definition: SourceDefinition
    problem: TableError | None = None
    tried: Fingerprint | None = None
    attempted: bool = False
    due: float = float("inf")
    in_use: bool = False
    used: float = float("-inf")
    unsettled: bool = False
    revision: int = 0
    shrunken: float | None = None
    may_shrink: bool = False
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class _Ungrouped:
    """A table of which its database has computed no groups.

    Attributes:
        definition: Of the table then.
        until: When its database may be asked again.
        pause: Seconds from the last failure to then.
    """

    definition: SourceDefinition
    until: float
    pause: float


class TableWatch:
    """Keeps a `TableStore` up to date. `poll` belongs to one thread, the rest to any.

    Args:
        store: The tables.
        clock: Seconds, monotonic.
        pause: How the watch waits for a file that is just being written.
    """

    def __init__(
        self,
        store: TableStore,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._clock = clock
        self._pause = pause
        self._tables: dict[str, _Watched] = {}
        self._parts: dict[str, tuple[Narrowed, _Watched]] = {}
        self._ungrouped: dict[str, _Ungrouped] = {}
        self._slow = False  # whether this poll has waited in vain for a server

    def define(self, definitions: tuple[SourceDefinition, ...]) -> None:
        """Watch exactly these tables; those that are new or different count as unread."""
        kept: dict[str, _Watched] = {}
        for definition in definitions:
            known = self._tables.get(definition.name)
            same = known is not None and known.definition == definition
            kept[definition.name] = known if known and same else _Watched(definition)
        self._tables = kept
        self._ungrouped = {
            name: refused
            for name, refused in self._ungrouped.items()
            if name in kept and kept[name].definition == refused.definition
        }

    def narrow(self, parts: Mapping[str, Narrowed]) -> None:
        """Watch exactly these parts of tables, too; by their names."""
        self._parts = {
            name: self._parts[name]
            if name in self._parts and self._parts[name][0] == part
            else (part, _Watched(part.definition))
            for name, part in parts.items()
        }

    @property
    def names(self) -> frozenset[str]:
        """Names of all defined tables."""
        return frozenset(self._tables)

    def definition(self, name: str) -> SourceDefinition | None:
        """Return the definition of a table, or None."""
        watched = self._tables.get(name)
        return watched.definition if watched is not None else None

    def life(self, name: str) -> object:
        """Return what is another object once the table was dropped or defined in another way."""
        return self._tables.get(name)

    def is_grouped(self, name: str) -> bool:
        """A table's database may be asked for groups, but for a while after it computed none."""
        refused = self._ungrouped.get(name)
        is_asked = refused is None or self._clock() >= refused.until
        return is_asked and name in self._tables

    def revision(self, name: str) -> int:
        """Return how often somebody has asked to read a table again."""
        watched = self._tables.get(name)
        return watched.revision if watched is not None else 0

    def problem(self, name: str) -> TableError | None:
        """Return why a table cannot be read at present, or None."""
        if name in self._parts:
            return self._problem_of_part(*self._parts[name])
        watched = self._tables.get(name)
        if watched is None:
            hint = "create the table, or drop the query"
            return TableError(f"there is no table {name}", hint=hint)
        return watched.problem

    @staticmethod
    def _problem_of_part(part: Narrowed, watched: _Watched) -> TableError | None:
        error = watched.problem
        if error is None:
            return None
        if isinstance(error, TableShrunkenError):
            return TableShrunkenError(part.table, error.before, error.found)
        text = error.message.replace(part.definition.name, part.table)
        return TableError(text, hint=error.hint, code=error.code)

    def problems(self) -> dict[str, TableError]:
        """Return the problems of all tables that have one, also where only a part is read."""
        parts = [(part.table, self.problem(n)) for n, (part, _) in list(self._parts.items())]
        found = [(name, watched.problem) for name, watched in list(self._tables.items())]
        return {name: problem for name, problem in (*parts, *found) if problem is not None}

    def served(self, name: str) -> int | None:
        """Return how many rows of a table, or of a part of it, queries have; None: none yet."""
        parts = [n for n, (part, _) in list(self._parts.items()) if part.table == name]
        stored = [self._store.find(each) for each in (name, *parts)]
        return max((table.row_count for table in stored if table is not None), default=None)

    def is_unsettled(self, name: str) -> bool:
        """Return whether a table's file was changing at the last poll."""
        watched = self._tables.get(name)
        return watched is not None and watched.unsettled

    def read_again(self, name: str, *, accept: bool = False) -> bool:
        """Make a table due now; return whether it is defined. An empty name means all.

        Args:
            name: The table.
            accept: Whether to take what is there now of one that has lost nearly all of its rows,
                and to ask its database for groups though it has computed none.
        """
        for refused in [n for n in list(self._ungrouped) if accept and name in ("", n)]:
            self._ungrouped.pop(refused, None)
        chosen = [w for n, w in list(self._tables.items()) if name in ("", n)]
        parts = list(self._parts.values())
        chosen += [watched for part, watched in parts if name in ("", part.table)]
        for watched in chosen:
            watched.due = float("-inf")
            watched.revision += 1
            # Of one that is missing: what comes back may be half written.
            watched.accepted = accept and isinstance(watched.problem, TableShrunkenError)
        return bool(chosen)

    def changed(self, name: str) -> None:
        """Make a table due that was changed by us, and all others of its database.

        Triggers and references may have changed those, too, and a server does not report it.
        """
        self.read_again(name)
        watched = self._tables.get(name)
        own = [watched] if watched is not None else []
        for one in [*own, *(w for part, w in self._parts.values() if part.table == name)]:
            one.may_shrink = True
        url = watched.definition.option("url") if watched is not None else None
        known = [*self._tables.values(), *(watched for _, watched in self._parts.values())]
        for other in [w for w in known if url is not None]:
            if other.definition.option("url") == url:
                other.due = float("-inf")
                other.revision += 1
                other.may_shrink = True

    def poll(self, used: frozenset[str]) -> bool:
        """Poll every table and read those that are due; return whether anything changed.

        Args:
            used: Tables that queries read.
        """
        before = self.problems()
        changed = False
        self._slow = False
        for name, watched in list(self._tables.items()):
            changed |= self._poll(watched, used=name in used)
        for name, (part, watched) in list(self._parts.items()):
            changed |= self._poll(watched, used=name in used, part=part)
        for name in self._store.names - self._tables.keys() - self._parts.keys():
            self._store.discard(name)
        after = self.problems()
        return changed or {n: str(p) for n, p in before.items()} != {
            n: str(p) for n, p in after.items()
        }

    def _poll(self, watched: _Watched, *, used: bool, part: Narrowed | None = None) -> bool:
        watched.unsettled = False
        try:
            options = table_options(watched.definition)
            seen = self._store.print_of(watched.definition)
        except TableError as error:
            watched.problem = error
            watched.attempted = False  # as soon as it is back, it is read
            return False
        if used:
            if not watched.in_use and seen is None:
                watched.due = float("-inf")  # nobody looked at the server meanwhile
            watched.in_use, watched.used = True, self._clock()
            if seen is None and self._slow:
                # One that does not answer is enough: others have their turn between two of them.
                watched.unsettled = True
                return False
            return self._is_due(watched, seen) and self._read(watched, options, seen, part)
        watched.in_use = False
        if watched.problem is not None:  # nobody looks whether it has ended: who needs it reads it
            watched.problem, watched.attempted = None, False
        if self._clock() - watched.used > _UNUSED_SECONDS:
            self._store.discard(watched.definition.name)
            watched.attempted = False
        return False

    def _is_due(self, watched: _Watched, seen: Fingerprint | None) -> bool:
        if self._clock() >= watched.due:
            return True
        tried = watched.attempted and watched.tried == seen
        stored = self._store.find(watched.definition.name)
        if stored is None or stored.definition != watched.definition:
            return not tried
        if stored.fingerprint == seen:
            if not tried:  # it was gone for a while and is back as it was
                watched.problem, watched.attempted, watched.tried = None, True, seen
            return False
        if tried:
            return False
        self._pause(_SETTLE_SECONDS)  # a file that still grows is looked at next time
        try:
            watched.unsettled = self._store.print_of(watched.definition) != seen
        except TableError:
            watched.unsettled = True
        return not watched.unsettled

    def _read(
        self,
        watched: _Watched,
        options: TableOptions,
        seen: Fingerprint | None,
        part: Narrowed | None,
    ) -> bool:
        watched.attempted, watched.tried = True, seen
        # Who asks while it is read wants what it holds from then on: it is read once more.
        due, watched.due = watched.due, float("inf")
        began = self._clock()
        try:
            changed = self._load(watched, part)
        except TableShrunkenError as error:
            watched.problem, watched.due = error, min(watched.due, self._shrunken(watched))
            return False
        except NoGroupsError as error:
            log.info("%s; its rows are read", error.message)
            if part is not None:
                self._refused(part.table)
            watched.attempted, watched.due = False, min(watched.due, due)
            return False
        except TableChangedError:
            watched.attempted, watched.unsettled = False, True
            watched.due = min(watched.due, due)
            return False
        except Exception as error:  # noqa: BLE001 - one table must not stop the others
            unknown = f"table {watched.definition.name}: {type(error).__name__}: {error}"
            watched.problem = error if isinstance(error, TableError) else TableError(unknown)
            # A server or a file may be repaired without a trace that we could see.
            took = self._clock() - began
            self._slow |= seen is None and took > _SLOW_SECONDS
            pause = max(_RETRY_SECONDS, _RETRY_FACTOR * took)
            watched.due = min(watched.due, self._clock() + pause)
            return False
        watched.problem, watched.shrunken, watched.may_shrink = None, None, False
        if part is not None and part.groups is not None:
            self._ungrouped.pop(part.table, None)
        interval = options.refresh if options.refresh is not None else float("inf")
        watched.due = min(watched.due, self._clock() + interval)
        return changed

    def _refused(self, name: str) -> None:
        """Ask a table's database for no groups for a while."""
        definition, before = self.definition(name), self._ungrouped.get(name)
        if definition is not None:
            double = GROUPS_AGAIN_SECONDS if before is None else 2 * before.pause
            pause = min(double, MOST_GROUPS_SECONDS)
            self._ungrouped[name] = _Ungrouped(definition, self._clock() + pause, pause)

    def _load(self, watched: _Watched, part: Narrowed | None) -> bool:
        long = watched.shrunken is not None and self._clock() >= self._shrunken(watched)
        filtered = part is not None and (bool(part.conditions) or part.groups is not None)
        accepted, watched.accepted = watched.accepted, False  # for this attempt
        if watched.may_shrink or accepted or filtered or long:
            return self._store.load(watched.definition, part, may_shrink=True)
        return self._store.load(watched.definition, part)

    def _shrunken(self, watched: _Watched) -> float:
        """Return when it is taken for true that a table has lost nearly all of its rows."""
        if watched.shrunken is None:
            watched.shrunken = self._clock()
        return watched.shrunken + SHRUNKEN_SECONDS
