"""The alarms of a federation: their running queries, the rows that raised them, and the catalog.

An alarm is a running query of origin "alarm". Its rows are followed change by change, so that one
that comes and goes at once is not missed; until the query has heard of all its sites after a
restart of the coordinator, what was raised before stays raised.

A row that goes while a site that may feed it is away is unknown, not cleared: from the moment the
site is away until the query has settled, with the site or without it, that is, until every receiver
has retracted what the site had sent, or has it again. What goes later is cleared. Unknown rows are
decided when all sites of the query are back and it has settled.

While a site that is back fills the answer again, rows pass that never held, as every count up to
the true one: new rows wait until the query has settled, for `REFILL_MICROSECONDS` at most.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping

from federated_optimizer.alarm_book import AlarmBook, AlarmRow
from federated_optimizer.coordinator.contract.coordinator_model import AlarmInfo, alarm_info
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.sites.membership import Membership
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from host.clocks import Clock, monotonic_clock
from streamsql.catalog.notices import AlarmDefinition
from streamsql.data.delta import Delta
from streamsql.errors import FederationError

log = logging.getLogger(__name__)

ORIGIN = "alarm"
REFILL_MICROSECONDS = 15_000_000
"""A query that many readings keep from settling raises alarms all the same after this time."""


class _Followed:
    """One alarm: its query and its book."""

    def __init__(
        self,
        query: RunningQuery,
        book: AlarmBook,
        membership: Membership,
        clock: Clock,
    ) -> None:
        self.query = query
        self.book = book
        self.is_met = False
        self._membership = membership
        self._clock = clock
        # Sites that are away and whose rows the answer has been without since before.
        self._missing: frozenset[str] = frozenset()
        self._last_away: frozenset[str] = frozenset()
        # A site was away, and the query has not settled since: when the site is back its rows may
        # still be retracted (a base that gave it up says so only when it is back itself).
        self._is_unsettled = False
        self._refilled_since: int | None = None
        query.result.on_change = self._changed

    def look(self) -> None:
        """Meet the answer once it is there, raise what is due, and decide what was unknown."""
        result = self.query.result
        away = self._look_at_sites()
        if not self.is_met:
            if not self.query.started or result.held or not result.is_synchronised:
                return
            self.is_met = True
            self.book.meet(result.view, self.now, in_doubt=bool(away) or result.is_partial)
        elif self.book.has_room_again:
            self.book.meet(result.view, self.now, in_doubt=self._is_in_doubt)
        self.book.look(self.now)
        if not self.query.is_settled(self._membership):
            self._missing &= away
            return
        self._missing, self._is_unsettled = away, False
        self._refilled_since, self.book.holds_back = None, False
        self.book.look(self.now)
        if not away and self.query.started and self.book.has_unknown:
            self.book.decide(result.view, self.now)

    @property
    def now(self) -> int:
        """The time in the answer: in a replay the recording's, not ours."""
        return self.query.result.time.at(self._clock())

    @property
    def away(self) -> frozenset[str]:
        """The sites that feed the alarm and are not known to be there."""
        sites = self.query.engine_sites
        return frozenset(site for site in sites if not self._membership.is_in_touch(site))

    def _look_at_sites(self) -> frozenset[str]:
        """Return the sites that are away; note whether one that is back fills the answer again."""
        away, moment = self.away, monotonic_clock()
        if self._last_away - away:
            self._refilled_since = moment
        self._last_away = away
        self._is_unsettled = self._is_unsettled or not away <= self._missing
        since = self._refilled_since
        self.book.holds_back = since is not None and moment - since < REFILL_MICROSECONDS
        return away

    @property
    def _is_in_doubt(self) -> bool:
        is_whole = self.query.started and not self.query.result.is_partial
        return not is_whole or self._is_unsettled

    def _changed(self, delta: Delta) -> None:
        self._look_at_sites()
        if self.is_met:
            result = self.query.result
            self.book.follow(delta, result.view, self.now, in_doubt=self._is_in_doubt)


class Alarms:
    """All alarms. Everything but writing to the catalog is done at once.

    Args:
        queries: Where their queries run.
        membership: Which sites are there.
        store: Keeps their rows.
        clock: Wall-clock microseconds.
    """

    def __init__(
        self,
        queries: Queries,
        membership: Membership,
        store: CatalogStore,
        clock: Clock,
    ) -> None:
        self._queries = queries
        self._membership = membership
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
        self._followed[definition.name] = _Followed(query, book, self._membership, self._clock)

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
            log.warning("the last changes of alarms are not saved: %s", error.message)

    def infos(self) -> tuple[AlarmInfo, ...]:
        """Return all alarms, in the order they were made."""
        return tuple(self._info(followed) for followed in self._followed.values())

    def acknowledge(self, number: int) -> AlarmRow:
        """Note that somebody has seen a row that raised an alarm, cleared or not.

        Raises:
            KeyError: No row of this number has been raised.
        """
        for followed in self._followed.values():
            try:
                return followed.book.acknowledge(number, followed.now)
            except KeyError:
                continue
        raise KeyError(number)

    def acknowledge_all(self, alarm: str) -> int:
        """Note that somebody has seen all rows of an alarm; return how many are new.

        Raises:
            KeyError: There is no such alarm.
        """
        followed = self._followed[alarm]
        return followed.book.acknowledge_all(followed.now)

    def _number(self) -> int:
        number, self._next = self._next, self._next + 1
        return number

    def _info(self, followed: _Followed) -> AlarmInfo:
        query = followed.query
        away = tuple(sorted(followed.away)) if followed.book.has_unknown else ()
        return alarm_info(followed.book, query.bundle.schema, query.id, str(query.status), away)
