"""INSERT and DELETE on tables in SQLite: one transaction each, by the database's own rules."""

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from static_engine.changing import database_rows, database_session
from static_engine.changing.change_table import change_table
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row
from streamsql.wire.stored_tables.table_changes import TableChange
from tests.static_engine.changing.changes import insert, rows_of, run, table

DESKS = "desk TEXT PRIMARY KEY, room TEXT, n INTEGER"
SQL = "source = 'sql', url = 'sqlite:///desks.db', table = 'desks'"
MICROS = 1_767_225_600_500_000


def ask(folder: Path, *statements: str, file: str = "desks.db") -> list[Any]:
    connection = sqlite3.connect(folder / file)
    try:
        found = [connection.execute(statement).fetchall() for statement in statements]
        connection.commit()
    finally:
        connection.close()
    return found[-1]


def begin(
    folder: Path, columns: str = "desk TEXT PRIMARY KEY, room TEXT DEFAULT 'hall', n INTEGER"
) -> SourceDefinition:
    ask(folder, f"CREATE TABLE desks ({columns})")
    return table(DESKS, SQL)


def test_rows_come_and_go(tmp_path: Path) -> None:
    definition = begin(tmp_path)
    assert run(tmp_path, definition, "INSERT INTO desks VALUES ('d1', 'r1', 1), ('d2', '', 2)") == 2
    assert run(tmp_path, definition, "INSERT INTO desks VALUES ('d''3', NULL, NULL)") == 1
    assert run(tmp_path, definition, "DELETE FROM desks WHERE n > 1") == 1  # NULL > 1 is not true
    assert rows_of(tmp_path, definition) == [("d1", "r1", 1), ("d'3", None, None)]
    assert run(tmp_path, definition, "DELETE FROM desks WHERE n > 1") == 0
    assert run(tmp_path, definition, "DELETE FROM desks") == 2
    assert ask(tmp_path, "SELECT * FROM desks") == []


def test_columns_that_are_not_named_get_their_default(tmp_path: Path) -> None:
    definition = begin(tmp_path)
    run(tmp_path, definition, "INSERT INTO desks (desk) VALUES ('d1'), ('d2')")
    run(tmp_path, definition, "INSERT INTO desks (room, desk) VALUES (NULL, 'd3')")
    assert rows_of(tmp_path, definition) == [
        ("d1", "hall", None), ("d2", "hall", None), ("d3", None, None),
    ]  # fmt: skip


def test_a_key_that_the_database_gives(tmp_path: Path) -> None:
    ask(tmp_path, "CREATE TABLE desks (n INTEGER PRIMARY KEY, room TEXT)")
    definition = table("n INTEGER PRIMARY KEY, room TEXT", SQL)
    assert run(tmp_path, definition, "INSERT INTO desks (room) VALUES ('a'), ('b')") == 2
    assert rows_of(tmp_path, definition) == [(1, "a"), (2, "b")]
    with pytest.raises(TableError, match="NULL in the primary key"):
        run(tmp_path, definition, "INSERT INTO desks VALUES (NULL, 'c')")
    assert len(rows_of(tmp_path, definition)) == 2


def test_names_are_quoted_and_columns_that_are_not_declared_left_alone(tmp_path: Path) -> None:
    file = "a b#?c%41.db"
    ask(
        tmp_path,
        'CREATE TABLE "select ""x"" %s:y" ("Order" TEXT, "a b%(" INTEGER, more TEXT DEFAULT 1)',
        file=file,
    )
    options = f"source = 'sql', url = 'sqlite:///{file.replace('%', '%25').replace('?', '%3F')}'"
    definition = table('"order" TEXT, "a b%(" INTEGER', options + ", table = 'select \"x\" %s:y'")
    run(tmp_path, definition, """INSERT INTO desks VALUES ('x', 1), ('y"', 2)""")
    assert run(tmp_path, definition, 'DELETE FROM desks WHERE "order" = \'y"\'') == 1
    assert rows_of(tmp_path, definition) == [("x", 1)]
    asked = 'SELECT * FROM "select ""x"" %s:y"'
    assert ask(tmp_path, asked, file=file) == [("x", 1, "1")]


