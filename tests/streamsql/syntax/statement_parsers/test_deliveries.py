"""SUBSCRIBE, CREATE DISPLAY and ALARM, OUTPUT TO, REFRESH as they are written."""

import pytest

from streamsql.errors import QueryError, QuerySyntaxError
from streamsql.syntax import (
    CreateAlarm,
    CreateDisplay,
    CreateSink,
    CreateView,
    Drop,
    Explain,
    Refresh,
    Show,
    Subscribe,
    parse_statement,
)
from tests.streamsql.from_text import query_of


def test_display() -> None:
    statement = parse_statement("CREATE DISPLAY Lobby WITH (floor = 1, x = 3.5, y = -8.0)")
    assert isinstance(statement, CreateDisplay)
    assert statement.name.text == "lobby"
    assert {o.name: o.value for o in statement.options} == {"floor": "1", "x": "3.5", "y": "-8.0"}


@pytest.mark.parametrize(
    ("text", "hold", "query"),
    [
        ("CREATE ALARM a AS SELECT x FROM t SEVERITY 'info'", 0, "SELECT x FROM t"),
        (
            "CREATE ALARM a AS SELECT severity FROM t WHERE severity > 2 "
            "SEVERITY 'info' FOR '2 min'",
            120_000_000,
            "SELECT severity FROM t WHERE severity > 2",
        ),
        ("CREATE ALARM a AS (SELECT severity FROM t) SEVERITY 'x'", 0, "(SELECT severity FROM t)"),
    ],
)
def test_alarm(text: str, hold: int, query: str) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, CreateAlarm)
    assert (statement.hold, statement.query.text) == (hold, query)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM s OUTPUT TO DISPLAY Lobby",
        "SELECT a AS output FROM s OUTPUT TO DISPLAY lobby",
        "WITH q AS (SELECT a FROM s) SELECT a FROM q WITH (strategy = 'set') "
        "OUTPUT TO DISPLAY lobby",
        "ISTREAM(SELECT a FROM s) OUTPUT TO DISPLAY lobby",
        "SELECT window_end FROM TUMBLE(s, ts, INTERVAL '1 minute') GROUP BY window_end "
        "EMIT ON WINDOW CLOSE OUTPUT TO DISPLAY lobby",
    ],
)
def test_output_to_display(text: str) -> None:
    statement = query_of(text)
    assert statement.display is not None
    assert statement.display.text == "lobby"
    assert statement.text == text


def test_a_column_may_be_called_output() -> None:
    statement = query_of("SELECT output FROM s WHERE output > 1")
    assert statement.display is None


@pytest.mark.parametrize("kind", ["DISPLAY", "ALARM"])
def test_show_and_drop(kind: str) -> None:
    shown, dropped = parse_statement(f"SHOW {kind}S"), parse_statement(f"DROP {kind} IF EXISTS x")
    assert isinstance(shown, Show)
    assert shown.kind == f"{kind.lower()}s"
    assert isinstance(dropped, Drop)
    assert (dropped.kind, dropped.if_exists) == (kind.lower(), True)


def test_drop_materialized_view_is_drop_view() -> None:
    dropped = parse_statement("DROP MATERIALIZED VIEW v")
    assert isinstance(dropped, Drop)
    assert dropped.kind == "view"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("SUBSCRIBE TO v ENVELOPE UPSERT (KEY (a, b))", ("a", "b")),
        ("SUBSCRIBE SELECT a FROM s ENVELOPE UPSERT (KEY (a))", ("a",)),
        ("SUBSCRIBE SELECT a FROM s WITH (PROGRESS) ENVELOPE UPSERT (KEY (a))", ("a",)),
        ("SUBSCRIBE TO v WITH (SNAPSHOT, strategy = 'set')", ()),
    ],
)
def test_envelope(text: str, key: tuple[str, ...]) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, Subscribe)
    assert tuple(name.text for name in statement.key) == key


def test_explain_as_a_graph() -> None:
    statement = parse_statement("EXPLAIN (TYPE FEDERATED, FORMAT DOT) SELECT a FROM s")
    assert isinstance(statement, Explain)
    assert (statement.type, statement.format) == ("federated", "dot")


