"""Read JSON: one array of objects, or one object a line."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec
import pyarrow as pa

from static_engine.sources.table_errors import TableError
from static_engine.sources.values.column_matching import match_columns
from static_engine.sources.values.conversion import batch_of_values
from streamsql.catalog.definitions import SourceDefinition

_BATCH_ROWS = 20_000
_MAX_ARRAY_BYTES = 256 << 20
_MAX_LINE_BYTES = 8 << 20

_array = msgspec.json.Decoder(list[dict[str, object]])
_object = msgspec.json.Decoder(dict[str, object])


def read_json(definition: SourceDefinition, files: tuple[Path, ...]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of JSON files in the declared types.

    A key that an object lacks is NULL; one that no object of a file has is an error.

    Raises:
        TableError: A file is malformed, lacks a column, or holds a value of another type.
    """
    for file in files:
        where = f"table {definition.name}: {file.name}"
        seen: dict[str, None] = {}
        row = 1
        try:
            for objects in _batched(file):
                folded = [_folded(item, row + n) for n, item in enumerate(objects)]
                for item in folded:
                    seen.update(dict.fromkeys(item))
                names = [name.lower() for name in definition.schema.names]
                rows = [[item.get(name) for name in names] for item in folded]
                yield batch_of_values(definition, rows, row, where)
                row += len(objects)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise TableError(
                f"{where}: {error}",
                hint="expected one array of objects, or one object per line",
            ) from error
        except OSError as error:
            raise TableError(f"{where} cannot be read: {error.strerror or error}") from error
        if seen:
            match_columns(definition, list(seen), file.name)


def _folded(item: dict[str, object], row: int) -> dict[str, object]:
    folded = {name.strip().lower(): value for name, value in item.items()}
    if len(folded) != len(item):
        raise ValueError(f"row {row} has two keys that differ in case only")
    return folded


def _batched(file: Path) -> Iterator[list[dict[str, object]]]:
    objects = _array_of(file) if _first_byte(file) == b"[" else _lines_of(file)
    while batch := list(islice(objects, _BATCH_ROWS)):
        yield batch


def _first_byte(file: Path) -> bytes:
    with file.open("rb") as content:
        return content.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]


def _array_of(file: Path) -> Iterator[dict[str, object]]:
    with file.open("rb") as content:
        data = content.read(_MAX_ARRAY_BYTES + 1)
    if len(data) > _MAX_ARRAY_BYTES:
        raise ValueError(f"the array is larger than {_MAX_ARRAY_BYTES} bytes")
    yield from _array.decode(data.removeprefix(b"\xef\xbb\xbf"))


def _lines_of(file: Path) -> Iterator[dict[str, object]]:
    with file.open("rb") as content:
        number = 0
        while line := content.readline(_MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > _MAX_LINE_BYTES:
                raise ValueError(f"line {number} is longer than {_MAX_LINE_BYTES} bytes")
            text = line.removeprefix(b"\xef\xbb\xbf").strip()
            if not text:
                continue
            try:
                yield _object.decode(text)
            except msgspec.DecodeError as error:
                raise ValueError(f"line {number}: {error}") from None
