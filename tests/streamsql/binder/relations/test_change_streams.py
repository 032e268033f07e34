"""ISTREAM, DSTREAM and RSTREAM: where they stand, what their columns are, and what is refused."""

import pytest

from streamsql.algebra.operators import (
    Plan,
    Project,
    Scan,
    ScanPart,
    StreamKind,
    StreamWindow,
    ToStream,
    WindowKind,
    walk_relation,
)
from streamsql.binder.statements.validate import validation_report
from streamsql.catalog.catalog import Catalog
from streamsql.data.types import MICROSECONDS
from streamsql.errors import QueryError
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = """
CREATE SOURCE log (k TEXT, v DOUBLE);
CREATE SOURCE marked (k TEXT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 s')
  WITH (idle = '7 s');
CREATE SOURCE latest (k TEXT, ts TIMESTAMP, KEY (k), WATERMARK FOR ts AS ts - INTERVAL '3 s');
CREATE TABLE stored (k TEXT, v DOUBLE);
CREATE VIEW moved (a, at) AS DSTREAM(SELECT k FROM log [RANGE 1 MINUTE]);
CREATE VIEW big AS SELECT k, v FROM log WHERE v > 1;
CREATE VIEW counts AS SELECT k, COUNT(*) AS n FROM log GROUP BY k;
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return catalog_of(CATALOG)


def only(plan: Plan, kind: type) -> Plan:
    (found,) = [node for node in walk_relation(plan) if isinstance(node, kind)]
    return found


@pytest.mark.parametrize("word", list(StreamKind))
@pytest.mark.parametrize(
    "text",
    ["{}(SELECT k, v FROM log)", "SELECT {}(k, v) FROM log", "SELECT {}(*) FROM log"],
)
def test_both_ways_of_writing_mean_the_same(text: str, word: StreamKind, catalog: Catalog) -> None:
    query = bound_query(text.format(word.lower()), catalog)
    assert isinstance(query.plan, ToStream)
    assert query.plan.kind == word
    assert query.schema.names == ("k", "v", "ts")
    assert query.emit == "stream"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ISTREAM(SELECT * FROM marked)", ("k", "ts", "instant")),
        ("ISTREAM(SELECT k AS ts, k AS instant FROM marked)", ("ts", "instant", "instant_2")),
        ("SELECT ISTREAM(DISTINCT k) FROM log", ("k", "ts")),
        ("SELECT * FROM moved", ("a", "at")),
        ("SELECT * FROM ISTREAM(SELECT k FROM log) AS x(a, b)", ("a", "b")),
        ("SELECT * FROM (ISTREAM(SELECT k FROM log)) [ROWS 3] AS x", ("k", "ts")),
        ("WITH x AS (ISTREAM(SELECT k FROM log)) SELECT * FROM x", ("k", "ts")),
        ("SELECT * FROM big [RANGE 5 SECONDS]", ("k", "v")),
        ("SELECT * FROM (SELECT k FROM log UNION ALL SELECT k FROM log) [NOW] AS x", ("k",)),
    ],
)
def test_columns(text: str, names: tuple[str, ...], catalog: Catalog) -> None:
    assert bound_query(text, catalog).schema.names == names


def test_a_window_goes_by_the_instant(catalog: Catalog) -> None:
    query = bound_query("SELECT at FROM moved [RANGE 5 SECONDS]", catalog)
    window = only(query.plan, StreamWindow)
    assert isinstance(window, StreamWindow)
    assert (window.time, window.kind, window.size) == (1, WindowKind.RANGE, 5 * MICROSECONDS)
    assert query.emit == "relation"


def test_what_is_only_added_to_is_its_own_stream(catalog: Catalog) -> None:
    query = bound_query("SELECT k FROM big [ROWS 2]", catalog)
    stream = only(query.plan, ToStream)
    assert isinstance(stream, ToStream)
    assert stream.kind == StreamKind.ISTREAM
    assert isinstance(query.plan, Project)


def test_events_follow_the_watermark_that_was_declared(catalog: Catalog) -> None:
    plan = bound_query("ISTREAM(SELECT l.k FROM latest l, marked m, log, stored)", catalog).plan
    assert isinstance(plan, ToStream)
    feeds = {f.source: f for f in plan.feeds if isinstance(f, Scan)}
    second = MICROSECONDS
    assert {name: f.lateness for name, f in feeds.items()} == {
        "latest": 3 * second,
        "marked": 5 * second,
        "log": None,
        "stored": None,
    }
    assert {f.part for f in feeds.values()} == {ScanPart.EVENTS, ScanPart.ROWS}
    idle = {p.source: p.ttl for p in plan.progress if isinstance(p, Scan)}
    assert idle == {"latest": 60 * second, "marked": 7 * second, "log": None}


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("ISTREAM(SELECT * FROM stored)", "ISTREAM", "stored tables have no instants"),
        ("SELECT 1 FROM ISTREAM(log)", "ISTREAM(log)", "takes one query"),
        ("SELECT ISTREAM(k), v FROM log", "ISTREAM(k)", "the whole select list"),
        ("SELECT 1 FROM log WHERE k IN (SELECT ISTREAM(k) FROM log)", "ISTREAM(k)", "subquery"),
        (
            "ISTREAM(SELECT k FROM LATE(marked))",
            "ISTREAM",
            "the instants of late readings are already complete",
        ),
        (
            "SELECT k FROM counts [ROWS 2]",
            "[ROWS 2]",
            "but only streams have windows: a derived row expires with",
        ),
        (
            "ISTREAM(SELECT k FROM (SELECT k, n FROM counts) [NOW] AS x)",
            "[NOW]",
            "but only streams have windows: a derived row expires with",
        ),
        (
            "WITH RECURSIVE r(k) AS (SELECT k FROM stored UNION SELECT x.k FROM "
            "ISTREAM(SELECT r.k FROM r, log) AS x) SELECT k FROM r",
            "ISTREAM(SELECT r.k FROM r, log)",
            "over the recursion being defined",
        ),
    ],
)
def test_refused(text: str, place: str, message: str, catalog: Catalog) -> None:
    with pytest.raises(QueryError) as caught:
        bound_query(text, catalog)
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.text == place
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("RSTREAM(SELECT k FROM log)", "unbounded output: RSTREAM emits every row of log again"),
        (
            "ISTREAM(SELECT DISTINCT k FROM log)",
            "unbounded state: DISTINCT keeps every distinct row",
        ),
        ("SELECT DISTINCT a FROM moved", "unbounded state: DISTINCT keeps every row of DSTREAM(…)"),
        ("ISTREAM(SELECT k FROM log) ", ""),
        ("RSTREAM(SELECT k FROM log [ROWS 5])", ""),
        ("SELECT DISTINCT a FROM moved [ROWS 5]", ""),
    ],
)
def test_what_grows_is_told(text: str, warning: str, catalog: Catalog) -> None:
    warnings = " ".join(bound_query(text, catalog).warnings)
    assert warning in warnings if warning else not warnings


def test_validation_says_what_waits(catalog: Catalog) -> None:
    report = validation_report(bound_query("ISTREAM(SELECT k FROM marked)", catalog))
    assert "Istream AS ts: events until every site has passed their instant" in report.text
