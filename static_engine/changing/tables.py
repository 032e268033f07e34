"""Rows added to a stored table, or taken from it. So far tables in one CSV file each.

One thread does that, the one that also reads tables: so changes of a file come one after the other,
and no reading sees half of one.
"""

from collections.abc import Iterator
from pathlib import Path

from static_engine.changing.csv_text import Record, field_text, record_text, records_of
from static_engine.changing.whole_file import read_whole, replace_whole
from static_engine.sources.conversion import convert_batch
from static_engine.sources.csv_file import columns_in, read_csv, text_batches
from static_engine.sources.errors import TableError
from static_engine.sources.location import Locations, files_of, fingerprint, resolve
from static_engine.sources.options import TableOptions, table_options
from streamsql.algebra.scalar import compile_predicate
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row
from streamsql.wire.table_changes import TableChange

SUFFIXES = (".csv", ".tsv")
_MARK = "\ufeff"


def change_table(change: TableChange, locations: Locations) -> int:
    """Add rows to a table or take rows from it; return how many.

    The new file is read as a table before it replaces the old one, so it holds what was meant.

    Raises:
        TableError: It cannot be done; the table is as it was.
    """
    definition = change.definition
    options = table_options(definition)
    file = _file_of(definition, options, locations)
    where = f"table {definition.name}: {file.name}"
    before = fingerprint(options, locations)
    content = read_whole(file, where)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise TableError(f"{where} is not UTF-8", hint="save it as UTF-8") from None
    found = _Found(definition, options, file, text.removeprefix(_MARK))
    kept = found.without(change) if change.delete else found.records
    rows = [row for _, row in kept]
    added: tuple[Row, ...] = ()
    if not change.delete:
        added = tuple(tuple(row) for row in change.rows)
        _check_keys(definition, rows, added)
    elif len(kept) == len(found.records):
        return 0
    new = found.text_of([record for record, _ in kept], added)
    expected = [*rows, *added]

    def check(written: Path) -> None:
        if list(_rows(definition, options, written)) != expected:
            raise _failed(
                f"{where} cannot hold these rows",
                "a line of one empty column is none, for instance; give the row another value",
            )
        if fingerprint(options, locations) != before:
            raise _failed(f"{where} was changed by somebody else meanwhile", "try again")

    mark = _MARK if text.startswith(_MARK) else ""
    try:
        encoded = (mark + new).encode()
    except UnicodeEncodeError as error:
        raise _failed(f"{where}: a text cannot be written as UTF-8: {error.reason}") from None
    replace_whole(file, encoded, check, where)
    return len(added) if added else len(found.records) - len(kept)


class _Found:
    """A file as it is: its records, each with its row."""

    def __init__(
        self, definition: SourceDefinition, options: TableOptions, file: Path, text: str
    ) -> None:
        names, positions = columns_in(definition, options, file)
        self._definition, self._options = definition, options
        self._width, self._positions = len(names), positions
        where = f"table {definition.name}: {file.name}"
        records = list(records_of(text, options.delimiter, where))
        self._tail = records.pop().raw if records and not records[-1].fields else ""
        self._head = records.pop(0).raw if records and options.header else ""
        self._end = "\r\n" if (self._head or text).partition("\n")[0].endswith("\r") else "\n"
        rows: list[Row] = []
        texts: list[tuple[str, ...]] = []
        for batch in text_batches(definition, options, file, names):
            texts += zip(*([t or "" for t in c.to_pylist()] for c in batch.columns), strict=True)
            columns = [batch.column(p) for p in positions]
            converted = convert_batch(definition, columns, len(rows) + 1, where)
            rows += zip(*(column.to_pylist() for column in converted.columns), strict=True)
        # What queries read, and what is cut up here, must be the same records.
        if [record.fields for record in records] != texts:
            raise _failed(
                f"{where} has quotes or line ends that can be read in two ways",
                "correct the file with an editor",
            )
        self.records: list[tuple[Record, Row]] = [*zip(records, rows, strict=True)]

    def without(self, change: TableChange) -> list[tuple[Record, Row]]:
        """Return the records that a DELETE leaves."""
        if change.predicate is None:
            return []
        goes = compile_predicate(change.predicate)
        return [(record, row) for record, row in self.records if not goes(row)]

    def text_of(self, records: list[Record], added: tuple[Row, ...]) -> str:
        """Return a file with some of the records, to the letter, and rows after them."""
        text = self._head + "".join(record.raw for record in records) + self._tail
        if text and added and not text.endswith(("\n", "\r")):
            text += self._end
        return text + "".join(self._line(row) + self._end for row in added)

    def _line(self, row: Row) -> str:
        fields = zip(self._positions, row, self._definition.schema.dtypes, strict=True)
        delimiter = self._options.delimiter
        texts = {p: field_text(value, dtype, delimiter) for p, value, dtype in fields}
        return record_text(texts, self._width, delimiter)


def _file_of(definition: SourceDefinition, options: TableOptions, locations: Locations) -> Path:
    """Return the file of a table.

    Raises:
        TableError: It is none that is changed here.
    """
    if options.source != "csv":
        raise _not_writable(definition, f"is read from {options.source}")
    if resolve(options.path, locations).is_dir():
        raise _not_writable(definition, "is a folder of files")
    (file,) = files_of(options.path, locations, ".csv")
    if file.suffix.lower() not in SUFFIXES:
        raise _not_writable(definition, f"is in {file.name}, and no {' or '.join(SUFFIXES)} file")
    return file


def _rows(definition: SourceDefinition, options: TableOptions, file: Path) -> Iterator[Row]:
    for batch in read_csv(definition, options, (file,)):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _check_keys(definition: SourceDefinition, rows: list[Row], added: tuple[Row, ...]) -> None:
    if not definition.key:
        return
    names = ", ".join(definition.schema.names[k] for k in definition.key)
    seen = {tuple(row[k] for k in definition.key) for row in rows}
    for row in added:
        key = tuple(row[k] for k in definition.key)
        shown = ", ".join("NULL" if part is None else repr(part) for part in key)
        if None in key:
            raise TableError(
                f"table {definition.name}: NULL in the primary key ({names}) = ({shown:.120})",
                hint="give every column of the key a value",
                code="duplicate_key",
            )
        if key in seen:
            raise TableError(
                f"table {definition.name} has a row of the primary key "
                f"({names}) = ({shown:.120}) already",
                hint="DELETE that row first, or give this one another key",
                code="duplicate_key",
            )
        seen.add(key)


def _not_writable(definition: SourceDefinition, why: str) -> TableError:
    return TableError(
        f"table {definition.name} {why}: INSERT and DELETE change tables in one plain CSV file",
        hint="change it where it is kept; what has changed there is read again",
        code="not_writable",
    )


def _failed(message: str, hint: str = "") -> TableError:
    return TableError(message, hint=hint, code="change_failed")
