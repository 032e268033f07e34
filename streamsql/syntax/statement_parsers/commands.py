"""Statements that are neither definitions nor queries: one small parser each."""

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from streamsql.algebra.operators import StreamKind
from streamsql.data.types import DataType, coerce
from streamsql.errors import QuerySyntaxError
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.explain_options import ExplainFormat, ExplainType
from streamsql.syntax.query_parser import parse_expression
from streamsql.syntax.statement_parsers.grant_statements import ShowGrants, parse_show_grants
from streamsql.syntax.statement_parsers.query_clauses import query_of, without_output
from streamsql.syntax.statements import (
    AdvanceTime,
    Delete,
    Describe,
    Drop,
    Insert,
    Query,
    Show,
)

MAX_INSERTED = 10_000
_DROPPED = (
    "SOURCE", "LINK", "TABLE", "VIEW", "MATERIALIZED", "QUERY", "FUNCTION", "AGGREGATE", "DISPLAY",
    "ALARM", "SINK",
)  # fmt: skip
_SHOWN = (
    "SOURCES", "TABLES", "VIEWS", "FUNCTIONS", "QUERIES", "GATEWAYS", "ALARMS", "DISPLAYS", "SINKS",
    "GRANTS", "NETWORK",
)  # fmt: skip


def parse_drop(cursor: Cursor, common: dict[str, Any]) -> Drop:
    """Parse what follows DROP."""
    kind = cursor.choice(_DROPPED, "what to drop")
    if kind == "LINK":
        cursor.expect("SOURCE")
        kind = "SOURCE"
    elif kind == "MATERIALIZED":
        cursor.expect("VIEW")
        kind = "VIEW"
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.name(f"the name of a {kind.lower()}")
    cursor.end()
    return Drop(**common, kind=kind.lower(), name=name, if_exists=if_exists)


def parse_insert(cursor: Cursor, common: dict[str, Any]) -> Insert:
    """Parse what follows INSERT."""
    cursor.expect("INTO", hint="INSERT INTO source VALUES (…)")
    source = cursor.name("the name of a source or table")
    columns = cursor.names("a column name") if cursor.at("(") and not _at_query(cursor) else ()
    if _at_query(cursor):
        query = without_output(query_of(cursor.script, cursor.rest()), "INSERT")
        return Insert(**common, source=source, columns=columns, query=query)
    cursor.expect(
        "VALUES", hint="INSERT INTO source VALUES (…), (…); or INSERT INTO table SELECT …"
    )
    rows = [_row(cursor)]
    while cursor.accept(","):
        if len(rows) >= MAX_INSERTED:
            cursor.refuse(
                f"more than {MAX_INSERTED} rows in one INSERT",
                hint="split it",
                code="limit_exceeded",
            )
        rows.append(_row(cursor))
    cursor.end(hint="separate rows with commas")
    return Insert(**common, source=source, columns=columns, rows=tuple(rows))


def _at_query(cursor: Cursor) -> bool:
    words = [*StreamKind, "SELECT", "WITH"]
    return any(cursor.at(word) or cursor.at("(", word) for word in words)


def _row(cursor: Cursor) -> tuple[exp.Expr, ...]:
    cursor.expect("(", hint="write each row as (value, …)")
    here = cursor.here()
    runs = cursor.until_closing()
    if any(not run for run in runs):
        raise QuerySyntaxError(
            "a value is missing in this row",
            span=here,
            hint="NULL is a value",
            code="unexpected_token",
        )
    return tuple(parse_expression(cursor.script, run) for run in runs)


def parse_delete(cursor: Cursor, common: dict[str, Any]) -> Delete:
    """Parse what follows DELETE."""
    cursor.expect("FROM", hint="DELETE FROM source WHERE …")
    source = cursor.name("the name of a source or table")
    predicate = None
    if cursor.accept("WHERE"):
        tokens = cursor.rest()
        if not tokens:
            cursor.fail("expected a condition after WHERE")
        predicate = parse_expression(cursor.script, tokens)
    cursor.end(hint="DELETE FROM source WHERE …")
    return Delete(**common, source=source, predicate=predicate)


