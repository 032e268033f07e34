"""EXPLAIN WHY, EXPLAIN WHAT IF DELETE and EXPLAIN CONFIDENCE: questions about rows.

    EXPLAIN [(FORMAT JSON)] WHY (query) ROW (value, …) [WITH (limit = 10, confidence = 'link.pdr')]
    EXPLAIN [(FORMAT JSON)] WHAT IF DELETE lost [, lost] [FOR (query)]
        where lost is source (value, …), GATEWAY 'id' or NODE 'name'
    EXPLAIN [(FORMAT JSON)] CONFIDENCE (query) USING source.column [LIMIT n]

In place of `(query)` a view's name may stand; in WHAT IF also that of a running query. WHAT IF
without FOR is about all running queries that read one of the sources.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from streamsql.errors import QuerySyntaxError
from streamsql.syntax.cursor import Cursor, did_you_mean
from streamsql.syntax.explain_options import ExplainFormat
from streamsql.syntax.query_parser import parse_expression
from streamsql.syntax.row_question_statements import (
    ColumnName,
    ExplainConfidence,
    ExplainWhatIf,
    ExplainWhy,
    Loss,
    LostGateway,
    LostNode,
    RowPattern,
)
from streamsql.syntax.statement_parsers.commands import subject
from streamsql.syntax.statement_parsers.query_clauses import parse_options
from streamsql.syntax.statements import Name, Option, Query, Statement

DEFAULT_SUPPORTS = 10
MAX_LIMIT = 10_000
MAX_PATTERNS = 100

_WHY = "EXPLAIN WHY (query) ROW ('a', 1)"
_WHAT_IF = "EXPLAIN WHAT IF DELETE link('a', 'b') FOR (query)"
_CONFIDENCE = "EXPLAIN CONFIDENCE (query) USING link.pdr"
_COLUMN = re.compile(r"\s*([A-Za-z_]\w*)\s*\.\s*([A-Za-z_]\w*)\s*")


def question_parser(cursor: Cursor) -> Callable[..., Statement] | None:
    """Step over WHY, WHAT IF or CONFIDENCE and return what parses the rest, or None."""
    if cursor.accept("WHY"):
        return _why
    if cursor.at("WHAT"):
        cursor.expect("WHAT", "IF", hint=_WHAT_IF)
        return _what_if
    if cursor.accept("CONFIDENCE"):
        return _confidence
    return None


def _why(cursor: Cursor, common: dict[str, Any], fmt: ExplainFormat) -> ExplainWhy:
    query = _relation(cursor, _WHY)
    cursor.expect("ROW", hint=_WHY)
    row = _row(cursor)
    options = parse_options(cursor) if cursor.accept("WITH") else ()
    cursor.end(hint=f"{_WHY} WITH (limit = 10, confidence = 'link.pdr')")
    limit, confidence = DEFAULT_SUPPORTS, None
    for option in options:
        if option.name == "limit":
            limit = _limit(option)
        elif option.name == "confidence":
            confidence = _column_option(option)
        else:
            known = "options are limit and confidence"
            raise QuerySyntaxError(
                f"EXPLAIN WHY has no option {option.name!r:.40}",
                span=option.span,
                hint=did_you_mean(option.name, ("limit", "confidence"), known),
                code="unknown_option",
            )
    return ExplainWhy(
        **common, inner=query, row=row, limit=limit, confidence=confidence, format=fmt
    )


def _row(cursor: Cursor) -> tuple[exp.Expr, ...]:
    here = cursor.here()
    if not cursor.at("("):
        cursor.fail("expected the values of the row", hint=_WHY)
    values = tuple(_value(cursor, run, wild=False) for run in _runs(cursor, _WHY))
    if not values:
        raise QuerySyntaxError("a row has values", span=here, hint=_WHY, code="unexpected_token")
    return tuple(value for value in values if value is not None)


def _runs(cursor: Cursor, hint: str) -> list[Sequence[Token]]:
    cursor.expect("(", hint=hint)
    here = cursor.here()
    runs = cursor.until_closing()
    if any(not run for run in runs):
        raise QuerySyntaxError(
            "a value is missing here", span=here, hint=hint, code="unexpected_token"
        )
    return runs


def _value(cursor: Cursor, run: Sequence[Token], *, wild: bool) -> exp.Expr | None:
    """Return a value's tree; None for `*` where it stands for any value."""
    first = run[0]
    if len(run) == 1 and first.token_type == TokenType.STAR:
        if wild:
            return None
        raise QuerySyntaxError(
            "* is not a value: write all values of the row",
            span=cursor.script.span(first.start, first.end),
            hint=_WHY,
            code="not_constant",
        )
    return parse_expression(cursor.script, run)


