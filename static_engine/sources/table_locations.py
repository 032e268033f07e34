"""Locations of stored tables: allowed folders and databases, and fingerprints of files."""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from static_engine.lake.managed_tables import ManagedTables
from static_engine.sources.declared_options import TableOptions
from static_engine.sources.object_stores import StoreSettings, is_stored
from static_engine.sources.table_addresses import TableAddresses
from static_engine.sources.table_errors import TableError, TableMissingError
from streamsql.catalog.open_folders import OpenFolders
from streamsql.catalog.table_options import CHANGED_SOURCES, SUFFIXES, TableSource

MAX_FILES = 10_000
"""Files of a folder that is a table."""

_FILE_PARAMETERS = (
    "passfile",
    "servicefile",
    "sslcert",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslkeylogfile",
    "sslrootcert",
)
"""Parameters of PostgreSQL addresses that name files."""
_NO_FILES = ("", "system")

Fingerprint = tuple[tuple[str, int, int, int], ...]
"""Name, inode, size and time of change of each file; equal as long as nothing changed."""


@dataclass(frozen=True, slots=True)
class Locations:
    """Files and databases that the operator allows tables to read.

    Attributes:
        base: Folder that relative paths start from.
        opened: Further folders whose files may be named.
        closed: Folders whose files may not, though they may be within one that is open.
        dialects: Databases that may be named by URL.
        changed: Sources whose tables take INSERT, UPDATE, DELETE and MERGE.
        secrets: Addresses of databases by name.
        managed: The managed tables; None without a lake.
        stores: Stores of objects that tables may name by URL.
    """

    base: Path
    opened: tuple[Path, ...] = ()
    closed: tuple[Path, ...] = ()
    dialects: tuple[str, ...] = ("sqlite", "postgresql")
    changed: tuple[str, ...] = CHANGED_SOURCES
    secrets: TableAddresses = field(default_factory=TableAddresses)
    managed: ManagedTables | None = None
    stores: tuple[StoreSettings, ...] = ()

    def folders(self) -> OpenFolders:
        """Return the folders as they are now, with links followed."""
        return OpenFolders(
            str(self.base.resolve()),
            tuple(str(folder.resolve()) for folder in self.opened),
            tuple(str(folder.resolve()) for folder in self.closed),
        )


def resolve(path: str, locations: Locations) -> Path:
    """Return the absolute path of a table's file or folder, which may not exist.

    Raises:
        TableError: The path is malformed or outside of what the operator allows.
    """
    if not path or "\0" in path:
        raise TableError(f"{path!r:.80} is not a path")
    folders = locations.folders()
    try:
        full = Path(folders.base, path).resolve()
    except (OSError, RuntimeError) as error:
        raise TableError(f"path {path!r:.200} cannot be resolved: {error}") from error
    _check_open(full, path, folders)
    return full


def _check_open(real: Path, path: str, folders: OpenFolders) -> None:
    """Check a real path: a link in an open folder may lead anywhere.

    Raises:
        TableError: It is in no open folder.
    """
    if not folders.allow(str(real)):
        raise TableError(
            f"path {path!r:.200} is outside the folders that are open to tables: {folders.shown}",
            hint="move the file there, or ask the operator to open its folder (--tables DIR, "
            "setting table_folders)",
            code="outside_folders",
        )


def files_of(path: str, locations: Locations, *suffixes: str) -> tuple[Path, ...]:
    """Return the file, or the folder's files with one of the suffixes in order of their names.

    Raises:
        TableMissingError: There is none.
        TableError: It is neither, or may not be read.
    """
    full = resolve(path, locations)
    where = f"{path!r:.200} (looked for in {locations.base.resolve()})"
    try:
        mode = full.stat().st_mode
        if not stat.S_ISDIR(mode):
            if not stat.S_ISREG(mode):
                raise TableError(f"{where} is not a regular file")
            return (full,)
        files = tuple(sorted(f for f in full.iterdir() if f.suffix in suffixes and f.is_file()))
    except FileNotFoundError:
        raise TableMissingError(
            f"file {where} is missing", hint="create it; Pando reads it as soon as it appears"
        ) from None
    except OSError as error:
        raise TableError(f"{where} cannot be read: {error.strerror}") from error
    folders = locations.folders()
    for file in files:
        if file.is_symlink():
            _check_open(file.resolve(), f"{path}/{file.name}", folders)
    if not files:
        raise TableMissingError(f"folder {where} has no {' or '.join(suffixes)} files")
    if len(files) > MAX_FILES:
        raise TableError(f"folder {where} has more than {MAX_FILES} files")
    return files


