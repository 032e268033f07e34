"""CREATE FUNCTION and CREATE AGGREGATE: Python code that the sites have installed, by name."""

from typing import Any

from streamsql.data.types import DataType
from streamsql.errors import QuerySyntaxError
from streamsql.syntax.cursor import Cursor, nearest
from streamsql.syntax.statements import ColumnDefinition, CreateFunction

MAX_PARAMETERS = 32


def parse_function(
    cursor: Cursor, common: dict[str, Any], types: dict[str, DataType], *, aggregate: bool
) -> CreateFunction:
    """Parse what follows CREATE FUNCTION or CREATE AGGREGATE.

    Args:
        cursor: Behind that word.
        common: Text, span and script of the statement.
        types: Data types by the words that mean them.
        aggregate: Whether it is an aggregate.

    Raises:
        QuerySyntaxError: It is malformed.
    """
    word = "AGGREGATE" if aggregate else "FUNCTION"
    name = cursor.name(f"a name for the {word.lower()}")
    hint = f"CREATE {word} {name.text}(x DOUBLE) RETURNS DOUBLE AS 'package.module:name'"
    cursor.expect("(", hint=hint)
    parameters: list[ColumnDefinition] = []
    while not cursor.at(")"):
        parameters.append(ColumnDefinition(cursor.name("a parameter"), _type(cursor, types)))
        if len(parameters) > MAX_PARAMETERS:
            cursor.fail(f"more than {MAX_PARAMETERS} parameters", code="limit_exceeded")
        if not cursor.accept(","):
            break
    cursor.expect(")", hint=hint)
    cursor.expect("RETURNS", hint=hint)
    result = _type(cursor, types)
    on_null = _on_null(cursor)
    cursor.expect("AS", hint=hint)
    implementation, place = cursor.string("the implementation, 'package.module:name',")
    if cursor.token is not None:
        on_null = _on_null(cursor)
    cursor.end(hint=hint)
    if not implementation.strip():
        raise QuerySyntaxError(
            "the implementation is missing", span=place, hint=hint, code="bad_implementation"
        )
    return CreateFunction(
        **common,
        name=name,
        aggregate=aggregate,
        parameters=tuple(parameters),
        result=result,
        implementation=implementation.strip(),
        place=place,
        on_null=on_null,
    )


def _on_null(cursor: Cursor) -> bool:
    if cursor.accept("CALLED"):
        cursor.expect("ON", "NULL", "INPUT", hint="CALLED ON NULL INPUT")
        return True
    if cursor.accept("RETURNS"):
        cursor.expect("NULL", "ON", "NULL", "INPUT", hint="RETURNS NULL ON NULL INPUT")
    return False


def _type(cursor: Cursor, types: dict[str, DataType]) -> DataType:
    dtype = types.get(cursor.word())
    if dtype is None:
        close = nearest(cursor.word(), types) if cursor.word() else ""
        known = "TEXT, INTEGER, DOUBLE, BOOLEAN, TIMESTAMP or INTERVAL"
        cursor.fail(
            "expected a type",
            hint=f"did you mean {close}?" if close else known,
            code="unknown_type",
        )
    cursor.advance()
    cursor.accept("PRECISION")
    return dtype