def _limit(option: Option) -> int:
    text = option.value
    limit = int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
    if not 1 <= limit <= MAX_LIMIT:
        raise QuerySyntaxError(
            f"a limit is a whole number from 1 to {MAX_LIMIT}",
            span=option.value_span,
            hint="limit = 10: max minimal sets of base rows to show",
            code="bad_option",
        )
    return limit


def _column_option(option: Option) -> ColumnName:
    found = _COLUMN.fullmatch(option.value)
    if found is None:
        raise QuerySyntaxError(
            f"{option.value!r:.60} is not a column of a source",
            span=option.value_span,
            hint="confidence = 'link.pdr': source, dot, column",
            code="bad_option",
        )
    source, column = (Name(part.lower(), option.value_span) for part in found.groups())
    return ColumnName(source, column)


def _what_if(cursor: Cursor, common: dict[str, Any], fmt: ExplainFormat) -> ExplainWhatIf:
    cursor.expect("DELETE", hint=_WHAT_IF)
    deletions = [_loss(cursor)]
    while cursor.accept(","):
        if len(deletions) >= MAX_PATTERNS:
            cursor.refuse(
                f"more than {MAX_PATTERNS} deletions at once",
                hint="split them into two statements",
                code="limit_exceeded",
            )
        deletions.append(_loss(cursor))
    query = named = None
    if cursor.token is not None:
        if not cursor.accept("ON"):
            cursor.expect("FOR", hint=_WHAT_IF)
        place = None if cursor.at("(") else cursor.here()
        query = _relation(cursor, _WHAT_IF)
        named = None if place is None else Name(_named(query), place)
        cursor.end(hint=_WHAT_IF)
    return ExplainWhatIf(**common, inner=query, deletions=tuple(deletions), format=fmt, named=named)


def _named(query: Query) -> str:
    """Return the name of which a query is `SELECT * FROM name`."""
    table = query.tree.find(exp.Table)
    return "" if table is None else table.name


def _loss(cursor: Cursor) -> Loss:
    """Parse what is thought away; a source may be named gateway or node, its values then follow."""
    if cursor.word(1) != "(" and cursor.accept("GATEWAY"):
        return LostGateway(Name(*cursor.string("the id of a gateway")))
    if cursor.word(1) != "(" and cursor.accept("NODE"):
        return _node(cursor)
    return _pattern(cursor)


def _node(cursor: Cursor) -> LostNode:
    span, token = cursor.here(), cursor.token
    if token is not None and token.token_type == TokenType.NUMBER and token.text.isdecimal():
        return LostNode(int(cursor.advance().text), span)
    return LostNode(cursor.string("the name of a node")[0], span)


def _pattern(cursor: Cursor) -> RowPattern:
    cursor.accept("FROM")
    source = cursor.name("the name of a source or table")
    if not cursor.at("("):
        cursor.fail("expected the values of the rows to delete", hint=_WHAT_IF)
    values = tuple(_value(cursor, run, wild=True) for run in _runs(cursor, _WHAT_IF))
    return RowPattern(source, tuple(None if isinstance(v, exp.Null) else v for v in values))


def _confidence(cursor: Cursor, common: dict[str, Any], fmt: ExplainFormat) -> ExplainConfidence:
    query = _relation(cursor, _CONFIDENCE)
    cursor.expect("USING", hint=_CONFIDENCE)
    source = cursor.name("a source and its column of probabilities")
    cursor.expect(".", hint=_CONFIDENCE)
    column = cursor.name("a column of probabilities")
    limit = None
    if cursor.accept("LIMIT"):
        place = cursor.here()
        token = cursor.advance()
        limit = _limit(Option("limit", token.text, place, place))
    cursor.end(hint=f"{_CONFIDENCE} LIMIT 20")
    return ExplainConfidence(
        **common, inner=query, using=ColumnName(source, column), limit=limit, format=fmt
    )


def _relation(cursor: Cursor, hint: str) -> Query:
    if cursor.word() in ("SELECT", "WITH"):
        cursor.fail("expected ( before the query", hint=hint)
    query = subject(cursor)
    if query.emit is not None:
        raise QuerySyntaxError(
            f"{query.emit} produces changes, but this statement asks about current rows",
            span=query.span,
            hint=f"remove {query.emit}: {hint}",
            code="misplaced_emit",
        )
    return query
