"""A local session: what each statement answers, and what is refused."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deploy.session import LocalSession, Result
from stream_engine.recursion import strategies
from streamsql.errors import FederationError, QueryError

READINGS = """
CREATE SOURCE r (k TEXT, v INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 s');
INSERT INTO r VALUES ('a', 1, '2026-01-01T00:00:01Z'), ('b', NULL, '2026-01-01T00:00:02.5Z');
"""


@pytest.fixture(params=["stream", "reference"])
def session(request: pytest.FixtureRequest) -> Iterator[LocalSession]:
    with contextlib.closing(LocalSession(request.param)) as opened:
        yield opened


def last(session: LocalSession, text: str) -> Result:
    return session.run(text)[-1]


def refusal(session: LocalSession, text: str) -> str:
    with pytest.raises(FederationError) as caught:
        session.run(text)
    return str(caught.value)


def test_rows_come_sorted_under_a_schema(session: LocalSession) -> None:
    session.run(READINGS)
    found = last(session, "SELECT v, k FROM r")
    assert found.schema is not None
    assert found.schema.names == ("v", "k")
    assert found.rows == ((None, "b"), (1, "a"))


def test_time_is_that_of_the_latest_row_and_of_advance(session: LocalSession) -> None:
    session.run(READINGS)
    assert session.history.now == 1767225602500000
    assert last(session, "ADVANCE TIME BY '10 s'").message == "time is 2026-01-01T00:00:12.500000Z"
    assert last(session, "SELECT k FROM r [RANGE 10 SECONDS]").rows == ()
    assert len(last(session, "SELECT k FROM r [RANGE 11 SECONDS]").rows) == 1
    back = last(session, "ADVANCE TIME TO '2026-01-01T00:00:00Z'").message
    assert back == "time is 2026-01-01T00:00:12.500000Z"


def test_delete_takes_every_matching_copy_and_says_how_many(session: LocalSession) -> None:
    session.run("CREATE SOURCE s (k TEXT); INSERT INTO s VALUES ('a'), ('a'), ('b')")
    assert last(session, "DELETE FROM s WHERE k = 'a'").message == "2 deleted"
    assert last(session, "SELECT k FROM s").rows == (("b",),)
    assert last(session, "DELETE FROM s").message == "1 deleted"
    assert last(session, "SELECT COUNT(*) FROM s").rows == ((0,),)


def test_a_row_that_expired_is_not_deleted_in_place_of_a_fresh_copy(session: LocalSession) -> None:
    session.run("""
      CREATE SOURCE s (k TEXT) WITH (ttl = '15 s');
      INSERT INTO s VALUES ('a');
      ADVANCE TIME BY '20 s';
      INSERT INTO s VALUES ('a');
      DELETE FROM s WHERE k = 'a';
    """)
    assert last(session, "SELECT k FROM s").rows == ()


def test_a_withdrawn_row_gives_its_place_in_a_counted_window_back(session: LocalSession) -> None:
    session.run(READINGS)
    session.run("INSERT INTO r VALUES ('c', 3, '2026-01-01T00:00:03Z')")
    session.run("DELETE FROM r WHERE k = 'c'")
    assert last(session, "SELECT k FROM r [ROWS 2]").rows == (("a",), ("b",))


def test_a_table_is_loaded_from_its_file_and_can_be_changed(
    session: LocalSession, tmp_path: Path
) -> None:
    (tmp_path / "machines.csv").write_text("mid,cpu,level\nm1,x86,1\nm2,,2\n")
    session.run(
        "CREATE TABLE machines (mid TEXT PRIMARY KEY, cpu TEXT, level INTEGER) "
        f"WITH (source = 'csv', path = '{tmp_path / 'machines.csv'}')"
    )
    assert last(session, "SELECT * FROM machines").rows == (("m1", "x86", 1), ("m2", None, 2))
    session.run("INSERT INTO machines VALUES ('m3', 'arm', 3), ('m1', 'arm', 1)")
    session.run("DELETE FROM machines WHERE level = 2")
    assert last(session, "SELECT mid, cpu FROM machines").rows == (("m1", "arm"), ("m3", "arm"))


@pytest.mark.parametrize("kind", ["json", "parquet", "sql"])
def test_a_table_of_any_kind_is_changed_for_the_script_only(
    session: LocalSession, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / f"t.{kind}"
    where = f"path = '{path}'"
    match kind:
        case "json":
            path.write_text('{"k": "a", "v": 1}\n')
        case "parquet":
            pq.write_table(pa.table({"k": ["a"], "v": [1]}), path)
        case _:
            where = f"url = 'sqlite:///{path}', table = 't'"
            with contextlib.closing(sqlite3.connect(path)) as database:
                database.execute("CREATE TABLE t (k TEXT, v INTEGER DEFAULT 7)")
                database.execute("INSERT INTO t VALUES ('a', 1)")
                database.commit()
    before = path.read_bytes()
    session.run(f"CREATE TABLE t (k TEXT, v INTEGER) WITH (source = '{kind}', {where})")
    session.run("INSERT INTO t (k) VALUES ('b'), ('c')")
    session.run("DELETE FROM t WHERE k IN ('a', 'c')")
    assert last(session, "SELECT k, v FROM t").rows == (("b", None),)
    assert path.read_bytes() == before


def test_a_relative_path_starts_in_the_working_directory(
    session: LocalSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text("k\na\n")
    monkeypatch.chdir(tmp_path)
    session.run("CREATE TABLE t (k TEXT) WITH (source = 'csv', path = 't.csv')")
    assert last(session, "SELECT k FROM t").rows == (("a",),)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "t.csv"),
        (b"other\na\n", "no column k, v"),
        (b"k,w\na,1\n", "no column v"),
        (b"k,v\na,one\n", "one"),
        (b"k,v\n\xff,1\n", "t.csv"),
    ],
)
def test_a_table_that_cannot_be_read_is_not_created(
    session: LocalSession, tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "t.csv"
    if content is not None:
        path.write_bytes(content)
    text = f"CREATE TABLE t (k TEXT, v INTEGER) WITH (source = 'csv', path = '{path}')"
    assert said in refusal(session, text)
    assert "there is no" in refusal(session, "SELECT k FROM t")


def test_views_are_seen_in_later_statements(session: LocalSession) -> None:
    session.run(READINGS)
    assert last(session, "CREATE VIEW big AS SELECT k FROM r WHERE v > 0").message == (
        "view big created"
    )
    assert last(session, "SELECT k FROM big").rows == (("a",),)
    assert last(session, "SUBSCRIBE TO big").rows == (("a",),)


def test_show_and_describe(session: LocalSession) -> None:
    session.run(READINGS)
    session.run("CREATE TABLE t (k TEXT PRIMARY KEY)")
    assert last(session, "SHOW SOURCES").rows[0][0] == "r"
    assert last(session, "SHOW TABLES").rows[0][0] == "t"
    assert "sys_stream" in [row[0] for row in last(session, "SHOW SOURCES").rows]
    assert ("reachable", True) in [row[:2] for row in last(session, "SHOW VIEWS").rows]
    described = last(session, "DESCRIBE r").rows
    assert described == (("k", "TEXT", ""), ("v", "INTEGER", ""), ("ts", "TIMESTAMP", "event time"))
    assert last(session, "DESCRIBE t").rows == (("k", "TEXT", "key"),)
    assert "SHOW SOURCES, TABLES" in refusal(session, "SHOW QUERIES")
    assert "SHOW SOURCES, TABLES" in refusal(session, "SHOW NETWORK")
    assert "nothing with the name 'x'" in refusal(session, "DESCRIBE x")


def test_explain(session: LocalSession) -> None:
    session.run(READINGS)
    logical = last(session, "EXPLAIN SELECT k FROM r WHERE v > 2").text
    assert logical.splitlines() == [
        "Project k",
        "└─ Filter v > 2",
        "   └─ Scan stream r lateness=5 s",
    ]
    as_json = last(session, "EXPLAIN (TYPE LOGICAL, FORMAT JSON) SELECT k FROM r").text
    assert json.loads(as_json)["plan"][0] == "Project k"
    federated = last(session, "EXPLAIN (TYPE FEDERATED) SELECT k FROM r WHERE v > 2").text
    assert "site-1" in federated
    fragments = last(session, "EXPLAIN (TYPE FEDERATED, FORMAT JSON) SELECT k FROM r").text
    assert json.loads(fragments)["fragments"]
    assert last(session, "EXPLAIN (TYPE VALIDATE) SELECT k FROM r").text == "valid: (k TEXT)"
    assert last(session, "EXPLAIN (TYPE VALIDATE) DROP SOURCE r").text == "valid"
    assert "valid" in last(session, "EXPLAIN (TYPE VALIDATE) CREATE VIEW w AS SELECT k FROM r").text
    assert "only queries, views, alarms and sinks" in refusal(session, "EXPLAIN DROP SOURCE r")
    assert "line 1" in refusal(session, "EXPLAIN SELECT nothing FROM r")


def test_drop_discards_the_rows_too(session: LocalSession) -> None:
    session.run(READINGS)
    assert last(session, "DROP SOURCE r").message == "source r dropped"
    session.run("CREATE SOURCE r (k TEXT)")
    assert last(session, "SELECT k FROM r").rows == ()


def test_a_replaced_source_begins_without_rows(session: LocalSession) -> None:
    session.run(
        "CREATE SOURCE s (a TEXT, n INTEGER); INSERT INTO s VALUES ('x', 1);"
        "CREATE VIEW v AS SELECT a FROM s; CREATE ALARM any AS SELECT a FROM s SEVERITY 'info'"
    )
    replaced = last(session, "CREATE OR REPLACE SOURCE s (n DOUBLE, a TEXT)")
    assert replaced.message == "source s replaced; its rows are discarded"
    assert last(session, "SELECT * FROM v").rows == ()
    session.run("ALTER SOURCE s ADD COLUMN b TEXT; INSERT INTO s VALUES (1.5, 'y', 'z')")
    assert last(session, "SELECT * FROM s").rows == ((1.5, "y", "z"),)
    told = refusal(session, "ALTER SOURCE s DROP a")
    assert "alarm any reads a, which would be gone; view v reads a, which would be gone" in told
    assert last(session, "SELECT b FROM s").rows == (("z",),)


def test_drop_refuses(session: LocalSession) -> None:
    session.run(READINGS + "CREATE VIEW w AS SELECT k FROM r; CREATE VIEW x AS SELECT k FROM w;")
    assert "there is no source 'nothing'" in refusal(session, "DROP SOURCE nothing")
    assert "it is a source" in refusal(session, "DROP TABLE r")
    used = refusal(session, "DROP SOURCE r")
    assert "used by view w, view x" in used
    assert 'DROP VIEW "w" first' in used
    assert "is a library view" in refusal(session, "DROP VIEW reachable")
    assert "continuous queries" in refusal(session, "DROP QUERY q1")
    assert last(session, "DROP SOURCE IF EXISTS nothing").message == "there was no source nothing"
    assert last(session, "DROP VIEW x").message == "view x dropped"


def test_a_library_view_returns_when_the_one_in_its_place_goes(session: LocalSession) -> None:
    session.run("CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE)")
    session.run("INSERT INTO link VALUES ('a','b',1.0), ('b','c',1.0)")
    session.run("CREATE VIEW cycles (node) AS SELECT src FROM link")
    assert len(last(session, "SELECT node FROM cycles").rows) == 2
    session.run("DROP VIEW cycles")
    assert last(session, "SELECT node FROM cycles").rows == ()


def test_what_came_before_a_mistake_stays_done(session: LocalSession) -> None:
    with pytest.raises(QueryError) as caught:
        session.run("CREATE SOURCE s (k TEXT);\nINSERT INTO s VALUES ('a');\nSELECT kk FROM s")
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (3, 8)
    assert last(session, "SELECT k FROM s").rows == (("a",),)


def test_a_syntax_error_anywhere_stops_everything(session: LocalSession) -> None:
    assert "line 2" in refusal(session, "CREATE SOURCE s (k TEXT);\nSELEC k FROM s")
    assert "there is no" in refusal(session, "SELECT k FROM s")


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO r VALUES ('a', 'b', '2026-01-01T00:00:00Z')",
        "INSERT INTO r VALUES ('a', 1)",
        "INSERT INTO r VALUES ('a', 1, 'yesterday')",
        "INSERT INTO reachable VALUES ('a', 'b')",
        "INSERT INTO nothing VALUES (1)",
        "DELETE FROM r WHERE nothing = 1",
        "DELETE FROM nothing",
        "CREATE SOURCE r (k TEXT)",
        "ADVANCE TIME TO 'noon'",
    ],
)
def test_wrong_statements_change_nothing(session: LocalSession, text: str) -> None:
    session.run(READINGS)
    before = (last(session, "SELECT * FROM r").rows, session.history.now)
    assert refusal(session, text)
    assert (last(session, "SELECT * FROM r").rows, session.history.now) == before


def test_a_recursion_past_its_limit_of_rows_is_an_error_on_every_engine(
    session: LocalSession,
) -> None:
    session.run("CREATE LINK SOURCE link (src TEXT, dst TEXT)")
    values = ", ".join(f"('n{i}', 'n{i + 1}')" for i in range(12))
    session.run(f"INSERT INTO link VALUES {values}")
    said = refusal(
        session,
        "WITH RECURSIVE (LIMIT 20) r(a, b) AS (SELECT src, dst FROM link UNION "
        "SELECT l.src, r.b FROM link l JOIN r ON l.dst = r.a) SELECT * FROM r",
    )
    assert "limit" in said.lower() or "20 rows" in said


@pytest.mark.parametrize(("engine", "sites"), [("duckdb", 1), ("stream", 0), ("stream", 65)])
def test_engines_and_sites_that_are_none(engine: str, sites: int) -> None:
    with pytest.raises(FederationError, match=r"engine|--sites"):
        LocalSession(engine, sites)


def test_fragments_run_on_every_site() -> None:
    with contextlib.closing(LocalSession("stream", 3)) as session:
        session.run("CREATE SOURCE s (k TEXT)")
        text = last(session, "EXPLAIN (TYPE FEDERATED) SELECT k FROM s").text
    assert all(f"site-{number}" in text for number in (1, 2, 3))


PAIRS = """WITH RECURSIVE pairs (src, dst) AS (SELECT src, dst FROM link
  UNION SELECT a.src, b.dst FROM pairs a JOIN pairs b ON a.dst = b.src) SELECT * FROM pairs"""


def test_explain_names_what_keeps_a_recursion_and_refuses_what_cannot() -> None:
    with contextlib.closing(LocalSession("stream")) as session:
        session.run("CREATE LINK SOURCE link (src TEXT, dst TEXT, KEY (src, dst))")
        text = last(session, "EXPLAIN (TYPE FEDERATED) SELECT * FROM reachable").text
        assert "kept by kernel: reachable (python)" in text
        assert "kept by ranked" in last(session, f"EXPLAIN (TYPE FEDERATED) {PAIRS}").text
        forced = f"{PAIRS} WITH (strategy = 'kernel')"
        for statement in (forced, f"EXPLAIN (TYPE FEDERATED) {forced}"):
            assert "reads the relation more than once" in refusal(session, statement)


def test_what_is_for_comparison_is_refused_where_it_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(strategies, "find_spec", lambda _name: None)
    with contextlib.closing(LocalSession("stream")) as session:
        session.run("CREATE LINK SOURCE link (src TEXT, dst TEXT, KEY (src, dst))")
        compared = "SELECT * FROM reachable WITH (strategy = 'recompute')"
        for statement in (compared, f"EXPLAIN (TYPE FEDERATED) {compared}"):
            assert "strategy = 'recompute' is for comparison" in refusal(session, statement)


@pytest.mark.parametrize("name", ["sys_stream", "sys_operators", "sys_queries"])
def test_what_only_a_federation_tells_is_refused_with_the_reason(
    session: LocalSession, name: str
) -> None:
    assert "keeps none running" in refusal(session, f"SELECT * FROM {name}")
    assert last(session, f"EXPLAIN SELECT * FROM {name}").text
    assert "is a system source" in refusal(session, f"DELETE FROM {name}")


def test_functions_with_a_body_need_nothing_installed(session: LocalSession) -> None:
    session.run(READINGS)
    session.run(
        "CREATE FUNCTION doubled(v DOUBLE) RETURNS DOUBLE AS (v * 2);"
        "CREATE AGGREGATE spread(v DOUBLE) RETURNS DOUBLE AS (doubled(MAX(v) - MIN(v)));"
        "INSERT INTO r VALUES ('a', 4, '2026-01-01T00:00:03Z')"
    )
    assert last(session, "SELECT doubled(v) AS d FROM r WHERE v IS NULL").rows == ((None,),)
    assert last(session, "SELECT spread(v) AS s FROM r").rows == ((6.0,),)
    assert [row[2] for row in last(session, "SHOW FUNCTIONS").rows] == [
        "(v * 2)",
        "(doubled(MAX(v) - MIN(v)))",
    ]
    text = "SELECT spr"
    assert session.suggest(text, len(text)) == ["spread"]
    assert "is used by aggregate spread" in refusal(session, "DROP FUNCTION doubled")
    refused = refusal(session, "CREATE AGGREGATE low(v DOUBLE) RETURNS DOUBLE AS\n (MIN(w))")
    assert "at line 2, column 7: w" in refused
    session.run("DROP AGGREGATE spread; DROP FUNCTION doubled")
