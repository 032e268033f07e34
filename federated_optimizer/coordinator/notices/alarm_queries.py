"""The alarms of a federation: their running queries, the rows that raised them, and the catalog.

An alarm is a running query of origin "alarm". Its rows are followed change by change, so that one
that comes and goes at once is not missed; until the query has heard of all its sites after a
restart of the coordinator, what was raised before stays raised.

A row that goes while the answer is in doubt (see `followed_answers`) is unknown, not cleared.
Unknown rows are decided when all sites of the query are back and the doubt has ended.

While a site that is back fills the answer again, rows pass that never held, as every count up to
the true one: new rows wait until the query has settled, for `REFILL_MICROSECONDS` at most.

The alarm of stored tables has no query (`table_alarm`). Everything else is the same for it.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from typing_extensions import override

from federated_optimizer.alarm_life_cycle import AlarmBook, AlarmRow, AlarmState
from federated_optimizer.coordinator.contract.coordinator_model import AlarmInfo, alarm_info
from federated_optimizer.coordinator.notices.followed_answers import FollowedAnswer
from federated_optimizer.coordinator.notices.table_alarm import TableAlarm
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import SharedParts
from host.clocks import Clock
from host.mqtt.publishing import publish_or_warn
from streamsql.catalog.notice_definitions import AlarmDefinition
from streamsql.catalog.system import TABLE_ALARM
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.errors import FederationError
from streamsql.wire.alarm_messages import AlarmChange
from streamsql.wire.codec import encode_json

log = logging.getLogger(__name__)


class _Followed(FollowedAnswer):
    """One alarm: its query and its book."""

    def __init__(self, query: RunningQuery, book: AlarmBook, clock: Clock) -> None:
        self.book = book
        super().__init__(query, clock)

    @override
    def meet(self, *, in_doubt: bool) -> None:
        self._tell_refilling()
        self.book.meet(self.query.result.view, self.now, in_doubt=in_doubt)

    @override
    def follow(self, delta: Delta, *, in_doubt: bool) -> None:
        self._tell_refilling()
        if self.is_met:
            self.book.follow(delta, self.query.result.view, self.now, in_doubt=in_doubt)

    @override
    def waited(self) -> None:
        self._tell_refilling()
        if self.book.has_room_again:
            self.book.meet(self.query.result.view, self.now, in_doubt=self.is_in_doubt)
        self.book.look(self.now)

    @override
    def settled(self, *, away: frozenset[str]) -> None:
        self._tell_refilling()
        self.book.look(self.now)
        if not away and self.query.started and self.book.has_unknown:
            self.book.decide(self.query.result.view, self.now)

    @property
    def schema(self) -> Schema:
        """Columns of its rows."""
        return self.query.bundle.schema

    def info(self) -> AlarmInfo:
        """Return the alarm as lists show it."""
        query, has_unknown = self.query, self.book.has_unknown
        away = tuple(sorted(self.away)) if has_unknown else ()
        since = self.unsettled_since if has_unknown and not away else None
        return replace(
            alarm_info(self.book, self.schema),
            query=query.id,
            status=str(query.status),
            away=away,
            unsettled_since=since,
        )

    def _tell_refilling(self) -> None:
        self.book.holds_back = self.is_refilling


class Alarms:
    """All alarms. Everything but writing to the catalog is done at once."""

    def __init__(self, shared: SharedParts, queries: Queries) -> None:
        self._shared = shared
        self._queries = queries
        self._next = 1
        self._followed: dict[str, _Followed | TableAlarm] = {}
        self._follow_tables(())
        self._unwritten: dict[int, AlarmRow | None] = {}
        self._writing = asyncio.Lock()

    def begin(
        self, definitions: Iterable[AlarmDefinition], stored: Mapping[str, tuple[AlarmRow, ...]]
    ) -> None:
        """Follow what ran before, with what was known of it."""
        self._next = 1 + max((row.id for rows in stored.values() for row in rows), default=0)
        self._follow_tables(stored.get(TABLE_ALARM.name, ()))
        for definition in definitions:
            query = self._queries.find(definition.query_name)
            if query is not None:
                self.follow(definition, query, stored.get(definition.name, ()))

    def follow(
        self, definition: AlarmDefinition, query: RunningQuery, known: Iterable[AlarmRow] = ()
    ) -> None:
        """Follow an alarm whose query has been started."""
        book = AlarmBook(definition, self._number, known)
        self._followed[definition.name] = _Followed(query, book, self._shared.clock)

    async def forget(self, definition: AlarmDefinition) -> None:
        """Discard an alarm and all its rows."""
        self._followed.pop(definition.name, None)
        async with self._writing:  # what is being written now must not outlive the alarm
            self._unwritten = {
                number: row
                for number, row in self._unwritten.items()
                if row is None or row.alarm != definition.name
            }
            await asyncio.to_thread(self._shared.store.drop_alarm, definition.name)

    async def keep(self) -> None:
        """Raise what is due, and write what has changed to the catalog.

        Raises:
            DeploymentError: It cannot be written; it is tried again with the next call.
        """
        for followed in self._followed.values():
            followed.look()
            changes = followed.book.take_changes()
            self._publish(followed.schema.names, changes.values())
            self._unwritten |= changes
        async with self._writing:
            if not self._unwritten:
                return
            written = dict(self._unwritten)
            await asyncio.to_thread(self._shared.store.put_alarm_rows, written)
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
        infos = (followed.info() for followed in self._followed.values())
        return tuple(info for info in infos if info is not None)

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

    def _publish(self, columns: tuple[str, ...], changes: Iterable[AlarmRow | None]) -> None:
        """Publish what happened to rows that were raised, for the lake."""
        shared = self._shared
        if not shared.client.connected:
            return
        topic, now = shared.topics.alarms(shared.settings.host), shared.clock()
        for row in changes:
            if row is None or row.state is AlarmState.WAITING:
                continue
            change = AlarmChange(
                row.alarm,
                row.id,
                row.state.value,
                columns,
                row.row,
                now,
                row.since,
                row.raised,
                row.acknowledged,
                row.cleared,
                row.unknown,
            )
            otherwise = "a change of an alarm is missing in the lake"
            publish_or_warn(shared.client, topic, encode_json(change), otherwise=otherwise)

    def _follow_tables(self, known: Iterable[AlarmRow]) -> None:
        self._followed[TABLE_ALARM.name] = TableAlarm(self._shared, self._number, known)

    def _number(self) -> int:
        number, self._next = self._next, self._next + 1
        return number
