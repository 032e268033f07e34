"""Protocol of payload formats: decode, split into rows, find a field in a row."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import msgspec
from typing_extensions import override

from streamsql.data.schema import Field
from streamsql.data.types import Value
from streamsql.mapping.conversions import Conversion, conversion_of
from streamsql.mapping.field_path import (
    MISSING,
    Getter,
    compile_getter,
    elements_of,
    parse_field_path,
)
from streamsql.mapping.source_mapping import ColumnMapping

MAX_PAYLOAD = 1_000_000
MAX_DEPTH = 64
MAX_ROWS = 10_000

NO_FACTS: Mapping[str, Value] = {}


class RefusedRow(msgspec.Struct, frozen=True):
    """An element of a payload that is no row, and why."""

    reason: str


Element = tuple[Mapping[str, Value], object]
"""Facts of one row alone (`@key`, `@index`, `@device`, …), and what its paths read."""


class PayloadReader(Protocol):
    """One payload format, compiled for one source."""

    def default_path(self, name: str, position: int) -> str:
        """Return the path of a column without FROM.

        Args:
            name: Of the column.
            position: Among the columns that the payload feeds.
        """

    def getter(self, path: str) -> tuple[Getter, bool]:
        """Compile a path; whether it begins at the payload's root instead of the row's element.

        Raises:
            ValueError: It is no path of this format.
        """

    def conversion(self, field: Field, column: ColumnMapping) -> Conversion:
        """Compile the clauses behind FROM: from what the getter returns to the column's value.

        Raises:
            ValueError: A clause is wrong or does not fit the column's type.
        """

    def decode(self, payload: bytes, arrival: int) -> object:
        """Return the payload's root.

        Args:
            payload: At most 1 MB.
            arrival: Microseconds since 1970, for times that are relative to it.

        Raises:
            ValueError: The payload is not of this format; the text says why.
        """

    def elements(self, root: object) -> Iterable[Element] | None:
        """Return the elements that are rows, or None: the root is the only one.

        Raises:
            ValueError: There is nothing of which there could be rows.
        """


class PlainReader:
    """Base of the readers of most formats."""

    def default_path(self, name: str, position: int) -> str:  # noqa: ARG002
        """Return the column's name."""
        return name

    def conversion(self, field: Field, column: ColumnMapping) -> Conversion:
        """Compile the clauses behind FROM."""
        return conversion_of(field, column)

    def elements(self, root: object) -> Iterator[Element] | None:  # noqa: ARG002
        """Return None: a payload is a row."""
        return None


class FieldPathReader(PlainReader):
    """Formats whose payload is made of objects, arrays and values; base of their readers."""

    def __init__(self, rows: str = "") -> None:
        """Parse the option `rows`.

        Raises:
            ValueError: It is no field path.
        """
        self._rows_text = rows
        self._rows = parse_field_path(rows, with_elements=True).steps if rows else None

    @override
    def default_path(self, name: str, position: int) -> str:
        """Return the field of the column's name."""
        escaped = name.replace("\\", "\\\\").replace('"', '\\"')
        return f'["{escaped}"]'

    def getter(self, path: str) -> tuple[Getter, bool]:
        """Compile a field path; see `PayloadReader`."""
        parsed = parse_field_path(path)
        return compile_getter(parsed.steps), parsed.from_root

    @override
    def elements(self, root: object) -> Iterator[Element] | None:
        """Return the elements that `rows` reaches; see `PayloadReader`."""
        if self._rows is None:
            return None
        found = elements_of(root, self._rows)
        first = next(found, None)
        if first is None:
            self._check_there(root)
            return iter(())
        return _with_places(first, found)

    def _check_there(self, root: object) -> None:
        steps = self._rows or ()
        outer = compile_getter(steps[: steps.index(None)] if None in steps else steps)(root)
        if outer is MISSING or not isinstance(outer, dict | list):
            raise ValueError(f"rows {self._rows_text!r:.60}: there is no array or object")


def check_depth(root: object) -> None:
    """Look that nothing lies deeper than 64 arrays and objects.

    Raises:
        ValueError: Something does.
    """
    level: list[object] = [root]
    for _ in range(MAX_DEPTH + 1):
        below: list[object] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
        if not below:
            return
        level = below
    raise ValueError(f"it is nested deeper than {MAX_DEPTH}")


def _with_places(
    first: tuple[object, object], others: Iterator[tuple[object, object]]
) -> Iterator[Element]:
    place, element = first
    yield _facts(place), element
    for place, element in others:
        yield _facts(place), element


def _facts(place: object) -> Mapping[str, Value]:
    return {"index": place} if isinstance(place, int) else {"key": str(place)}
