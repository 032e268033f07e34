"""ALTER SITE: how an engine site works, changed while it runs."""

from typing import Any

from sqlglot.tokenizer_core import TokenType

from streamsql.errors import QuerySyntaxError
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.options import parse_options
from streamsql.syntax.statements import AlterSite, Name

_EXAMPLE = "ALTER SITE gw-1 SET (scheduler = 'chain', slice_ms = 5)"
MAX_NAME = 64


def parse_alter(cursor: Cursor, common: dict[str, Any]) -> AlterSite:
    """Parse what follows ALTER."""
    cursor.expect("SITE", hint=_EXAMPLE)
    site = _site(cursor)
    cursor.expect("SET", hint=_EXAMPLE)
    options = parse_options(cursor)
    cursor.end(hint=_EXAMPLE)
    return AlterSite(**common, site=site, options=options)


def _site(cursor: Cursor) -> Name:
    """Step over the id of a site, which may hold dashes without quotes, as on the command line.

    Raises:
        QuerySyntaxError: There is none.
    """
    token = cursor.token
    if token is not None and token.token_type == TokenType.IDENTIFIER:
        return cursor.name("a site")
    run = cursor.until_words("SET")
    if not run:
        cursor.fail("expected a site", hint=_EXAMPLE)
    first, last = run[0], run[-1]
    span = cursor.script.span(first.start, last.end)
    text = cursor.script.text[first.start : last.end + 1]
    if len(text) > MAX_NAME or not all(c.isalnum() or c in "-_" for c in text):
        raise QuerySyntaxError(
            f"{text!r:.60} is not the id of a site",
            span=span,
            hint=_EXAMPLE,
            code="unexpected_token",
        )
    return Name(text, span)