def subject(cursor: Cursor) -> Query:
    """Parse a query in parentheses, or the name of a view as `SELECT * FROM view`.

    Raises:
        QuerySyntaxError: There is neither.
    """
    script = cursor.script
    if cursor.at("("):
        tokens = cursor.inside()
        if not tokens:
            cursor.fail("expected a query between the parentheses")
        return without_output(query_of(script, tokens), "parentheses")
    token = cursor.token
    name = cursor.name("a view or a query in parentheses")
    if token is None:
        cursor.fail("expected a view or a query in parentheses")
    return _whole_view(cursor, token, name.text)


def _whole_view(cursor: Cursor, token: Token, name: str) -> Query:
    """Return `SELECT * FROM name`, its nodes pointing at the name as written."""
    script = cursor.script
    identifier = exp.to_identifier(name, quoted=True)
    identifier.meta.update(start=token.start, end=token.end)
    tree = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Table(this=identifier)))
    text = f'SELECT * FROM "{name.replace(chr(34), chr(34) * 2)}"'  # noqa: S608  (a quoted name)
    return Query(text=text, span=script.span(token.start, token.end), script=script, tree=tree)


def parse_show(cursor: Cursor, common: dict[str, Any]) -> Show | ShowGrants:
    """Parse what follows SHOW."""
    if cursor.accept("GRANTS"):
        return parse_show_grants(cursor, common)
    kind = cursor.choice(_SHOWN, "what to show")
    cursor.end()
    return Show(**common, kind=kind.lower())


def parse_describe(cursor: Cursor, common: dict[str, Any]) -> Describe:
    """Parse what follows DESCRIBE."""
    name = cursor.name("the name of what SHOW lists")
    cursor.end()
    return Describe(**common, name=name)


def parse_advance(cursor: Cursor, common: dict[str, Any]) -> AdvanceTime:
    """Parse what follows ADVANCE."""
    hint = "ADVANCE TIME TO '2026-01-01T00:00:10Z' or ADVANCE TIME BY '10 s'"
    cursor.expect("TIME", hint=hint)
    word = cursor.choice(("TO", "BY"), "TO or BY")
    if word == "BY":
        by, _ = cursor.duration("a duration", hint=hint, code="bad_time")
        cursor.end(hint=hint)
        return AdvanceTime(**common, by=by)
    text, span = cursor.string("a time")
    try:
        to = coerce(text, DataType.TIMESTAMP)
    except ValueError as error:
        raise QuerySyntaxError(str(error), span=span, hint=hint, code="bad_time") from None
    cursor.end(hint=hint)
    if not isinstance(to, int):
        raise QuerySyntaxError("expected a time", span=span, hint=hint, code="bad_time")
    return AdvanceTime(**common, to=to)


def parse_explain_options(cursor: Cursor) -> tuple[bool, ExplainType, ExplainFormat]:
    """Parse `[ANALYZE | ALTERNATIVES] [(TYPE …, FORMAT …)]`: analyze, type and format."""
    analyze = cursor.accept("ANALYZE")
    kind, fmt = ExplainType.LOGICAL, ExplainFormat.TEXT
    if not analyze and cursor.accept("ALTERNATIVES"):
        kind = ExplainType.ALTERNATIVES
    if cursor.at("(", "TYPE") or cursor.at("(", "FORMAT"):
        cursor.advance()
        while True:
            if cursor.choice(("TYPE", "FORMAT"), "TYPE or FORMAT") == "TYPE":
                kind = ExplainType[cursor.choice(tuple(ExplainType.__members__), "a type")]
            else:
                fmt = ExplainFormat[cursor.choice(tuple(ExplainFormat.__members__), "a format")]
            if not cursor.accept(","):
                break
        cursor.expect(")")
    return analyze, kind, fmt
