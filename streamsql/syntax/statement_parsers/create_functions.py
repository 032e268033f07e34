"""CREATE FUNCTION and CREATE AGGREGATE."""

import re
from typing import Any

from streamsql.errors import QuerySyntaxError, Span
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.query_parser import parse_expression
from streamsql.syntax.statement_parsers.type_names import parse_type
from streamsql.syntax.statements import ColumnDefinition, CreateFunction, FunctionBody, Name

MAX_PARAMETERS = 32
_BREAK = re.compile(r"\s*\n\s*")


def parse_function(cursor: Cursor, common: dict[str, Any], *, aggregate: bool) -> CreateFunction:
    """Parse what follows CREATE FUNCTION or CREATE AGGREGATE.

    Raises:
        QuerySyntaxError: It is malformed.
    """
    word = "AGGREGATE" if aggregate else "FUNCTION"
    name = cursor.name(f"a name for the {word.lower()}")
    example = "(MAX(x) - MIN(x))" if aggregate else "(x * 2)"
    head = f"CREATE {word} {name.text}(x DOUBLE) RETURNS DOUBLE AS"
    hint = f"{head} {example}, or {head} 'package.module:name'"
    cursor.expect("(", hint=hint)
    parameters: list[ColumnDefinition] = []
    while not cursor.at(")"):
        parameters.append(ColumnDefinition(cursor.name("a parameter"), parse_type(cursor)))
        if len(parameters) > MAX_PARAMETERS:
            cursor.fail(f"more than {MAX_PARAMETERS} parameters", code="limit_exceeded")
        if not cursor.accept(","):
            break
    cursor.expect(")", hint=hint)
    cursor.expect("RETURNS", hint=hint)
    result = parse_type(cursor)
    on_null, merged_by = _properties(cursor, aggregate=aggregate)
    cursor.expect("AS", hint=hint)
    if cursor.at("("):
        body = _body(cursor, hint)
        implementation, place = "", body.span
    else:
        body = None
        implementation, place = _implementation(cursor, hint)
    if cursor.token is not None:
        more = _properties(cursor, aggregate=aggregate)
        on_null, merged_by = on_null or more[0], merged_by or more[1]
    cursor.end(hint=hint)
    return CreateFunction(
        **common,
        name=name,
        aggregate=aggregate,
        parameters=tuple(parameters),
        result=result,
        implementation=implementation,
        place=place,
        on_null=on_null,
        merged_by=merged_by,
        body=body,
    )


def _implementation(cursor: Cursor, hint: str) -> tuple[str, Span]:
    if not cursor.at_string():
        cursor.fail("expected an expression in parentheses, or 'package.module:name'", hint=hint)
    text, place = cursor.string("the implementation")
    if not text.strip():
        raise QuerySyntaxError(
            "the implementation is missing", span=place, hint=hint, code="bad_implementation"
        )
    return text.strip(), place


def _body(cursor: Cursor, hint: str) -> FunctionBody:
    script, opening = cursor.script, cursor.here()
    tokens = cursor.inside()
    if not tokens:
        raise QuerySyntaxError(
            "the body is empty", span=opening, hint=hint, code="unexpected_token"
        )
    first, last = tokens[0], tokens[-1]
    place = script.span(first.start, last.end)
    if first.text.upper() in ("SELECT", "WITH"):
        raise QuerySyntaxError(
            "the body of a function is an expression, not a query",
            span=place,
            hint="a query over its arguments is a view: CREATE VIEW",
            code="bad_body",
        )
    text = script.text[first.start : last.end + 1]
    if "--" not in text:  # a comment ends with its line
        text = _BREAK.sub(" ", text)
    return FunctionBody(parse_expression(script, tokens), text, place)


def _properties(cursor: Cursor, *, aggregate: bool) -> tuple[bool, Name | None]:
    """Return whether NULLs are taken, and what stands behind MERGED BY; both in any order."""
    on_null = _on_null(cursor)
    if not cursor.at("MERGED"):
        return on_null, None
    if not aggregate:
        cursor.fail(
            "only results of aggregates are merged", hint="leave out MERGED BY", code="bad_merge"
        )
    hint = "MERGED BY MAX, or another of SUM, MIN, BOOL_AND, BOOL_OR and the aggregate itself"
    cursor.expect("MERGED", "BY", hint=hint)
    merged_by = cursor.name("the function that merges results of parts")
    return on_null or _on_null(cursor), merged_by


def _on_null(cursor: Cursor) -> bool:
    if cursor.accept("CALLED"):
        cursor.expect("ON", "NULL", "INPUT", hint="CALLED ON NULL INPUT")
        return True
    if cursor.accept("RETURNS"):
        cursor.expect("NULL", "ON", "NULL", "INPUT", hint="RETURNS NULL ON NULL INPUT")
    return False
