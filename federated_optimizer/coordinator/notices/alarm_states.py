"""The alarms of a federation: their running queries, the rows that raised them, and the catalog.

An alarm is a running query of origin "alarm". Its rows are followed change by change, so that one
that comes and goes at once is not missed; until the query has heard of all its sites after a
restart of the coordinator, what was raised before stays raised.

A row that goes while the answer is in doubt is unknown, not cleared. The doubt begins when a site
that may feed the alarm leaves. It ends when the query has settled, with the site or without it:
every receiver has retracted what the site had sent, or has it again. A query that never settles is
doubted for `DOUBT_MICROSECONDS` after the last site has left or returned. Unknown rows are decided
when all sites of the query are back and the doubt has ended.

While a site that is back fills the answer again, rows pass that never held, as every count up to
the true one: new rows wait until the query has settled, for `REFILL_MICROSECONDS` at most.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from federated_optimizer.alarm_book import AlarmBook, AlarmRow
from federated_optimizer.coordinator.contract.coordinator_model import AlarmInfo, alarm_info
from federated_optimizer.coordinator.coordinator_core import Core
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from host.clocks import Clock, monotonic_clock
from streamsql.catalog.notices import AlarmDefinition
from streamsql.data.delta import Delta
from streamsql.errors import FederationError

log = logging.getLogger(__name__)

REFILL_MICROSECONDS = 15_000_000
"""A query that many readings keep from settling raises alarms all the same after this time."""
# A receiver gives up a sender that left no will after TRUST_SECONDS (25 s), and retracts its rows
# after its grace time (5 s); it asks for a snapshot again after 10 s at most. Sites repeat their
# counts every 10 s. That is 50 s, and some for the way.
DOUBT_MICROSECONDS = 60_000_000
"""The time after a site has left or returned in which rows may go because of it."""


class _Followed:
    """One alarm: its query and its book."""

    def __init__(self, query: RunningQuery, book: AlarmBook, clock: Clock) -> None:
        self.query = query
        self.book = book
        self.is_met = False
        self.unsettled_since: int | None = None  # by the wall clock
        self._clock = clock
        # Sites that are away and whose rows the answer has been without since before.
        self._missing: frozenset[str] = frozenset()
        self._last_away: frozenset[str] = frozenset()
        self._last_moved = monotonic_clock()  # when a site last left or returned
        # A site was away, and the query has not settled since: when the site is back its rows may
        # still be retracted (a base that gave it up says so only when it is back itself).
        self._is_unsettled = False
        self._refilled_since: int | None = None
        query.result.on_change = self._changed
        query.on_site_left = self.site_left

    def site_left(self, site: str) -> None:
        """Doubt rows that go from now on, even if the site is back before the next look."""
        self._last_away |= {site}
        self._missing -= {site}
        self._last_moved = monotonic_clock()
        self._is_unsettled = True
        self._note_unsettled()

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
        if not self.query.is_settled() and not self._is_doubt_over(away):
            self._missing &= away
            self._note_unsettled()
            return
        self._missing, self._is_unsettled, self.unsettled_since = away, False, None
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
        return frozenset(site for site in sites if not self.query.membership.is_in_touch(site))

    def _look_at_sites(self) -> frozenset[str]:
        """Return the sites that are away; note whether one that is back fills the answer again."""
        away, moment = self.away, monotonic_clock()
        if self._last_away - away:
            self._refilled_since = moment
        if self._last_away != away:
            self._last_moved = moment
        self._last_away = away
        self._is_unsettled = self._is_unsettled or not away <= self._missing
        since = self._refilled_since
        self.book.holds_back = since is not None and moment - since < REFILL_MICROSECONDS
        return away

    def _note_unsettled(self) -> None:
        if self.unsettled_since is None:
            self.unsettled_since = self._clock()

    def _is_doubt_over(self, away: frozenset[str]) -> bool:
        """Whether an unsettled answer has its rows back, or is without them, for long enough."""
        query = self.query
        has_reports = query.flows.outdated <= away  # from all that are there, since they returned
        is_whole = query.started and not query.result.held
        return is_whole and has_reports and _is_long_ago(self._last_moved, query.result.held_since)

    @property
    def _is_in_doubt(self) -> bool:
        result = self.query.result
        is_partial = result.is_partial and not _is_long_ago(result.held_since)
        return not self.query.started or is_partial or self._is_unsettled

    def _changed(self, delta: Delta) -> None:
        self._look_at_sites()
        if self.is_met:
            result = self.query.result
            self.book.follow(delta, result.view, self.now, in_doubt=self._is_in_doubt)


def _is_long_ago(*moments: int) -> bool:
    return monotonic_clock() - max(moments) >= DOUBT_MICROSECONDS


class Alarms:
    """All alarms. Everything but writing to the catalog is done at once."""

    def __init__(self, core: Core, queries: Queries) -> None:
        self._core = core
        self._queries = queries
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
        self._followed[definition.name] = _Followed(query, book, self._core.clock)

    async def forget(self, definition: AlarmDefinition) -> None:
        """Discard an alarm and all its rows."""
        self._followed.pop(definition.name, None)
        async with self._writing:  # what is being written now must not outlive the alarm
            self._unwritten = {
                number: row
                for number, row in self._unwritten.items()
                if row is None or row.alarm != definition.name
            }
            await asyncio.to_thread(self._core.store.drop_alarm, definition.name)

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
            await asyncio.to_thread(self._core.store.put_alarm_rows, written)
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
        query, has_unknown = followed.query, followed.book.has_unknown
        away = tuple(sorted(followed.away)) if has_unknown else ()
        since = followed.unsettled_since if has_unknown and not away else None
        return replace(
            alarm_info(followed.book, query.bundle.schema),
            query=query.id,
            status=str(query.status),
            away=away,
            unsettled_since=since,
        )
