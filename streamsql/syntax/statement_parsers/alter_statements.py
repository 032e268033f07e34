"""ALTER: settings of an engine site, columns of a source, quotas of an account."""

from typing import Any

from sqlglot.tokenizer_core import TokenType

from streamsql.algebra.operators import SourceKind
from streamsql.errors import QuerySyntaxError
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.statement_parsers.create_statements import parse_column
from streamsql.syntax.statement_parsers.grant_statements import AlterUser, parse_alter_user
from streamsql.syntax.statement_parsers.query_clauses import parse_options
from streamsql.syntax.statements import AlterSite, AlterSource, Name

_SITE = "ALTER SITE gw-1 SET (scheduler = 'chain', slice_ms = 5)"
_SOURCE = (
    "ALTER SOURCE name ADD COLUMN humidity DOUBLE FROM 'hum', ALTER SOURCE name DROP COLUMN x, or "
    "ALTER SOURCE name SET (keep = '30 days')"
)
MAX_NAME = 64
ALTERED = ("SITE", "SOURCE", "USER")
"""Words behind ALTER."""


def parse_alter(cursor: Cursor, common: dict[str, Any]) -> AlterSite | AlterSource | AlterUser:
    """Parse what follows ALTER.

    Raises:
        QuerySyntaxError: It is malformed.
    """
    if cursor.accept("SOURCE"):
        return _alter_source(cursor, common)
    if cursor.accept("USER"):
        return parse_alter_user(cursor, common)
    cursor.expect("SITE", hint=f"{_SITE}, or {_SOURCE}")
    site = _site(cursor)
    cursor.expect("SET", hint=_SITE)
    options = parse_options(cursor)
    cursor.end(hint=_SITE)
    return AlterSite(**common, site=site, options=options)


def _alter_source(cursor: Cursor, common: dict[str, Any]) -> AlterSource:
    name = cursor.name("the name of a source")
    word = cursor.choice(("ADD", "DROP", "SET"), "ADD, DROP or SET")
    if word == "SET":
        options = parse_options(cursor)
        cursor.end(hint=_SOURCE)
        return AlterSource(**common, name=name, options=options)
    cursor.accept("COLUMN")
    if word == "DROP":
        dropped = cursor.name("the name of a column")
        cursor.end(hint="one column in each statement")
        return AlterSource(**common, name=name, dropped=dropped)
    column = parse_column(cursor, SourceKind.STREAM)
    if column.primary_key:
        raise QuerySyntaxError(
            "the key of a source cannot be changed by ADD COLUMN",
            span=column.name.span,
            hint="CREATE OR REPLACE SOURCE with the whole definition",
            code="unsupported_constraint",
        )
    cursor.end(hint="one column in each statement")
    return AlterSource(**common, name=name, added=column)


def _site(cursor: Cursor) -> Name:
    """Step over the id of a site, which may hold dashes without quotes, as on the command line.

    Raises:
        QuerySyntaxError: There is none.
    """
    token = cursor.token
    if token is not None and token.token_type == TokenType.IDENTIFIER:
        return cursor.name("a site")
    run = cursor.until(("SET",))
    if not run:
        cursor.fail("expected a site", hint=_SITE)
    first, last = run[0], run[-1]
    span = cursor.script.span(first.start, last.end)
    text = cursor.script.text[first.start : last.end + 1]
    if len(text) > MAX_NAME or not all(c.isalnum() or c in "-_" for c in text):
        raise QuerySyntaxError(
            f"{text!r:.60} is not the id of a site",
            span=span,
            hint=_SITE,
            code="unexpected_token",
        )
    return Name(text, span)
