"""Spellings of other dialects that sqlglot would take for something else, refused at their token.

`1_000` would be 1 under the name `_000`, `FROM s FINAL` a relation under the name `final`, and so
on: the query would run and mean something that its author did not write.
"""

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from streamsql.data.durations import unit_size
from streamsql.errors import QuerySyntaxError, UnsupportedError
from streamsql.syntax.cursor import shown
from streamsql.syntax.script_places import Script

NO_ALIASES = frozenset(
    (
        "ANY", "FINAL", "FORCE", "FORMAT", "GLOBAL", "HASH", "IGNORE", "LOCAL", "LOOP", "MERGE",
        "NOLOCK", "OPTION", "PARTITION", "PASTE", "POSITIONAL", "PREWHERE", "SETTINGS",
        "STRAIGHT_JOIN", "USE",
    )
)  # fmt: skip
"""Words that stand behind a relation in other dialects; as its name they need AS."""

_OPENINGS = (TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.PARTITION_BY, TokenType.ALIAS)
_ENDS = (
    TokenType.R_PAREN,
    TokenType.R_BRACKET,
    TokenType.COMMA,
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.ORDER_BY,
    TokenType.LIMIT,
    TokenType.UNION,
)
_STARTS = (
    TokenType.L_PAREN,
    TokenType.L_BRACKET,
    TokenType.SELECT,
    TokenType.DISTINCT,
    TokenType.FROM,
    TokenType.JOIN,
    TokenType.WHERE,
    TokenType.ON,
    TokenType.GROUP_BY,
    TokenType.ORDER_BY,
    TokenType.PARTITION_BY,
    TokenType.HAVING,
    TokenType.COMMA,
)
"""What nothing but an expression or a relation may follow."""
_STAR_WORDS = ("EXCEPT", "EXCLUDE", "REPLACE", "RENAME")
_AGGREGATES = frozenset(
    name for kind in exp.ALL_FUNCTIONS if issubclass(kind, exp.AggFunc) for name in kind.sql_names()
)
_COMMA, _OPEN = TokenType.COMMA, TokenType.L_PAREN
_PLACED = frozenset((*_OPENINGS, _COMMA, _OPEN, TokenType.DOT, TokenType.USING, TokenType.ALL))
_PLACED_WORDS = frozenset((*_STAR_WORDS, "BY", "ONLY"))
_CHECKED = frozenset(
    (TokenType.NUMBER, TokenType.STRING, TokenType.NOT, TokenType.GROUP_BY, TokenType.OUTER)
)
_SIDES = (TokenType.LEFT, TokenType.RIGHT, TokenType.FULL)
_PATTERNS = (TokenType.RLIKE, TokenType.IRLIKE)


def check_accidents(script: Script, tokens: Sequence[Token]) -> None:
    """Refuse what would be read as something else.

    Raises:
        QuerySyntaxError: A word stands where there is no place for it.
        UnsupportedError: A clause has another form here.
    """
    for number, token in enumerate(tokens):
        kind = token.token_type
        # Nine of ten tokens are names, dots behind names, and operators: half of this check.
        if kind in _PLACED or token.text.upper() in _PLACED_WORDS:
            _check_placed(script, tokens, number)
        after = tokens[number + 1] if number + 1 < len(tokens) else None
        if after is None:
            return
        if kind in _CHECKED:
            _check(script, tokens[number - 1] if number else None, token, after)
        if kind == TokenType.LIMIT and number + 2 < len(tokens):
            comma, behind = tokens[number + 2], tokens[min(number + 3, len(tokens) - 1)]
            another = behind.token_type == TokenType.LIMIT  # of a recursion: rows, and rounds
            if comma.token_type == _COMMA and after.token_type == TokenType.NUMBER and not another:
                raise UnsupportedError(
                    f"LIMIT {after.text}, … is not supported: SQL dialects disagree about "
                    "the order of the two numbers",
                    span=script.span(after.start, comma.end),
                    hint=f"LIMIT n OFFSET {after.text}",
                    code="bad_limit",
                )