def table_files(options: TableOptions, locations: Locations) -> tuple[Path, ...]:
    """Return the files that a table's rows, or the list of its files, are in.

    Raises:
        TableMissingError: There is none.
        TableError: They may not be read.
    """
    match options.source:
        case TableSource.ICEBERG if options.path.endswith(".metadata.json"):
            return files_of(options.path, locations, ".json")
        case TableSource.ICEBERG:
            return files_of(f"{options.path}/metadata", locations, ".json")
        case TableSource.DELTA:
            return files_of(f"{options.path}/_delta_log", locations, ".json")
        case source:
            return files_of(options.path, locations, *suffixes_of(source))


def suffixes_of(source: TableSource) -> tuple[str, ...]:
    """Return the ends of the names of a table's files."""
    return SUFFIXES.get(source, (f".{source}",))


def database_url(url: str, locations: Locations) -> URL:
    """Return a database's address, with the file of an SQLite one resolved.

    Raises:
        TableError: It is malformed, or the operator does not allow that kind of database.
        TableMissingError: The SQLite file is missing.
    """
    try:
        parsed = make_url(locations.secrets.address(url))
    except (ArgumentError, ValueError):
        # Not quoted: whatever it is, it may hold a password.
        raise TableError(
            "the option url is not a database address",
            hint="sqlite:///file.db or postgresql+psycopg://user:password@host/database",
        ) from None
    if "@" in (parsed.host or ""):  # the rest of a password, which messages would show
        raise TableError(
            "the option url has more than one @",
            hint="in a user name or password write @ as %40, : as %3A and / as %2F",
        )
    dialect = parsed.get_backend_name()
    if dialect not in locations.dialects:
        raise TableError(
            f"databases of kind {dialect!r:.40} are not allowed",
            hint=f"allowed: {', '.join(locations.dialects)} (setting database_dialects)",
        )
    if dialect == "postgresql" and "+" not in parsed.drivername:
        parsed = parsed.set(drivername="postgresql+psycopg")
    if dialect != "sqlite":
        return _with_open_files(parsed, locations)
    if not parsed.database or parsed.database == ":memory:" or parsed.query:
        raise TableError("an SQLite address contains only a file: sqlite:///file.db")
    (file,) = files_of(parsed.database, locations, ".db")[:1]
    # Quoted: what follows a question mark or a hash would be no part of the name.
    return parsed.set(database=f"file:{quote(str(file))}", query={"mode": "ro", "uri": "true"})


def _with_open_files(url: URL, locations: Locations) -> URL:
    """Return an address whose certificates and keys are in open folders, by real paths.

    Raises:
        TableError: One is elsewhere.
    """
    named = {
        key: str(resolve(value, locations))
        for key, value in url.query.items()
        if key in _FILE_PARAMETERS and isinstance(value, str) and value not in _NO_FILES
    }
    doubled = sorted(
        k for k, v in url.query.items() if k in _FILE_PARAMETERS and not isinstance(v, str)
    )
    if doubled:
        raise TableError(f"the option url has {doubled[0]} more than once")
    return url.update_query_dict(named)


def sqlite_file(url: URL) -> Path:
    """Return the file of an SQLite address that `database_url` has given."""
    return Path(unquote((url.database or "").removeprefix("file:")))


def fingerprint(options: TableOptions, locations: Locations) -> Fingerprint | None:
    """Return the state of a table's files, or None for a database server, which must be asked.

    Raises:
        TableMissingError: They are not there.
        TableError: They cannot be looked at.
    """
    if options.source == TableSource.LAKE or is_stored(options.path):
        return None  # like a server
    if options.source != TableSource.SQL:
        return tuple(_print_of(file) for file in table_files(options, locations))
    url = database_url(options.url, locations)
    if url.get_backend_name() != "sqlite" or url.database is None:
        return None
    file = sqlite_file(url)
    log = file.with_name(file.name + "-wal")  # newest rows of a database in that mode
    return tuple(_print_of(f) for f in (file, log) if f.exists())


def _print_of(file: Path) -> tuple[str, int, int, int]:
    try:
        status = os.stat(file)  # noqa: PTH116 - twice as fast as Path.stat, and called in a loop
    except FileNotFoundError:
        raise TableMissingError(f"file {file.name!r} has disappeared") from None
    except OSError as error:
        raise TableError(f"file {file.name!r} cannot be read: {error.strerror}") from error
    return (str(file), status.st_ino, status.st_size, status.st_mtime_ns)
