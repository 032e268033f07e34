"""What statements of a script have done, and how it is undone."""

import pytest

from streamsql.script_progress import MAX_REPORTED, newest, undo_hint
from streamsql.syntax import parse_script, parse_statement


@pytest.mark.parametrize(
    ("text", "undone"),
    [
        ("CREATE SOURCE s (a TEXT)", "DROP SOURCE s"),
        ("CREATE LINK SOURCE s (a TEXT, b TEXT) ", "DROP SOURCE s"),
        ("CREATE TABLE s (a TEXT)", "DROP TABLE s"),
        ("CREATE VIEW s AS SELECT a FROM t", "DROP VIEW s"),
        ("CREATE DISPLAY s WITH (floor = 0, x = 1, y = 2)", "DROP DISPLAY s"),
        ("CREATE ALARM s AS SELECT a FROM t SEVERITY 'warning'", "DROP ALARM s"),
        ('CREATE VIEW "My s" AS SELECT a FROM t', 'DROP VIEW "My s"'),
        ("CREATE FUNCTION s (a DOUBLE) RETURNS DOUBLE AS 'm:f'", "DROP FUNCTION s"),
        ("CREATE AGGREGATE s (a DOUBLE) RETURNS DOUBLE AS 'm:f'", "DROP AGGREGATE s"),
    ],
)
def test_what_was_created_is_dropped_by_a_statement_that_parses(text: str, undone: str) -> None:
    (statement,) = parse_script(f"\n{text}")
    assert undo_hint(statement, "it is created") == f"line 2: it is created; {undone} removes it"
    parse_statement(undone)


def test_a_query_that_goes_on_is_named_with_how_to_stop_it() -> None:
    told = undo_hint(parse_statement("SELECT a FROM t"), "started", "q7")
    assert told == "line 1: query q7 runs; DROP QUERY q7 stops it"
    parse_statement("DROP QUERY q7")


@pytest.mark.parametrize("text", ["SHOW SOURCES", "SELECT a FROM t", "EXPLAIN SELECT a FROM t"])
def test_who_only_asked_has_done_nothing(text: str) -> None:
    assert undo_hint(parse_statement(text), "") == ""


def test_changes_of_rows_and_settings_are_told_as_they_were_answered() -> None:
    drop = undo_hint(parse_statement("DROP VIEW v"), "view v dropped")
    insert = undo_hint(parse_statement("INSERT INTO t VALUES (1)"), "1 row inserted into table t")
    alter = undo_hint(parse_statement("ALTER SITE gw-1 SET (share_synopses = false)"), "")
    assert drop == "line 1: view v dropped"
    assert insert == "line 1: 1 row inserted into table t"
    assert alter == "line 1: settings of site gw-1 changed"


def test_of_a_long_script_the_newest_are_told() -> None:
    assert newest(["", "a", "", "b"]) == ("a", "b")
    told = newest([str(n) for n in range(MAX_REPORTED + 3)])
    assert told[0] == "3 earlier statements omitted"
    assert told[1:] == tuple(str(n) for n in range(3, MAX_REPORTED + 3))
