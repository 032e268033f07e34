"""Queries as statements: plain or inside ISTREAM, DSTREAM or RSTREAM, with options behind them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot.tokenizer_core import Token, TokenType

from streamsql.algebra.operators import StreamKind
from streamsql.errors import QuerySyntaxError, Span
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.query_parser import parse_query
from streamsql.syntax.script_places import Script
from streamsql.syntax.statements import Name, Option, Query

_CLOSE = ("EMIT", "ON", "WINDOW", "CLOSE")
_EXAMPLE = "… WITH (strategy = 'ranked', ship = 'lazy')"


def query_statement(cursor: Cursor) -> Query:
    """Parse everything that remains as a query.

    Raises:
        QuerySyntaxError: It is none.
    """
    tokens = cursor.rest()
    if not tokens:
        cursor.fail("expected a query", hint="a query begins with SELECT or WITH")
    return query_of(cursor.script, tokens)


def query_of(script: Script, tokens: Sequence[Token]) -> Query:
    """Parse tokens as a query, with its relation-to-stream operator and options if there are any.

    Raises:
        QuerySyntaxError: They are none.
    """
    first, last = tokens[0], tokens[-1]
    text = script.text[first.start : last.end + 1]
    tokens, display = _split_output(script, tokens)
    tokens, options = _split_options(script, tokens)
    tokens, on_close = _split_close(script, tokens)
    cursor = Cursor(script, tokens)
    emit = StreamKind(cursor.word()) if cursor.word() in tuple(StreamKind) else None
    if emit is not None and cursor.word(1) == "(":
        cursor.advance()
        inner = cursor.inside()
        if not inner:
            cursor.fail(f"expected a query in {emit}(…)")
        cursor.end(hint=f"{emit}(…) stands around the whole query")
        inner, more = _split_options(script, inner)
        options = _both(more, options)
        _refuse_inside(script, inner)
        tree = parse_query(script, inner)
    else:
        if cursor.word() not in ("SELECT", "WITH", "("):
            cursor.fail("expected a query", hint="a query begins with SELECT or WITH")
        _refuse_inside(script, tokens)
        tree, emit = parse_query(script, tokens), None
    return Query(
        text=text,
        span=script.span(first.start, first.end),
        script=script,
        tree=tree,
        emit=emit,
        options=options,
        on_close=on_close,
        display=display,
    )


def without_output(query: Query, where: str) -> Query:
    """Return a query that is no statement of its own, and so is shown nowhere.

    Raises:
        QuerySyntaxError: It has OUTPUT TO DISPLAY.
    """
    if query.display is not None:
        raise QuerySyntaxError(
            f"OUTPUT TO DISPLAY is not allowed in {where}",
            span=query.display.span,
            hint="write it after a separate query: SELECT … OUTPUT TO DISPLAY "
            f"{query.display.text}",
            code="misplaced_output",
        )
    return query


def _split_output(script: Script, tokens: Sequence[Token]) -> tuple[Sequence[Token], Name | None]:
    """Take OUTPUT TO DISPLAY name off the end of a query's tokens.

    Raises:
        QuerySyntaxError: OUTPUT TO is followed by something else.
    """
    for number, token in _outside_parentheses(tokens):
        if not number or token.text.upper() != "OUTPUT":
            continue
        cursor = Cursor(script, tokens[number:])
        if not cursor.at("OUTPUT", "TO"):
            continue
        hint = "OUTPUT TO DISPLAY name must be the last part of a statement"
        cursor.expect("OUTPUT", "TO", "DISPLAY", hint=hint)
        name = cursor.name("the name of a display")
        cursor.end(hint=hint)
        return tokens[:number], name
    return tokens, None


def _split_close(script: Script, tokens: Sequence[Token]) -> tuple[Sequence[Token], Span | None]:
    """Take EMIT ON WINDOW CLOSE off the end of a query's tokens.

    Raises:
        QuerySyntaxError: EMIT is followed by something else.
    """
    for number, token in _outside_parentheses(tokens[:-1]):
        if not number or token.text.upper() != "EMIT":
            continue
        if tokens[number + 1].token_type == TokenType.ON:
            place = script.span(token.start, tokens[-1].end)
            words = [word.text.upper() for word in tokens[number:]]
            if words != list(_CLOSE):
                raise QuerySyntaxError(
                    "expected EMIT ON WINDOW CLOSE at the end of the query",
                    span=place,
                    hint="EMIT ON WINDOW CLOSE emits each window once, when it closes",
                    code="misplaced_emit",
                )
            return tokens[:number], place
    return tokens, None


def _outside_parentheses(tokens: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    """Yield the tokens outside all parentheses, closing ones too, with their places."""
    depth = 0
    for number, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0:
            yield number, token


def with_options(query: Query, options: tuple[Option, ...]) -> Query:
    """Return a query with more options.

    Raises:
        QuerySyntaxError: It has one of them already.
    """
    return replace(query, options=_both(query.options, options))


def _both(inner: tuple[Option, ...], outer: tuple[Option, ...]) -> tuple[Option, ...]:
    names = {option.name for option in inner}
    for option in outer:
        if option.name in names:
            raise QuerySyntaxError(
                f"option {option.name} appears twice", span=option.span, code="duplicate_clause"
            )
    return inner + outer


def parse_options(cursor: Cursor) -> tuple[Option, ...]:
    """Parse `(name = 'value', …)`, behind the word WITH.

    Raises:
        QuerySyntaxError: It is malformed, or an option is given twice.
    """
    cursor.expect("(", hint="WITH (name = 'value', …)")
    options: list[Option] = []
    cursor.listed(lambda: options.append(parse_option(cursor, options)))
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


def _split_options(
    script: Script, tokens: Sequence[Token]
) -> tuple[Sequence[Token], tuple[Option, ...]]:
    """Take the options behind a query off its tokens; parentheses around both go with them.

    Raises:
        QuerySyntaxError: The options are malformed, or stand in front of the query.
    """
    inner = tokens
    while True:
        outside = [number for number, _ in _outside_parentheses(inner)]
        start = next((number for number in outside if _opens(inner, number)), None)
        if start is not None:
            break
        is_wrapped = inner[0].token_type == TokenType.L_PAREN and outside[:1] == [len(inner) - 1]
        if len(inner) < 3 or not is_wrapped:
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


def _opens(tokens: Sequence[Token], number: int) -> bool:
    return (
        tokens[number].token_type == TokenType.WITH
        and number + 1 < len(tokens)
        and tokens[number + 1].token_type == TokenType.L_PAREN
    )


def _refuse_inside(script: Script, tokens: Sequence[Token]) -> None:
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
