"""Completion offers what fits the clause, from the grammar, the functions and the catalog."""

import re
from pathlib import Path

import pytest

from streamsql.binder.expressions.scalar_functions import SIGNATURES
from streamsql.completion import Completion, complete

_UPSERT = "ENVELOPE UPSERT (KEY ("
LANGUAGE = Path(__file__).parents[2] / "docs" / "streamsql.md"
RELATIONS = {"seat": ("mid", "rid", "weight", "ts"), "machines": ("mid", "host"), "hot": ("rid",)}

CASES = [
    ("|", "SELECT", "keyword"),
    ("cre|", "CREATE RECURSIVE VIEW", "keyword"),
    ("SELECT * FROM se|", "seat", "relation"),
    ("SELECT * FROM |", "TUMBLE", "function"),
    ("SELECT * FROM TUMBLE(|", "seat", "relation"),
    ("SELECT * FROM seat, |", "machines", "relation"),
    ("SELECT * FROM seat asof|", "ASOF JOIN", "keyword"),
    ("SELECT * FROM seat [|", "RANGE 10 MINUTES", "window"),
    ("SELECT * FROM seat [PARTITION BY |", "mid", "column"),
    ("SELECT * FROM seat for|", "FOR SYSTEM_TIME", "keyword"),
    ("SELECT * FROM seat FOR SYSTEM_TIME |", "AS OF", "keyword"),
    ("SELECT * FROM seat FOR SYSTEM_TIME AS OF |", "NOW - INTERVAL '1 day'", "keyword"),
    ("SELECT * FROM seat FOR SYSTEM_TIME FROM |", "NOW - INTERVAL '1 day' TO NOW", "keyword"),
    ("SELECT w| FROM seat", "weight", "column"),
    ("SELECT s.| FROM seat [ROWS 5] AS s", "weight", "column"),
    ("SELECT m.h| FROM seat s JOIN machines m ON s.mid = m.mid", "host", "column"),
    ("SELECT me| FROM seat", "MEDIAN", "aggregate"),
    ("SELECT * FROM seat WHERE sq|", "SQRT", "function"),
    ("SELECT * FROM seat WHERE dew|", "dew_point", "function"),
    ("SELECT rid FROM seat GROUP BY r|", "rid", "column"),
    ("SELECT rid FROM seat GROUP BY rid em|", "EMIT ON WINDOW CLOSE", "keyword"),
    ("SHOW v|", "VIEWS", "keyword"),
    ("ref|", "REFRESH MATERIALIZED VIEW", "keyword"),
    ("REFRESH MATERIALIZED VIEW |", "hot", "relation"),
    ("REFRESH ta|", "TABLE", "keyword"),
    ("CREATE MATERIALIZED VIEW v ref|", "REFRESH AT (", "keyword"),
    ("CREATE MATERIALIZED VIEW v REFRESH AT ('14:00') c|", "COST WEIGHTS (", "keyword"),
    ("SHOW al|", "ALARMS", "keyword"),
    ("SHOW net|", "NETWORK", "keyword"),
    ("cre|", "CREATE DISPLAY", "keyword"),
    ("CREATE ALARM a AS SELECT rid FROM seat WHERE weight > 5 sev|", "SEVERITY", "keyword"),
    ("CREATE ALARM a AS SELECT rid FROM seat SEVERITY |", "'critical'", "keyword"),
    ("SELECT rid FROM seat out|", "OUTPUT TO DISPLAY", "keyword"),
    ("SELECT rid FROM seat OUTPUT TO |", "DISPLAY", "keyword"),
    ("SELECT rid FROM seat OUTPUT TO DISPLAY l|", "lobby", "display"),
    ("SUBSCRIBE TO hot env|", "ENVELOPE UPSERT (KEY (", "keyword"),
    ("SUBSCRIBE TO |", "hot", "relation"),
    ("SHOW VIEWS; sel|", "SELECT", "keyword"),
    ("-- first\n|", "SELECT", "keyword"),
    ("SELECT CASE WHEN mid = 'a' | FROM seat", "THEN", "keyword"),
    ("SELECT mid FROM seat WHERE mid = 'a' gr|", "GROUP BY", "keyword"),
    ("SUBSCRIBE TO (SELECT mid FROM seat w|", "WHERE", "keyword"),
    ("SELECT SUM(weight) OVER (PARTITION BY | FROM seat", "mid", "column"),
    ("ALTER SITE gw-1 SET (slice_ms = 5, |", "scheduler =", "keyword"),
]


