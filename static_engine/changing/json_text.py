"""The lines of a JSON file, and rows as lines: what stays is kept to the letter."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from static_engine.sources.table_errors import TableError
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value, timestamp_text

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


def lines_of(content: bytes, where: str) -> Iterator[Line]:
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


class Writer:
    """Writes rows as the objects that are there: names as they are spelled, times as they stand.

    Args:
        schema: Of the table.
        items: The objects that are there.
    """

    def __init__(self, schema: Schema, items: Sequence[dict[str, object]]) -> None:
        spelled: dict[str, str] = {}
        sample: dict[str, object] = {}
        for item in items:
            for name, value in item.items():
                folded = name.strip().lower()
                spelled.setdefault(folded, name)
                if value is not None:
                    sample.setdefault(folded, value)
        self._columns = [
            (
                spelled.get(field.name.lower(), field.name),
                # A whole number is microseconds; of a fraction, which is seconds, we write no more.
                field.dtype == DataType.TIMESTAMP
                and not isinstance(sample.get(field.name.lower()), int),
            )
            for field in schema.fields
        ]

    def line(self, row: Row) -> bytes:
        """Return a row's line without its end.

        Raises:
            UnicodeEncodeError: A text is none.
        """
        item = {
            name: _written(value, as_text=as_text)
            for (name, as_text), value in zip(self._columns, row, strict=True)
        }
        return msgspec.json.encode(item)


def _written(value: Value, *, as_text: bool) -> Value:
    return timestamp_text(value) if as_text and isinstance(value, int) else value
