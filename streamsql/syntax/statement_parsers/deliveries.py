"""Delivery of answers: SUBSCRIBE, CREATE DISPLAY, CREATE ALARM, CREATE SINK and REFRESH."""

import math
from typing import Any

from sqlglot.tokenizer_core import TokenType

from streamsql.algebra.operators import StreamKind
from streamsql.catalog.refresh_times import first_repeated, minute_of_day
from streamsql.errors import QuerySyntaxError
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.statement_parsers.commands import subject
from streamsql.syntax.statement_parsers.query_clauses import (
    parse_option,
    parse_options,
    query_of,
    with_options,
    without_output,
)
from streamsql.syntax.statements import (
    CreateAlarm,
    CreateDisplay,
    CreateSink,
    Name,
    Option,
    Query,
    Refresh,
    RefreshTimes,
    Subscribe,
)

_WORDS = ("SNAPSHOT", "PROGRESS")
_TRUTH = {"true": True, "on": True, "false": False, "off": False}
_ENVELOPE = "ENVELOPE UPSERT (KEY (column, …))"
_DISPLAY = "CREATE DISPLAY lobby WITH (floor = 1, x = 3.5, y = 8.0)"
_ALARM = "CREATE ALARM hot AS SELECT … SEVERITY 'critical' FOR '30 s'"
_SINK = "CREATE SINK free FROM view WITH (connector = 'mqtt', topic = 'free/{desk}')"
_TIMES = "REFRESH AT ('14:00', '19:00', '24:00')"
_WEIGHTS = "COST WEIGHTS (0.25, 0.3, 1): one number greater than 0 per time"
_REFRESH = "REFRESH MATERIALIZED VIEW name, or REFRESH TABLE name"


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
    if key and inner.emit is not None:
        raise QuerySyntaxError(
            f"the rows of {inner.emit} are never replaced, so they have no upserts",
            span=key[0].span,
            hint=f"remove {inner.emit} or ENVELOPE",
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

    def element() -> None:
        if cursor.word() in _WORDS:
            _word(cursor, words)
        elif cursor.word(1) == "=":
            options.append(parse_option(cursor, options))
        else:
            cursor.choice(_WORDS, "SNAPSHOT or PROGRESS, or name = 'value'")

    cursor.listed(element)
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
        value = None if token is None else _TRUTH.get(token.text.lower())
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
    if cursor.word() in ("SELECT", *StreamKind):
        tokens = cursor.until(("WITH", "("), ("ENVELOPE", "UPSERT"))
        return query_of(cursor.script, tokens)
    return subject(cursor)


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
    tokens = list(cursor.until(("SEVERITY",)))
    while cursor.token is not None and not _is_text(cursor, 1):
        tokens.append(cursor.advance())
        tokens += cursor.until(("SEVERITY",))
    if begin is None or not tokens:
        cursor.fail("expected a query", hint=_ALARM)
    query = without_output(query_of(cursor.script, tokens), "an alarm")
    if query.emit is not None:
        raise QuerySyntaxError(
            f"an alarm lasts while its query has rows, and {query.emit} has only instants",
            span=query.span,
            hint=f"remove {query.emit}",
            code="misplaced_emit",
        )
    cursor.expect("SEVERITY", hint=_ALARM)
    severity, place = cursor.string("a severity")
    hold = 0
    if cursor.accept("FOR"):
        hold = _hold(cursor)
    cursor.end(hint=_ALARM)
    return CreateAlarm(**common, name=name, query=query, severity=severity, place=place, hold=hold)


def parse_sink(cursor: Cursor, common: dict[str, Any]) -> CreateSink:
    """Parse what follows CREATE SINK.

    Options of the query itself stand with it in parentheses.

    Raises:
        QuerySyntaxError: It is malformed.
    """
    name = cursor.name("a name for the sink")
    cursor.expect("FROM", hint=_SINK)
    if cursor.word() in ("SELECT", "WITH", *StreamKind):
        tokens = cursor.until(("WITH", "("))
        if not tokens:
            cursor.fail("expected a query", hint=_SINK)
        query = without_output(query_of(cursor.script, tokens), "a sink")
    else:
        query = subject(cursor)
    cursor.expect("WITH", hint=_SINK)
    options = parse_options(cursor)
    cursor.end(hint=_SINK)
    return CreateSink(**common, name=name, query=query, options=options)


def _is_text(cursor: Cursor, distance: int) -> bool:
    token = cursor.ahead(distance)
    return token is not None and token.token_type == TokenType.STRING


def _hold(cursor: Cursor) -> int:
    micros, span = cursor.duration("a duration", hint="FOR '30 s' or '5 min'")
    if micros < 0:
        raise QuerySyntaxError(
            "FOR takes a duration that is not negative",
            span=span,
            hint="FOR '30 s', or remove FOR",
            code="bad_duration",
        )
    return micros


def parse_refresh(cursor: Cursor, common: dict[str, Any]) -> Refresh:
    """Parse what follows REFRESH.

    Raises:
        QuerySyntaxError: It is malformed.
    """
    is_table = cursor.at("TABLE")
    words = ("TABLE",) if is_table else ("MATERIALIZED", "VIEW")
    cursor.expect(*words, hint=_REFRESH)
    name = cursor.name("the name of a table" if is_table else "the name of a materialized view")
    cursor.end(hint=_REFRESH)
    return Refresh(**common, name=name, is_table=is_table)


def refresh_times(cursor: Cursor) -> RefreshTimes:
    """Step over `REFRESH AT (…) [COST WEIGHTS (…)]`.

    Raises:
        QuerySyntaxError: A time is none or stands there twice; weights are not positive or do not
            match the times.
    """
    span = cursor.here()
    cursor.expect("REFRESH", "AT", "(", hint=_TIMES)
    times: list[int] = []
    cursor.listed(lambda: times.append(_time(cursor, times)))
    cursor.expect(")", hint=_TIMES)
    weights: list[float] = []
    if cursor.at("COST"):
        weights_span = cursor.here()
        cursor.expect("COST", "WEIGHTS", "(", hint=_WEIGHTS)
        weights = cursor.listed(lambda: _weight(cursor))
        cursor.expect(")", hint=_WEIGHTS)
        if len(weights) != len(times):
            raise QuerySyntaxError(
                f"{len(times)} times of day have {len(weights)} cost weights",
                span=weights_span,
                hint=_WEIGHTS,
                code="bad_cost_weights",
            )
    return RefreshTimes(tuple(times), tuple(weights), span)


def _time(cursor: Cursor, before: list[int]) -> int:
    text, span = cursor.string("a time of day")
    try:
        minute = minute_of_day(text)
    except ValueError as error:
        raise QuerySyntaxError(
            str(error), span=span, hint=_TIMES, code="bad_refresh_time"
        ) from None
    if first_repeated((*before, minute)) is not None:
        raise QuerySyntaxError(
            f"{text!r:.40} appears twice; 24:00 and 00:00 are the same time",
            span=span,
            hint="name each time once",
            code="bad_refresh_time",
        )
    return minute


def _weight(cursor: Cursor) -> float:
    token = cursor.token
    value = math.nan
    if token is not None and token.token_type == TokenType.NUMBER:
        value = float(token.text)
    if not 0 < value < math.inf:
        cursor.fail(
            "expected a number greater than 0",
            hint=_WEIGHTS,
            code="" if token is None else "bad_cost_weights",
        )
    cursor.advance()
    return value
