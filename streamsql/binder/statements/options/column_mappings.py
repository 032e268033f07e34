"""Clauses behind a column's type: where its value comes from and what it means."""

from typing import Any, Never

import msgspec

from streamsql.data.schema import Field
from streamsql.data.types import DataType, Value, coerce
from streamsql.errors import BindingError, Span
from streamsql.mapping.field_path import fact_name
from streamsql.mapping.payloads.payload_reader import PayloadReader
from streamsql.mapping.source_mapping import ColumnMapping
from streamsql.syntax.statement_parsers.column_clauses import EXAMPLES
from streamsql.syntax.statements import ColumnClause, ColumnDefinition, ValueMeaning

_ATTRIBUTES = {
    "FROM": "path",
    "FORMAT": "format",
    "ZONE": "zone",
    "UNIT": "unit",
    "IN": "unit_in",
    "SCALE": "scale",
    "OFFSET": "offset",
    "VALUES": "values",
}
"""Attributes of a `ColumnMapping` by clause, in the order in which clauses are checked."""


def column_mapping(column: ColumnDefinition, reader: PayloadReader) -> ColumnMapping:
    """Return what a column's clauses say.

    Args:
        column: As parsed.
        reader: Of the source's payloads: knows their paths and formats.

    Raises:
        BindingError: A clause does not fit the column's type, or its value is wrong.
    """
    clauses = {clause.word: clause for clause in column.clauses}
    if "IN" in clauses and "UNIT" not in clauses:
        _refuse(
            clauses["IN"],
            f"IN is the device's unit of {column.name.text!r}, but the column has no unit",
            clauses["IN"].span,
            hint=f"add the unit of the column: {EXAMPLES['IN']}",
        )
    mapping = ColumnMapping()
    for word, attribute in _ATTRIBUTES.items():
        clause = clauses.get(word)
        if clause is None:
            continue
        value = _value(clause, column.dtype)
        mapping = msgspec.structs.replace(mapping, **{attribute: value})
        # What was right with the clauses before it is wrong because of this one.
        _check(clause, column, mapping, reader)
    return mapping


def _value(clause: ColumnClause, dtype: DataType) -> Any:
    match clause.value:
        case str():
            text = clause.value.strip()
            return text or _refuse(clause, f"{clause.word} is empty", clause.value_span)
        case tuple():
            return _values(clause, clause.value, dtype)
        case number:
            if clause.word == "SCALE" and number == 0:
                _refuse(clause, "SCALE 0 makes all values equal", clause.value_span)
            return number


def _check(
    clause: ColumnClause,
    column: ColumnDefinition,
    mapping: ColumnMapping,
    reader: PayloadReader,
) -> None:
    try:
        if clause.word == "FROM":
            if fact_name(mapping.path) is None:
                reader.getter(mapping.path)
        else:
            reader.conversion(Field(column.name.text, column.dtype), mapping)
    except ValueError as error:
        _refuse(clause, f"column {column.name.text}: {error}", clause.value_span)


def _values(
    clause: ColumnClause, meanings: tuple[ValueMeaning, ...], dtype: DataType
) -> tuple[tuple[str, Value], ...]:
    found: dict[str, Value] = {}
    for meaning in meanings:
        if meaning.raw in found:
            _refuse(clause, f"VALUES names {meaning.raw!r:.40} twice", meaning.span)
        try:
            found[meaning.raw] = coerce(meaning.value, dtype)
        except ValueError as error:
            hint = f"write a {dtype} behind {meaning.raw!r:.40} ="
            _refuse(clause, f"VALUES: {error}", meaning.value_span, hint=hint)
    return tuple(found.items())


def _refuse(clause: ColumnClause, message: str, span: Span, *, hint: str = "") -> Never:
    raise BindingError(message, span=span, hint=hint or EXAMPLES[clause.word], code="bad_clause")
