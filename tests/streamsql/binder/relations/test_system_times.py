"""FOR SYSTEM_TIME: the past that it names, and relations that have none."""

import pytest

from streamsql.algebra.explain import explain_plan
from streamsql.algebra.operators import Scan, walk_plan
from streamsql.catalog.read_gate import Read, Refusal
from streamsql.errors import QueryError
from tests.streamsql.from_text import bound_query, catalog_of, unmarked

CATALOG = """
CREATE SOURCE t (room TEXT, celsius DOUBLE, ts TIMESTAMP) WITH (ttl = '10 min');
CREATE SOURCE now_in (sensor TEXT, room TEXT, ts TIMESTAMP, KEY (sensor));
CREATE LINK SOURCE wire (src TEXT, dst TEXT, cost DOUBLE);
CREATE TABLE rooms (room TEXT, floor INTEGER) WITH (source = 'csv', path = 'rooms.csv');
CREATE VIEW warm AS SELECT t.room, celsius FROM t JOIN rooms ON t.room = rooms.room
    WHERE celsius > 20;
CREATE VIEW recent AS SELECT room, celsius FROM t [RANGE 1 MINUTE];
CREATE RECURSIVE VIEW reach(src, dst) AS SELECT src, dst FROM wire
    UNION SELECT reach.src, wire.dst FROM reach JOIN wire ON reach.dst = wire.src
"""


def explained(query: str) -> str:
    return explain_plan(bound_query(query, catalog_of(CATALOG)).plan)


@pytest.mark.parametrize(
    ("clause", "shown"),
    [
        ("BETWEEN NOW - INTERVAL '1 day' AND NOW", "BETWEEN NOW - 24 h AND NOW"),
        (
            "FROM '2026-01-01' TO TIMESTAMP '2026-01-02T12:00:00Z'",
            "FROM TIMESTAMP '2026-01-01T00:00:00Z' TO TIMESTAMP '2026-01-02T12:00:00Z'",
        ),
        ("FROM NOW() - INTERVAL '2 h' TO NOW - INTERVAL '1 h'", "FROM NOW - 2 h TO NOW - 60 min"),
        ("AS OF CURRENT_TIMESTAMP", "AS OF NOW"),
        (
            "AS OF TIMESTAMP '2026-01-02' - INTERVAL '1 day'",
            "AS OF TIMESTAMP '2026-01-01T00:00:00Z'",
        ),
        ("ALL", "ALL"),
    ],
)
def test_times_are_constants_or_move_with_the_start_of_the_query(clause: str, shown: str) -> None:
    assert f"Scan history t FOR SYSTEM_TIME {shown}" in explained(
        f"SELECT * FROM t FOR SYSTEM_TIME {clause} AS x WHERE x.celsius > 1"
    )


def test_a_view_reads_its_sources_in_the_past_and_its_tables_as_they_are() -> None:
    bound = bound_query("SELECT * FROM warm FOR SYSTEM_TIME ALL", catalog_of(CATALOG))
    scans = [node for node in walk_plan(bound.plan) if isinstance(node, Scan)]
    assert [(s.source, s.history is not None) for s in scans] == [("t", True), ("rooms", False)]
    assert any("rooms is a stored table" in warning for warning in bound.warnings)


def test_a_source_that_is_not_kept_is_warned_of() -> None:
    catalog = catalog_of("CREATE SOURCE s (a INTEGER) WITH (keep = 'no')")
    bound = bound_query("SELECT a FROM s FOR SYSTEM_TIME ALL", catalog)
    assert list(bound.warnings) == ["readings of s are not kept: its option keep is 'no'"]


def test_a_view_is_read_in_the_past_and_in_the_present_at_once() -> None:
    text = explained(
        "SELECT a.room FROM warm AS a JOIN warm FOR SYSTEM_TIME AS OF NOW - INTERVAL '1 h' AS b "
        "ON a.room = b.room"
    )
    assert "Scan stream t " in text
    assert "Scan history t FOR SYSTEM_TIME AS OF NOW - 60 min" in text


def test_a_recursion_is_asked_for_the_past() -> None:
    text = explained("SELECT * FROM reach FOR SYSTEM_TIME AS OF '2026-01-01'")
    assert text.count("Scan history wire FOR SYSTEM_TIME AS OF") == 2


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t FOR SYSTEM_TIME AS OF NOW [RANGE 5 MINUTES] AS x",
        "SELECT * FROM t [RANGE 5 MINUTES] FOR SYSTEM_TIME AS OF NOW AS x",
        "SELECT * FROM t FOR SYSTEM_TIME AS OF NOW AS x [RANGE 5 MINUTES]",
    ],
)
def test_a_window_of_the_past_ends_at_its_time(query: str) -> None:
    assert "Window [RANGE 5 min]" in explained(query)


def test_windows_in_a_view_end_at_the_time_that_is_asked_for() -> None:
    text = explained("SELECT * FROM recent FOR SYSTEM_TIME AS OF NOW")
    assert "Window [RANGE 60 s]" in text
    assert "Scan history t FOR SYSTEM_TIME AS OF NOW" in text


def test_time_windows_cut_an_interval_of_the_past() -> None:
    assert "HopWindow ts size 60 s" in explained(
        "SELECT room, window_end, AVG(celsius) AS mean "
        "FROM TUMBLE(t FOR SYSTEM_TIME ALL, ts, INTERVAL '1 minute') GROUP BY room, window_end"
    )


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        ("SELECT * FROM «rooms FOR SYSTEM_TIME ALL»", "no past readings are kept"),
        ("SELECT * FROM «sys_stream FOR SYSTEM_TIME ALL»", "no past is kept"),
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF «3»", "needs a time here"),
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF «'x'»", "'x'"),
        (
            "SELECT * FROM t FOR SYSTEM_TIME AS OF «room»",
            "there is no column 'room'",
        ),
        (
            "SELECT * FROM t «FOR SYSTEM_TIME BETWEEN NOW AND NOW - INTERVAL '1 h'»",
            "ends before it begins",
        ),
        (
            "WITH c AS (SELECT * FROM t) SELECT * FROM c «FOR SYSTEM_TIME ALL»",
            "follows the name of a source",
        ),
        ("SELECT * FROM t FOR SYSTEM_TIME ALL «[RANGE 5 MINUTES]»", "has no clock"),
        ("SELECT * FROM «recent FOR SYSTEM_TIME ALL»", "has no clock"),
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF «DATE_TRUNC('day', NOW)»", "neither stands still"),
    ],
)
def test_what_has_no_past_is_refused_at_its_place(marked: str, message: str) -> None:
    text, (_, column, offending) = unmarked(marked)
    with pytest.raises(QueryError, match=message) as caught:
        bound_query(text, catalog_of(CATALOG))
    assert caught.value.span is not None
    assert (caught.value.span.column, caught.value.span.text) == (column, offending)
    assert caught.value.hint


def test_the_past_of_a_source_needs_the_right_to_read_it() -> None:
    closed = Refusal("you may not read t", "ask for GRANT SELECT ON SOURCE t")
    catalog = catalog_of(CATALOG).behind(lambda read: closed if read == Read("t") else None)
    with pytest.raises(QueryError, match="you may not read t"):
        bound_query("SELECT * FROM t FOR SYSTEM_TIME ALL", catalog)
    view = bound_query("SELECT * FROM warm FOR SYSTEM_TIME ALL", catalog)
    assert Read("t", "warm") in view.reads