def _at(marked: str) -> tuple[Completion, ...]:
    text, place = marked.replace("|", ""), marked.index("|")
    return complete(text, place, RELATIONS, ["dew_point(t, h)"], ["lobby"])


@pytest.mark.parametrize(("marked", "label", "kind"), CASES)
def test_what_fits_is_offered(marked: str, label: str, kind: str) -> None:
    assert (label, kind) in [(c.label, c.kind) for c in _at(marked)]


def test_what_does_not_fit_is_not_offered() -> None:
    assert {c.kind for c in _at("SELECT * FROM |")} == {"relation", "function"}
    assert {c.label for c in _at("SELECT m.| FROM machines m")} == {"mid", "host"}
    assert not [c for c in _at("SELECT * FROM seat WHERE |") if c.kind == "aggregate"]
    assert _at("SELECT 'it|") == ()


@pytest.mark.parametrize(
    ("marked", "labels"),
    [
        ("CREATE al|", {"ALARM"}),
        ("CREATE DISPLAY lobby |", {"WITH ("}),
        ("CREATE ALARM hot |", {"AS"}),
        ("CREATE AGGREGATE peak(v DOUBLE) |", {"RETURNS"}),
        (
            "CREATE AGGREGATE peak(v DOUBLE) RETURNS DOUBLE |",
            {"MERGED BY", "CALLED ON NULL INPUT", "AS"},
        ),
        ("CREATE AGGREGATE peak(v DOUBLE) RETURNS DOUBLE MERGED |", {"BY"}),
        (
            "CREATE AGGREGATE peak(v DOUBLE) RETURNS DOUBLE MERGED BY |",
            {"SUM", "MIN", "MAX", "BOOL_AND", "BOOL_OR"},
        ),
        ("CREATE AGGREGATE peak(v DOUBLE) RETURNS DOUBLE AS |", {"("}),
        ("CREATE AGGREGATE peak(v DOUBLE) RETURNS DOUBLE AS (MAX(v)) |", set()),
        ("CREATE FUNCTION f(v DOUBLE) RETURNS DOUBLE |", {"CALLED ON NULL INPUT", "AS"}),
        ("CREATE AGGREGATE f(va DOUBLE, vb TEXT) RETURNS DOUBLE AS (MAX(vb|", {"vb"}),
        ("CREATE FUNCTION f(v DOUBLE) RETURNS DOUBLE AS (v + dew|", {"dew_point"}),
        (
            "CREATE AGGREGATE f(v DOUBLE) RETURNS DOUBLE AS (ma|",
            {"MAX", "MAKE_TIMESTAMP"},
        ),
        ("CREATE FUNCTION f(v DOUBLE) RETURNS DOUBLE AS (ma|", {"MAKE_TIMESTAMP"}),
        ("ALTER |", {"SITE", "SOURCE", "USER"}),
        ("ALTER SITE gw-1 |", {"SET ("}),
        ("ALTER SITE gw-1 SET (s|", {"scheduler =", "slice_ms =", "share_synopses ="}),
        ("SUBSCRIBE TO hot |", {"WITH (SNAPSHOT = false)", "WITH (PROGRESS)", _UPSERT}),
        ("SUBSCRIBE TO (SELECT mid FROM seat) e|", {_UPSERT}),
        ("SUBSCRIBE TO hot WITH (|", {"SNAPSHOT = false", "PROGRESS"}),
        ("SELECT mid FROM seat GROUP |", {"BY"}),
        ("SELECT mid FROM seat GROUP BY mid EMIT |", {"ON WINDOW CLOSE"}),
        ("SELECT SUM(w) OVER (p|", {"PARTITION BY"}),
        ("SELECT MODE() WITHIN |", {"GROUP (ORDER BY"}),
        ("SELECT COUNT(*) FILTER (|", {"WHERE"}),
        ("EXPLAIN (f|", {"FORMAT TEXT", "FORMAT JSON", "FORMAT DOT"}),
        ("ISTREAM(|", {"SELECT", "WITH"}),
        ("WITH RECURSIVE |", set()),
        ("SELECT 1 -- a remark |", set()),
    ],
)
def test_where_little_fits_only_that_is_offered(marked: str, labels: set[str]) -> None:
    assert {c.label for c in _at(marked)} == labels


