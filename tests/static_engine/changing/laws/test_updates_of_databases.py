"""UPDATE and MERGE on tables in SQLite and PostgreSQL: one transaction, and only what they name."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from static_engine.sources.table_errors import TableError
from streamsql.catalog.definitions import SourceDefinition
from tests.static_engine.changing.changes import run, table
from tests.static_engine.postgres_server import postgres_server

COLUMNS = "desk TEXT PRIMARY KEY, room TEXT, n INTEGER"
MADE = (
    "CREATE TABLE desks (desk TEXT PRIMARY KEY, room TEXT, n INTEGER, "
    "note TEXT DEFAULT 'kept', CHECK (n IS NULL OR n < 100))",
    "INSERT INTO desks VALUES ('d1', 'r1', 1, 'a'), ('d2', 'r1', 2, 'b'), ('d3', NULL, NULL, 'c')",
)
Ask = Callable[..., list[Any]]


def there(definition: SourceDefinition, ask: Ask, folder: Path) -> None:
    """Check what both databases do alike."""

    def rows() -> list[Any]:
        return ask("SELECT * FROM desks ORDER BY desk")

    def say(text: str) -> int:
        return run(folder, definition, text)

    assert say("UPDATE desks SET n = n * 10, room = LOWER(desk) || 'x' WHERE n > 0") == 2
    changed = [("d1", "d1x", 10, "a"), ("d2", "d2x", 20, "b"), ("d3", None, None, "c")]
    assert rows() == changed  # and what is not declared stays
    assert say("UPDATE desks SET n = 10 WHERE desk = 'd1'") == 0
    assert (
        say(
            "MERGE INTO desks AS t USING (VALUES ('d1', 'r9'), ('d2', 'r2'), ('d9', 'r4')) "
            "AS s (desk, room) ON t.desk = s.desk "
            "WHEN MATCHED AND s.room = 'r9' THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET room = s.room "
            "WHEN NOT MATCHED THEN INSERT (desk, room) VALUES (s.desk, s.room)"
        )
        == 3
    )
    merged = [("d2", "r2", 20, "b"), ("d3", None, None, "c"), ("d9", "r4", None, "kept")]
    assert rows() == merged
    for text, said, code in (
        ("UPDATE desks SET desk = 'd2' WHERE desk = 'd3'", "desks", "duplicate_key"),
        ("UPDATE desks SET n = 100", "desks", "constraint_violated"),
        (
            "MERGE INTO desks AS t USING (VALUES ('d2', 1), ('d2', 2)) AS s (desk, n) "
            "ON t.desk = s.desk WHEN MATCHED THEN UPDATE SET n = s.n",
            "two rows of USING change one row",
            "change_failed",
        ),
    ):
        with pytest.raises(TableError, match=said) as caught:
            say(text)
        assert caught.value.code == code
        assert rows() == merged
    assert say("UPDATE desks SET desk = desk || '!'") == 3
    assert [row[0] for row in rows()] == ["d2!", "d3!", "d9!"]


def test_sqlite(tmp_path: Path) -> None:
    def ask(*statements: str) -> list[Any]:
        with contextlib.closing(sqlite3.connect(tmp_path / "desks.db")) as connection:
            found = [connection.execute(text).fetchall() for text in statements]
            connection.commit()
        return found[-1]

    ask(*MADE)
    options = "source = 'sql', url = 'sqlite:///desks.db', table = 'desks'"
    there(table(COLUMNS, options), ask, tmp_path)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server("updates") as url:
        yield url


@pytest.mark.postgres
def test_postgresql(server: str, tmp_path: Path) -> None:
    def ask(*statements: str) -> list[Any]:
        found: list[Any] = []
        with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
            for text in statements:
                cursor = connection.execute(text.encode())
                found = cursor.fetchall() if cursor.description else []
        return found

    ask(*MADE)
    options = f"source = 'sql', url = '{server}', table = 'desks'"
    there(table(COLUMNS, options), ask, tmp_path)
