"""Options in `WITH (name = 'value', …)`: of a source, and behind a query."""

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from streamsql.errors import QuerySyntaxError
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.places import Script
from streamsql.syntax.statements import Option

_EXAMPLE = "… WITH (strategy = 'ranked', ship = 'lazy')"


def parse_options(cursor: Cursor, given: Sequence[Option] = ()) -> tuple[Option, ...]:
    """Parse `(name = 'value', …)`, behind the word WITH.

    Args:
        cursor: At the opening parenthesis.
        given: Options read before, which may not be given again.

    Raises:
        QuerySyntaxError: It is malformed, or an option is given twice.
    """
    cursor.expect("(", hint="WITH (name = 'value', …)")
    options: list[Option] = []
    while True:
        options.append(parse_option(cursor, [*given, *options]))
        if not cursor.accept(","):
            cursor.expect(")", hint="separate options with commas")
            return tuple(options)


def parse_option(cursor: Cursor, given: Sequence[Option]) -> Option:
    """Parse one `name = 'value'`.

    Raises:
        QuerySyntaxError: It is malformed, or the name is among those given.
    """
    name = cursor.word_name("an option name")
    cursor.expect("=", hint=f"{name.text} = 'value'")
    if any(option.name == name.text for option in given):
        raise QuerySyntaxError(
            f"option {name.text} appears twice", span=name.span, code="duplicate_clause"
        )
    place = cursor.here()
    return Option(name.text, _value(cursor, name.text), name.span, place)


def _value(cursor: Cursor, name: str) -> str:
    token = cursor.token
    if token is None or not (
        token.token_type in (TokenType.STRING, TokenType.NUMBER)
        or cursor.word() in ("TRUE", "FALSE")
        or cursor.at("-")
    ):
        cursor.fail("expected a value in single quotes", hint=f"WITH ({name} = '…')")
    sign = "-" if cursor.accept("-") else ""
    return sign + cursor.advance().text


def split_options(
    script: Script, tokens: Sequence[Token]
) -> tuple[Sequence[Token], tuple[Option, ...]]:
    """Take the options behind a query off its tokens; parentheses around both go with them.

    Raises:
        QuerySyntaxError: The options are malformed, or stand in front of the query.
    """
    inner = tokens
    while True:
        start = _clause(inner)
        if start is not None:
            break
        if not _is_wrapped(inner):
            return tokens, ()
        inner = inner[1:-1]
    body = inner[:start]
    cursor = Cursor(script, inner[start:])
    if not body:
        cursor.fail("expected a query before its options", hint=f"SELECT {_EXAMPLE}")
    cursor.expect("WITH")
    options = parse_options(cursor)
    cursor.end(hint="options must be the last part of a query")
    return body, options


def _clause(tokens: Sequence[Token]) -> int | None:
    """Return where `WITH (` stands outside all parentheses, or None."""
    depth = 0
    for number, token in enumerate(tokens):
        if depth == 0 and _opens(tokens, number):
            return number
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
    return None


def _opens(tokens: Sequence[Token], number: int) -> bool:
    return (
        tokens[number].token_type == TokenType.WITH
        and number + 1 < len(tokens)
        and tokens[number + 1].token_type == TokenType.L_PAREN
    )


def _is_wrapped(tokens: Sequence[Token]) -> bool:
    """Whether the first token is a parenthesis that the last one closes."""
    if len(tokens) < 3 or tokens[0].token_type != TokenType.L_PAREN:
        return False
    depth = 0
    for number, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0:
            return number == len(tokens) - 1
    return False


def refuse_inside(script: Script, tokens: Sequence[Token]) -> None:
    """Check that no options stand inside a query.

    Raises:
        QuerySyntaxError: Some do.
    """
    for number, token in enumerate(tokens):
        if _opens(tokens, number):
            raise QuerySyntaxError(
                "options must follow the whole query, not stand inside it",
                span=script.span(token.start, tokens[number + 1].end),
                hint=f"write them last: {_EXAMPLE}; they apply to every recursion of the query",
                code="misplaced_options",
            )
