"""Every kind of statement, parsed."""

import pytest

from streamsql.algebra.operators import StreamKind
from streamsql.data.types import DataType
from streamsql.errors import QuerySyntaxError
from streamsql.syntax import (
    AdvanceTime,
    CreateSource,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    Insert,
    Query,
    Show,
    Subscribe,
    parse_script,
    parse_statement,
)
from tests.streamsql.from_text import query_of


def test_or_replace_is_no_part_of_the_definition() -> None:
    text = "create  or /* again */ replace  LINK SOURCE s (a INT, b INT)"
    statement = parse_statement(text)
    assert isinstance(statement, CreateSource)
    assert (statement.replace, statement.text) == (True, "create  LINK SOURCE s (a INT, b INT)")
    same = parse_script(f"SHOW VIEWS;\n{text}")[1]
    assert isinstance(same, CreateSource)
    assert same.text == statement.text


def test_create_source() -> None:
    statement = parse_statement(
        """CREATE SOURCE Seat (desk TEXT, "Room" VARCHAR, weight DOUBLE PRECISION, n BIGINT,
             free BOOL, ts TIMESTAMP, pause INTERVAL, KEY (desk, "Room"),
             WATERMARK FOR ts AS ts - INTERVAL '5' SECONDS)
           WITH (connector = 'motes', ttl = '90 s', port = 7, level = -1, fast = TRUE)"""
    )
    assert isinstance(statement, CreateSource)
    assert (statement.name.text, statement.kind) == ("seat", "stream")
    assert [(c.name.text, c.dtype) for c in statement.columns] == [
        ("desk", DataType.TEXT),
        ("Room", DataType.TEXT),
        ("weight", DataType.DOUBLE),
        ("n", DataType.INTEGER),
        ("free", DataType.BOOLEAN),
        ("ts", DataType.TIMESTAMP),
        ("pause", DataType.INTERVAL),
    ]
    assert [name.text for name in statement.key] == ["desk", "Room"]
    assert statement.watermark is not None
    assert statement.watermark.lateness == 5_000_000
    assert [(o.name, o.value) for o in statement.options] == [
        ("connector", "motes"),
        ("ttl", "90 s"),
        ("port", "7"),
        ("level", "-1"),
        ("fast", "TRUE"),
    ]


@pytest.mark.parametrize(
    ("text", "kind", "key"),
    [
        ("CREATE STREAM s (a INT)", "stream", []),
        ("CREATE LINK SOURCE s (a INT, b INT)", "link", []),
        ("CREATE TABLE s (a INT PRIMARY KEY)", "table", ["a"]),
        ("CREATE TABLE s (a INT, b INT, PRIMARY KEY (b, a))", "table", ["b", "a"]),
    ],
)
def test_kinds_and_keys(text: str, kind: str, key: list[str]) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, CreateSource)
    assert statement.kind == kind
    assert [name.text for name in statement.key] == key


@pytest.mark.parametrize(
    ("text", "columns", "recursive", "materialized"),
    [
        ("CREATE VIEW v AS SELECT 1", [], False, False),
        ("CREATE VIEW v (A, b) AS SELECT 1, 2", ["a", "b"], False, False),
        ("CREATE RECURSIVE VIEW v (a) AS SELECT 1 UNION SELECT a FROM v", ["a"], True, False),
        ("CREATE MATERIALIZED VIEW v AS (SELECT 1)", [], False, True),
        ("CREATE MATERIALIZED RECURSIVE VIEW v AS SELECT 1", [], True, True),
    ],
)
def test_create_view(text: str, columns: list[str], *, recursive: bool, materialized: bool) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, CreateView)
    assert [name.text for name in statement.columns] == columns
    assert (statement.recursive, statement.materialized) == (recursive, materialized)
    assert statement.query.text == text.split(" AS ", 1)[1]


@pytest.mark.parametrize(
    ("text", "emit"),
    [
        ("SELECT 1", None),
        ("(SELECT 1)", None),
        ("WITH a AS (SELECT 1) SELECT * FROM a", None),
        ("ISTREAM(SELECT 1)", StreamKind.ISTREAM),
        ("dstream (SELECT 1)", StreamKind.DSTREAM),
        ("RSTREAM((SELECT 1) UNION (SELECT 2))", StreamKind.RSTREAM),
    ],
)
def test_query(text: str, emit: StreamKind | None) -> None:
    statement = query_of(text)
    assert (statement.emit, statement.text) == (emit, text)


