"""RUN … ON HISTORY as text."""

import pytest

from streamsql.errors import FederationError
from streamsql.syntax import CreateAlarm, Query, RunOnHistory, parse_statement
from streamsql.syntax.statement_parsers.run_statements import DEFAULT_LOOKBACK

DAY = 86_400_000_000
NOW = 100 * DAY


def parsed(text: str) -> RunOnHistory:
    statement = parse_statement(text)
    assert isinstance(statement, RunOnHistory)
    return statement


@pytest.mark.parametrize(
    "query",
    [
        "SELECT room FROM t [RANGE 5 MINUTES]",
        "(SELECT room FROM t)",
        "(SELECT 1 AS a) UNION (SELECT 2 AS a)",
        "WITH x AS (SELECT 1 AS a) SELECT a FROM x",
        "ISTREAM(SELECT room FROM t)",
        "SELECT a.room FROM t AS a JOIN u AS history ON history.room = a.room",
    ],
)
def test_a_query_is_what_stands_before_on_history(query: str) -> None:
    found = parsed(f"RUN {query} ON HISTORY BETWEEN NOW - INTERVAL '7 days' AND NOW")
    assert isinstance(found.inner, Query)
    assert found.named is None
    assert found.interval(NOW) == (NOW - 7 * DAY, NOW)
    assert (found.speed, found.lookback) == (None, DEFAULT_LOOKBACK)


def test_a_name_or_an_alarm_may_be_tried() -> None:
    named = parsed("RUN hot ON HISTORY BETWEEN '1970-01-02' AND TIMESTAMP '1970-01-03' SPEED 60")
    assert named.named is not None
    assert named.named.text == "hot"
    assert named.interval(NOW) == (DAY, 2 * DAY)
    assert named.speed == 60.0
    alarm = parsed(
        "RUN CREATE ALARM hot AS SELECT room FROM t SEVERITY 'critical' FOR '30 s' "
        "ON HISTORY BETWEEN NOW() - 7 DAYS AND NOW - '1 h' WITH (lookback = '2 days')"
    )
    assert isinstance(alarm.inner, CreateAlarm)
    assert alarm.inner.hold == 30_000_000
    assert alarm.interval(NOW) == (NOW - 7 * DAY, NOW - DAY // 24)
    assert alarm.lookback == 2 * DAY


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RUN", "expected a query"),
        ("RUN SELECT 1 AS a", "expected ON"),
        ("RUN CREATE VIEW v AS SELECT 1 AS a ON HISTORY BETWEEN NOW AND NOW", "only queries"),
        ("RUN v ON HISTORY BETWEEN 'soon' AND NOW", "soon"),
        ("RUN v ON HISTORY BETWEEN NOW - INTERVAL 'soon' AND NOW", "not a duration"),
        ("RUN v ON HISTORY BETWEEN NOW", "expected AND"),
        ("RUN v ON HISTORY BETWEEN NOW - '1 h' AND NOW SPEED 0", "SPEED is a number above 0"),
        ("RUN v ON HISTORY BETWEEN NOW - '1 h' AND NOW SPEED fast", "SPEED is a number above 0"),
        ("RUN v ON HISTORY BETWEEN NOW - '1 h' AND NOW WITH (warmup = '1 h')", "no option"),
        ("RUN v ON HISTORY BETWEEN NOW - '1 h' AND NOW TWICE", "hour"),
    ],
)
def test_what_is_wrong_is_told(text: str, message: str) -> None:
    if message == "hour":
        message = "should end here"
    with pytest.raises(FederationError, match=message):
        parse_statement(text)


def test_an_empty_interval_is_refused() -> None:
    with pytest.raises(FederationError, match="this interval is empty"):
        parsed("RUN v ON HISTORY BETWEEN NOW AND NOW - '1 h'").interval(NOW)
