"""INSERT and DELETE on a table in one CSV file: what stays is kept to the letter."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from static_engine.changing.change_checks import check_unchanged, failed, kept_and_added, one_file
from static_engine.changing.whole_file import read_whole, replace_whole
from static_engine.sources.conversion import convert_batch, rows_in
from static_engine.sources.csv_file import columns_in, read_csv, text_batches
from static_engine.sources.declared_options import TableOptions
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations, fingerprint
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType, Row, Value, timestamp_text
from streamsql.wire.table_changes import TableChange

SUFFIXES = (".csv", ".tsv")
_MARK = "\ufeff"


def change_csv(change: TableChange, options: TableOptions, locations: Locations) -> int:
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
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise TableError(f"{where} is not UTF-8", hint="save it as UTF-8") from None
    found = _Found(definition, options, file, text.removeprefix(_MARK))
    kept, added = kept_and_added(change, found.records)
    if change.delete and len(kept) == len(found.records):
        return 0
    new = found.text_of([record for record, _ in kept], added)
    expected = [*(row for _, row in kept), *added]

    def check(written: Path) -> None:
        if [*rows_in(*read_csv(definition, options, (written,)))] != expected:
            raise failed(
                f"{where} cannot hold these rows",
                "a line with one empty column is not a row, for example; give the row "
                "another value",
            )
        check_unchanged(options, locations, before, where)

    mark = _MARK if text.startswith(_MARK) else ""
    try:
        encoded = (mark + new).encode()
    except UnicodeEncodeError as error:
        raise failed(f"{where}: a text cannot be written as UTF-8: {error.reason}") from None
    replace_whole(file, lambda new_file: new_file.write(encoded), check, where)
    return len(added) if added else len(found.records) - len(kept)


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    Attributes:
        raw: Its text with the end of its line, and the blank lines before it.
        fields: Its values; none for what follows the last record.
    """

    raw: str
    fields: tuple[str, ...]


class _Found:
    """A file as it is: its records, each with its row."""

    def __init__(
        self, definition: SourceDefinition, options: TableOptions, file: Path, text: str
    ) -> None:
        names, positions = columns_in(definition, options, file)
        self._definition, self._options = definition, options
        self._width, self._positions = len(names), positions
        where = f"table {definition.name}: {file.name}"
        records = list(_records_of(text, options.delimiter, where))
        self._tail = records.pop().raw if records and not records[-1].fields else ""
        self._head = records.pop(0).raw if records and options.header else ""
        self._end = "\r\n" if (self._head or text).partition("\n")[0].endswith("\r") else "\n"
        rows: list[Row] = []
        texts: list[tuple[str, ...]] = []
        for batch in text_batches(definition, options, file, names):
            texts += zip(*([t or "" for t in c.to_pylist()] for c in batch.columns), strict=True)
            columns = [batch.column(p) for p in positions]
            converted = convert_batch(definition, columns, len(rows) + 1, where)
            rows += rows_in(converted)
        # What queries read, and what is cut up here, must be the same records.
        if [record.fields for record in records] != texts:
            raise failed(
                f"{where} has ambiguous quotes or line ends",
                "correct the file with an editor",
            )
        self.records: list[tuple[Record, Row]] = [*zip(records, rows, strict=True)]

    def text_of(self, records: list[Record], added: tuple[Row, ...]) -> str:
        """Return a file with some of the records, to the letter, and rows after them."""
        text = self._head + "".join(record.raw for record in records) + self._tail
        if text and added and not text.endswith(("\n", "\r")):
            text += self._end
        return text + "".join(self._line(row) + self._end for row in added)

    def _line(self, row: Row) -> str:
        fields = zip(self._positions, row, self._definition.schema.dtypes, strict=True)
        delimiter = self._options.delimiter
        texts = {p: _field_text(value, dtype, delimiter) for p, value, dtype in fields}
        return delimiter.join(texts.get(position, "") for position in range(self._width))


def _records_of(text: str, delimiter: str, where: str) -> Iterator[Record]:
    """Yield the records of a file; together their texts are the file's.

    Raises:
        TableError: It is malformed.
    """
    taken: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            taken.append(line)
            yield line

    try:
        for fields in csv.reader(lines(), delimiter=delimiter, strict=True):
            if fields:
                yield Record("".join(taken), tuple(fields))
                taken.clear()
    except csv.Error as error:
        raise TableError(
            f"{where} cannot be changed: {error}",
            hint="correct the file with an editor",
            code="change_failed",
        ) from None
    if taken:
        yield Record("".join(taken), ())


def _field_text(value: Value, dtype: DataType, delimiter: str) -> str:
    """Return a value as it stands in a CSV file; NULL is nothing, an empty text is quoted."""
    if value is None:
        return ""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif dtype == DataType.TIMESTAMP and isinstance(value, int):
        text = timestamp_text(value)
    else:
        text = repr(value) if isinstance(value, float) else str(value)
    special = (delimiter, '"', "\r", "\n")
    if not text or text != text.strip() or any(part in text for part in special):
        return '"' + text.replace('"', '""') + '"'
    return text
