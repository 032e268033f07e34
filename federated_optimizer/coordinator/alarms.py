"""The alarms of a federation: their running queries, the rows that raised them, and the catalog.

An alarm is a running query of origin "alarm". Its rows are followed change by change, so that one
that comes and goes at once is not missed; until the query has heard of all its sites after a
restart of the coordinator, what was raised before stays raised.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from federated_optimizer.alarm_book import AlarmBook, AlarmRow, AlarmState
from federated_optimizer.coordinator.catalog_store import CatalogStore
from federated_optimizer.coordinator.model import AlarmInfo
from federated_optimizer.coordinator.queries import Queries
from federated_optimizer.coordinator.running import RunningQuery
from streamsql.catalog.notices import AlarmDefinition
from streamsql.data.delta import Delta
from streamsql.errors import FederationError

log = logging.getLogger(__name__)

ORIGIN = "alarm"


class _Followed:
    """One alarm: its query and its book."""

    def __init__(self, query: RunningQuery, book: AlarmBook, clock: Callable[[], int]) -> None:
        self.query = query
        self.book = book
        self.is_met = False
        self._clock = clock
        query.result.on_change = self._changed

    def look(self) -> None:
        """Meet the answer once it is there, and raise what is due."""
        result = self.query.result
        if not self.is_met:
            if not self.query.started or result.held or not result.is_synchronised:
                return
            self.is_met = True
            self.book.meet(result.view, self.now)
        elif self.book.has_room_again:
            self.book.meet(result.view, self.now)
        self.book.look(self.now)

    @property
    def now(self) -> int:
        """The time in the answer: in a replay the recording's, not ours."""
        return self.query.result.time.at(self._clock())

    def _changed(self, delta: Delta) -> None:
        if self.is_met:
            self.book.follow(delta, self.query.result.view, self.now)


class Alarms:
    """All alarms. Everything but writing to the catalog is done at once.

    Args:
        queries: Where their queries run.
        store: Keeps their rows.
        clock: Wall-clock microseconds.
    """

    def __init__(self, queries: Queries, store: CatalogStore, clock: Callable[[], int]) -> None:
        self._queries = queries
        self._store = store
        self._clock = clock
        self._followed: dict[str, _Followed] = {}
        self._next = 1
        self._unwritten: dict[int, AlarmRow | None] = {}
        self._writing = asyncio.Lock()

    def begin(
        self, definitions: Iterable[AlarmDefinition], stored: Mapping[str, tuple[AlarmRow, ...]]
    ) -> None:
        """Follow what ran before, with what was known of it."""
        self._next = 1 + max((row.id for rows in stored.values() for row in rows), default=0)
        for definition in definitions:
            query = self._queries.find(definition.query_name)
            if query is not None:
                self.follow(definition, query, stored.get(definition.name, ()))

    def follow(
        self, definition: AlarmDefinition, query: RunningQuery, known: Iterable[AlarmRow] = ()
    ) -> None:
        """Follow an alarm whose query has been started."""
        book = AlarmBook(definition, self._number, known)
        self._followed[definition.name] = _Followed(query, book, self._clock)

    async def forget(self, definition: AlarmDefinition) -> None:
        """Forget an alarm and all its rows."""
        self._followed.pop(definition.name, None)
        async with self._writing:  # what is being written now must not outlive the alarm
            self._unwritten = {
                number: row
                for number, row in self._unwritten.items()
                if row is None or row.alarm != definition.name
            }
            await asyncio.to_thread(self._store.drop_alarm, definition.name)

    async def keep(self) -> None:
        """Raise what is due, and write what has changed to the catalog.

        Raises:
            DeploymentError: It cannot be written; it is tried again with the next call.
        """
        for followed in self._followed.values():
            followed.look()
            self._unwritten |= followed.book.take_changes()
        async with self._writing:
            if not self._unwritten:
                return
            written = dict(self._unwritten)
            await asyncio.to_thread(self._store.put_alarm_rows, written)
            self._unwritten = {
                number: row
                for number, row in self._unwritten.items()
                if number not in written or written[number] is not row
            }

    async def end(self) -> None:
        """Write what has changed since the last look: somebody may just have acknowledged a row."""
        try:
            await self.keep()
        except FederationError as error:
            log.warning("the last changes of alarms are not kept: %s", error.message)

    def infos(self) -> tuple[AlarmInfo, ...]:
        """Return all alarms, in the order they were made."""
        return tuple(self._info(followed) for followed in self._followed.values())

    def acknowledge(self, number: int) -> AlarmRow:
        """Take note that somebody has seen a raised row.

        Raises:
            KeyError: No row of this number is raised.
        """
        for followed in self._followed.values():
            try:
                return followed.book.acknowledge(number, followed.now)
            except KeyError:
                continue
        raise KeyError(number)

    def _number(self) -> int:
        number, self._next = self._next, self._next + 1
        return number

    def _info(self, followed: _Followed) -> AlarmInfo:
        book, query = followed.book, followed.query
        rows = book.rows
        opened = [row for row in rows if row.state in (AlarmState.RAISED, AlarmState.ACKNOWLEDGED)]
        return AlarmInfo(
            definition=book.definition,
            query=query.id,
            status=str(query.status),
            schema=query.bundle.schema,
            rows=rows,
            raised=len(opened),
            waiting=sum(row.state == AlarmState.WAITING for row in rows),
            unlisted=book.unlisted,
            since=min((row.raised for row in opened if row.raised is not None), default=None),
        )
