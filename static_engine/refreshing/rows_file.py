"""The rows of a view's last refresh on disk: one Parquet file that is replaced as a whole."""

import hashlib
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from host.files.atomic_file import replace_file
from static_engine.sources.table_errors import TableError
from static_engine.sources.values.conversion import arrow_schema
from static_engine.tables.table_store import row_group_size
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import WireError
from streamsql.wire.codec import decode_json, encode_json

_HEADER = b"pando.refresh"
_SUFFIX = ".parquet"


class Header(msgspec.Struct, frozen=True):
    """Metadata of the rows in a file.

    Attributes:
        definition: The view; rows of another view of the same name do not count.
        last: When the rows were computed, in microseconds since 1970 UTC.
        seconds: How long that took.
    """

    definition: SourceDefinition
    last: int
    seconds: float


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows of a refresh as they are on disk.

    Attributes:
        rows: How many.
    """

    header: Header
    rows: int
    path: Path


class RowsFolder:
    """A folder of ours with a file per view. Blocking."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def scratch(self) -> Path:
        """A folder for rows that are on their way into a file."""
        return self._folder / "scratch"

    def path_of(self, view: str) -> Path:
        """Return the file of a view; any name gives a legal one of its own."""
        digest = hashlib.sha256(view.encode()).hexdigest()[:12]
        return self._folder / f"{quote(view, safe='')[:80]}-{digest}{_SUFFIX}"

    def write(self, header: Header, batches: Iterable[pa.RecordBatch]) -> KeptRows:
        """Replace the file of a view by batches in `arrow_schema`; the old one stays on failure.

        Raises:
            TableError: It cannot be written.
        """
        name, path = header.definition.name, self.path_of(header.definition.name)
        schema = arrow_schema(header.definition.schema)
        schema = schema.with_metadata({_HEADER: encode_json(header)})

        count = 0

        def write_rows(file: BinaryIO) -> None:
            nonlocal count
            with pq.ParquetWriter(file, schema) as writer:
                for batch in batches:
                    writer.write_batch(batch, row_group_size=row_group_size(batch))
                    count += batch.num_rows

        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            replace_file(path, write_rows)
        except pa.ArrowException as error:
            raise TableError(f"view {name}: its rows cannot be saved: {error}") from error
        except OSError as error:
            raise TableError(
                f"view {name}: its rows cannot be saved in {path}: {error.strerror or error}",
                hint="check the free space and the permissions of the static engine's data "
                "directory",
            ) from error
        return KeptRows(header, count, path)

    def read(self, definition: SourceDefinition) -> KeptRows | None:
        """Return the rows of a view's last refresh, or None when there are none of this view.

        Raises:
            TableError: The file is damaged, or cannot be read.
        """
        path = self.path_of(definition.name)
        if not path.exists():
            return None
        try:
            file = pq.ParquetFile(path, memory_map=False)
            schema = file.schema_arrow
            header = decode_json((schema.metadata or {}).get(_HEADER, b""), Header)
            count = sum(batch.num_rows for batch in file.iter_batches())  # all can be read
        except (OSError, pa.ArrowException, WireError) as error:
            raise TableError(
                f"view {definition.name}: its rows in {path} cannot be read: {error}"
            ) from error
        if header.definition != definition:
            return None
        if not schema.equals(arrow_schema(definition.schema)):
            raise TableError(f"view {definition.name}: {path} has other columns")
        return KeptRows(header, count, path)

    def keep_only(self, views: Iterable[str]) -> None:
        """Delete the files of all other views, and what a killed process has left."""
        kept = {self.path_of(view) for view in views}
        shutil.rmtree(self.scratch, ignore_errors=True)
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if path not in kept and path.name.endswith((_SUFFIX, ".new")):
                    path.unlink(missing_ok=True)
