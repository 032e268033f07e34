"""Payloads as JSON, text and CSV, and values that a connector hands over by address."""

import io
from collections.abc import Iterator
from typing import Any

import msgspec
from typing_extensions import override

from streamsql.data.schema import Field
from streamsql.mapping.conversions import Conversion, conversion_of
from streamsql.mapping.field_path import MISSING, Getter
from streamsql.mapping.payloads.payload_reader import (
    MAX_DEPTH,
    Element,
    FieldPathReader,
    PlainReader,
    RefusedRow,
    check_depth,
)
from streamsql.mapping.source_mapping import ColumnMapping

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class JsonReader(FieldPathReader):
    """JSON: paths are field paths."""

    def __init__(self, rows: str = "") -> None:
        """Make the decoder."""
        super().__init__(rows)
        self._decode: msgspec.json.Decoder[Any] = msgspec.json.Decoder()

    def decode(self, payload: bytes, arrival: int) -> object:  # noqa: ARG002
        """Return the payload's objects, arrays and values."""
        payload = payload.removeprefix(_BYTE_ORDER_MARK)
        try:
            root = self._decode.decode(payload)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"it is no JSON: {error!s:.100}") from None
        # Few payloads have so many brackets at all.
        if payload.count(b"{") + payload.count(b"[") > MAX_DEPTH:
            check_depth(root)
        return root


class FieldsReader(PlainReader):
    """Values that a connector hands over: FROM is its own address of the value, verbatim."""

    @override
    def conversion(self, field: Field, column: ColumnMapping) -> Conversion:
        """Compile the clauses behind FROM; FORMAT may be the device's data type."""
        return conversion_of(field, column, device_format=True)

    def getter(self, path: str) -> tuple[Getter, bool]:
        """Return the look-up of an address."""
        return cell(path), False

    def decode(self, payload: bytes, arrival: int) -> object:  # noqa: ARG002
        """Refuse: there is no payload."""
        raise ValueError("the format is fields: its connector hands over values, no payload")


class TextReader(PlainReader):
    """Text: the whole payload is the value of every column without FROM."""

    @override
    def default_path(self, name: str, position: int) -> str:
        """Return the path of the text."""
        return "."

    def getter(self, path: str) -> tuple[Getter, bool]:
        """Return what reads the text."""
        if path not in {".", "$", "value"}:
            raise ValueError(f"{path!r:.60}: a text has one value; leave FROM out")
        return _itself, False

    def decode(self, payload: bytes, arrival: int) -> object:  # noqa: ARG002
        """Return the text without white space around it."""
        return _text(payload).strip()


class CsvReader(PlainReader):
    """CSV: a line is a row; FROM is the name in the header, or `[0]` where there is none."""

    def __init__(self, *, delimiter: str, header: bool) -> None:
        """Look at the delimiter.

        Raises:
            ValueError: It is not one character.
        """
        self._delimiter = "\t" if delimiter == "\\t" else delimiter
        self._header = header
        if len(self._delimiter) != 1 or self._delimiter in '"\r\n\0':
            raise ValueError(f"delimiter {delimiter!r:.20} is not one character, such as ; or \\t")

    @override
    def default_path(self, name: str, position: int) -> str:
        """Return the header's name of the column, or its cell."""
        return name if self._header else f"[{position}]"

    def getter(self, path: str) -> tuple[Getter, bool]:
        """Return what reads a cell."""
        if self._header:
            return cell(path), False
        getter, from_root = FieldPathReader().getter(path)
        if from_root or not path.startswith("["):
            raise ValueError(f"{path!r:.60}: a line without a header has cells [0], [1], …")
        return getter, False

    def decode(self, payload: bytes, arrival: int) -> object:  # noqa: ARG002
        """Return the payload's text."""
        return _text(payload)

    @override
    def elements(self, root: object) -> Iterator[Element]:
        """Yield the lines; an empty cell is NULL."""
        import csv  # noqa: PLC0415 - most gateways read no CSV

        lines = csv.reader(io.StringIO(str(root), newline=""), delimiter=self._delimiter)
        names: list[str] | None = None
        index = 0
        while True:
            try:
                cells = next(lines)
            except StopIteration:
                return
            except csv.Error as error:
                raise ValueError(f"line {lines.line_num}: {error!s:.100}") from None
            if not cells:
                continue
            if self._header and names is None:
                names = [name.strip() for name in cells]
                continue
            facts = {"index": index}
            index += 1
            values = [cell or None for cell in cells]
            if names is None:
                yield facts, values
            elif len(values) == len(names):
                yield facts, dict(zip(names, values, strict=True))
            else:
                yield facts, RefusedRow(f"{len(values)} cells under {len(names)} names")


def _text(payload: bytes) -> str:
    try:
        return payload.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no text in UTF-8 at byte {error.start}") from None


def _itself(element: object) -> object:
    return element


def cell(name: str) -> Getter:
    """Return the look-up of one key of an object."""

    def get(element: object) -> object:
        return element.get(name, MISSING) if isinstance(element, dict) else MISSING

    return get
