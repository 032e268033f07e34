"""INSERT and DELETE on a table in one CSV file: what stays is kept to the letter."""

from collections.abc import Iterator
from pathlib import Path

from static_engine.changing.csv_text import Record, field_text, record_text, records_of
from static_engine.changing.files import check_unchanged, one_file
from static_engine.changing.keys import check_keys, keys_of
from static_engine.changing.refusals import failed
from static_engine.changing.whole_file import read_whole, replace_whole
from static_engine.sources.conversion import convert_batch
from static_engine.sources.csv_file import columns_in, read_csv, text_batches
from static_engine.sources.declared_options import TableOptions
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations, fingerprint
from streamsql.algebra.scalar import compile_predicate
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row
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
    kept = found.without(change) if change.delete else found.records
    rows = [row for _, row in kept]
    added: tuple[Row, ...] = ()
    if not change.delete:
        added = tuple(tuple(row) for row in change.rows)
        check_keys(definition, keys_of(definition, rows), keys_of(definition, added))
    elif len(kept) == len(found.records):
        return 0
    new = found.text_of([record for record, _ in kept], added)
    expected = [*rows, *added]

    def check(written: Path) -> None:
        if list(_rows(definition, options, written)) != expected:
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
            raise failed(
                f"{where} has ambiguous quotes or line ends",
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


def _rows(definition: SourceDefinition, options: TableOptions, file: Path) -> Iterator[Row]:
    for batch in read_csv(definition, options, (file,)):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
