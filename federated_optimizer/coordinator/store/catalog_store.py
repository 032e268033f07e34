"""The catalog on disk: definitions, running queries, alarms, and who the coordinator is.

SQLite (write-ahead log, so readers never block it) or PostgreSQL by URL. One coordinator owns a
catalog at a time: the newest one that opened it. Opening claims a new epoch; every later write of
an older owner finds its epoch gone and is refused, so two of them cannot mix their changes.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from federated_optimizer.alarm_book import AlarmRow
from federated_optimizer.coordinator.store import catalog_schema as tables
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import Definition, SourceDefinition, ViewDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.notices import AlarmDefinition, DisplayDefinition
from streamsql.errors import DeploymentError, WireError
from streamsql.library import library_views
from streamsql.wire.codec import decode_json, decode_packed, encode_json, encode_packed
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.site_settings import SiteSettings

T = TypeVar("T")
BUSY_MILLISECONDS = 5_000
_KINDS: dict[str, type[Definition]] = {
    "source": SourceDefinition,
    "view": ViewDefinition,
    "function": FunctionDefinition,
    "display": DisplayDefinition,
    "alarm": AlarmDefinition,
}


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """A running query as it survives a restart of the coordinator."""

    id: str
    name: str
    text: str
    origin: str
    created: int
    bundle: FragmentBundle


@dataclass(frozen=True, slots=True)
class Stored:
    """All that a coordinator finds when it takes a catalog over.

    Attributes:
        epoch: Its own from now on.
        alarm_rows: By alarm.
        settings: By site.
    """

    epoch: int
    definitions: tuple[Definition, ...]
    queries: tuple[StoredQuery, ...]
    settings: dict[str, SiteSettings]
    alarm_rows: dict[str, tuple[AlarmRow, ...]]

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
    """

    def __init__(self, url: str) -> None:
        """Connect, and create or migrate the schema.

        Raises:
            DeploymentError: The database cannot be used; says why and what to do.
        """
        self.url = _shown(url)
        self.epoch = 0
        self._lock = threading.Lock()
        with self._errors("open"):
            self._engine = _engine(url)
            with self._engine.begin() as connection:
                _migrate(connection, self.url)

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
        return Stored(epoch, self.definitions(), self.queries(), self.settings(), self.alarm_rows())

    def definitions(self) -> tuple[Definition, ...]:
        """Return all definitions in the order they were made.

        Raises:
            DeploymentError: One cannot be read.
        """
        return tuple(
            self._read(f"definition {row.name!r}", partial(_decoded_definition, row.kind, row.body))
            for row in self._rows(tables.definitions, tables.definitions.c.position)
        )

    def put_definition(self, definition: Definition) -> None:
        """Store a definition, replacing one of the same name."""
        kind = next(kind for kind, known in _KINDS.items() if isinstance(definition, known))
        name, body = definition.name.lower(), encode_json(definition)
        self._replace(tables.definitions, "name", {"name": name, "kind": kind, "body": body})

    def drop_definition(self, name: str) -> None:
        """Remove a definition; nothing happens if there is none."""
        self._remove(tables.definitions, "name", name.lower())

    def queries(self) -> tuple[StoredQuery, ...]:
        """Return the running queries, oldest first.

        Raises:
            DeploymentError: One cannot be read.
        """
        found = []
        for row in self._rows(tables.queries, tables.queries.c.created, tables.queries.c.id):
            bundle = self._read(
                f"query {row.id!r}", partial(decode_packed, row.bundle, FragmentBundle)
            )
            found.append(StoredQuery(row.id, row.name, row.text, row.origin, row.created, bundle))
        return tuple(found)

    def put_query(self, query: StoredQuery) -> None:
        """Store a query, replacing one of the same id."""
        values = {
            "id": query.id,
            "name": query.name,
            "text": query.text,
            "origin": query.origin,
            "version": query.bundle.version,
            "created": query.created,
            "bundle": encode_packed(query.bundle),
        }
        self._replace(tables.queries, "id", values)

    def drop_query(self, query_id: str) -> None:
        """Remove a query; nothing happens if there is none."""
        self._remove(tables.queries, "id", query_id)

    def next_query_number(self) -> int:
        """Return a number that no query of this catalog ever had."""
        row = tables.coordinator
        with self._writing() as connection:
            number: int = connection.execute(sa.select(row.c.next_query)).scalar_one()
            connection.execute(row.update().values(next_query=number + 1))
        return number

    def alarm_rows(self) -> dict[str, tuple[AlarmRow, ...]]:
        """Return the rows that alarms have had, by alarm.

        Raises:
            DeploymentError: One cannot be read.
        """
        found: dict[str, tuple[AlarmRow, ...]] = {}
        for row in self._rows(tables.alarm_rows, tables.alarm_rows.c.id):
            what = f"row {row.id} of alarm {row.alarm!r}"
            entry = self._read(what, partial(decode_packed, row.body, AlarmRow))
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
        with self._writing() as connection:
            for begin in range(0, len(numbers), 500):
                part = numbers[begin : begin + 500]
                connection.execute(table.delete().where(table.c.id.in_(part)))
            if kept:
                connection.execute(table.insert(), kept)

    def drop_alarm(self, name: str) -> None:
        """Remove the rows of an alarm."""
        self._remove(tables.alarm_rows, "alarm", name)

    def settings(self) -> dict[str, SiteSettings]:
        """Return what is set at sites.

        Raises:
            DeploymentError: One cannot be read.
        """
        found = {}
        for row in self._rows(tables.site_settings, tables.site_settings.c.site):
            what = f"the settings of site {row.site!r}"
            found[row.site] = self._read(what, partial(decode_json, row.body, SiteSettings))
        return found

    def put_settings(self, site: str, settings: SiteSettings) -> None:
        """Store what is set at a site."""
        self._replace(tables.site_settings, "site", {"site": site, "body": encode_json(settings)})

    def close(self) -> None:
        """Close all connections, after what is being written."""
        with self._lock:
            self._engine.dispose()

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction that only the current owner can commit."""
        with self._lock, self._errors("write"), self._engine.begin() as connection:
            row = tables.coordinator
            # An update, not a select: it locks the row (or the file) until the commit.
            mine = row.update().where(row.c.epoch == self.epoch).values(epoch=self.epoch)
            if connection.execute(mine).rowcount != 1:
                raise DeploymentError(
                    f"another coordinator took over the catalog {self.url}",
                    hint="stop one of them, or give it its own catalog",
                )
            yield connection

    @contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, OSError, ImportError) as error:
            raise _translated(error, verb, self.url) from error

    def _rows(self, table: sa.Table, *order: sa.Column[Any]) -> Sequence[sa.Row[Any]]:
        with self._lock, self._errors("read"), self._engine.connect() as connection:
            return connection.execute(sa.select(table).order_by(*order)).all()

    def _replace(self, table: sa.Table, key: str, values: dict[str, object]) -> None:
        with self._writing() as connection:
            connection.execute(table.delete().where(table.c[key] == values[key]))
            connection.execute(table.insert().values(**values))

    def _remove(self, table: sa.Table, key: str, value: str) -> None:
        with self._writing() as connection:
            connection.execute(table.delete().where(table.c[key] == value))

    def _read(self, what: str, decode: Callable[[], T]) -> T:
        try:
            return decode()
        except (KeyError, WireError) as error:
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


def _engine(url: str) -> sa.Engine:
    parsed = sa.make_url(url)
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite":
        return sa.create_engine(parsed, pool_pre_ping=True)
    if parsed.database and parsed.database != ":memory:":
        _keep_private(Path(parsed.database))
    engine = sa.create_engine(parsed, connect_args={"timeout": BUSY_MILLISECONDS / 1000})
    sa.event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _keep_private(file: Path) -> None:
    """Let only the owner read a catalog, for addresses of databases in it may hold passwords."""
    # What goes wrong here goes wrong again at opening, in the words of the database.
    with suppress(OSError):
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    for path in (file, *(file.with_name(file.name + end) for end in ("-wal", "-shm"))):
        with suppress(OSError):
            path.chmod(0o600)


def _prepare_sqlite(connection: object, _record: object) -> None:
    cursor = connection.cursor()  # type: ignore[attr-defined]
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
    cursor.close()


def _migrate(connection: sa.Connection, url: str) -> None:
    inspector = sa.inspect(connection)
    version = 0
    if inspector.has_table(tables.schema_version.name):
        found = connection.execute(sa.select(tables.schema_version.c.version)).scalar()
        version = found or 0
    newest = len(tables.MIGRATIONS)
    if version > newest:
        raise DeploymentError(
            f"the catalog {url} has schema version {version}, but this release supports {newest}",
            hint="start a newer release, or set another catalog",
        )
    for step in tables.MIGRATIONS[version:]:
        step(connection)
    if version < newest:
        connection.execute(tables.schema_version.delete())
        connection.execute(tables.schema_version.insert().values(version=newest))


def _translated(error: Exception, verb: str, url: str) -> DeploymentError:
    text = str(getattr(error, "orig", None) or error).strip().splitlines()
    reason = text[0] if text else type(error).__name__
    hints = {
        "locked": "another process locks it; stop that process or wait for it",
        "readonly": "make the file and its folder writable for this user",
        "unable to open": "create its folder and make it writable, or set another URL",
        "not a database": "the file is not a catalog; move it away or set another URL",
        "full": "free space on that disk",
        "psycopg": "install the extra 'postgres'",
    }
    hint = next((advice for word, advice in hints.items() if word in reason), "")
    return DeploymentError(f"cannot {verb} the catalog {url}: {reason}", hint=hint or _hint(error))


def _hint(error: Exception) -> str:
    if isinstance(error, sa.exc.ArgumentError):
        return "write sqlite:///path/to/file or postgresql://user:password@host/database"
    return "check that the database runs and that its URL is right"


def _shown(url: str) -> str:
    """Return the URL without its password."""
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except sa.exc.ArgumentError:
        return "URL"
