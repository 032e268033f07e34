"""Trials on the past.

RUN query | name | CREATE ALARM … ON HISTORY BETWEEN time AND time [SPEED n] [WITH (…)]
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot.tokenizer_core import Token, TokenType

from streamsql.data.durations import parse_duration
from streamsql.data.types import DataType, coerce, timestamp_text
from streamsql.errors import QuerySyntaxError, Span
from streamsql.syntax.cursor import Cursor, did_you_mean
from streamsql.syntax.script_places import Script
from streamsql.syntax.statement_parsers.query_clauses import parse_options, query_of, without_output
from streamsql.syntax.statements import CreateAlarm, Name, Option, Query, Statement

DEFAULT_LOOKBACK = 24 * 3_600 * 1_000_000
FASTEST = 1_000_000.0
_HISTORY = ("ON", "HISTORY", "BETWEEN")
_EXAMPLE = "RUN (SELECT …) ON HISTORY BETWEEN NOW - INTERVAL '7 days' AND NOW"
_TIME = "a time is '2026-11-20T08:00:00Z', NOW or NOW - INTERVAL '7 days'"


@dataclass(frozen=True, slots=True)
class PastTime:
    """A time as written: fixed, or so much before the time at which the statement runs.

    Attributes:
        at: Microseconds since 1970 UTC; None: relative to now.
        back: Microseconds before now.
    """

    at: int | None
    back: int
    span: Span

    def time(self, now: int) -> int:
        """Return the time in microseconds since 1970 UTC."""
        return now - self.back if self.at is None else self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOnHistory(Statement):
    """RUN (query | name | CREATE ALARM …) ON HISTORY BETWEEN a AND b [SPEED n].

    Attributes:
        inner: What is tried; None: what `named` names.
        named: A view, an alarm or a running query.
        speed: How many seconds of the past pass in one; None: as fast as it can.
        lookback: How far before the beginning rows are looked for that count then, in microseconds.
    """

    inner: Query | CreateAlarm | None
    named: Name | None
    since: PastTime
    until: PastTime
    speed: float | None = None
    lookback: int = DEFAULT_LOOKBACK

    def interval(self, now: int) -> tuple[int, int]:
        """Return begin and end in microseconds since 1970 UTC; the end is not after now.

        Raises:
            QuerySyntaxError: The interval is empty.
        """
        since, until = self.since.time(now), min(self.until.time(now), now)
        if since >= until:
            raise QuerySyntaxError(
                f"this interval is empty: it begins at {timestamp_text(since)} and ends at "
                f"{timestamp_text(until)}",
                span=self.since.span,
                hint="write the earlier time first; the interval ends now at the latest",
                code="bad_time",
            )
        return since, until


def parse_run(
    cursor: Cursor,
    common: dict[str, Any],
    statement: Callable[[Script, Sequence[Token]], Statement],
) -> RunOnHistory:
    """Parse what follows RUN; `statement` parses what is tried where it is one of its own."""
    begin = cursor.token
    tokens = cursor.until(_HISTORY)
    if begin is None or not tokens:
        cursor.fail("expected a query, or the name of a view, an alarm or a query", hint=_EXAMPLE)
    inner, named = _tried(cursor, tokens, statement)
    cursor.expect(*_HISTORY, hint=_EXAMPLE)
    since = _time(cursor)
    cursor.expect("AND", hint=_EXAMPLE)
    until = _time(cursor)
    speed = _speed(cursor) if cursor.accept("SPEED") else None
    lookback = DEFAULT_LOOKBACK
    if cursor.accept("WITH"):
        lookback = _lookback(parse_options(cursor))
    cursor.end(hint=f"{_EXAMPLE} SPEED 10")
    return RunOnHistory(
        **common,
        inner=inner,
        named=named,
        since=since,
        until=until,
        speed=speed,
        lookback=lookback,
    )


def _tried(
    cursor: Cursor,
    tokens: Sequence[Token],
    statement: Callable[[Script, Sequence[Token]], Statement],
) -> tuple[Query | CreateAlarm | None, Name | None]:
    within = Cursor(cursor.script, tokens)
    if within.word() in ("SELECT", "WITH", "ISTREAM", "DSTREAM", "RSTREAM", "("):
        inside = within.inside() if within.at("(") else ()
        whole = tokens if within.token is not None or not inside else inside
        return without_output(query_of(cursor.script, whole), "RUN"), None
    if within.at("CREATE"):
        found = statement(cursor.script, tokens)
        if isinstance(found, CreateAlarm):
            return found, None
        raise QuerySyntaxError(
            "only queries and alarms are tried",
            span=found.span,
            hint="RUN CREATE ALARM hot AS SELECT … ON HISTORY BETWEEN … AND …",
            code="unsupported_statement",
        )
    name = within.name("a query, or the name of a view, an alarm or a query")
    within.end(hint=_EXAMPLE)
    return None, name


def _time(cursor: Cursor) -> PastTime:
    span = cursor.here()
    if cursor.accept("NOW"):
        if cursor.accept("("):
            cursor.expect(")", hint=_TIME)
        if not cursor.accept("-"):
            return PastTime(None, 0, span)
        cursor.accept("INTERVAL")
        return PastTime(None, _interval(cursor), span)
    cursor.accept("TIMESTAMP")
    text, span = cursor.string("a time")
    try:
        at = coerce(text, DataType.TIMESTAMP)
    except ValueError as error:
        raise QuerySyntaxError(str(error), span=span, hint=_TIME, code="bad_time") from None
    if not isinstance(at, int):
        raise QuerySyntaxError("expected a time", span=span, hint=_TIME, code="bad_time")
    return PastTime(at, 0, span)


def _interval(cursor: Cursor) -> int:
    """Parse `'7 days'`, `'7' DAYS` or `7 DAYS`."""
    token = cursor.token
    if token is not None and token.token_type == TokenType.NUMBER:
        text, span = cursor.advance().text, cursor.here()
    else:
        text, span = cursor.string("a duration")
    if cursor.token is not None and cursor.word() not in ("AND", "SPEED", "WITH"):
        text = f"{text} {cursor.word_name('a unit').text}"
    try:
        return parse_duration(text)
    except ValueError as error:
        raise QuerySyntaxError(str(error), span=span, hint=_TIME, code="bad_time") from None


def _speed(cursor: Cursor) -> float:
    token, span = cursor.token, cursor.here()
    number = 0.0
    if token is not None and token.token_type == TokenType.NUMBER:
        number = float(cursor.advance().text)
    if not 0 < number <= FASTEST:
        raise QuerySyntaxError(
            f"SPEED is a number above 0 and at most {FASTEST:,.0f}",
            span=span,
            hint="SPEED 60 shows a minute of the past in a second; without it nothing waits",
            code="bad_option",
        )
    return number


def _lookback(options: Sequence[Option]) -> int:
    lookback = DEFAULT_LOOKBACK
    for option in options:
        if option.name != "lookback":
            raise QuerySyntaxError(
                f"RUN has no option {option.name!r:.40}",
                span=option.span,
                hint=did_you_mean(option.name, ("lookback",), "its option is lookback"),
                code="unknown_option",
            )
        try:
            lookback = parse_duration(option.value)
        except ValueError as error:
            raise QuerySyntaxError(
                str(error), span=option.value_span, hint="lookback = '7 days'", code="bad_option"
            ) from None
    return lookback
