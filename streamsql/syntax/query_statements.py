"""Queries as statements: a plain query, or one inside ISTREAM, DSTREAM or RSTREAM."""

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token

from streamsql.syntax.cursor import Cursor
from streamsql.syntax.places import Script
from streamsql.syntax.queries import parse_query
from streamsql.syntax.statements import Query

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
    """Parse tokens as a query, with its relation-to-stream operator if there is one.

    Raises:
        QuerySyntaxError: They are none.
    """
    first, last = tokens[0], tokens[-1]
    text = script.text[first.start : last.end + 1]
    cursor = Cursor(script, tokens)
    emit = cursor.word()
    if emit in _EMITS and cursor.word(1) == "(":
        cursor.advance()
        inner = cursor.inside()
        if not inner:
            cursor.fail(f"expected a query in {emit}(…)")
        cursor.end(hint=f"{emit}(…) stands around the whole query")
        tree = parse_query(script, inner)
        kind = emit.lower()
    else:
        if cursor.word() not in ("SELECT", "WITH", "("):
            cursor.fail("expected a query", hint="a query begins with SELECT or WITH")
        tree, kind = parse_query(script, tokens), "relation"
    return Query(
        text=text, span=script.span(first.start, first.end), script=script, tree=tree, emit=kind
    )