def test_functions_come_with_their_signature() -> None:
    (found,) = [c for c in _at("SELECT round| FROM seat") if c.label == "ROUND"]
    assert found.detail == "ROUND(number [, digits])"


def test_what_if_deletes_rows_of_a_source_or_what_dies() -> None:
    offered = {(c.label, c.kind) for c in _at("EXPLAIN WHAT IF DELETE |")}
    assert {("GATEWAY", "keyword"), ("NODE", "keyword"), ("seat", "relation")} <= offered
    assert "FROM" not in {label for label, _ in offered}


PLACES = """
|
SELECT |
SELECT * FROM |
SELECT * FROM seat |
SELECT * FROM seat [|
SELECT * FROM seat JOIN machines ON |
SELECT * FROM seat WHERE |
SELECT mid FROM seat GROUP BY |
SELECT mid FROM seat GROUP BY mid HAVING |
SELECT mid FROM seat QUALIFY |
SELECT mid FROM seat LIMIT 1 |
SELECT mid FROM seat OUTPUT TO |
SHOW |
DROP |
SUBSCRIBE TO hot |
EXPLAIN WHAT IF DELETE |
ALTER |
ALTER SITE |
ALTER SITE gw |
CREATE ALARM a AS SELECT mid FROM seat SEVERITY |
CREATE AGGREGATE peak(v DOUBLE) RETURNS DOUBLE |
CREATE MATERIALIZED VIEW v REFRESH |
CREATE DISPLAY d WITH (|
CREATE SOURCE s (|
CREATE SOURCE s (a |
CREATE SOURCE s (a TEXT |
CREATE SOURCE s (a TEXT) WITH (|
ALTER SOURCE s |
""".strip().splitlines()


def _everything() -> set[str]:
    """The words that are offered at any place, how functions are called among them."""
    offered = [f"{c.label} {c.detail}" for place in PLACES for c in _at(place)]
    return set(re.findall(r"[A-Z_]{2,}", " ".join(offered)))


def _written() -> set[str]:
    """The words of the reference: of statements, grammars, operators and aggregates."""
    text = LANGUAGE.read_text(encoding="utf-8").replace("\\|", " ")
    grammars = re.findall(
        r"^```text\n((?:\[WITH|CREATE|SUBSCRIBE|EXPLAIN).*?)^```", text, re.MULTILINE | re.DOTALL
    )
    tables = [_first_cells(text, "## Statements", "## Sources")]
    tables.append(_first_cells(text, "## Operators and functions", "The functions below"))
    tables.append(_first_cells(text, "## Aggregates", "Behind each may stand"))
    return set(re.findall(r"\b[A-Z_]{2,}\b", " ".join(grammars + tables)))


def _first_cells(text: str, begin: str, end: str) -> str:
    section = text.partition(f"\n{begin}\n")[2].partition(end)[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
    return " ".join(found for cell in cells for found in re.findall(r"`([^`]*)`", cell))


def test_every_word_of_the_reference_is_offered_somewhere() -> None:
    written = _written()
    assert len(written) > 150
    assert written - _everything() == set()


def test_every_function_is_offered() -> None:
    names = {s.usage.partition("(")[0].upper() for known in SIGNATURES.values() for s in known}
    offered = {c.label.upper() for c in _at("SELECT |")}
    assert names - offered == set()
