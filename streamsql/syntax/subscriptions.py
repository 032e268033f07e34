"""SUBSCRIBE: a query, and how its readers are told about changes."""

from typing import Any

from streamsql.errors import QuerySyntaxError
from streamsql.syntax.commands import subject
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.options import parse_option
from streamsql.syntax.query_statements import query_of, with_options, without_output
from streamsql.syntax.statements import Name, Option, Query, Subscribe

_WORDS = ("SNAPSHOT", "PROGRESS")
_TRUTH = {"true": True, "on": True, "false": False, "off": False}
_ENVELOPE = "ENVELOPE UPSERT (KEY (column, …))"


def parse_subscribe(cursor: Cursor, common: dict[str, Any]) -> Subscribe:
    """Parse what follows SUBSCRIBE.

    Raises:
        QuerySyntaxError: It is malformed.
    """
    cursor.accept("TO")
    inner = without_output(_subscribed(cursor), "a subscription")
    wanted = {"SNAPSHOT": True, "PROGRESS": False}
    if cursor.accept("WITH"):
        given, options = _options(cursor)
        inner = with_options(inner, options)
        wanted.update(given)
    key = _envelope(cursor) if cursor.accept("ENVELOPE") else ()
    cursor.end(hint=f"SUBSCRIBE TO view WITH (SNAPSHOT, PROGRESS) {_ENVELOPE}")
    if key and inner.emit != "relation":
        raise QuerySyntaxError(
            f"the rows of {inner.emit.upper()} are never replaced, so they have no upserts",
            span=key[0].span,
            hint=f"remove {inner.emit.upper()} or ENVELOPE",
            code="misplaced_envelope",
        )
    return Subscribe(
        **common,
        inner=inner,
        snapshot=wanted["SNAPSHOT"],
        progress=wanted["PROGRESS"],
        key=key,
    )


def _options(cursor: Cursor) -> tuple[dict[str, bool], tuple[Option, ...]]:
    """Parse `(SNAPSHOT [= true | false], PROGRESS, name = 'value', …)`."""
    cursor.expect("(", hint="WITH (SNAPSHOT, PROGRESS)")
    words: dict[str, bool] = {}
    options: list[Option] = []
    while True:
        if cursor.word() in _WORDS:
            _word(cursor, words)
        elif cursor.word(1) == "=":
            options.append(parse_option(cursor, options))
        else:
            cursor.choice(_WORDS, "SNAPSHOT or PROGRESS, or name = 'value'")
        if not cursor.accept(","):
            cursor.expect(")")
            return words, tuple(options)


def _word(cursor: Cursor, words: dict[str, bool]) -> None:
    place = cursor.here()
    word = cursor.choice(_WORDS, "SNAPSHOT or PROGRESS")
    if word in words:
        raise QuerySyntaxError(f"{word} appears twice", span=place, code="duplicate_clause")
    words[word] = True
    if cursor.accept("="):
        token = cursor.token
        value = _TRUTH.get(token.text.lower()) if token is not None else None
        if value is None:
            cursor.fail(f"expected true or false for {word}", hint=f"WITH ({word} = false)")
        cursor.advance()
        words[word] = value


def _envelope(cursor: Cursor) -> tuple[Name, ...]:
    """Parse `UPSERT (KEY (columns))`."""
    cursor.expect("UPSERT", "(", "KEY", hint=_ENVELOPE)
    names = cursor.names("a column of the key")
    cursor.expect(")", hint=_ENVELOPE)
    for number, name in enumerate(names):
        if name.text in {other.text for other in names[:number]}:
            raise QuerySyntaxError(
                f"column {name.text} is named twice in the key",
                span=name.span,
                hint="name it once",
                code="duplicate_clause",
            )
    return names


def _subscribed(cursor: Cursor) -> Query:
    if cursor.word() in ("SELECT", "ISTREAM", "DSTREAM", "RSTREAM"):
        tokens = cursor.until_any(("WITH", "("), ("ENVELOPE", "UPSERT"))
        return query_of(cursor.script, tokens)
    return subject(cursor)
