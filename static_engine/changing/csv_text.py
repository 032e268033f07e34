"""The text of a CSV file as its records, and rows as records: what stays is kept to the letter."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from static_engine.sources.table_errors import TableError
from streamsql.data.types import DataType, Value, timestamp_text


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    Attributes:
        raw: Its text with the end of its line, and the blank lines before it.
        fields: Its values; none for what follows the last record.
    """

    raw: str
    fields: tuple[str, ...]


def records_of(text: str, delimiter: str, where: str) -> Iterator[Record]:
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


def record_text(fields: Mapping[int, str], width: int, delimiter: str) -> str:
    """Return a line, without its end, of fields by their position in the file."""
    return delimiter.join(fields.get(position, "") for position in range(width))


def field_text(value: Value, dtype: DataType, delimiter: str) -> str:
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