def _check_placed(script: Script, tokens: Sequence[Token], number: int) -> None:
    """Refuse a word or sign that stands where sqlglot passes over it.

    Raises:
        QuerySyntaxError: It does.
    """
    token, word = tokens[number], tokens[number].text.upper()
    before = tokens[number - 1] if number else None
    after = tokens[number + 1] if number + 1 < len(tokens) else None
    opened = before is None or before.token_type in _STARTS
    kind, following = token.token_type, after and after.token_type
    if kind == TokenType.DOT and not opened:
        return
    preceding = before and before.token_type
    ends = after is None or following in _ENDS
    called = tokens[number - 2].text.upper() if number > 1 else ""
    wrong = (
        (kind in _OPENINGS and ends)
        or (kind in (_COMMA, TokenType.ALIAS) and opened)
        or (kind == TokenType.DOT and opened and following != TokenType.NUMBER)
        or (kind == TokenType.USING and following not in (TokenType.L_PAREN, TokenType.VAR))
        or (word == "BY" and preceding == TokenType.NUMBER and ends)
        or (word in _STAR_WORDS and _ends_in_star(tokens[:number][-2:]) and ends)
        or (kind == TokenType.ALL and following == TokenType.STAR)
        or (kind == TokenType.ALL and preceding == _COMMA)
        or (kind == TokenType.ALL and preceding == TokenType.GROUP_BY and following == _COMMA)
        or (word == "ONLY" and preceding == TokenType.NUMBER)
        or (kind == _COMMA and _closes_distinct_on(tokens, number))
        or (kind == _OPEN and following == TokenType.R_PAREN and preceding in Parser.TYPE_TOKENS)
        or (kind == TokenType.ALL and preceding == _OPEN and called and called not in _AGGREGATES)
    )
    if wrong:
        raise QuerySyntaxError(
            f"{word!r} is incomplete",
            span=script.span(token.start, token.end),
            hint=f"remove {word}, or complete it",
            code="unexpected_end" if after is None else "unexpected_token",
        )


def _closes_distinct_on(tokens: Sequence[Token], number: int) -> bool:
    """Whether what ends before a token is DISTINCT ON (…)."""
    depth, place = 0, number - 1
    while place > 1:
        kind = tokens[place].token_type
        depth += (kind == TokenType.R_PAREN) - (kind == TokenType.L_PAREN)
        if depth <= 0:
            break
        place -= 1
    on = tokens[place - 2 : place] if place > 1 and place < number - 1 else ()
    return [token.token_type for token in on] == [TokenType.DISTINCT, TokenType.ON]


def _ends_in_star(tokens: Sequence[Token]) -> bool:
    """Whether tokens end in the * of all columns, not in that of a product."""
    kinds = [token.token_type for token in tokens]
    return kinds[-1:] == [TokenType.STAR] and kinds[0] in (*_STARTS, TokenType.DOT)


def _check(script: Script, before: Token | None, token: Token, after: Token) -> None:
    touching = after.start == token.end + 1
    if token.token_type == TokenType.NUMBER and touching and after.text[:1].isidentifier():
        raise QuerySyntaxError(
            f"{token.text}{after.text} is no number",
            span=script.span(token.start, after.end),
            hint="numbers are written 1000, 0.5 and 1e-3; put a space before a name",
            code="unexpected_token",
        )
    whole = token.token_type == TokenType.STRING and not token.text.strip().isdigit()
    of_interval = before is not None and before.token_type == TokenType.INTERVAL
    if whole and of_interval and after.token_type == TokenType.VAR and unit_size(after.text):
        raise QuerySyntaxError(
            f"INTERVAL {shown(token)} already has a unit",
            span=script.span(token.start, after.end),
            hint="INTERVAL '1 day 2 h'; write AS before a column name",
            code="unexpected_token",
        )
    sign = token.token_type == TokenType.NOT and token.text == "!"
    if sign and after.token_type not in _PATTERNS:
        raise QuerySyntaxError(
            "! is not an operator",
            span=script.span(token.start, token.end),
            hint="write NOT",
            code="unexpected_token",
        )
    if token.token_type == TokenType.GROUP_BY and after.token_type == TokenType.DISTINCT:
        raise UnsupportedError(
            "GROUP BY DISTINCT is not supported",
            span=script.span(after.start, after.end),
            hint="remove DISTINCT, and list each grouping once",
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
