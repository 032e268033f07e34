"""A proposed source: what CREATE SOURCE would say, as values and as text."""

import msgspec

from streamsql.algebra.operators import SourceKind
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType
from streamsql.errors import Span
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from streamsql.syntax.script_places import Script
from streamsql.syntax.source_text import source_text
from streamsql.syntax.statements import (
    ColumnClause,
    ColumnDefinition,
    CreateSource,
    Name,
    Option,
    ValueMeaning,
)

TIME = "ts"
"""The column of this name is the event time."""

_UNSAID = (PayloadFormat.JSON, PayloadFormat.FIELDS)
"""Formats that a connector has without the option."""

_NOWHERE = Span(1, 1, "")


class ProposedColumn(msgspec.Struct, frozen=True):
    """One column."""

    name: str
    dtype: DataType
    origin: ColumnMapping = ColumnMapping()


class Proposal(msgspec.Struct, frozen=True):
    """A source that could be created.

    Attributes:
        columns: At least one.
        key: Positions of the columns whose newest row is kept; empty: every message is a row.
        mapping: Without columns: they have theirs.
        title: What it is, for people: a device's model, or the topics.
        topics: On which topics its payloads came, as far as they are known.
        samples: How many of the payloads that were looked at are its.
    """

    name: str
    columns: tuple[ProposedColumn, ...]
    key: tuple[int, ...]
    settings: SourceMapping
    title: str = ""
    topics: tuple[str, ...] = ()
    samples: int = 0

    @property
    def schema(self) -> Schema:
        """Its columns."""
        return Schema(tuple(Field(column.name, column.dtype) for column in self.columns))

    @property
    def time_column(self) -> int | None:
        """Position of the event time."""
        for position, column in enumerate(self.columns):
            if column.name == TIME and column.dtype == DataType.TIMESTAMP:
                return position
        return None

    @property
    def mapping(self) -> SourceMapping:
        """Origin of the values."""
        origins = tuple(column.origin for column in self.columns)
        return msgspec.structs.replace(self.settings, columns=origins)

    @property
    def text(self) -> str:
        """The statement."""
        return source_text(
            CreateSource(
                text="",
                span=_NOWHERE,
                script=Script(""),
                name=_name(self.name),
                kind=SourceKind.STREAM,
                columns=tuple(_column(column) for column in self.columns),
                key=tuple(_name(self.columns[position].name) for position in self.key),
                options=_options(self.settings),
            )
        )


def _name(text: str) -> Name:
    return Name(text, _NOWHERE)


def _column(column: ProposedColumn) -> ColumnDefinition:
    origin = column.origin
    texts = {
        "FROM": origin.path,
        "FORMAT": origin.format,
        "ZONE": origin.zone,
        "IN": origin.unit_in,
        "UNIT": origin.unit,
    }
    clauses = [_clause(word, text) for word, text in texts.items() if text]
    if origin.values:
        meanings = tuple(
            ValueMeaning(said, value, _NOWHERE, _NOWHERE) for said, value in origin.values
        )
        clauses.append(_clause("VALUES", meanings))
    return ColumnDefinition(_name(column.name), column.dtype, clauses=tuple(clauses))


def _clause(word: str, value: str | tuple[ValueMeaning, ...]) -> ColumnClause:
    return ColumnClause(word, value, _NOWHERE, _NOWHERE)


def _options(mapping: SourceMapping) -> tuple[Option, ...]:
    """Return the WITH clause; what is the default is left out."""
    only = ", ".join(path if said is None else f"{path}={said}" for path, said in mapping.only)
    texts = {
        "connector": mapping.connector,
        "endpoint": mapping.endpoint,
        "gateways": ", ".join(mapping.gateways),
        **dict(mapping.options),
        "format": "" if mapping.format in _UNSAID else str(mapping.format),
        "rows": mapping.rows,
        "only": only,
        "only_rows": ", ".join(map("".join, mapping.only_rows)),
    }
    if mapping.format == PayloadFormat.CSV:
        texts["delimiter"] = {",": "", "\t": "tab"}.get(mapping.delimiter, mapping.delimiter)
        texts["header"] = "" if mapping.header else "false"
    return tuple(Option(name, text, _NOWHERE, _NOWHERE) for name, text in texts.items() if text)
