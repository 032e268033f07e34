"""REFRESH AT of a materialized view, and REFRESH MATERIALIZED VIEW."""

import math
from typing import Any

from sqlglot.tokenizer_core import TokenType

from streamsql.catalog.refreshes import first_repeated, minute_of_day
from streamsql.errors import QuerySyntaxError
from streamsql.syntax.cursor import Cursor
from streamsql.syntax.statements import Refresh, RefreshTimes

_TIMES = "REFRESH AT ('14:00', '19:00', '24:00')"
_WEIGHTS = "COST WEIGHTS (0.25, 0.3, 1): one number greater than 0 per time"
_REFRESH = "REFRESH MATERIALIZED VIEW name"


def parse_refresh(cursor: Cursor, common: dict[str, Any]) -> Refresh:
    """Parse what follows REFRESH.

    Raises:
        QuerySyntaxError: It is malformed.
    """
    cursor.expect("MATERIALIZED", "VIEW", hint=_REFRESH)
    name = cursor.name("the name of a materialized view")
    cursor.end(hint=_REFRESH)
    return Refresh(**common, name=name)


def refresh_times(cursor: Cursor) -> RefreshTimes:
    """Step over `REFRESH AT (…) [COST WEIGHTS (…)]`.

    Raises:
        QuerySyntaxError: A time is none or stands there twice; weights are not positive or do not
            match the times.
    """
    span = cursor.here()
    cursor.expect("REFRESH", "AT", "(", hint=_TIMES)
    times = [_time(cursor, [])]
    while cursor.accept(","):
        times.append(_time(cursor, times))
    cursor.expect(")", hint=_TIMES)
    weights: list[float] = []
    if cursor.at("COST"):
        weights_span = cursor.here()
        cursor.expect("COST", "WEIGHTS", "(", hint=_WEIGHTS)
        weights.append(_weight(cursor))
        while cursor.accept(","):
            weights.append(_weight(cursor))
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
