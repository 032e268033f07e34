"""INSERT and DELETE on tables in PostgreSQL, on a private server of this test."""

import contextlib
import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from static_engine.changing import database_session
from static_engine.sources.databases import database_reader
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value
from tests.static_engine.changing.changes import change_of, insert, rows_of, run, table
from tests.static_engine.postgres_server import postgres_server

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(400)]

HERE = Path()
MICROS = 1_767_225_600_500_000
DESKS = "desk TEXT PRIMARY KEY, room TEXT, n INTEGER"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server("changes") as url:
        yield url


def ask(url: str, *statements: str) -> list[Any]:
    found: list[Any] = []
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
            found = cursor.fetchall() if cursor.description else []
    return found


def begin(url: str, columns: str, *more: str, declared: str = DESKS) -> SourceDefinition:
    ask(url, "DROP TABLE IF EXISTS desks CASCADE", f"CREATE TABLE desks ({columns})", *more)
    return table(declared, f"source = 'sql', url = '{url}', table = 'desks'")


def test_rows_come_and_go(server: str) -> None:
    definition = begin(server, "desk text PRIMARY KEY, room text DEFAULT 'hall', n int, id serial")
    assert run(HERE, definition, "INSERT INTO desks VALUES ('d1', 'r1', 1), ('d''2', '', 2)") == 2
    assert run(HERE, definition, "INSERT INTO desks (desk) VALUES ('d3')") == 1
    assert run(HERE, definition, "DELETE FROM desks WHERE n > 1") == 1
    assert ask(server, "SELECT * FROM desks ORDER BY id") == [
        ("d1", "r1", 1, 1), ("d3", "hall", None, 3),
    ]  # fmt: skip
    rows = [(f"e{n}", "r", n) for n in range(10_000)]
    assert insert(HERE, definition, *rows) == 10_000
    assert run(HERE, definition, "DELETE FROM desks WHERE n % 2 = 0") == 5_000
    assert run(HERE, definition, "DELETE FROM desks") == 5_002
    assert rows_of(HERE, definition) == []


def test_values_of_every_type(server: str) -> None:
    columns = "a BOOLEAN, b INTEGER, c DOUBLE, d TEXT, e TIMESTAMP, f INTERVAL"
    rows: list[Row] = [
        (True, 2**63 - 1, 0.1, "é%(s)s", MICROS, -7), (False, -(2**63), 1e300, "", 0, 2**40),
        (None, None, None, None, None, None),
    ]  # fmt: skip
    for there in (
        "a bool, b bigint, c float8, d varchar(9), e timestamptz, f interval",
        "a text, b text, c text, d text, e text, f text",
        "a int, b numeric, c numeric, d text, e timestamp, f bigint",
        "a smallint, b numeric(30, 2), c float8, d text, e bigint, f numeric",
    ):
        definition = begin(server, there, declared=columns)
        insert(HERE, definition, *rows)
        assert rows_of(HERE, definition) == rows, there
        assert run(HERE, definition, "DELETE FROM desks WHERE c > 1.0 OR b IS NULL") == 2
        assert rows_of(HERE, definition) == rows[:1], there
    number = "123e4567-e89b-12d3-a456-426614174000"
    definition = begin(
        server, "a bool, b int, c real, d uuid, e date, f interval", declared=columns
    )
    insert(HERE, definition, (None, 1, 0.5, number, 86_400_000_000, 1))
    assert rows_of(HERE, definition) == [(None, 1, 0.5, number, 86_400_000_000, 1)]
    for row, said in (
        ((None, 2**40, None, None, None, None), "out of range"),
        ((None, None, None, "x", None, None), "uuid"),
        ((None, None, None, None, MICROS, None), "not midnight"),
        ((None, None, None, "\0", None, None), "NUL|null"),
    ):
        with pytest.raises(TableError, match=said) as refusal:
            insert(HERE, definition, row)
        assert refusal.value.code == "change_failed"
        assert refusal.value.hint
        assert len(rows_of(HERE, definition)) == 1


