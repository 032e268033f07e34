"""The canonical text of CREATE SOURCE: one line per column, its clauses always in one order."""

import re
from collections.abc import Iterator

from streamsql.algebra.operators import SourceKind
from streamsql.data.durations import duration_text
from streamsql.data.types import Value
from streamsql.syntax.cursor import is_reserved
from streamsql.syntax.statement_parsers.column_clauses import EXAMPLES
from streamsql.syntax.statements import ColumnClause, ColumnDefinition, CreateSource, Watermark

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_ELEMENTS = frozenset({"key", "primary", "watermark"})
"""Words that begin an element of CREATE SOURCE that is no column."""


def source_text(statement: CreateSource) -> str:
    """Return a text that parses to the same source or link source."""
    kind = "LINK SOURCE" if statement.kind == SourceKind.LINK else "SOURCE"
    elements = ",\n".join(f"  {element}" for element in _elements(statement))
    options = ", ".join(f"{option.name} = {_quoted(option.value)}" for option in statement.options)
    text = f"CREATE {kind} {name_text(statement.name.text)} (\n{elements}\n)"
    return f"{text} WITH ({options})" if options else text


def _elements(statement: CreateSource) -> Iterator[str]:
    yield from (_column(column) for column in statement.columns)
    if statement.key:
        yield f"KEY ({', '.join(name_text(name.text) for name in statement.key)})"
    if statement.watermark is not None:
        yield _watermark(statement.watermark)


def _column(column: ColumnDefinition) -> str:
    order = tuple(EXAMPLES)
    clauses = sorted(column.clauses, key=lambda clause: order.index(clause.word))
    words = [name_text(column.name.text), str(column.dtype)]
    return " ".join([*words, *(f"{clause.word} {_value(clause)}" for clause in clauses)])


def _value(clause: ColumnClause) -> str:
    match clause.value:
        case str():
            return _quoted(clause.value)
        case tuple():
            pairs = (f"{_quoted(m.raw)} = {_literal(m.value)}" for m in clause.value)
            return f"({', '.join(pairs)})"
        case float():
            return _number(clause.value)


def _watermark(watermark: Watermark) -> str:
    column = name_text(watermark.column.text)
    late = f" - INTERVAL '{duration_text(watermark.lateness)}'" if watermark.lateness else ""
    return f"WATERMARK FOR {column} AS {column}{late}"


def name_text(name: str) -> str:
    """Return a name as it is written: in double quotes where it must be.

    Examples:
        >>> name_text("room"), name_text("Room"), name_text("order")
        ('room', '"Room"', '"order"')
    """
    if _PLAIN.fullmatch(name) and not is_reserved(name) and name not in _ELEMENTS:
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _quoted(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def _literal(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return _quoted(value)
        case _:
            return _number(value)


def _number(number: float) -> str:
    is_short = abs(number) < 2**53 and number == int(number)
    return str(int(number)) if is_short else repr(number)
