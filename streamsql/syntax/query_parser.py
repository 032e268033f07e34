"""Queries and expressions: sqlglot behind a wall that lets out only our own errors."""

import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from streamsql.errors import QuerySyntaxError, UnsupportedError
from streamsql.syntax.accidents import check_accidents
from streamsql.syntax.cursor import nearest, shown
from streamsql.syntax.dialect import MAX_NODES, PlacedParseError, StreamSql, StreamSqlParser
from streamsql.syntax.precedence import CHAINED
from streamsql.syntax.script_places import Script
from streamsql.syntax.tree_nodes import children_of

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
_KEYWORD_TEXT = """
    SELECT FROM WHERE GROUP HAVING ORDER UNION INTERSECT EXCEPT WITH RECURSIVE JOIN LEFT RIGHT
    INNER CROSS USING DISTINCT AS ON AND OR NOT NULL CASE WHEN THEN ELSE END LIKE BETWEEN RANGE
    ROWS NOW SLIDE PARTITION UNBOUNDED INTERVAL TIMESTAMP VALUES LIMIT CAST COALESCE
    SECONDS MINUTES HOURS DAYS
"""
_KEYWORDS = tuple(_KEYWORD_TEXT.split())
_MISSING = re.compile(r"Required \w+:? '(\w+)' missing for <class '[\w.]*?(\w+)'>")
_EXPECTED = re.compile(r"Expect(?:ed|ing) (.+?)(?: but got.*)?$", re.DOTALL)
_SYMBOLS = {
    "EQ": "=",
    "NEQ": "<>",
    "LT": "<",
    "LTE": "<=",
    "GT": ">",
    "GTE": ">=",
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "Div": "/",
    "Mod": "%",
    "DPipe": "||",
    "Neg": "-",
    "If": "WHEN",
}
_TOO_LARGE = "the statement is too large"
_COMMON_TABLE = "WITH name AS (SELECT …) SELECT …"


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
        level = [child for node in level for child in children_of(node)]


def _too_deep(script: Script, tokens: Sequence[Token]) -> UnsupportedError:
    return UnsupportedError(
        "this statement is nested too deeply",
        span=script.span(tokens[0].start, tokens[-1].end),
        hint="name inner parts in a WITH clause, and write long OR chains as x IN (…)",
        code="limit_exceeded",
    )


def reworded(script: Script, tokens: Sequence[Token], error: PlacedParseError) -> QuerySyntaxError:
    """Return the error that the author of the text sees."""
    last = tokens[-1]
    place = script.span(last.end + 1, last.end) if error.at_end else script.span_of(error.token)
    message, hint = _description(error)
    code = "unexpected_end" if error.at_end else "unexpected_token"
    if message in ("expected )", "expected ]", "expected }"):
        code = "unclosed_bracket"
    elif message == _TOO_LARGE:
        code = "limit_exceeded"
    if error.at_end:
        message += ", but the statement ends"
    hint = _keyword_hint(tokens, error) or hint
    return QuerySyntaxError(message, span=place, hint=hint, code=code)


def _description(error: PlacedParseError) -> tuple[str, str]:
    text, found = error.description, shown(error.token)
    if text.startswith("Invalid expression"):
        return (
            f"unexpected {found!r}",
            "a comma, an operator, or a keyword such as FROM or WHERE may be missing before it",
        )
    if text == CHAINED:
        return (
            "comparisons cannot be chained",
            "write a < b AND b < c, or put one of them in parentheses",
        )
    missing = _MISSING.search(text)
    if missing:
        kind = missing.group(2)
        if kind in ("Union", "Except", "Intersect", "Subquery"):
            return "a query is missing here", "a query begins with SELECT"
        if kind == "Column":
            return "a column name is missing", "write a column as name or table.name"
        word = _SYMBOLS.get(kind) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).upper()
        return f"{word} is incomplete: a value is missing", f"write a value or column after {word}"
    if "CTE" in text:
        return "a query must follow WITH", f"write {_COMMON_TABLE}"
    expected = _EXPECTED.match(text)
    if expected:
        what = expected.group(1).replace("table name", "the name of a source, table or view")
        return f"expected {what}", _expected_hint(what, found)
    if text.startswith("Maximum number of AST nodes"):
        return _TOO_LARGE, "split it into views"
    plain = text.split("<class", maxsplit=1)[0].strip(" .'")
    if plain[1:2].islower():
        plain = plain[0].lower() + plain[1:]
    return plain, f"look at {found!r}"


def _expected_hint(what: str, found: str) -> str:
    if what in (")", "]", "}"):
        return f"close the bracket, or put a comma or an operator before {found}"
    if "window" in what or "time unit" in what:
        return "windows are [RANGE 10 MINUTES], [ROWS 100], [NOW] and [UNBOUNDED]"
    if "source, table or view" in what:
        return "FROM name, name AS other, or (SELECT …) AS name"
    if "CASE" in what:
        return "CASE WHEN condition THEN value ELSE value END"
    if "CAST" in what:
        return "CAST(value AS TYPE)"
    return f"{found} cannot stand here"


def _keyword_hint(tokens: Sequence[Token], error: PlacedParseError) -> str:
    """Look for a misspelt keyword at and before the place of the error."""
    position = next((n for n, token in enumerate(tokens) if token is error.token), len(tokens) - 1)
    for token in reversed(tokens[max(0, position - 2) : position + 1]):
        word = token.text.upper()
        if token.token_type != TokenType.VAR or word in _KEYWORDS or len(word) < 3:
            continue
        close = _misspelt(word)
        if close:
            return f"did you mean {close} instead of {shown(token)}?"
    return ""


def _misspelt(word: str) -> str:
    """Return the keyword a word is nearly: swapped letters, or one missing or too many."""
    swapped = next((k for k in _KEYWORDS if sorted(k) == sorted(word)), "")
    return swapped or nearest(word, _KEYWORDS, cutoff=0.8)
