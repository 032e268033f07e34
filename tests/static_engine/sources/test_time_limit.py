"""A database that never answers is given up, on whatever it hangs."""

import socket
import sqlite3
import threading
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from static_engine.sources import time_limit
from static_engine.sources.databases import database_reader
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations, database_url
from static_engine.sources.table_reader import read_table
from static_engine.sources.time_limit import TimeLimit
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "


def test_a_view_that_never_ends_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute(f"CREATE VIEW t AS {ENDLESS} SELECT max(i) AS i FROM n")
    connection.close()
    options = (("source", "sql"), ("url", "sqlite:///t.db"), ("table", "t"))
    schema = Schema.of(("i", DataType.INTEGER))
    definition = SourceDefinition("t", SourceKind.TABLE, schema, options=options)
    monkeypatch.setattr(database_reader, "IDLE_SECONDS", 0.2)
    with pytest.raises(TableError, match=r"t\.db has not answered for 0\.2 s"):
        list(read_table(definition, Locations(tmp_path)))


def test_a_connection_that_goes_on_is_left_alone(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/t.db", poolclass=NullPool)
    limit = TimeLimit(3_600)
    limit.watch(engine)
    with engine.connect() as connection:
        opened = connection.connection.dbapi_connection
        limit.give(-1)
        limit.extend()
        limit._look(opened)  # the time that was given at first is over
        assert not limit.is_over
        assert len(limit._timers) == 1
        limit.give(-1)
        limit._look(opened)  # no statement runs: the next one that does not end is cut, too
        assert limit.is_over
        with pytest.raises(OperationalError, match="interrupted"):
            connection.exec_driver_sql(f"{ENDLESS} SELECT max(i) FROM n")
    assert not limit._timers


def test_a_socket_that_waits_for_ever_is_shut_down() -> None:
    ours, theirs = socket.socketpair()
    said: list[bytes] = []
    reader = threading.Thread(target=lambda: said.append(ours.recv(1)), daemon=True)
    reader.start()
    time_limit._cut(ours)
    reader.join(30)
    assert said == [b""]
    ours.close()
    theirs.close()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql+psycopg://me:***@host/db"),
        ("postgresql://me@host/db?password=secret", "postgresql+psycopg://me@host/db"),
        ("postgresql://host/db?sslpassword=secret", "postgresql+psycopg://host/db"),
    ],
)
def test_messages_do_not_show_passwords(url: str, shown: str) -> None:
    assert database_reader.shown(database_url(url, Locations(Path()))) == shown


def test_a_password_with_an_at_sign_is_not_taken_for_a_host() -> None:
    with pytest.raises(TableError, match="more than one @") as refusal:
        database_url("postgresql://me:se@cret@host/db", Locations(Path()))
    assert "cret" not in str(refusal.value)
    assert "%40" in refusal.value.hint
