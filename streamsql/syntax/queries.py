"""Queries and expressions: sqlglot behind a wall that lets out only our own errors."""

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from streamsql.errors import QuerySyntaxError, UnsupportedError
from streamsql.syntax.accidents import check_accidents
from streamsql.syntax.complaints import reworded
from streamsql.syntax.dialect import MAX_NODES, PlacedParseError, StreamSql, StreamSqlParser
from streamsql.syntax.places import Script

MAX_DEPTH = 160
"""Levels of a syntax tree; binder and engines recurse over it."""

_AFTER_LISTS = frozenset(
    (
        TokenType.COMMA,
        TokenType.R_PAREN,
        TokenType.R_BRACKET,
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.ORDER_BY,
        TokenType.LIMIT,
        TokenType.OFFSET,
        TokenType.QUALIFY,
        TokenType.UNION,
        TokenType.EXCEPT,
        TokenType.INTERSECT,
    )
)


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
            code="unexpected_token",
        )
    return tree


def parse_expression(script: Script, tokens: Sequence[Token]) -> exp.Expr:
    """Return the tree of a scalar expression.

    Raises:
        QuerySyntaxError: It is none, or it is nested too deeply.
    """
    return _parse(script, tokens, expression=True)


def _parse(script: Script, tokens: Sequence[Token], *, expression: bool) -> exp.Expr:
    _check_commas(script, tokens)
    check_accidents(script, tokens)
    parser = StreamSql().parser(max_nodes=MAX_NODES)
    if not isinstance(parser, StreamSqlParser):
        raise TypeError("the dialect lost its parser")
    try:
        parse = parser.parse_expressions if expression else parser.parse
        trees = parse(list(tokens), script.text)
    except PlacedParseError as error:
        raise reworded(script, tokens, error) from None
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


def _check_commas(script: Script, tokens: Sequence[Token]) -> None:
    """Refuse lists that end in a comma, which sqlglot lets pass."""
    for number, token in enumerate(tokens):
        if token.token_type != TokenType.COMMA:
            continue
        after = tokens[number + 1] if number + 1 < len(tokens) else None
        if after and after.token_type == TokenType.LIMIT and _is_of_limits(tokens[:number][-4:]):
            continue
        if after is None or after.token_type in _AFTER_LISTS:
            raise QuerySyntaxError(
                "something is missing after this comma",
                span=script.span(token.start, token.end),
                hint="remove the comma, or add the next element",
                code="trailing_comma",
            )


def _is_of_limits(before: Sequence[Token]) -> bool:
    """Whether tokens end in a limit of a recursion: `LIMIT 8 ROUNDS RETURN`, or less of it."""
    return any(token.token_type == TokenType.LIMIT for token in before)


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
        code="limit_exceeded",
    )
