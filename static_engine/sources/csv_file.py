"""Read CSV files (RFC 4180, any one-character delimiter, UTF-8).

An empty field is NULL; an empty text is written as "".
"""

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc

from static_engine.sources.csv_quotes import open_quote
from static_engine.sources.declared_options import TableOptions
from static_engine.sources.table_errors import TableError
from static_engine.sources.values.column_matching import match_columns
from static_engine.sources.values.conversion import convert_batch
from streamsql.catalog.definitions import SourceDefinition

_BLOCK_BYTES = 4 << 20
_MAX_COLUMNS = 4_096


def read_csv(
    definition: SourceDefinition, options: TableOptions, files: tuple[Path, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of CSV files in the declared types.

    Raises:
        TableError: A file is malformed, lacks a column, or holds a value of another type.
    """
    for file in files:
        row = 1
        names, positions = columns_in(definition, options, file)
        for batch in text_batches(definition, options, file, names):
            columns = [batch.column(p) for p in positions]
            yield convert_batch(definition, columns, row, _where(definition, file))
            row += batch.num_rows


def columns_in(
    definition: SourceDefinition, options: TableOptions, file: Path
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the file's columns, by numbers (names may repeat), and those that are declared."""
    _check_text(definition, file, options.delimiter)
    parsing = pc.ParseOptions(delimiter=options.delimiter, newlines_in_values=True)
    # Lines of other lengths are judged when the rows are read; here only the first one counts.
    parsing.invalid_row_handler = lambda _row: "skip"
    reading = pc.ReadOptions(autogenerate_column_names=True, use_threads=False)
    texts = {f"f{i}": pa.string() for i in range(_MAX_COLUMNS)}
    converting = pc.ConvertOptions(column_types=texts, strings_can_be_null=False)
    with _translated(definition, file), pc.open_csv(file, reading, parsing, converting) as reader:
        count = len(reader.schema.names)
        first = reader.read_next_batch().slice(0, 1)
    names = tuple(str(i) for i in range(count))
    if options.header:
        header = ["" if v is None else str(v) for v in first.to_pylist()[0].values()]
        return names, match_columns(definition, header, f"the header of {file.name}")
    if count != len(definition.schema):
        raise TableError(
            f"table {definition.name}: {file.name} has {count} columns, "
            f"declared are {len(definition.schema)}: {definition.schema}",
            hint="without a header, declare all columns in the order of the file",
        )
    return names, tuple(range(count))


def text_batches(
    definition: SourceDefinition, options: TableOptions, file: Path, names: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file as texts: every column of it; None where a field is empty."""
    bad: list[pc.InvalidRow] = []

    def note(row: pc.InvalidRow) -> str:
        bad.append(row)
        return "error"

    parsing = pc.ParseOptions(delimiter=options.delimiter, newlines_in_values=True)
    parsing.invalid_row_handler = note
    reading = pc.ReadOptions(
        column_names=list(names),
        skip_rows_after_names=int(options.header),
        block_size=_BLOCK_BYTES,
        use_threads=False,
    )
    converting = pc.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    with (
        _translated(definition, file, bad, int(options.header)),
        pc.open_csv(file, reading, parsing, converting) as reader,
    ):
        yield from reader


@contextmanager
def _translated(
    definition: SourceDefinition,
    file: Path,
    bad: list[pc.InvalidRow] | None = None,
    header: int = 0,
) -> Iterator[None]:
    where = _where(definition, file)
    try:
        yield
    except pa.ArrowInvalid as error:
        if bad:
            row = bad[0]
            number = "" if row.number is None else f" {row.number - header}"
            raise TableError(
                f"{where}: row{number} has {row.actual_columns} fields, "
                f"expected {row.expected_columns}: {row.text[:120]!r}",
                hint="put quotes around fields that contain the delimiter",
            ) from None
        if "Empty CSV" in str(error):
            raise TableError(f"{where} is empty", hint="a header line is expected") from None
        raise TableError(f"{where} is not CSV: {error}") from error
    except OSError as error:
        raise TableError(f"{where} cannot be read: {error.strerror or error}") from error


def _where(definition: SourceDefinition, file: Path) -> str:
    return f"table {definition.name}: {file.name}"


def _check_text(definition: SourceDefinition, file: Path, delimiter: str) -> None:
    """Check a file before the parser sees it, which could not hand a row of other bytes to us.

    Raises:
        TableError: It is no UTF-8, or a quote is not closed; says in which line.
    """
    where = _where(definition, file)
    decoder = codecs.getincrementaldecoder("utf-8")()
    quotes = 0
    try:
        for block in _blocks(file):
            decoder.decode(block)
            quotes += block.count(b'"')
        decoder.decode(b"", final=True)
        # Only then one of them may be open: the exact look is slower.
        place = open_quote(_blocks(file), delimiter) if quotes % 2 else None
    except UnicodeDecodeError:
        line = _line_not_utf8(file)
        raise TableError(f"{where}: line {line} is not UTF-8", hint="save it as UTF-8") from None
    except OSError as error:
        raise TableError(f"{where} cannot be read: {error.strerror or error}") from error
    if place is not None:
        raise TableError(
            f"{where}: the quote that opens in line {_line_at(file, place)} is not closed",
            hint="close it, or write a quote in a text twice",
        )


def _blocks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as content:
        while block := content.read(_BLOCK_BYTES):
            yield block


def _line_at(file: Path, place: int) -> int:
    """Return the number of the line with a byte."""
    line = 1
    for block in _blocks(file):
        line += block.count(b"\n", 0, max(place, 0))
        place -= len(block)
        if place < 0:
            break
    return line


def _line_not_utf8(file: Path) -> int:
    """Return the first line that is no UTF-8, or 0."""
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 0
