"""What is said about a query before it runs, and EXPLAIN (TYPE VALIDATE)."""

import pytest

from streamsql.binder import BoundQuery
from streamsql.binder.statements.validate import validation_report
from streamsql.catalog.catalog import Catalog
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = """
CREATE SOURCE s (k TEXT, v DOUBLE, ts TIMESTAMP);
CREATE SOURCE marked (k TEXT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 s');
CREATE SOURCE short (k TEXT, ts TIMESTAMP) WITH (ttl = '90 s');
CREATE SOURCE latest (k TEXT, v DOUBLE, ts TIMESTAMP, KEY (k));
CREATE TABLE stored (k TEXT, v DOUBLE);
"""
TUMBLED = "window_end, COUNT(*) AS n FROM TUMBLE({}, ts, INTERVAL '1 minute') GROUP BY window_end"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return catalog_of(CATALOG)


def bound(text: str, catalog: Catalog) -> BoundQuery:
    return bound_query(f"SELECT {text}", catalog)


FOUND = [
    (
        "k, COUNT(*), SUM(v) FROM s GROUP BY k",
        "groups: GROUP BY keeps one group per distinct k",
        "RANGE",
    ),
    ("k, MAX(v) FROM s GROUP BY k", "unbounded state: GROUP BY keeps every value of MAX of s", ""),
    ("COUNT(DISTINCT k), SUM(v) FROM s", "state: GROUP BY keeps every value of COUNT of s", ""),
    ("DISTINCT k FROM s", "unbounded state: DISTINCT keeps every distinct row of s", "ttl"),
    (
        "k FROM short LIMIT 3",
        "LIMIT without ORDER BY: LIMIT or OFFSET without ORDER BY",
        "add ORDER",
    ),
    (
        "k FROM stored OFFSET 3",
        "LIMIT or OFFSET without ORDER BY orders rows by all their",
        "add ORDER BY",
    ),
    ("k FROM s ORDER BY v LIMIT 3", "unbounded state: ORDER BY … LIMIT", "RANGE"),
    ("k FROM s INTERSECT SELECT k FROM stored", "unbounded state: INTERSECT", "RANGE"),
    ("k FROM s [UNBOUNDED] WHERE EXISTS (SELECT 1 FROM stored t WHERE t.k = s.k)", "IN or", ""),
    ("a.k FROM s a JOIN stored b ON a.k = b.k", "unbounded state: JOIN keeps every row of s", ""),
    ("a.k FROM s a JOIN marked b ON a.k = b.k", "unbounded join: JOIN keeps every row", "ASOF"),
    ("a.k FROM stored a, stored b", "cross product: no condition connects stored and stored", ""),
    (
        "ts, COUNT(*) FROM s GROUP BY ts",
        "unbounded groups: GROUP BY ts keeps one group per distinct time",
        "TUMBLE",
    ),
    (
        TUMBLED.format("s"),
        "windows never close: GROUP BY keeps every window of TUMBLE",
        "WATERMARK",
    ),
    (TUMBLED.format("marked"), "windows never close", "end the query with EMIT ON WINDOW CLOSE"),
    ("* FROM HOP(short, ts, '2 min', '1 min')", "gaps between windows: windows of 60 s", "first"),
    ("* FROM short [RANGE 1 s SLIDE 5 s]", "gaps between windows: a window of 1 s", "SLIDE"),
    ("* FROM short [RANGE 1 HOUR]", "window beyond ttl: rows of short expire after 90 s", "ttl"),
]


@pytest.mark.parametrize("case", FOUND, ids=[case[0][:50] for case in FOUND])
def test_findings_name_the_operator_the_source_and_the_fix(
    case: tuple[str, str, str], catalog: Catalog
) -> None:
    text, message, fix = case
    warnings = bound(text, catalog).warnings
    assert any(message in warning and fix in warning for warning in warnings), warnings


@pytest.mark.parametrize(
    "text",
    [
        "k FROM s",
        "k, COUNT(*) FROM s [RANGE 1 MINUTE] GROUP BY k",
        "k, COUNT(*) FROM latest GROUP BY k",
        "k, COUNT(*) FROM short GROUP BY k",
        "k, COUNT(*) FROM stored GROUP BY k",
        "a.k FROM s [ROWS 5] a JOIN stored b ON a.k = b.k",
        "a.k FROM stored a, (SELECT MAX(v) AS top FROM stored) b WHERE a.v = b.top",
        TUMBLED.format("s [RANGE 1 HOUR]"),
        TUMBLED.format("marked") + " EMIT ON WINDOW CLOSE",
        TUMBLED.format("marked") + " HAVING COUNT(*) > 2 EMIT ON WINDOW CLOSE",
        "k, window_end, COUNT(*) FROM SESSION(marked, ts, INTERVAL '1 minute', k) GROUP BY k, "
        "window_end EMIT ON WINDOW CLOSE",
        "k FROM s ORDER BY k",
        "COUNT(*), SUM(v), AVG(v), STDDEV(v) FROM s",
        "k FROM short ORDER BY ts LIMIT 3",
    ],
)
def test_nothing_is_said_about_bounded_queries(text: str, catalog: Catalog) -> None:
    assert bound(text, catalog).warnings == ()


def test_the_report_says_what_is_remembered(catalog: Catalog) -> None:
    text = """a.k, COUNT(*) AS n FROM s [RANGE 1 MINUTE] a
        JOIN latest b ON a.k = b.k JOIN stored c ON c.k = b.k GROUP BY a.k"""
    report = validation_report(bound(text, catalog))
    assert report.text.startswith("valid: (k TEXT, n INTEGER)\nit keeps:\n")
    for kept in ("rows of s [RANGE 60 s]", "one row of latest per (k)", "table stored"):
        assert kept in report.text
    assert all(state["bounded"] for state in report.data["state"])
    assert report.data["findings"] == []


def test_what_closes_is_bounded_in_the_report(catalog: Catalog) -> None:
    text = """k, window_end, COUNT(*) AS n FROM SESSION(marked, ts, INTERVAL '1 minute', k)
        GROUP BY k, window_end EMIT ON WINDOW CLOSE"""
    report = validation_report(bound(text, catalog))
    assert "groups until their window closes" in report.text
    assert "rows of marked until their window closes" in report.text
    assert all(state["bounded"] for state in report.data["state"])
    assert report.data["findings"] == []


def test_numbers_per_group_are_no_rows(catalog: Catalog) -> None:
    report = validation_report(bound("COUNT(*) AS n, SUM(v) AS total FROM s", catalog))
    assert report.text.endswith("one row of numbers")
    assert [state["bounded"] for state in report.data["state"]] == [True]
    report = validation_report(bound("k, COUNT(*) AS n FROM s GROUP BY k", catalog))
    assert report.text.endswith("one row of numbers per group")
    assert [state["bounded"] for state in report.data["state"]] == [False]


def test_the_report_holds_the_findings(catalog: Catalog) -> None:
    report = validation_report(bound("DISTINCT k FROM s", catalog))
    (finding,) = report.data["findings"]
    assert finding["kind"] == "unbounded state"
    assert finding["operator"] == "Distinct"
    assert [state["bounded"] for state in report.data["state"]] == [False]