@pytest.mark.parametrize(
    ("columns", "statement", "code"),
    [
        (DESKS, "INSERT INTO desks VALUES ('d7', 'r', 1), ('d1', 'r9', 1)", "duplicate_key"),
        ("desk, room, n", "INSERT INTO desks VALUES ('d7', 'r', 1), ('d1', 'r9', 1)",
         "duplicate_key"),
        ("desk, room, n", "INSERT INTO desks VALUES ('d7', 'r', 1), ('d7', 'r9', 1)",
         "duplicate_key"),
        ("desk, room, n", "INSERT INTO desks (room) VALUES ('r')", "duplicate_key"),
        ("desk, room UNIQUE, n", "INSERT INTO desks VALUES ('d7', 'r1', 1)", "duplicate_key"),
        ("desk, room NOT NULL, n", "INSERT INTO desks (desk) VALUES ('d7')", "constraint_violated"),
        ("desk, room, n CHECK (n < 5)", "INSERT INTO desks VALUES ('d7', 'r', 7)",
         "constraint_violated"),
        ("desk, room REFERENCES rooms, n", "INSERT INTO desks VALUES ('d7', 'r7', 7)",
         "constraint_violated"),
        ("desk, room INTEGER, n", "INSERT INTO desks VALUES ('d7', 'r', 7), ('d8', '8', NULL)", ""),
        ("desk, room, n TEXT", "INSERT INTO desks VALUES ('d7', 'r', 7)", ""),
        ("desk, room, n AS (7)", "INSERT INTO desks VALUES ('d7', 'r', 7)", "change_failed"),
        ("desk, room, n BLOB DEFAULT x'00'", "INSERT INTO desks (desk) VALUES ('d7')",
         "change_failed"),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_changes_nothing(
    tmp_path: Path, columns: str, statement: str, code: str
) -> None:
    ask(tmp_path, "CREATE TABLE rooms (rid TEXT PRIMARY KEY)", "INSERT INTO rooms VALUES ('r1')")
    definition = begin(tmp_path, columns)
    before = [("d1", "r1", 7 if " AS " in columns else 1)]
    ask(tmp_path, "INSERT INTO desks (desk, room) VALUES ('d1', 'r1')")
    if " AS " not in columns:
        ask(tmp_path, "UPDATE desks SET n = 1")
    if not code:
        run(tmp_path, definition, statement)
        assert len(rows_of(tmp_path, definition)) > 1
        return
    with pytest.raises(TableError) as refusal:
        run(tmp_path, definition, statement)
    assert refusal.value.code == code
    assert refusal.value.hint
    assert rows_of(tmp_path, definition) == before


def test_a_row_that_others_refer_to_stays(tmp_path: Path) -> None:
    definition = begin(tmp_path)
    ask(
        tmp_path,
        "CREATE TABLE seats (desk REFERENCES desks)",
        "INSERT INTO desks VALUES ('d1', 'r1', 1), ('d2', 'r1', 2)",
        "INSERT INTO seats VALUES ('d2')",
    )
    for statement in ("DELETE FROM desks", "DELETE FROM desks WHERE n > 0"):
        with pytest.raises(TableError) as refusal:
            run(tmp_path, definition, statement)
        assert refusal.value.code == "constraint_violated"
        assert len(rows_of(tmp_path, definition)) == 2
    assert run(tmp_path, definition, "DELETE FROM desks WHERE n = 1") == 1


def test_rows_that_go_with_others_count_and_rows_that_a_trigger_keeps_are_told(
    tmp_path: Path,
) -> None:
    definition = begin(
        tmp_path, "desk TEXT PRIMARY KEY, room TEXT REFERENCES desks ON DELETE CASCADE, n INTEGER"
    )
    rows: list[Row] = [("d1", None, 1), ("d2", "d1", 2), ("d3", None, 3)]
    insert(tmp_path, definition, *rows)
    assert run(tmp_path, definition, "DELETE FROM desks WHERE n < 3") == 2
    assert rows_of(tmp_path, definition) == rows[2:]
    ask(
        tmp_path,
        "CREATE TRIGGER keep BEFORE DELETE ON desks BEGIN SELECT RAISE(IGNORE); END",
        "CREATE TRIGGER leave BEFORE INSERT ON desks WHEN NEW.n = 9 "
        "BEGIN SELECT RAISE(IGNORE); END",
        "CREATE TRIGGER say BEFORE INSERT ON desks WHEN NEW.n = 8 "
        "BEGIN SELECT RAISE(ABORT, 'eight is none'); END",
    )
    for statement, said in (
        ("DELETE FROM desks", "keeps 1"),
        ("DELETE FROM desks WHERE n = 3", "keeps 1"),
        ("INSERT INTO desks VALUES ('d8', NULL, 7), ('d9', NULL, 9)", "1 of 2 rows"),
        ("INSERT INTO desks VALUES ('d8', NULL, 8)", "eight is none"),
    ):
        with pytest.raises(TableError, match=said):
            run(tmp_path, definition, statement)
        assert rows_of(tmp_path, definition) == rows[2:]


@pytest.mark.parametrize(
    "columns",
    [
        "desk TEXT PRIMARY KEY, room TEXT, n INTEGER) WITHOUT ROWID --",
        "desk TEXT, room TEXT, n INTEGER, PRIMARY KEY (desk, n)) WITHOUT ROWID --",
        "desk TEXT, room TEXT, n INTEGER, rowid TEXT, oid TEXT",
        "desk TEXT, room TEXT, n INTEGER PRIMARY KEY",
        "desk TEXT, room TEXT, n INTEGER) STRICT --",
    ],
)
def test_rows_are_told_apart_in_every_kind_of_table(tmp_path: Path, columns: str) -> None:
    definition = begin(tmp_path, columns)
    rows = [(f"d{n}", "r", n) for n in range(2_500)]
    insert(tmp_path, definition, *rows)
    assert run(tmp_path, definition, "DELETE FROM desks WHERE n % 2 = 0") == 1_250
    assert sorted(rows_of(tmp_path, definition)) == sorted(rows[1::2])


def test_values_of_every_type(tmp_path: Path) -> None:
    columns = "a BOOLEAN, b INTEGER, c DOUBLE, d TEXT, e TIMESTAMP, f INTERVAL"
    definition = table(columns, SQL)
    rows: list[Row] = [
        (True, 2**63 - 1, 0.1, "é", MICROS, -7), (False, -(2**63), 1e300, "", 0, 2**40),
        (None, None, None, None, None, None),
    ]  # fmt: skip
    for there in (
        "a BOOLEAN, b BIGINT, c REAL, d VARCHAR(9), e TIMESTAMP, f INTEGER",
        "a TEXT, b TEXT, c TEXT, d TEXT, e TEXT, f TEXT",
        "a, b, c, d, e, f",
        "a INT, b NUMERIC, c NUMERIC, d CLOB, e INTEGER, f BIGINT",
        "a INT, b DECIMAL(30, 2), c FLOAT, d TEXT, e REAL, f INT",
    ):
        ask(tmp_path, "DROP TABLE IF EXISTS desks", f"CREATE TABLE desks ({there})")
        insert(tmp_path, definition, *rows)
        assert rows_of(tmp_path, definition) == rows, there
        assert run(tmp_path, definition, "DELETE FROM desks WHERE c > 1.0 OR b IS NULL") == 2
        assert rows_of(tmp_path, definition) == rows[:1], there
    ask(tmp_path, "DROP TABLE desks", "CREATE TABLE desks (a, b, c, d, e DATE, f)")
    with pytest.raises(TableError, match="not midnight"):
        insert(tmp_path, definition, rows[0])
    insert(tmp_path, definition, rows[1])
    assert ask(tmp_path, "SELECT e FROM desks") == [("1970-01-01",)]


def test_what_is_no_table_is_not_changed(tmp_path: Path) -> None:
    ask(
        tmp_path,
        "CREATE TABLE t (desk TEXT, room TEXT, n INTEGER)",
        "CREATE VIEW desks AS SELECT * FROM t",
    )
    with pytest.raises(TableError, match="which is not a plain table of its database") as refusal:
        run(tmp_path, table(DESKS, SQL), "DELETE FROM desks")
    assert refusal.value.code == "not_writable"
    missing = table(DESKS, SQL.replace("table = 'desks'", "table = 'none'"))
    with pytest.raises(TableError, match="no table or view"):
        run(tmp_path, missing, "DELETE FROM desks")
    missing = table("other TEXT", SQL.replace("table = 'desks'", "table = 't'"))
    with pytest.raises(TableError, match="no column other"):
        run(tmp_path, missing, "DELETE FROM desks")


def test_other_databases_are_only_read(tmp_path: Path) -> None:
    definition = table(DESKS, "source = 'sql', url = 'mysql://u:secret@h/d', table = 'desks'")
    change = TableChange("c1", 1, definition, (("d1", "r", 1),))
    with pytest.raises(TableError, match="database of kind mysql") as refusal:
        change_table(change, Locations(tmp_path, dialects=("mysql",)))
    assert refusal.value.code == "not_writable"
    with pytest.raises(TableError, match="are not allowed"):
        change_table(change, Locations(tmp_path))


def test_what_may_not_be_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = begin(tmp_path)
    file = tmp_path / "desks.db"
    file.chmod(0o440)
    with pytest.raises(TableError, match="is read-only") as refusal:
        run(tmp_path, definition, "DELETE FROM desks")
    assert refusal.value.code == "change_failed"
    file.chmod(0o640)
    monkeypatch.setattr(database_session, "LOCK_SECONDS", 0.05)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TableError, match="locked; nothing has changed") as refusal:
        run(tmp_path, definition, "INSERT INTO desks (desk) VALUES ('d1')")
    assert "retry" in refusal.value.hint
    other.execute("COMMIT")
    other.execute("BEGIN")
    other.execute("SELECT * FROM desks").fetchall()  # a reader: COMMIT has to wait for it
    with pytest.raises(TableError, match="locked; nothing has changed"):
        run(tmp_path, definition, "INSERT INTO desks (desk) VALUES ('d1')")
    other.close()
    assert rows_of(tmp_path, definition) == []
    assert run(tmp_path, definition, "INSERT INTO desks (desk) VALUES ('d1')") == 1


def test_a_full_disk_leaves_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = begin(tmp_path)
    real = sqlite3.connect

    def small(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = real(*args, **kwargs)
        connection.execute("PRAGMA max_page_count = 3")
        return connection

    monkeypatch.setattr(sqlite3.dbapi2, "connect", small)
    with pytest.raises(TableError, match="full; nothing has changed") as refusal:
        insert(tmp_path, definition, *((f"d{n}", "r" * 100, n) for n in range(1_000)))
    assert "free space" in refusal.value.hint
    monkeypatch.undo()
    assert rows_of(tmp_path, definition) == []


def test_a_trigger_that_never_ends_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = begin(tmp_path)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    with sqlite3.connect(tmp_path / "desks.db") as connection:
        connection.execute(
            "CREATE TRIGGER endless AFTER INSERT ON desks BEGIN "
            f"UPDATE desks SET n = ({endless} SELECT max(i) FROM n); END"
        )
    connection.close()
    monkeypatch.setattr(database_session, "CHANGE_SECONDS", 0.3)
    with pytest.raises(TableError, match=r"not finished within 0\.3 s; nothing has ch") as refusal:
        insert(tmp_path, definition, ("d1", "r", 1))
    assert refusal.value.code == "change_failed"
    assert rows_of(tmp_path, definition) == []


def test_a_text_that_is_none_and_too_many_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = begin(tmp_path)
    with pytest.raises(TableError, match="cannot be written"):
        change_table(TableChange("c1", 1, definition, (("d1", "\ud800", 1),)), Locations(tmp_path))
    insert(tmp_path, definition, ("d1", "r", 1), ("d2", "r", 2))
    monkeypatch.setattr(database_rows, "MAX_CHOSEN", 1)
    with pytest.raises(TableError, match="more than 1 rows"):
        run(tmp_path, definition, "DELETE FROM desks WHERE n > 0")
    assert len(rows_of(tmp_path, definition)) == 2


def test_a_database_with_a_log_of_its_own(tmp_path: Path) -> None:
    definition = begin(tmp_path)
    other = sqlite3.connect(tmp_path / "desks.db")
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("INSERT INTO desks VALUES ('d1', 'r', 1)")
    other.commit()
    assert run(tmp_path, definition, "INSERT INTO desks VALUES ('d2', 'r', 2)") == 1
    assert run(tmp_path, definition, "DELETE FROM desks WHERE n = 1") == 1
    assert other.execute("SELECT desk FROM desks").fetchall() == [("d2",)]
    other.close()


def test_a_process_that_is_killed_before_the_end_has_changed_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = begin(tmp_path)
    child = os.fork()
    if not child:
        monkeypatch.setattr(database_session, "_roll_back", lambda _: os._exit(9))
        try:
            insert(tmp_path, definition, ("d1", "r", 1), ("d1", "r", 2))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert rows_of(tmp_path, definition) == []
    assert insert(tmp_path, definition, ("d1", "r", 1)) == 1
