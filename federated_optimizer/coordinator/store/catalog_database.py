"""The database of the catalog: opening, migrating, and its errors in words."""

import os
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa

from federated_optimizer.coordinator.store.schema import catalog_schema as tables
from streamsql.errors import DeploymentError

BUSY_MILLISECONDS = 5_000


def catalog_engine(url: str) -> sa.Engine:
    """Return the engine of an address: SQLite or PostgreSQL."""
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
    # What goes wrong here goes wrong again at opening, in the words of the database. A file that is
    # there is not opened: closing it would drop the locks of this process's other connections, and
    # the next process to close the catalog would then delete the log that they write into.
    with suppress(OSError):
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    for path in (file, *(file.with_name(file.name + end) for end in ("-wal", "-shm"))):
        with suppress(OSError):
            path.chmod(0o600)


def _prepare_sqlite(connection: object, _record: object) -> None:
    cursor = connection.cursor()  # type: ignore[attr-defined]
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
    cursor.close()


def migrate(connection: sa.Connection, url: str) -> None:
    """Create or update the tables.

    Raises:
        DeploymentError: A newer release has written them.
    """
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


_STAY_OWNER = (
    # An update, not a select: it locks the row (or the file) until the commit.
    tables.coordinator.update()
    .where(tables.coordinator.c.epoch == sa.bindparam("mine"))
    .values(epoch=sa.bindparam("mine"))
)


def stay_owner(connection: sa.Connection, epoch: int, url: str) -> None:
    """Let nobody else become the owner of the catalog before the transaction ends.

    Raises:
        DeploymentError: Somebody has.
    """
    if connection.execute(_STAY_OWNER, {"mine": epoch}).rowcount != 1:
        raise DeploymentError(
            f"another coordinator took over the catalog {url}",
            hint="stop one of them, or give it its own catalog",
        )


def translated(error: Exception, verb: str, url: str) -> DeploymentError:
    """Return an error of the database as one for people."""
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


def shown(url: str) -> str:
    """Return the URL without its password."""
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except sa.exc.ArgumentError:
        return "URL"
