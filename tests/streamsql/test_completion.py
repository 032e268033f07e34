"""Completion offers what fits the clause, from the grammar, the functions and the catalog."""

import pytest

from streamsql.completion import Completion, complete

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
    ("CREATE MATERIALIZED VIEW v ref|", "REFRESH AT (", "keyword"),
    ("CREATE MATERIALIZED VIEW v REFRESH AT ('14:00') c|", "COST WEIGHTS (", "keyword"),
    ("SHOW al|", "ALARMS", "keyword"),
    ("cre|", "CREATE DISPLAY", "keyword"),
    ("CREATE ALARM a AS SELECT rid FROM seat WHERE weight > 5 sev|", "SEVERITY", "keyword"),
    ("CREATE ALARM a AS SELECT rid FROM seat SEVERITY |", "'critical'", "keyword"),
    ("SELECT rid FROM seat out|", "OUTPUT TO DISPLAY", "keyword"),
    ("SELECT rid FROM seat OUTPUT TO |", "DISPLAY", "keyword"),
    ("SELECT rid FROM seat OUTPUT TO DISPLAY l|", "lobby", "display"),
    ("SUBSCRIBE TO hot env|", "ENVELOPE UPSERT (KEY (", "keyword"),
    ("SUBSCRIBE TO |", "hot", "relation"),
    ("SHOW VIEWS; sel|", "SELECT", "keyword"),
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


def test_functions_come_with_their_signature() -> None:
    (found,) = [c for c in _at("SELECT round| FROM seat") if c.label == "ROUND"]
    assert found.detail == "ROUND(number [, digits])"
