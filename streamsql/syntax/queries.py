"""Queries and expressions: sqlglot behind a wall that lets out only our own errors."""

import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from streamsql.errors import QuerySyntaxError, UnsupportedError
from streamsql.syntax.cursor import nearest, shown
from streamsql.syntax.dialect import MAX_NODES, PlacedParseError, StreamSql, StreamSqlParser
from streamsql.syntax.places import Script

MAX_DEPTH = 160
"""Levels of a syntax tree; binder and engines recurse over it."""

_KEYWORD_TEXT = """
    SELECT FROM WHERE GROUP HAVING ORDER UNION INTERSECT EXCEPT WITH RECURSIVE JOIN LEFT RIGHT
    INNER CROSS USING DISTINCT AS ON AND OR NOT NULL CASE WHEN THEN ELSE END LIKE BETWEEN RANGE
    ROWS NOW SLIDE PARTITION UNBOUNDED INTERVAL TIMESTAMP VALUES LIMIT
"""
_KEYWORDS = frozenset(_KEYWORD_TEXT.split())
_MISSING = re.compile(r"Required argument '(\w+)' missing for <class '[\w.]*?(\w+)'>")
_EXPECTED = re.compile(r"Expect(?:ed|ing) (.+?)(?: but got.*)?$", re.DOTALL)


def parse_query(script: Script, tokens: Sequence[Token]) -> exp.Expr:
    """Return the tree of a query.

    Raises:
        QuerySyntaxError: It is none, or it is nested too deeply.
    """
    tree = _parse(script, tokens, expression=False)
    if not isinstance(tree, exp.Query):
        raise QuerySyntaxError(
            "expected a query",
            span=script.span_of(tokens[0]),
            hint="a query begins with SELECT or WITH",
        )
    return tree


def parse_expression(script: Script, tokens: Sequence[Token]) -> exp.Expr:
    """Return the tree of a scalar expression.

    Raises:
        QuerySyntaxError: It is none, or it is nested too deeply.
    """
    return _parse(script, tokens, expression=True)


def _parse(script: Script, tokens: Sequence[Token], *, expression: bool) -> exp.Expr:
    parser = StreamSql().parser(max_nodes=MAX_NODES)
    if not isinstance(parser, StreamSqlParser):
        raise TypeError("the dialect lost its parser")
    try:
        parse = parser.parse_expressions if expression else parser.parse
        trees = parse(list(tokens), script.text)
    except PlacedParseError as error:
        raise _reworded(script, tokens, error) from None
    except SqlglotError:
        raise QuerySyntaxError(
            "this is not StreamSQL", span=script.span(tokens[0].start, tokens[-1].end)
        ) from None
    except RecursionError:
        raise _too_deep(script, tokens) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        # sqlglot meets some malformed texts with errors of its own making.
        raise QuerySyntaxError(
            "this part is not StreamSQL", span=script.span(tokens[0].start, tokens[-1].end)
        ) from None
    tree = trees[0] if len(trees) == 1 else None
    if tree is None:
        raise QuerySyntaxError(
            "this is not StreamSQL", span=script.span(tokens[0].start, tokens[-1].end)
        )
    _check_depth(script, tokens, tree)
    return tree


def _check_depth(script: Script, tokens: Sequence[Token], tree: exp.Expr) -> None:
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise _too_deep(script, tokens)
        level = [child for node in level for child in node.iter_expressions()]


def _too_deep(script: Script, tokens: Sequence[Token]) -> UnsupportedError:
    return UnsupportedError(
        "this statement is nested too deeply",
        span=script.span(tokens[0].start, tokens[-1].end),
        hint="name inner parts in a WITH clause, and write long OR chains as x IN (…)",
    )


def _reworded(script: Script, tokens: Sequence[Token], error: PlacedParseError) -> QuerySyntaxError:
    """Say sqlglot's complaint in plain words at the right place."""
    last = tokens[-1]
    place = script.span(last.end + 1, last.end) if error.at_end else script.span_of(error.token)
    where = "the statement ends" if error.at_end else f"found {shown(error.token)!r}"
    return QuerySyntaxError(
        f"{_description(error)} ({where})" if error.at_end else _description(error),
        span=place,
        hint=_keyword_hint(tokens, error),
    )


def _description(error: PlacedParseError) -> str:
    text = error.description
    if text.startswith("Invalid expression"):
        return f"unexpected {shown(error.token)!r}"
    missing = _MISSING.search(text)
    if missing:
        what = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", missing.group(2)).upper()
        return f"something is missing in {what}"
    expected = _EXPECTED.match(text)
    if expected:
        what = expected.group(1).replace("table name", "the name of a source, table or view")
        return f"expected {what}"
    if text.startswith("Maximum number of AST nodes"):
        return "the statement is too large"
    return (text[:1].lower() + text[1:]).split("<class", maxsplit=1)[0].strip(" .'")


def _keyword_hint(tokens: Sequence[Token], error: PlacedParseError) -> str:
    """Look for a misspelt keyword at and before the place of the error."""
    try:
        position = list(tokens).index(error.token)
    except ValueError:
        position = len(tokens) - 1
    for token in reversed(tokens[max(0, position - 2) : position + 1]):
        if token.token_type != TokenType.VAR or token.text.upper() in _KEYWORDS:
            continue
        close = nearest(token.text.upper(), _KEYWORDS)
        if close and len(token.text) > 2:
            return f"did you mean {close} instead of {shown(token)}?"
    return ""
