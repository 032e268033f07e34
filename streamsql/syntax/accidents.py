"""Spellings of other dialects that sqlglot would take for something else, refused at their token.

`1_000` would be 1 under the name `_000`, `FROM s FINAL` a relation under the name `final`, and so
on: the query would run and mean something that its author did not write.
"""

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from streamsql.errors import QuerySyntaxError, UnsupportedError
from streamsql.syntax.places import Script

NO_ALIASES = frozenset(
    (
        "ANY", "FINAL", "FORCE", "FORMAT", "GLOBAL", "HASH", "IGNORE", "LOCAL", "LOOP", "MERGE",
        "OPTION", "PARTITION", "PASTE", "POSITIONAL", "PREWHERE", "SETTINGS",
        "STRAIGHT_JOIN", "USE",
    )
)  # fmt: skip
"""Words that stand behind a relation in other dialects; as its name they need AS."""

_SIDES = (TokenType.LEFT, TokenType.RIGHT, TokenType.FULL)
_PATTERNS = (TokenType.RLIKE, TokenType.IRLIKE)


def check_accidents(script: Script, tokens: Sequence[Token]) -> None:
    """Refuse what would be read as something else.

    Raises:
        QuerySyntaxError: A word stands where there is no place for it.
        UnsupportedError: A clause has another form here.
    """
    for number, token in enumerate(tokens):
        before = tokens[number - 1] if number else None
        after = tokens[number + 1] if number + 1 < len(tokens) else None
        if after is None:
            return
        _check(script, before, token, after)
        if token.token_type == TokenType.LIMIT and number + 2 < len(tokens):
            comma = tokens[number + 2]
            if comma.token_type == TokenType.COMMA and _is_number(after):
                raise UnsupportedError(
                    f"LIMIT {after.text}, … is not supported: dialects disagree which is which",
                    span=script.span(after.start, comma.end),
                    hint=f"LIMIT n OFFSET {after.text}",
                    code="bad_limit",
                )


def _is_number(token: Token) -> bool:
    return token.token_type == TokenType.NUMBER


def _check(script: Script, before: Token | None, token: Token, after: Token) -> None:
    touching = after.start == token.end + 1
    if _is_number(token) and touching and after.text[:1].isidentifier():
        raise QuerySyntaxError(
            f"{token.text}{after.text} is no number",
            span=script.span(token.start, after.end),
            hint="numbers are written 1000, 0.5 and 1e-3; a name begins behind a blank",
            code="unexpected_token",
        )
    sign = token.token_type == TokenType.NOT and token.text == "!"
    if sign and after.token_type not in _PATTERNS:
        raise QuerySyntaxError(
            "! is no operator here",
            span=script.span(token.start, token.end),
            hint="write NOT",
            code="unexpected_token",
        )
    if token.token_type == TokenType.GROUP_BY and after.token_type == TokenType.DISTINCT:
        raise UnsupportedError(
            "GROUP BY DISTINCT is not supported",
            span=script.span(after.start, after.end),
            hint="leave DISTINCT out; list the groupings once each",
            code="unsupported_clause",
        )
    outer = token.token_type == TokenType.OUTER and after.token_type == TokenType.JOIN
    if outer and (before is None or before.token_type not in _SIDES):
        raise QuerySyntaxError(
            "OUTER JOIN needs a side",
            span=script.span(token.start, after.end),
            hint="write LEFT, RIGHT or FULL JOIN",
            code="unsupported_join",
        )
