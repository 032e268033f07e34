"""The columns of a source, compiled: where each value is looked up and how it is converted."""

import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

import msgspec

from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType, Value
from streamsql.mapping.conversions import Conversion
from streamsql.mapping.field_path import Getter, fact_name
from streamsql.mapping.payloads.payload_reader import PayloadReader
from streamsql.mapping.source_mapping import (
    SPARKPLUG_IDENTITY,
    ColumnMapping,
    PayloadFormat,
    SourceMapping,
)
from streamsql.mapping.time_formats import checked_time

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]{0,62})\}")
_TIME_FACTS = frozenset({"arrival", "time"})


class Origin(IntEnum):
    """Part of a message that a column's getter reads."""

    ELEMENT = 0
    ROOT = 1
    FACTS = 2


class RowColumn(NamedTuple):
    """A column: its getter's result goes through the conversion."""

    name: str
    get: Getter
    convert: Conversion


class Condition(NamedTuple):
    """One condition of the option `only`; `wanted` None: the field is there."""

    get: Getter
    is_fact: bool
    wanted: str | None


class RowColumns(msgspec.Struct, frozen=True):
    """The columns of a source by what they read, and apart from them its event time.

    Attributes:
        of_root: Those that read the payload's root, where rows are elements of it; with its event
            time, if that does.
        need_arrival: Whether a column or a condition reads `@arrival`.
    """

    of_element: tuple[RowColumn, ...]
    of_root: tuple[RowColumn, ...]
    of_facts: tuple[RowColumn, ...]
    time: RowColumn | None
    time_is_fact: bool
    need_arrival: bool


def compile_columns(
    mapping: SourceMapping, schema: Schema, time_column: int | None, reader: PayloadReader
) -> RowColumns:
    """Compile all columns of a source.

    Raises:
        ValueError: A clause of a column is wrong; the text names the column.
    """
    if len(mapping.columns) != len(schema):
        raise ValueError(f"{len(mapping.columns)} columns are mapped; the source has {len(schema)}")
    found: dict[Origin, list[RowColumn]] = {origin: [] for origin in Origin}
    time: RowColumn | None = None
    time_is_fact = False
    fed = 0
    for position, (field, path) in enumerate(column_paths(mapping, schema)):
        column = mapping.columns[position]
        if not path.startswith("@"):
            path = path or reader.default_path(field.name, fed)  # noqa: PLW2901
            fed += 1
        try:
            compiled, origin = _compiled(field, column, path, reader)
        except ValueError as error:
            raise ValueError(f"column {field.name}: {error}") from None
        if origin == Origin.ROOT and not mapping.rows:
            origin = Origin.ELEMENT
        if position == time_column:
            time, time_is_fact = compiled, origin == Origin.FACTS
        if position != time_column or origin == Origin.ROOT:
            found[origin].append(compiled)
    return RowColumns(
        tuple(found[Origin.ELEMENT]),
        tuple(found[Origin.ROOT]),
        tuple(found[Origin.FACTS]),
        time,
        time_is_fact,
        _needs_arrival(mapping),
    )


def conditions_of(mapping: SourceMapping, reader: PayloadReader) -> tuple[Condition, ...]:
    """Compile the option `only`.

    Raises:
        ValueError: A path of it is wrong.
    """
    found: list[Condition] = []
    for path, wanted in mapping.only:
        try:
            fact = fact_name(path)
            get = reader.getter(path)[0] if fact is None else _fact(fact)
        except ValueError as error:
            raise ValueError(f"only: {error}") from None
        found.append(Condition(get, fact is not None, wanted))
    return tuple(found)


def topic_names(mapping: SourceMapping) -> frozenset[str]:
    """Return the `{names}` in the connector's options; each feeds the column of its name."""
    return frozenset(name for _, text in mapping.options for name in _PLACEHOLDER.findall(text))


def fact_columns(mapping: SourceMapping) -> frozenset[str]:
    """Return the names of columns that a fact feeds where they have no FROM."""
    named = topic_names(mapping)
    return named | set(SPARKPLUG_IDENTITY) if mapping.format == PayloadFormat.SPARKPLUG else named


def column_paths(mapping: SourceMapping, schema: Schema) -> Iterator[tuple[Field, str]]:
    """Yield each column with its FROM, or an `@` and the fact that feeds it, or nothing."""
    levels = fact_columns(mapping)
    for field, column in zip(schema.fields, mapping.columns, strict=True):
        yield field, column.path or (f"@{field.name}" if field.name in levels else "")


def _compiled(
    field: Field, column: ColumnMapping, path: str, reader: PayloadReader
) -> tuple[RowColumn, Origin]:
    convert = reader.conversion(field, column)
    fact = fact_name(path)
    if fact is not None:
        if fact in _TIME_FACTS and field.dtype == DataType.TIMESTAMP:
            convert = _time_itself
        return RowColumn(field.name, _fact(fact), convert), Origin.FACTS
    get, from_root = reader.getter(path)
    return RowColumn(field.name, get, convert), Origin.ROOT if from_root else Origin.ELEMENT


def _fact(name: str) -> Getter:
    def get(facts: object) -> object:
        return facts.get(name) if isinstance(facts, Mapping) else None

    return get


def _time_itself(value: object) -> Value:
    """Return a time that is one: facts of time are microseconds already."""
    return checked_time(value) if type(value) is int else None


def _needs_arrival(mapping: SourceMapping) -> bool:
    paths = [column.path for column in mapping.columns] + [path for path, _ in mapping.only]
    paths += [path for path, _, _ in mapping.only_rows]
    return "@arrival" in paths