@pytest.mark.parametrize(
    ("columns", "statement", "code"),
    [
        ("desk text PRIMARY KEY, room text, n int", "VALUES ('d7', 'r', 1), ('d1', 'r', 1)",
         "duplicate_key"),
        ("desk text, room text, n int", "VALUES ('d7', 'r', 1), ('d1', 'r', 1)", "duplicate_key"),
        ("desk text, room text, n int, UNIQUE (desk, room)", "VALUES ('d1', 's', 1)",
         "duplicate_key"),
        ("desk text, room text, n int, UNIQUE (desk)", "VALUES ('d1', 's', 1)", "duplicate_key"),
        ("desk text, room text, n int", "(room) VALUES ('r')", "duplicate_key"),
        ("desk text, room text NOT NULL, n int", "(desk) VALUES ('r')", "constraint_violated"),
        ("desk text, room text, n int CHECK (n < 5)", "VALUES ('d7', 'r', 7)",
         "constraint_violated"),
        ("desk text, room text REFERENCES rooms DEFERRABLE INITIALLY DEFERRED, n int",
         "VALUES ('d7', 'r7', 7)", "constraint_violated"),
        ("desk text, room text, n int GENERATED ALWAYS AS (1) STORED", "VALUES ('d7', 'r7', 7)",
         "change_failed"),
        ("desk text, room varchar(2), n int", "VALUES ('d7', 'long', 7)", "change_failed"),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_changes_nothing(
    server: str, columns: str, statement: str, code: str
) -> None:
    ask(
        server, "DROP TABLE IF EXISTS rooms CASCADE", "CREATE TABLE rooms (rid text PRIMARY KEY)",
        "INSERT INTO rooms VALUES ('r1')",
    )  # fmt: skip
    definition = begin(server, columns, "INSERT INTO desks (desk, room) VALUES ('d1', 'r1')")
    before = rows_of(HERE, definition)
    with pytest.raises(TableError) as refusal:
        run(HERE, definition, f"INSERT INTO desks {statement}")
    assert refusal.value.code == code
    assert refusal.value.hint
    assert rows_of(HERE, definition) == before


def test_what_the_user_may_not_do_is_told(server: str) -> None:
    definition = begin(
        server, "desk text, room text, n int", "INSERT INTO desks VALUES ('d1', 'r', 1)",
        "DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN", "GRANT SELECT ON desks TO reader",
        "DROP VIEW IF EXISTS v", "CREATE VIEW v AS SELECT * FROM desks",
    )  # fmt: skip
    reader = server.replace("pando:secret", "reader")
    definition = table(DESKS, f"source = 'sql', url = '{reader}', table = 'desks'")
    for statement in ("INSERT INTO desks (desk) VALUES ('d2')", "DELETE FROM desks WHERE n = 1"):
        with pytest.raises(TableError, match="permission denied") as refusal:
            run(HERE, definition, statement)
        assert "GRANT" in refusal.value.hint
    ask(server, "ALTER ROLE reader SET default_transaction_read_only = on")
    with pytest.raises(TableError, match="read-only transaction"):
        run(HERE, definition, "DELETE FROM desks")
    ask(server, "DROP OWNED BY reader", "DROP ROLE reader")
    view = table(DESKS, f"source = 'sql', url = '{server}', table = 'public.v'")
    with pytest.raises(TableError, match="which is not a plain table of its database") as refusal:
        run(HERE, view, "DELETE FROM desks")
    assert refusal.value.code == "not_writable"


def test_partitions_and_schemas(server: str) -> None:
    ask(
        server, "DROP SCHEMA IF EXISTS \"The floor\" CASCADE", 'CREATE SCHEMA "The floor"',
        'CREATE TABLE "The floor"."de:sks" (desk text, room text, n int) PARTITION BY LIST (room)',
        'CREATE TABLE p1 PARTITION OF "The floor"."de:sks" FOR VALUES IN (\'r1\')',
        'CREATE TABLE p2 PARTITION OF "The floor"."de:sks" FOR VALUES IN (\'r2\')',
    )  # fmt: skip
    options = f"source = 'sql', url = '{server}', table = 'The floor.de:sks'"
    definition = table(DESKS, options)
    rows = [(f"d{n}", f"r{n % 2 + 1}", n) for n in range(10)]
    insert(HERE, definition, *rows)
    assert run(HERE, definition, "DELETE FROM desks WHERE n = 4") == 1
    assert sorted(rows_of(HERE, definition)) == [row for row in rows if row[2] != 4]
    with pytest.raises(TableError, match="no partition") as refusal:
        insert(HERE, definition, ("d99", "r9", 1))
    assert refusal.value.code == "constraint_violated"


def test_a_change_of_somebody_else_meanwhile(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that somebody else changes while it is judged is judged again."""
    definition = begin(
        server, "desk text, room text, n int", "INSERT INTO desks VALUES ('d1', 'r', 1), "
        "('d2', 'r', 1)",
    )  # fmt: skip
    began = threading.Event()
    with psycopg.connect(server.replace("+psycopg", "")) as other:
        other.execute("UPDATE desks SET n = 5 WHERE desk = 'd1'")
        worker_says: list[int] = []
        real = database_session._once

        def once(*arguments: Any) -> Any:
            began.set()
            return real(*arguments)

        monkeypatch.setattr(database_session, "_once", once)
        worker = threading.Thread(
            target=lambda: worker_says.append(
                run(HERE, definition, "DELETE FROM desks WHERE n = 1")
            )
        )
        worker.start()
        assert began.wait(10)
        waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        for _ in range(1_000):
            if ask(server, waits):
                break
        other.commit()
        worker.join(30)
    assert worker_says == [1]
    assert rows_of(HERE, definition) == [("d1", "r", 5)]


def test_a_lock_that_stays_is_told(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = begin(server, "desk text, room text, n int")
    monkeypatch.setattr(database_session, "LOCK_SECONDS", 1)
    with psycopg.connect(server.replace("+psycopg", "")) as other:
        other.execute("LOCK TABLE desks IN ROW EXCLUSIVE MODE")
        other.execute("LOCK TABLE desks IN SHARE ROW EXCLUSIVE MODE")
        with pytest.raises(TableError, match="nothing has changed") as refusal:
            run(HERE, definition, "INSERT INTO desks (desk) VALUES ('d1')")
    assert "retry" in refusal.value.hint
    assert rows_of(HERE, definition) == []


# SQLAlchemy does not close cursors of a lost connection.
LEFT = pytest.mark.filterwarnings("ignore:.*was deleted while still open:ResourceWarning")


@LEFT
def test_a_server_that_stops_in_the_middle_is_given_up(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot even say that it takes too long; what was begun is undone when it goes on."""
    note = tmp_path / "pid"
    tmp_path.parent.chmod(0o755)
    tmp_path.chmod(0o777)
    definition = begin(
        server, "desk text, room text, n int",
        "CREATE OR REPLACE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"COPY (SELECT pg_backend_pid()) TO '{note}'; "
        "COPY (SELECT 1) TO PROGRAM 'kill -STOP $PPID'; RETURN new; END $$",
        "CREATE TRIGGER stop BEFORE INSERT ON desks FOR EACH ROW EXECUTE FUNCTION stop()",
    )  # fmt: skip
    monkeypatch.setattr(database_session, "CHANGE_SECONDS", 5)
    try:
        with pytest.raises(TableError, match="not finished within 5 s; nothing has ch") as refusal:
            insert(HERE, definition, ("d1", "r", 1))
        assert refusal.value.code == "change_failed"
    finally:
        os.kill(int(note.read_text()), signal.SIGCONT)
    ask(server, "ALTER TABLE desks DISABLE TRIGGER ALL")  # waits until it has rolled back
    assert rows_of(HERE, definition) == []


@LEFT
def test_a_table_that_stays_locked_is_given_up(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = begin(server, "desk text, room text, n int")
    with psycopg.connect(server.replace("+psycopg", "")) as other, monkeypatch.context() as patch:
        patch.setattr(database_reader, "IDLE_SECONDS", 1.0)
        other.execute("LOCK TABLE desks IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(TableError, match="has not answered for 1 s") as refusal:
            rows_of(HERE, definition)
    assert "secret" not in str(refusal.value)
    assert rows_of(HERE, definition) == []
    del refusal
    gc.collect()


@pytest.mark.parametrize(
    ("columns", "there", "declared", "added"),
    [
        ("k text PRIMARY KEY", "desks VALUES ('02')", "INTEGER", 2),
        ("k numeric PRIMARY KEY", "desks VALUES (0.1000000000000000001)", "DOUBLE", 0.1),
        ("k text PRIMARY KEY", "desks VALUES ('x')", "TEXT", "x"),
        ("k text PRIMARY KEY", "heirs VALUES ('x')", "TEXT", "x"),
    ],
)
def test_a_key_of_ours_counts_where_the_one_there_is_another(
    server: str, columns: str, there: str, declared: str, added: Value
) -> None:
    """A table with a key twice could not be read any more."""
    heirs = ("CREATE TABLE heirs () INHERITS (desks)",) if "heirs" in there else ()
    definition = begin(
        server, columns, *heirs, f"INSERT INTO {there}", declared=f"k {declared} PRIMARY KEY"
    )
    before = rows_of(HERE, definition)
    with pytest.raises(TableError) as refusal:
        insert(HERE, definition, (added,))
    assert refusal.value.code == "duplicate_key"
    assert rows_of(HERE, definition) == before


def test_a_server_that_writes_times_in_another_way(server: str) -> None:
    chosen = {"timezone": "America/New_York", "datestyle": "German", "intervalstyle": "iso_8601"}
    definition = begin(
        server, "a timestamp, b timestamptz, c date, d interval",
        *(f"ALTER ROLE pando SET {name} = '{value}'" for name, value in chosen.items()),
        declared="a TIMESTAMP, b TIMESTAMP, c TIMESTAMP, d INTERVAL",
    )  # fmt: skip
    try:
        row = (MICROS, MICROS, 1_767_225_600_000_000, -90_061_000_001)
        assert insert(HERE, definition, row) == 1
        assert rows_of(HERE, definition) == [row]
        assert run(HERE, definition, "DELETE FROM desks WHERE a = b AND c < a") == 1
    finally:
        ask(server, *(f"ALTER ROLE pando RESET {name}" for name in chosen))


@contextlib.contextmanager
def lost_at_commit(monkeypatch: pytest.MonkeyPatch, *, done: bool) -> Iterator[None]:
    """Cut the connection at COMMIT: after it was done, or before."""
    with monkeypatch.context() as patch:
        real = psycopg.Connection.commit

        def commit(self: Any) -> None:
            if done:
                real(self)
            self.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        patch.setattr(psycopg.Connection, "commit", commit)
        yield


def test_the_server_is_asked_what_came_of_an_unconfirmed_change(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = begin(server, "desk text, room text, n int")
    with lost_at_commit(monkeypatch, done=True):
        assert insert(HERE, definition, ("d1", "r", 1)) == 1
    assert rows_of(HERE, definition) == [("d1", "r", 1)]
    with (
        lost_at_commit(monkeypatch, done=False),
        pytest.raises(TableError, match="nothing has changed") as refusal,
    ):
        insert(HERE, definition, ("d2", "r", 1))
    assert refusal.value.code == "change_failed"
    assert rows_of(HERE, definition) == [("d1", "r", 1)]


def test_what_nobody_can_tell_is_said_to_be_unknown(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = begin(server, "desk text, room text, n int")
    monkeypatch.setattr(database_session, "_ASK_SECONDS", 0.0)
    real = database_session._engine
    engines = []

    def engine(*arguments: Any) -> Any:
        found = real(*arguments)
        engines.append(found)
        return found

    def away(self: Any) -> None:
        self.close()
        monkeypatch.setattr(engines[-1], "connect", gone)
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    def gone() -> None:
        raise OperationalError("connect", {}, psycopg.OperationalError("refused"))

    monkeypatch.setattr(database_session, "_engine", engine)
    monkeypatch.setattr(psycopg.Connection, "commit", away)
    with pytest.raises(TableError, match="it is unknown") as refusal:
        insert(HERE, definition, ("d2", "r", 1))
    assert refusal.value.code == "no_answer"
    assert "SELECT" in refusal.value.hint


def test_a_server_that_is_away(server: str) -> None:
    away = server.rpartition(":")[0] + ":1/postgres"
    definition = table(DESKS, f"source = 'sql', url = '{away}', table = 'desks'")
    with pytest.raises(TableError, match="nothing has changed") as refusal:
        run(HERE, definition, "DELETE FROM desks")
    assert refusal.value.code == "change_failed"
    assert "secret" not in str(refusal.value)


def test_what_a_change_does_to_other_tables_of_the_database_is_read_again(
    server: str, tmp_path: Path
) -> None:
    desks = begin(
        server, "desk text PRIMARY KEY, room text, n int",
        "DROP TABLE IF EXISTS seats", "CREATE TABLE seats (desk text REFERENCES desks "
        "ON DELETE CASCADE)", "INSERT INTO desks VALUES ('d1', 'r', 1)",
        "INSERT INTO seats VALUES ('d1')",
    )  # fmt: skip
    options = (("source", "sql"), ("url", server), ("table", "seats"))
    seats = SourceDefinition("seats", SourceKind.TABLE, Schema.of(("desk", DataType.TEXT)),
                             options=options)  # fmt: skip
    store = TableStore(Locations(tmp_path), tmp_path / "snapshots")
    watch = TableWatch(store)
    watch.define((desks, seats))
    used = frozenset({"desks", "seats"})
    watch.poll(used)
    assert store.change(change_of(desks, "DELETE FROM desks")) == 1
    watch.changed("desks")
    watch.poll(used)
    assert [store.find(name).row_count for name in ("desks", "seats")] == [0, 0]  # type: ignore[union-attr]


STEPS = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 9).map("d{}".format),
            st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
            st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3),
        ),
        min_size=1,
        max_size=4,
        unique_by=lambda row: row[0],
    )
    | st.integers(-1, 4),
    min_size=1,
    max_size=8,
)


@settings(max_examples=15, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(steps=STEPS)
def test_a_table_is_the_relation_that_its_changes_make(
    server: str, steps: list[list[Row] | int]
) -> None:
    definition = begin(server, "desk text PRIMARY KEY, room text, n bigint")
    expected: dict[object, Row] = {}
    for step in steps:
        if isinstance(step, int):
            gone = [key for key, row in expected.items() if row[2] == step]
            assert run(HERE, definition, f"DELETE FROM desks WHERE n = {step}") == len(gone)
            expected = {key: row for key, row in expected.items() if key not in gone}
        elif any(row[0] in expected for row in step):
            with pytest.raises(TableError) as refusal:
                insert(HERE, definition, *step)
            assert refusal.value.code == "duplicate_key"
        else:
            insert(HERE, definition, *step)
            expected |= {row[0]: row for row in step}
        assert sorted(rows_of(HERE, definition)) == sorted(expected.values())