@pytest.mark.parametrize(
    ("text", "column", "found"),
    [
        ("CREATE DISPLAY lobby", 21, "expected WITH"),
        ("CREATE DISPLAY WITH (x = 1)", 16, "a name for the display"),
        ("CREATE ALARM a AS SELECT 1", 27, "expected SEVERITY"),
        ("CREATE ALARM a AS SEVERITY 'info'", 19, "expected a query"),
        ("CREATE ALARM a AS SELECT 1 SEVERITY 'info' FOR 'ever'", 48, "duration"),
        ("CREATE ALARM a AS ISTREAM(SELECT 1) SEVERITY 'info'", 19, "has only instants"),
        ("CREATE ALARM a AS SELECT 1 SEVERITY 'info' FOR '30 s' x", 55, "should end here"),
        ("CREATE ALARM a AS SELECT 1 OUTPUT TO DISPLAY d SEVERITY 'info'", 46, "in an alarm"),
        ("CREATE VIEW v AS SELECT 1 OUTPUT TO DISPLAY d", 45, "in a view"),
        ("SUBSCRIBE TO (SELECT 1 OUTPUT TO DISPLAY d)", 42, "in parentheses"),
        ("SELECT a FROM s OUTPUT TO lobby", 27, "expected DISPLAY"),
        ("SELECT a FROM s OUTPUT TO DISPLAY lobby WITH (strategy = 'set')", 41, "should end"),
        ("SUBSCRIBE TO v WITH (SNAPSHOT, SNAPSHOT)", 32, "appears twice"),
        ("SUBSCRIBE TO v WITH (SNAPSHOT = 3)", 33, "true or false"),
        ("SUBSCRIBE TO v ENVELOPE DEBEZIUM", 25, "expected UPSERT"),
        ("SUBSCRIBE TO v ENVELOPE UPSERT (KEY (a, a))", 41, "named twice"),
        ("SUBSCRIBE TO (ISTREAM(SELECT 1 AS a)) ENVELOPE UPSERT (KEY (a))", 61, "never replaced"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(text: str, column: int, found: str) -> None:
    with pytest.raises(QuerySyntaxError, match=found) as refusal:
        parse_statement(text)
    assert refusal.value.span is not None
    assert refusal.value.span.column == column


def test_times_and_weights() -> None:
    made = parse_statement(
        "CREATE MATERIALIZED VIEW v (a) REFRESH AT ('14:00', '19:00', '24:00') "
        "COST WEIGHTS (0.25, 0.3, 1) AS SELECT mid FROM machines"
    )
    assert isinstance(made, CreateView)
    assert made.refresh is not None
    assert made.refresh.times == (840, 1140, 1440)
    assert made.refresh.weights == (0.25, 0.3, 1.0)
    assert made.query.text == "SELECT mid FROM machines"


def test_weights_may_be_left_out() -> None:
    made = parse_statement("CREATE MATERIALIZED VIEW v REFRESH AT ('7:30') AS SELECT 1")
    assert isinstance(made, CreateView)
    assert made.refresh is not None
    assert (made.refresh.times, made.refresh.weights) == ((450,), ())


def test_refresh_is_no_reserved_word() -> None:
    made = parse_statement("CREATE MATERIALIZED VIEW refresh AS SELECT refresh FROM weights")
    assert isinstance(made, CreateView)
    assert (made.name.text, made.refresh) == ("refresh", None)


def test_refresh_at_once() -> None:
    made = parse_statement('REFRESH MATERIALIZED VIEW "Big View"')
    assert isinstance(made, Refresh)
    assert (made.name.text, made.is_table) == ("Big View", False)
    made = parse_statement("REFRESH TABLE rooms")
    assert isinstance(made, Refresh)
    assert (made.name.text, made.is_table) == ("rooms", True)


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("REFRESH AT ('25:00')", "bad_refresh_time"),
        ("REFRESH AT ('noon')", "bad_refresh_time"),
        ("REFRESH AT ('00:00', '24:00')", "bad_refresh_time"),
        ("REFRESH AT ('09:00', '9:00')", "bad_refresh_time"),
        ("REFRESH AT ('09:00') COST WEIGHTS (1, 2)", "bad_cost_weights"),
        ("REFRESH AT ('09:00') COST WEIGHTS (0)", "bad_cost_weights"),
        ("REFRESH AT ('09:00') COST WEIGHTS (-1)", "bad_cost_weights"),
        ("REFRESH AT ('09:00') COST WEIGHTS ('1')", "bad_cost_weights"),
        ("REFRESH AT ('09:00') COST WEIGHTS (1e999)", "bad_cost_weights"),
        ("REFRESH AT ()", "unexpected_token"),
        ("REFRESH AT (9)", "unexpected_token"),
        ("REFRESH AT '09:00'", "unexpected_token"),
        ("REFRESH '09:00'", "unexpected_token"),
        ("COST WEIGHTS (1)", "unexpected_token"),
    ],
)
def test_what_is_malformed_is_refused_with_a_place(clause: str, code: str) -> None:
    with pytest.raises(QuerySyntaxError) as refusal:
        parse_statement(f"CREATE MATERIALIZED VIEW v {clause} AS SELECT mid FROM machines")
    assert refusal.value.code == code
    assert refusal.value.span is not None
    assert refusal.value.hint or code.startswith("unexpected")


def test_only_materialized_views_are_refreshed() -> None:
    with pytest.raises(QuerySyntaxError, match="only a materialized view"):
        parse_statement("CREATE VIEW v REFRESH AT ('09:00') AS SELECT 1")


@pytest.mark.parametrize(
    "text", ["REFRESH VIEW v", "REFRESH MATERIALIZED VIEW", "REFRESH v", "REFRESH TABLE"]
)
def test_what_is_to_be_refreshed_is_said(text: str) -> None:
    with pytest.raises(QuerySyntaxError):
        parse_statement(text)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("warm", 'SELECT * FROM "warm"'),
        ("SELECT a FROM t WHERE a > 2", "SELECT a FROM t WHERE a > 2"),
        ("WITH q AS (SELECT a FROM t) SELECT * FROM q", None),
        (
            "(SELECT a FROM t WITH (strategy = 'ranked'))",
            "SELECT a FROM t WITH (strategy = 'ranked')",
        ),
        ("ISTREAM(SELECT a FROM t)", "ISTREAM(SELECT a FROM t)"),
    ],
)
def test_sink(text: str, query: str | None) -> None:
    statement = parse_statement(
        f"CREATE SINK Free FROM {text} WITH (connector = 'mqtt', batch = 3)"
    )
    assert isinstance(statement, CreateSink)
    assert statement.name.text == "free"
    assert statement.query.text == (query or text)
    assert {o.name: o.value for o in statement.options} == {"connector": "mqtt", "batch": "3"}


@pytest.mark.parametrize(
    "text",
    [
        "CREATE SINK s",
        "CREATE SINK s FROM",
        "CREATE SINK s FROM t",
        "CREATE SINK s AS SELECT a FROM t WITH (connector = 'mqtt')",
        "CREATE SINK s FROM WITH (connector = 'mqtt')",
        "CREATE SINK s FROM t WITH (connector = 'mqtt') x",
        "CREATE SINK s FROM SELECT a FROM t OUTPUT TO DISPLAY d WITH (connector = 'mqtt')",
        "CREATE OR REPLACE SINK s FROM t WITH (connector = 'mqtt')",
    ],
)
def test_malformed_sinks(text: str) -> None:
    with pytest.raises(QueryError):
        parse_statement(text)


def test_sinks_are_shown_and_dropped() -> None:
    shown, dropped = parse_statement("SHOW SINKS"), parse_statement("DROP SINK IF EXISTS s")
    assert isinstance(shown, Show)
    assert shown.kind == "sinks"
    assert isinstance(dropped, Drop)
    assert (dropped.kind, dropped.if_exists) == ("sink", True)
