"""The catalog on disk: definitions, running queries, alarms, and who the coordinator is.

SQLite (write-ahead log, so readers never block it) or PostgreSQL by URL. One coordinator owns a
catalog at a time: the newest one that opened it. Opening claims a new epoch; every later write of
an older owner finds its epoch gone and is refused, so two of them cannot mix their changes.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from federated_optimizer.alarm_life_cycle import AlarmRow
from federated_optimizer.coordinator.contract.fleet_model import Enrolment
from federated_optimizer.coordinator.store.catalog_database import (
    catalog_engine,
    migrate,
    shown,
    stay_owner,
    translated,
)
from federated_optimizer.coordinator.store.pending_writes import PendingWrite, PendingWrites
from federated_optimizer.coordinator.store.query_numbers import QueryNumbers
from federated_optimizer.coordinator.store.schema import catalog_schema as tables
from federated_optimizer.coordinator.store.schema.node_tables import nodes
from federated_optimizer.coordinator.store.stored_runs import (
    RunChanges,
    StoredNode,
    StoredQuery,
    nodes_in,
    queries_in,
    write_runs,
)
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import Definition, SourceDefinition, ViewDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition, DisplayDefinition
from streamsql.catalog.sink_definitions import SinkDefinition
from streamsql.errors import DeploymentError, WireError
from streamsql.library import library_views
from streamsql.wire.codec import decode_json, decode_packed, encode_json, encode_packed
from streamsql.wire.site_settings import SiteSettings

T = TypeVar("T")
SinkEntry = tuple[str, str, str]  # sink, kind and id
SinkEntries = dict[str, dict[str, list[tuple[str, bytes]]]]  # ids and bodies, by kind and sink
_KINDS: dict[str, type[Definition]] = {
    "source": SourceDefinition,
    "view": ViewDefinition,
    "function": FunctionDefinition,
    "display": DisplayDefinition,
    "alarm": AlarmDefinition,
    "sink": SinkDefinition,
}


@dataclass(frozen=True, slots=True)
class Stored:
    """All that a coordinator finds when it takes a catalog over.

    Attributes:
        epoch: Its own from now on.
        alarm_rows: By alarm.
        settings: By site.
        sinks: What sinks remember.
        enrolments: Gateways that were provisioned.
        nodes: Runs that are kept for their readers alone.
    """

    epoch: int
    definitions: tuple[Definition, ...]
    queries: tuple[StoredQuery, ...]
    settings: dict[str, SiteSettings]
    alarm_rows: dict[str, tuple[AlarmRow, ...]]
    sinks: SinkEntries = field(default_factory=dict)
    enrolments: tuple[Enrolment, ...] = ()
    nodes: tuple[StoredNode, ...] = ()

    def catalog(self) -> Catalog:
        """Return the definitions, and those that every installation has."""
        catalog = Catalog(library_views())
        for definition in self.definitions:
            catalog.define(definition, replace=True)
        return catalog


class CatalogStore:
    """The database. Blocking; safe to call from worker threads, one call at a time.

    Attributes:
        epoch: This coordinator's, set by `claim`.
        pending: Writes that the next transaction makes first.
        numbers: Those of queries.
    """

    def __init__(self, url: str) -> None:
        """Connect, and create or migrate the schema.

        Raises:
            DeploymentError: The database cannot be used; says why and what to do.
        """
        self.url = shown(url)
        self.epoch = 0
        self._lock, self._committing = threading.Lock(), threading.Lock()
        self.pending = PendingWrites()
        self.numbers = QueryNumbers(self.writing)
        with self._errors("open"):
            self._engine = catalog_engine(url)
            with self._engine.begin() as connection:
                migrate(connection, self.url)

    def claim(self, now: int) -> int:
        """Become the catalog's owner; return the epoch, greater than any before.

        Args:
            now: Microseconds; makes epochs grow across different catalogs, too.
        """
        with self._lock, self._errors("write"), self._engine.begin() as connection:
            row = tables.coordinator
            connection.execute(row.update().values(epoch=row.c.epoch + 1))
            stored: int = connection.execute(sa.select(row.c.epoch)).scalar_one()
            self.epoch = max(stored, now // 1000)
            connection.execute(row.update().values(epoch=self.epoch))
        return self.epoch

    def take_over(self, now: int) -> Stored:
        """Become the catalog's owner and read all of it; see `claim`.

        Raises:
            DeploymentError: It cannot be written, or something in it cannot be read.
        """
        epoch = self.claim(now)
        return Stored(
            epoch,
            self.definitions(),
            self.queries(),
            self.settings(),
            self.alarm_rows(),
            self.sink_entries(),
            nodes=self.nodes(),
        )

    def definitions(self) -> tuple[Definition, ...]:
        """Return all definitions in the order they were made.

        Raises:
            DeploymentError: One cannot be read.
        """
        return tuple(
            self.read(
                f"definition {row.name!r}",
                partial(_decoded_definition, row.kind, row.body),
            )
            for row in self.rows(tables.definitions, tables.definitions.c.position)
        )

    def put_definition(self, definition: Definition) -> None:
        """Store a definition, replacing one of the same name."""
        kind = next(kind for kind, known in _KINDS.items() if isinstance(definition, known))
        name, body = definition.name.lower(), encode_json(definition)
        self._replace(tables.definitions, "name", {"name": name, "kind": kind, "body": body})

    def drop_definition(self, name: str) -> None:
        """Remove a definition; nothing happens if there is none."""
        self._remove(tables.definitions, "name", name.lower())

    def next_source_version(self, name: str, at_least: int = 1) -> int:
        """Return a version that no source of that name in this catalog ever had.

        Args:
            name: Of the source.
            at_least: The least to return.
        """
        table = tables.source_versions
        key = name.lower()
        with self.writing() as connection:
            found = connection.execute(sa.select(table.c.version).where(table.c.name == key))
            version = max((found.scalar() or 0) + 1, at_least)
            connection.execute(table.delete().where(table.c.name == key))
            connection.execute(table.insert().values(name=key, version=version))
        return version

    def queries(self) -> tuple[StoredQuery, ...]:
        """Return the running queries, oldest first; a bundle that cannot be read stops no other.

        Raises:
            DeploymentError: The origin of one is none.
        """
        rows = self.rows(tables.queries, tables.queries.c.created, tables.queries.c.id)
        return tuple(queries_in(rows, self.read))

    def nodes(self) -> tuple[StoredNode, ...]:
        """Return the nodes of the network; one that cannot be read is left out."""
        return tuple(nodes_in(self.rows(nodes, nodes.c.created, nodes.c.run)))

    def put_runs(self, changes: RunChanges) -> None:
        """Store and remove queries and nodes in one transaction."""
        with self.writing() as connection:
            write_runs(connection, changes)

    def put_query(self, query: StoredQuery) -> None:
        """Store a query, replacing one of the same id."""
        self.put_runs(RunChanges(queries=(query,)))

    def drop_query(self, query_id: str) -> None:
        """Remove a query; nothing happens if there is none."""
        self.put_runs(RunChanges(dropped=(query_id,)))

    def next_query_number(self) -> int:
        """Return a number that no query of this catalog ever had."""
        return self.numbers.take()

    def ensure(self, pending: PendingWrite) -> None:
        """Return once a pending write is committed, with all that have come meanwhile.

        Raises:
            DeploymentError: It is not, and will not be.
        """
        with self._committing:  # whoever waits here finds it done by the one before, often
            if not pending.is_done:
                with self.writing():
                    pass
        pending.check()

    def alarm_rows(self) -> dict[str, tuple[AlarmRow, ...]]:
        """Return the rows that alarms have had, by alarm.

        Raises:
            DeploymentError: One cannot be read.
        """
        found: dict[str, tuple[AlarmRow, ...]] = {}
        for row in self.rows(tables.alarm_rows, tables.alarm_rows.c.id):
            what = f"row {row.id} of alarm {row.alarm!r}"
            entry = self.read(what, partial(decode_packed, row.body, AlarmRow))
            found[row.alarm] = (*found.get(row.alarm, ()), entry)
        return found

    def put_alarm_rows(self, changed: Mapping[int, AlarmRow | None]) -> None:
        """Store rows of alarms by number; None removes one."""
        table = tables.alarm_rows
        kept = [
            {"id": number, "alarm": entry.alarm, "body": encode_packed(entry)}
            for number, entry in changed.items()
            if entry is not None
        ]
        numbers = list(changed)
        with self.writing() as connection:
            for begin in range(0, len(numbers), 500):
                part = numbers[begin : begin + 500]
                connection.execute(table.delete().where(table.c.id.in_(part)))
            if kept:
                connection.execute(table.insert(), kept)

    def drop_alarm(self, name: str) -> None:
        """Remove the rows of an alarm."""
        self._remove(tables.alarm_rows, "alarm", name)

    def sink_entries(self) -> SinkEntries:
        """Return the entries of all sinks."""
        table = tables.sink_entries
        found: SinkEntries = {}
        for row in self.rows(table, table.c.sink, table.c.kind, table.c.id):
            by_sink = found.setdefault(row.kind, {})
            by_sink.setdefault(row.sink, []).append((row.id, row.body))
        return found

    def put_sink_entries(self, changed: Mapping[SinkEntry, bytes | None]) -> None:
        """Store entries of sinks; None removes one."""
        table = tables.sink_entries
        removed: dict[tuple[str, str], list[str]] = {}
        for sink, kind, number in changed:
            removed.setdefault((sink, kind), []).append(number)
        kept = [
            {"sink": sink, "kind": kind, "id": number, "body": body}
            for (sink, kind, number), body in changed.items()
            if body is not None
        ]
        with self.writing() as connection:
            for (sink, kind), numbers in removed.items():
                same = (table.c.sink == sink, table.c.kind == kind)
                for begin in range(0, len(numbers), 500):
                    part = table.c.id.in_(numbers[begin : begin + 500])
                    connection.execute(table.delete().where(*same, part))
            if kept:
                connection.execute(table.insert(), kept)

    def drop_sink(self, name: str, *, kept: str) -> None:
        """Remove the entries of a sink, but for those of a kind."""
        table = tables.sink_entries
        with self.writing() as connection:
            connection.execute(table.delete().where(table.c.sink == name, table.c.kind != kept))

    def settings(self) -> dict[str, SiteSettings]:
        """Return what is set at sites.

        Raises:
            DeploymentError: One cannot be read.
        """
        found = {}
        for row in self.rows(tables.site_settings, tables.site_settings.c.site):
            what = f"the settings of site {row.site!r}"
            found[row.site] = self.read(what, partial(decode_json, row.body, SiteSettings))
        return found

    def put_settings(self, site: str, settings: SiteSettings) -> None:
        """Store what is set at a site."""
        self._replace(tables.site_settings, "site", {"site": site, "body": encode_json(settings)})

    def close(self) -> None:
        """Close all connections, after what is being written."""
        with suppress(DeploymentError):  # of another owner by now
            self.numbers.give_back()
        with self._lock:
            self._engine.dispose()

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that only the current owner can commit.

        Raises:
            DeploymentError: The database cannot be written, or has another owner.
        """
        with (
            self._lock,
            self.pending.taken() as waiting,
            self._errors("write"),
            self._engine.begin() as connection,
        ):
            stay_owner(connection, self.epoch, self.url)
            self.pending.make(waiting, connection, self.url)
            yield connection

    @contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, OSError, ImportError) as error:
            raise translated(error, verb, self.url) from error

    def rows(self, table: sa.Table, *order: sa.Column[Any]) -> Sequence[sa.Row[Any]]:
        """Return all rows of a table.

        Raises:
            DeploymentError: The database cannot be read.
        """
        with self._lock, self._errors("read"), self._engine.connect() as connection:
            return connection.execute(sa.select(table).order_by(*order)).all()

    def _replace(self, table: sa.Table, key: str, values: dict[str, object]) -> None:
        with self.writing() as connection:
            connection.execute(table.delete().where(table.c[key] == values[key]))
            connection.execute(table.insert().values(**values))

    def _remove(self, table: sa.Table, key: str, value: str) -> None:
        with self.writing() as connection:
            connection.execute(table.delete().where(table.c[key] == value))

    def read(self, what: str, decode: Callable[[], T]) -> T:
        """Return what a stored body says.

        Raises:
            DeploymentError: It cannot be decoded; says that `what` is stored so.
        """
        try:
            return decode()
        except (KeyError, ValueError, WireError) as error:
            raise DeploymentError(
                f"{what} in the catalog {self.url} cannot be read: {error}",
                hint="it was written by another release; restore a backup or drop the row",
            ) from error


def _decoded_definition(kind: str, body: bytes) -> Definition:
    return decode_json(body, _KINDS[kind])


def open_catalog(url: str, now: int) -> tuple[CatalogStore, Stored]:
    """Return a catalog that is ours from now on, and what is in it.

    Raises:
        DeploymentError: It cannot be used.
    """
    store = CatalogStore(url)
    try:
        return store, store.take_over(now)
    except DeploymentError:
        store.close()
        raise
