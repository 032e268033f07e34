"""A gate before a catalog: what is read is told, and refused where it is named."""

import pytest

from federated_optimizer.coordinator.statements.statement_validation import validate
from streamsql.binder import BoundQuery, bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.read_gate import Read, Refusal
from streamsql.errors import BindingError
from streamsql.syntax import parse_statement
from streamsql.syntax.statements import CreateAlarm, CreateView, Query
from tests.streamsql.from_text import catalog_of

SCHEMA = """
CREATE SOURCE a (k TEXT, v DOUBLE, KEY (k));
CREATE SOURCE b (k TEXT, v DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1 second');
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, KEY (src, dst));
CREATE TABLE t (k TEXT PRIMARY KEY, n INTEGER) WITH (source = 'csv', path = 't.csv');
CREATE VIEW over_a AS SELECT k, v FROM a WHERE v > 1.0;
CREATE VIEW over_view AS SELECT o.k, t.n FROM over_a o JOIN t ON o.k = t.k;
CREATE VIEW far AS SELECT src FROM reachable;
"""


def catalog() -> Catalog:
    return catalog_of(SCHEMA, library=True)


def bound(text: str, known: Catalog) -> BoundQuery:
    query = parse_statement(text)
    assert isinstance(query, Query)
    return bind_query(query, known)


def read(text: str) -> set[tuple[str, str]]:
    return {(r.relation, r.within) for r in bound(text, catalog()).reads}


def test_reads_are_names_and_the_view_of_a_user_that_reads_them() -> None:
    assert read("SELECT k FROM A") == {("a", "")}
    inner = {("over_a", "over_view"), ("t", "over_view"), ("a", "over_a")}
    assert read("SELECT k FROM over_view") == {("over_view", ""), *inner}
    assert read("SELECT x.k FROM over_view x, a WHERE a.k = x.k") == {
        ("over_view", ""),
        ("a", ""),
        *inner,
    }


@pytest.mark.parametrize(
    "text",
    [
        "SELECT n FROM t WHERE k IN (SELECT k FROM a)",
        "SELECT n FROM t WHERE EXISTS (SELECT 1 FROM a WHERE a.k = t.k)",
        "WITH t2 AS (SELECT k FROM a) SELECT t.n FROM t JOIN t2 ON t.k = t2.k",
        "WITH a AS (SELECT k FROM a) SELECT t.n FROM t JOIN a ON t.k = a.k",
        "SELECT n, (SELECT MAX(v) FROM a WHERE a.k = t.k) AS m FROM t",
        "SELECT k FROM t UNION SELECT k FROM a [RANGE 10 SECONDS]",
        "SELECT t.k FROM t ANTI JOIN a ON t.k = a.k",
        "SELECT d.k FROM t, (SELECT k FROM a) AS d WHERE d.k = t.k",
    ],
)
def test_every_place_of_a_query_counts(text: str) -> None:
    assert read(text) == {("t", ""), ("a", "")}


def test_a_common_table_hides_a_relation() -> None:
    assert read("WITH a AS (SELECT k FROM t) SELECT k FROM a") == {("t", "")}


def test_late_rows_and_time_windows_are_reads() -> None:
    assert read("SELECT k FROM LATE(b)") == {("b", "")}
    text = "SELECT COUNT(*) FROM TUMBLE(b, ts, INTERVAL '1 minute') GROUP BY window_start"
    assert read(text) == {("b", "")}


def test_a_library_view_reads_for_whoever_reads_it() -> None:
    assert {("reachable", ""), ("link", "")} <= read("SELECT src FROM reachable")
    inside = read("SELECT src FROM far")
    assert {("far", ""), ("reachable", "far"), ("link", "far")} <= inside
    assert ("link", "") not in inside
    # Expanded for the view first, it is still read for the statement, too.
    both = read("SELECT far.src FROM far, reachable r WHERE far.src = r.src")
    assert {("link", "far"), ("link", "")} <= both


def gated(*allowed: Read) -> Catalog:
    def gate(wanted: Read) -> Refusal | None:
        return None if wanted in allowed else Refusal(f"not {wanted.relation}", "ask")

    return catalog().behind(gate)


