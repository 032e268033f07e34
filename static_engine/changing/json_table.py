"""INSERT and DELETE on a table in one file of JSON lines: what stays is kept to the letter."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from static_engine.changing.change_checks import (
    check_unchanged,
    failed,
    kept_and_added,
    not_writable,
    one_file,
)
from static_engine.changing.whole_file import read_whole, replace_whole
from static_engine.sources.conversion import rows_in
from static_engine.sources.declared_options import TableOptions
from static_engine.sources.json_rows import read_json
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations, fingerprint
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value, timestamp_text
from streamsql.wire.table_changes import TableChange

SUFFIXES = (".json", ".jsonl", ".ndjson")
_MARK = b"\xef\xbb\xbf"
_object = msgspec.json.Decoder(dict[str, object])


@dataclass(frozen=True, slots=True)
class Line:
    """One object.

    Attributes:
        raw: Its line with the end, and the blank lines before it.
        item: The object; none for what follows the last one.
    """

    raw: bytes
    item: dict[str, object] | None


def change_json(change: TableChange, options: TableOptions, locations: Locations) -> int:
    """Add rows to a table or take rows from it; return how many.

    The new file is read as a table before it replaces the old one, so it holds what was meant.

    Raises:
        TableError: It cannot be done; the table is as it was.
    """
    definition = change.definition
    file = one_file(definition, options, locations, SUFFIXES)
    where = f"table {definition.name}: {file.name}"
    before = fingerprint(options, locations)
    content = read_whole(file, where)
    if content.removeprefix(_MARK).lstrip()[:1] == b"[":
        raise not_writable(
            definition,
            f"is in {file.name}, one JSON array: INSERT and DELETE change only files with "
            "one object per line",
            "write the file with one object per line",
        )
    lines = [*_lines_of(content, where)]
    tail = lines.pop().raw if lines and lines[-1].item is None else b""
    rows = [*rows_in(*read_json(definition, (file,)))]
    if len(lines) != len(rows):
        raise failed(f"{where} was changed by another process in the meantime", "try again")
    found = [*zip(lines, rows, strict=True)]
    kept, added = kept_and_added(change, found)
    if change.delete and len(kept) == len(found):
        return 0
    expected = [*(row for _, row in kept), *added]
    new = b"".join(line.raw for line, _ in kept) + tail
    new += _added(definition, lines, new, added, where)

    def check(written: Path) -> None:
        try:
            found_again = [*rows_in(*read_json(definition, (written,)))]
        except TableError as error:  # no line that stays has one of the columns, for instance
            raise failed(f"{where} would no longer be a table: {error.message}") from error
        if found_again != expected:
            raise failed(f"{where} cannot hold these rows", "give them other values")
        check_unchanged(options, locations, before, where)

    replace_whole(file, lambda new_file: new_file.write(new), check, where)
    return len(added) if added else len(found) - len(kept)


def _added(
    definition: SourceDefinition,
    lines: list[Line],
    before: bytes,
    rows: tuple[Row, ...],
    where: str,
) -> bytes:
    """Return the lines of new rows: names as they are spelled already, times as they stand."""
    end = b"\r\n" if lines and lines[0].raw.endswith(b"\r\n") else b"\n"
    start = end if rows and before.removeprefix(_MARK) and not before.endswith(b"\n") else b""
    columns = _columns(definition.schema, lines)
    try:
        return start + b"".join(
            msgspec.json.encode(
                {
                    name: _written(value, as_text=as_text)
                    for (name, as_text), value in zip(columns, row, strict=True)
                }
            )
            + end
            for row in rows
        )
    except UnicodeEncodeError as error:
        raise failed(f"{where}: a text cannot be written as UTF-8: {error.reason}") from None


def _columns(schema: Schema, lines: Sequence[Line]) -> list[tuple[str, bool]]:
    """Return each column's name in the objects that are there, and whether times are texts."""
    spelled: dict[str, str] = {}
    sample: dict[str, object] = {}
    for line in lines:
        for name, value in (line.item or {}).items():
            folded = name.strip().lower()
            spelled.setdefault(folded, name)
            if value is not None:
                sample.setdefault(folded, value)
    return [
        (
            spelled.get(field.name.lower(), field.name),
            # A whole number is microseconds; of a fraction, which is seconds, we write no more.
            field.dtype == DataType.TIMESTAMP
            and not isinstance(sample.get(field.name.lower()), int),
        )
        for field in schema.fields
    ]


def _written(value: Value, *, as_text: bool) -> Value:
    return timestamp_text(value) if as_text and isinstance(value, int) else value


def _lines_of(content: bytes, where: str) -> Iterator[Line]:
    """Yield the objects of a file; together their texts are the file's.

    Raises:
        TableError: A line is no object.
    """
    blank = b""
    for number, line in enumerate(io.BytesIO(content), start=1):  # ends at \n and nothing else
        text = line.removeprefix(_MARK).strip()
        if not text:
            blank += line
            continue
        try:
            item = _object.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise TableError(
                f"{where}: line {number}: {error}", hint="expected one object per line"
            ) from None
        yield Line(blank + line, item)
        blank = b""
    if blank:
        yield Line(blank, None)
