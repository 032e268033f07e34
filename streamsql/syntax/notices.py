"""CREATE DISPLAY and CREATE ALARM: where answers are shown, and which of them are bad news."""

from typing import Any

from sqlglot.tokenizer_core import TokenType

from streamsql.errors import QuerySyntaxError
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.durations import parse_duration
from streamsql.syntax.options import parse_options
from streamsql.syntax.query_statements import query_of, without_output
from streamsql.syntax.statements import CreateAlarm, CreateDisplay

_DISPLAY = "CREATE DISPLAY lobby WITH (floor = 1, x = 3.5, y = 8.0)"
_ALARM = "CREATE ALARM hot AS SELECT … SEVERITY 'critical' FOR '30 s'"


def parse_display(cursor: Cursor, common: dict[str, Any]) -> CreateDisplay:
    """Parse what follows CREATE DISPLAY.

    Raises:
        QuerySyntaxError: It is malformed.
    """
    name = cursor.name("a name for the display")
    cursor.expect("WITH", hint=_DISPLAY)
    options = parse_options(cursor)
    cursor.end(hint=_DISPLAY)
    return CreateDisplay(**common, name=name, options=options)


def parse_alarm(cursor: Cursor, common: dict[str, Any]) -> CreateAlarm:
    """Parse what follows CREATE ALARM.

    `SEVERITY` begins the end of the statement only before a text: a column may be called so, too.

    Raises:
        QuerySyntaxError: It is malformed.
    """
    name = cursor.name("a name for the alarm")
    cursor.expect("AS", hint=_ALARM)
    begin = cursor.token
    tokens = list(cursor.until_words("SEVERITY"))
    while cursor.token is not None and not _is_text(cursor, 1):
        tokens.append(cursor.advance())
        tokens += cursor.until_words("SEVERITY")
    if begin is None or not tokens:
        cursor.fail("expected a query", hint=_ALARM)
    query = without_output(query_of(cursor.script, tokens), "an alarm")
    if query.emit != "relation":
        raise QuerySyntaxError(
            f"an alarm lasts while its query has rows, and {query.emit.upper()} has only instants",
            span=query.span,
            hint=f"remove {query.emit.upper()}",
            code="misplaced_emit",
        )
    cursor.expect("SEVERITY", hint=_ALARM)
    severity, place = cursor.string("a severity")
    hold = 0
    if cursor.accept("FOR"):
        hold = _hold(cursor)
    cursor.end(hint=_ALARM)
    return CreateAlarm(**common, name=name, query=query, severity=severity, place=place, hold=hold)


def _is_text(cursor: Cursor, distance: int) -> bool:
    token = cursor.ahead(distance)
    return token is not None and token.token_type == TokenType.STRING


def _hold(cursor: Cursor) -> int:
    text, span = cursor.string("a duration")
    try:
        micros = parse_duration(text)
    except ValueError as error:
        raise QuerySyntaxError(
            str(error), span=span, hint="FOR '30 s' or '5 min'", code="bad_duration"
        ) from None
    if micros < 0:
        raise QuerySyntaxError(
            "FOR takes a duration that is not negative",
            span=span,
            hint="FOR '30 s', or remove FOR",
            code="bad_duration",
        )
    return micros