def test_a_refusal_stands_where_the_name_does() -> None:
    known = gated(Read("t"))
    with pytest.raises(BindingError, match="not a") as found:
        bound("SELECT n\nFROM t WHERE k IN (SELECT nothing FROM a)", known)
    assert found.value.code == "not_allowed"
    assert found.value.span is not None
    assert (found.value.span.line, found.value.span.text) == (2, "a")


def test_a_view_is_read_without_its_sources_and_they_are_not() -> None:
    known = gated(Read("over_a"), Read("a", "over_a"))
    assert bound("SELECT k FROM over_a", known).schema.names == ("k",)
    with pytest.raises(BindingError, match="not a"):
        bound("SELECT over_a.k FROM over_a, a WHERE a.k = over_a.k", known)
    with pytest.raises(BindingError, match="in view 'over_a': not a"):
        bound("SELECT k FROM over_a", gated(Read("over_a")))


def test_a_library_view_lets_nobody_past_because_a_view_was_read_before() -> None:
    known = gated(Read("far"), Read("link", "far"))
    assert bound("SELECT src FROM far", known).schema.names == ("src",)
    with pytest.raises(BindingError, match="not link"):
        bound("SELECT far.src FROM far, reachable r WHERE far.src = r.src", known)


def test_only_what_may_be_read_is_listed() -> None:
    known = gated(Read("t"))
    listed = {d.name for d in (*known.sources, *known.tables)}
    assert listed == {"t"}
    assert known.find("a") is not None
    with pytest.raises(BindingError) as found:
        bound("SELECT k FROM t JOIN aa ON TRUE", known)
    assert "did you mean a" not in found.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "CREATE VIEW v AS SELECT k FROM a",
        "CREATE RECURSIVE VIEW v (k) AS "
        "SELECT k FROM a UNION SELECT v.k FROM v JOIN a ON v.k = a.k",
        "CREATE MATERIALIZED VIEW v REFRESH AT ('14:00') AS SELECT t.k FROM t JOIN a ON t.k = a.k",
        "CREATE ALARM v AS SELECT k FROM a SEVERITY 'info'",
        "CREATE VIEW reachable AS SELECT k FROM a",
    ],
)
def test_whoever_makes_a_definition_reads_what_it_reads(text: str) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, CreateView | CreateAlarm)
    with pytest.raises(BindingError, match="not a") as found:
        define(statement, gated(Read("t")))
    assert found.value.code == "not_allowed"


def test_definitions_of_a_script_that_is_checked_may_be_read_in_it() -> None:
    known = gated(Read("a"))
    scratch = known.scratch()
    view = catalog().find("over_a")
    assert view is not None
    scratch.define_here(view)
    assert bound("SELECT k FROM over_a", scratch).reads == {Read("over_a"), Read("a")}
    with pytest.raises(BindingError):
        bound("SELECT k FROM over_a", known)


@pytest.mark.parametrize(
    "text",
    [
        "ALTER SOURCE patients ADD COLUMN w DOUBLE; SELECT * FROM patients",
        "ALTER SOURCE patients DROP COLUMN nothing",
        "EXPLAIN CONFIDENCE (SELECT who FROM calm) USING patients.nothing",
        "EXPLAIN CONFIDENCE (SELECT who FROM calm) USING nothing.k",
    ],
)
def test_checking_a_text_tells_no_columns_of_what_may_not_be_read(text: str) -> None:
    known = catalog_of(
        "CREATE SOURCE patients (nurse TEXT, pulse DOUBLE, KEY (nurse));"
        "CREATE VIEW calm AS SELECT nurse AS who FROM patients"
    )
    closed = Refusal("you may not read it", "ask")
    found = validate(text, known.behind(lambda read: closed if read == Read("patients") else None))
    assert found.diagnoses
    assert found.columns == ()
    for diagnosis in found.diagnoses:
        told = f"{diagnosis.message} {diagnosis.hint}"
        assert not any(word in told for word in ("patients", "nurse", "pulse")), told
