"""INSERT and DELETE on a table in one file of JSON lines: what stays is kept to the letter."""

from pathlib import Path

from static_engine.changing.files import check_unchanged, one_file
from static_engine.changing.json_text import Line, Writer, lines_of
from static_engine.changing.keys import check_keys, keys_of
from static_engine.changing.refusals import failed, not_writable
from static_engine.changing.whole_file import read_whole, replace_whole
from static_engine.sources.declared_options import TableOptions
from static_engine.sources.json_file import read_json
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations, fingerprint
from streamsql.algebra.scalar import compile_predicate
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row
from streamsql.wire.table_changes import TableChange

SUFFIXES = (".json", ".jsonl", ".ndjson")
_MARK = b"\xef\xbb\xbf"


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
    lines = [*lines_of(content, where)]
    tail = lines.pop().raw if lines and lines[-1].item is None else b""
    rows = _rows(definition, file)
    if len(lines) != len(rows):
        raise failed(f"{where} was changed by another process in the meantime", "try again")
    found = [*zip(lines, rows, strict=True)]
    kept = found
    added: tuple[Row, ...] = ()
    if change.delete:
        goes = compile_predicate(change.predicate) if change.predicate is not None else None
        kept = [] if goes is None else [pair for pair in found if not goes(pair[1])]
        if len(kept) == len(found):
            return 0
    else:
        added = tuple(tuple(row) for row in change.rows)
        check_keys(definition, keys_of(definition, rows), keys_of(definition, added))
    expected = [*(row for _, row in kept), *added]
    new = b"".join(line.raw for line, _ in kept) + tail
    new += _added(definition, lines, new, added, where)

    def check(written: Path) -> None:
        try:
            found_again = _rows(definition, written)
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
    """Return the lines of new rows."""
    end = b"\r\n" if lines and lines[0].raw.endswith(b"\r\n") else b"\n"
    start = end if rows and before.removeprefix(_MARK) and not before.endswith(b"\n") else b""
    writer = Writer(definition.schema, [line.item for line in lines if line.item is not None])
    try:
        return start + b"".join(writer.line(row) + end for row in rows)
    except UnicodeEncodeError as error:
        raise failed(f"{where}: a text cannot be written as UTF-8: {error.reason}") from None


def _rows(definition: SourceDefinition, file: Path) -> list[Row]:
    rows: list[Row] = []
    for batch in read_json(definition, (file,)):
        rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return rows
