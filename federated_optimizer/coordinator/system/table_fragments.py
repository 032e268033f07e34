"""Fragments of one query that the coordinator evaluates over the system's tables."""

from collections.abc import Iterator, Mapping

from federated_optimizer.coordinator.planning_processes import Beside
from federated_optimizer.coordinator.system.changing_tables import (
    ChangingTable,
    changes_of,
    is_linear,
)
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import Plan, Project, Scan, Window, walk_plan
from streamsql.catalog.system import is_system_table
from streamsql.data.delta import Delta, accumulate, difference
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from streamsql.wire.bundles.partitioning import site_of
from streamsql.wire.channel_protocol import SendingChannel
from streamsql.wire.fragments import Fragment, FragmentBundle
from streamsql.wire.messages import DeltaBatch, FlowReport

_WORK = "a query over the system's tables"


class TableFragments:
    """The fragments of one query here.

    State: the last result of each, of which tables it is, and what has changed since it was sent.
    """

    def __init__(self, bundle: FragmentBundle, host: str, epoch: int) -> None:
        self.bundle = bundle
        self.epoch = epoch
        self.fragments = bundle.at(host)
        scans = [n for f in self.fragments for n in walk_plan(f.plan) if isinstance(n, Scan)]
        self.reads = tuple(dict.fromkeys(s.source for s in scans if is_system_table(s.source)))
        self._follows_clock = any(
            isinstance(node, Window) for f in self.fragments for node in walk_plan(f.plan)
        )
        ports: dict[str, list[str]] = {}
        for fragment in self.fragments:
            for destination in fragment.destinations:
                ports.setdefault(destination, []).append(fragment.id)
        self.channels = {
            to: SendingChannel(version=bundle.version, epoch=epoch, ports=names)
            for to, names in ports.items()
        }
        self.owed = set(ports)
        self._read: list[tuple[Row, ...]] | None = None
        self._versions: dict[str, int] | None = None
        self._results: dict[str, Delta] = {}
        self._changes: dict[str, Delta] | None = None

    async def evaluate(self, rows: Mapping[str, tuple[Row, ...]], now: int, beside: Beside) -> bool:
        """Compute the fragments anew if their tables have changed; return whether to send.

        Raises:
            FederationError: It takes too long.
        """
        read = [rows[table] for table in self.reads]
        if read == self._read and not self._follows_clock:
            return bool(self.owed)
        database = Database()
        for table in self.reads:
            database.append(table, [SourceEvent(row, now) for row in rows[table]])

        def work() -> dict[str, Delta]:
            return {f.id: evaluate(f.plan, database, now) for f in self.fragments}

        plain = all(is_plain(f.plan) for f in self.fragments)
        self._results = work() if plain else await beside.run(work, _WORK)
        self._read, self._changes = read, None
        return True

    def follows(self, tables: Mapping[str, ChangingTable]) -> bool:
        """Whether the changes of some tables are all that it has to read."""
        return all(table in tables for table in self.reads) and all(
            is_linear(f.plan) for f in self.fragments
        )

    async def follow(self, tables: Mapping[str, ChangingTable], now: int, beside: Beside) -> bool:
        """Compute what has changed of the fragments of which that is all; return whether to send.

        Raises:
            FederationError: It takes too long.
        """
        versions = {table: tables[table].look() for table in self.reads}
        if versions == self._versions:
            return bool(self.owed)
        before = self._versions or {}
        found = {
            table: tables[table].since(before[table]) if table in before else None
            for table in self.reads
        }
        changes = {table: delta for table, delta in found.items() if delta is not None}
        if len(changes) < len(found):
            await self.evaluate({table: tables[table]() for table in self.reads}, now, beside)
            self._versions = versions
            return True

        def work() -> dict[str, Delta]:
            return {f.id: changes_of(f.plan, changes, now) for f in self.fragments}

        plain = all(is_plain(f.plan) for f in self.fragments)
        self._changes = work() if plain else await beside.run(work, _WORK)
        for name, delta in self._changes.items():
            accumulate(self._results[name], delta)
        self._versions, self._read = versions, None
        return True

    def batches(self, destination: str, channel: SendingChannel, now: int) -> Iterator[DeltaBatch]:
        """Yield what a receiver does not have yet."""
        mine = [fragment for fragment in self.fragments if destination in fragment.destinations]
        if destination in self.owed:
            channel.contents = {
                fragment.id: dict(_routed(fragment, self._results[fragment.id], destination))
                for fragment in mine
            }
            self.owed.discard(destination)
            yield from channel.snapshot(now=now)
            return
        for fragment in mine:
            port = fragment.id
            if self._changes is not None:
                change = _routed(fragment, self._changes[port], destination)
            else:
                result = _routed(fragment, self._results[port], destination)
                change = difference(result, channel.contents[port])
            yield from channel.push(port, change, now=now)

    def sent(self) -> None:
        """Note that all receivers have what there is, or are owed everything."""
        self._changes = {fragment.id: {} for fragment in self.fragments}

    def flow(self) -> FlowReport:
        """Return the next sequence number of every channel."""
        sent = {to: channel.sequence for to, channel in self.channels.items()}
        return FlowReport(self.bundle.version, self.epoch, sent, {}, bool(self.owed))


def is_plain(plan: Plan) -> bool:
    """Whether rows are only read and columns chosen: no expression of a user is evaluated."""
    return all(
        isinstance(node, Scan)
        or (isinstance(node, Project) and all(isinstance(e, Column) for e in node.expressions))
        for node in walk_plan(plan)
    )


def _routed(fragment: Fragment, rows: Delta, destination: str) -> Delta:
    """Return the rows of a fragment that go to one of its destinations."""
    columns = fragment.partition
    if len(fragment.destinations) == 1 or not columns:
        return rows
    return {
        row: weight
        for row, weight in rows.items()
        if site_of(tuple([row[c] for c in columns]), fragment.destinations) == destination
    }
