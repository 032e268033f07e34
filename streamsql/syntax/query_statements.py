"""Queries as statements: plain or inside ISTREAM, DSTREAM or RSTREAM, with options behind them."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot.tokenizer_core import Token, TokenType

from streamsql.errors import QuerySyntaxError, Span
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.options import refuse_inside, split_options
from streamsql.syntax.places import Script
from streamsql.syntax.queries import parse_query
from streamsql.syntax.statements import Name, Option, Query

_CLOSE = ("EMIT", "ON", "WINDOW", "CLOSE")
_EMITS = ("ISTREAM", "DSTREAM", "RSTREAM")


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
    tokens, options = split_options(script, tokens)
    tokens, on_close = _split_close(script, tokens)
    cursor = Cursor(script, tokens)
    emit = cursor.word()
    if emit in _EMITS and cursor.word(1) == "(":
        cursor.advance()
        inner = cursor.inside()
        if not inner:
            cursor.fail(f"expected a query in {emit}(…)")
        cursor.end(hint=f"{emit}(…) stands around the whole query")
        inner, more = split_options(script, inner)
        options = _both(more, options)
        refuse_inside(script, inner)
        tree = parse_query(script, inner)
        kind = emit.lower()
    else:
        if cursor.word() not in ("SELECT", "WITH", "("):
            cursor.fail("expected a query", hint="a query begins with SELECT or WITH")
        refuse_inside(script, tokens)
        tree, kind = parse_query(script, tokens), "relation"
    return Query(
        text=text,
        span=script.span(first.start, first.end),
        script=script,
        tree=tree,
        emit=kind,
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
            f"OUTPUT TO DISPLAY cannot stand in {where}",
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
    depth = 0
    for number, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth or not number or token.text.upper() != "OUTPUT":
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
    depth = 0
    for number, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        following = tokens[number + 1] if number + 1 < len(tokens) else None
        if depth or token.text.upper() != "EMIT" or following is None or not number:
            continue
        if following.token_type == TokenType.ON:
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