def test_insert() -> None:
    statement = parse_statement("INSERT INTO s (a, b) VALUES (1, f(2, 3)), (-4, 'x;y')")
    assert isinstance(statement, Insert)
    assert [name.text for name in statement.columns] == ["a", "b"]
    assert [len(row) for row in statement.rows] == [2, 2]


def test_delete() -> None:
    everything = parse_statement("DELETE FROM s")
    some = parse_statement("DELETE FROM s WHERE a = 1 AND b IS NULL")
    assert isinstance(everything, Delete)
    assert isinstance(some, Delete)
    assert everything.predicate is None
    assert some.predicate is not None


@pytest.mark.parametrize(
    ("text", "snapshot", "progress", "query"),
    [
        ("SUBSCRIBE v", True, False, 'SELECT * FROM "v"'),
        ("SUBSCRIBE TO v WITH (SNAPSHOT)", True, False, 'SELECT * FROM "v"'),
        ("SUBSCRIBE TO (SELECT 1) WITH (PROGRESS, SNAPSHOT)", True, True, "SELECT 1"),
        (
            "SUBSCRIBE TO v WITH (SNAPSHOT = false, PROGRESS = true)",
            False,
            True,
            'SELECT * FROM "v"',
        ),
        ("SUBSCRIBE (ISTREAM(SELECT 1))", True, False, "ISTREAM(SELECT 1)"),
    ],
)
def test_subscribe(text: str, *, snapshot: bool, progress: bool, query: str) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, Subscribe)
    assert (statement.snapshot, statement.progress) == (snapshot, progress)
    assert statement.inner.text == query


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("EXPLAIN SELECT 1", ("logical", "text", False, Query)),
        ("EXPLAIN (SELECT 1)", ("logical", "text", False, Query)),
        ("EXPLAIN ANALYZE (TYPE FEDERATED) SELECT 1", ("federated", "text", True, Query)),
        ("EXPLAIN (FORMAT JSON, TYPE VALIDATE) SHOW VIEWS", ("validate", "json", False, Show)),
        ("EXPLAIN ALTERNATIVES SELECT 1", ("alternatives", "text", False, Query)),
        (
            "EXPLAIN ALTERNATIVES (FORMAT JSON) SELECT 1",
            ("alternatives", "json", False, Query),
        ),
    ],
)
def test_explain(text: str, found: tuple[str, str, bool, type]) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, Explain)
    assert (statement.type, statement.format, statement.analyze, type(statement.inner)) == found


def test_small_statements() -> None:
    script = "SHOW Sources; DESCRIBE a; DESC b; DROP LINK SOURCE c; DROP VIEW IF EXISTS d;"
    show, first, second, source, view = parse_script(script)
    assert isinstance(show, Show)
    assert show.kind == "sources"
    assert isinstance(first, Describe)
    assert isinstance(second, Describe)
    assert (first.name.text, second.name.text) == ("a", "b")
    assert isinstance(source, Drop)
    assert isinstance(view, Drop)
    assert (source.kind, source.name.text, source.if_exists) == ("source", "c", False)
    assert (view.kind, view.name.text, view.if_exists) == ("view", "d", True)


def test_advance_time() -> None:
    to, by = parse_script("ADVANCE TIME TO '2026-01-01T00:00:10Z'; ADVANCE TIME BY '1 min'")
    assert isinstance(to, AdvanceTime)
    assert isinstance(by, AdvanceTime)
    assert (to.to, to.by) == (1_767_225_610_000_000, None)
    assert (by.to, by.by) == (None, 60_000_000)


def test_script_with_comments_and_empty_statements() -> None:
    script = "-- one; not a statement\n;;\nSELECT 'a;b' /* ; */ ;\n  SELECT 2 -- end"
    first, second = parse_script(script)
    assert (first.text, first.span.line, first.span.column) == ("SELECT 'a;b'", 3, 1)
    assert (second.text, second.span.line, second.span.column) == ("SELECT 2", 4, 3)
    assert parse_script("-- nothing\n") == ()


@pytest.mark.parametrize("text", ["", "  ;", "-- only a comment", "SELECT 1; SELECT 2"])
def test_one_statement_only(text: str) -> None:
    with pytest.raises(QuerySyntaxError, match="statement"):
        parse_statement(text)


def test_words_are_names_where_no_keyword_can_stand() -> None:
    statement = parse_statement("CREATE SOURCE link (key TEXT, value DOUBLE, range DOUBLE)")
    assert isinstance(statement, CreateSource)
    assert [c.name.text for c in statement.columns] == ["key", "value", "range"]
