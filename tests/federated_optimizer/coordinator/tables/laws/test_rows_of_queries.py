"""INSERT … SELECT and MERGE with the rows of a query, in a federation with a real static engine."""

import asyncio
import contextlib
import sqlite3
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.principal import Principal, Role
from static_engine.changing import change_requests
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.history.past_readings import PastReadings
from static_engine.lake.lake import Lake
from static_engine.lake.lake_settings import LakeSettings
from static_engine.lake.managed_tables import ManagedTables
from static_engine.service.static_engine import MakeExecutor, StaticEngine
from static_engine.tables.table_store import TableStore
from streamsql.data.types import Row
from streamsql.errors import BindingError, DeploymentError, FederationError, UnsupportedError
from tests.federated_optimizer.coordinator.laws.test_questions_of_the_past import arrived
from tests.federated_optimizer.coordinator.running_static_engine import (
    SELDOM,
    begin,
    static_engine,
)
from tests.static_engine.lake.lake_rows import keep

NOON_TEXT = "2024-10-04T12:00:00Z"
SCRIPT = """
CREATE TABLE desks (desk TEXT PRIMARY KEY, room TEXT, n INTEGER);
CREATE TABLE moved (desk TEXT, room TEXT) WITH (source = 'csv', path = 'moved.csv');
CREATE TABLE seats (desk TEXT, n INTEGER)
  WITH (source = 'sql', url = 'sqlite:///seats.db', table = 'seats');
CREATE SOURCE climate (room TEXT, celsius DOUBLE, ts TIMESTAMP);
CREATE VIEW known AS SELECT desk, room FROM moved WHERE room IS NOT NULL;
CREATE TABLE rooms (room TEXT PRIMARY KEY, warmest DOUBLE, readings INTEGER);
"""


def with_lake(
    federation: Any, make: MakeExecutor | None = None
) -> contextlib.AbstractAsyncContextManager[StaticEngine]:
    folder = federation.folder
    lake = LakeSettings(f"sqlite:///{folder / 'lake.db'}", str(folder / "lake"))
    past, managed = PastReadings(Lake(lake)), ManagedTables(lake)
    return static_engine(federation, poll_seconds=SELDOM, past=past, managed=managed, make=make)


def write_moved(federation: Any, *rows: str) -> None:
    temporary = federation.folder / "moved.new"
    temporary.write_text("\n".join(("desk,room", *rows, "")))
    temporary.replace(federation.folder / "moved.csv")


def ask(federation: Any, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(federation.folder / "seats.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


async def begun(harness: Any, federation: Any) -> Any:
    write_moved(federation, "d1,r1", "d2,r2", "d3,")
    ask(
        federation,
        "CREATE TABLE seats (desk TEXT, n INTEGER)",
        "INSERT INTO seats VALUES ('d1', 4), ('d2', 6), ('d2', 1)",
    )
    coordinator = await begin(federation, SCRIPT, define_schema=False)
    await harness.until(lambda: sum(site.online for site in coordinator.sites()) == 3)
    return coordinator


async def say(coordinator: Any, text: str) -> str:
    (done,) = await coordinator.execute(text)
    return str(done.message)


def test_rows_of_files_databases_views_and_the_table_itself_are_taken(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        async with with_lake(federation):
            coordinator = await begun(harness, federation)
            shown = await harness.start_query(coordinator, "SELECT desk, room, n FROM desks")
            said = await say(coordinator, "INSERT INTO desks (desk, room) SELECT * FROM known")
            assert said == "2 rows inserted into table desks"
            rows: list[Row] = [("d1", "r1", None), ("d2", "r2", None)]
            await harness.until_rows(coordinator, shown, rows)
            # Files are looked at once an hour, but a change sees them as they are.
            write_moved(federation, "d2,r9", "d5,r5")
            ask(federation, "INSERT INTO seats VALUES ('d1', 10)")
            said = await say(
                coordinator,
                "MERGE INTO desks AS d USING (SELECT desk, SUM(n) AS n FROM seats GROUP BY desk) "
                "AS s ON d.desk = s.desk WHEN MATCHED THEN UPDATE SET n = s.n",
            )
            assert said == "2 rows changed in table desks"
            await harness.until_rows(coordinator, shown, [("d1", "r1", 14), ("d2", "r2", 7)])
            await say(
                coordinator,
                "MERGE INTO desks USING moved AS m ON desks.desk = m.desk "
                "WHEN MATCHED THEN UPDATE SET room = m.room "
                "WHEN NOT MATCHED THEN INSERT (desk, room) VALUES (m.desk, m.room)",
            )
            rows = [("d1", "r1", 14), ("d2", "r9", 7), ("d5", "r5", None)]
            await harness.until_rows(coordinator, shown, rows)
            await say(
                coordinator,
                "INSERT INTO desks WITH new AS (SELECT desk || 'x' AS desk, n FROM desks) "
                "SELECT desk, 'new', n + 1 FROM new WHERE n > 7",
            )
            await harness.until_rows(coordinator, shown, [*rows, ("d1x", "new", 15)])

    harness.run(scenario)


def test_rows_of_the_past_are_taken(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        async with with_lake(federation) as engine:
            coordinator = await begun(harness, federation)
            climate = next(d for d in coordinator.definitions() if d.name == "climate")
            lake = engine._past._lake
            assert lake is not None
            keep(lake, climate, arrived([(1, ("r1", 19.5)), (5, ("r1", 23.0)), (9, ("r2", 20.0))]))
            text = (
                "MERGE INTO rooms AS k USING (SELECT room, MAX(celsius) AS t, COUNT(*) AS n "
                f"FROM climate FOR SYSTEM_TIME FROM '{NOON_TEXT}' TO NOW GROUP BY room) AS s "
                "ON k.room = s.room WHEN MATCHED THEN UPDATE SET readings = s.n "
                "WHEN NOT MATCHED THEN INSERT VALUES (s.room, s.t, s.n)"
            )
            assert await say(coordinator, text) == "2 rows changed in table rooms"
            shown = await harness.start_query(coordinator, "SELECT * FROM rooms")
            rows: list[Row] = [("r1", 23.0, 2), ("r2", 20.0, 1)]
            await harness.until_rows(coordinator, shown, rows)
            then = datetime.now(UTC).isoformat()
            await say(coordinator, "DELETE FROM rooms WHERE room = 'r1'")
            await harness.until_rows(coordinator, shown, rows[1:])
            # What the table itself had then: a row that went is put back.
            past = f"rooms FOR SYSTEM_TIME AS OF '{then}'"
            await say(coordinator, f"INSERT INTO rooms SELECT * FROM {past} WHERE room = 'r1'")
            await harness.until_rows(coordinator, shown, rows)

    harness.run(scenario)


def test_what_is_refused_changes_nothing(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        async with with_lake(federation):
            coordinator = await begun(harness, federation)
            await say(coordinator, "INSERT INTO desks (desk, room) SELECT desk, room FROM moved")
            shown = await harness.start_query(coordinator, "SELECT desk, room FROM desks")
            before: list[Row] = [("d1", "r1"), ("d2", "r2"), ("d3", None)]
            await harness.until_rows(coordinator, shown, before)
            await coordinator.execute(
                "CREATE TABLE gone (desk TEXT) WITH (source = 'csv', path = 'gone.csv')"
            )
            merge = "MERGE INTO desks AS d USING {} AS s ON d.desk = s.desk WHEN MATCHED THEN "
            cases: tuple[tuple[str, type[FederationError], str, str], ...] = (
                ("INSERT INTO desks SELECT room, room, 1 FROM climate", UnsupportedError,
                 "unsupported_statement", "climate is a stream"),
                (merge.format("climate").replace("s.desk", "s.room") + "DELETE", UnsupportedError,
                 "unsupported_statement", "climate is a stream"),
                ("INSERT INTO desks SELECT query, name, 1 FROM sys_queries", UnsupportedError,
                 "unsupported_statement", "sys_queries is a system table"),
                ("INSERT INTO desks ISTREAM(SELECT room, room, 1 FROM climate)", UnsupportedError,
                 "unsupported_statement", "produces a stream"),
                ("INSERT INTO seats SELECT desk, n FROM desks", UnsupportedError,
                 "unsupported_statement", "not a table that Pando keeps"),
                ("INSERT INTO climate SELECT room, 1.0, NULL FROM moved", UnsupportedError,
                 "local_only", "on a stream"),
                ("INSERT INTO desks SELECT desk, room FROM moved", BindingError,
                 "column_count", "2 columns for 3"),
                ("INSERT INTO desks (desk, n) SELECT desk, room FROM moved", BindingError,
                 "type_mismatch", "column 'n' is INTEGER"),
                ("INSERT INTO desks (desk) SELECT desk FROM nowhere", BindingError,
                 "unknown_relation", "nowhere"),
                ("INSERT INTO desks (desk) SELECT desk FROM moved", BindingError,
                 "duplicate_key", "already has a row"),
                ("INSERT INTO desks (desk) SELECT room FROM moved WHERE desk = 'd3'", BindingError,
                 "duplicate_key", "NULL in the primary key"),
                (merge.format("seats") + "UPDATE SET n = s.n", DeploymentError,
                 "change_failed", "two rows of USING change one row"),
                ("INSERT INTO desks (desk) SELECT desk FROM gone", DeploymentError,
                 "table_missing", "gone.csv"),
            )  # fmt: skip
            for text, kind, code, words in cases:
                with pytest.raises(kind, match=words) as refusal:
                    await coordinator.execute(text)
                assert refusal.value.code == code, text
                assert refusal.value.hint, text
            await harness.until_rows(coordinator, shown, before)
            # A query whose table is gone keeps its rows; a change does not take those.
            query = await harness.start_query(coordinator, "SELECT desk FROM moved")
            await harness.until_rows(coordinator, query, [("d1",), ("d2",), ("d3",)])
            (federation.folder / "moved.csv").unlink()
            with pytest.raises(DeploymentError, match=r"moved\.csv"):
                await coordinator.execute("INSERT INTO desks (desk) SELECT desk || 'y' FROM moved")
            assert len(coordinator.relation(query)) == 3
            await harness.until_rows(coordinator, shown, before)
            # It goes on with others.
            assert await say(coordinator, "DELETE FROM desks") == "3 rows deleted from table desks"

    harness.run(scenario)


def test_whoever_may_not_read_a_table_does_not_copy_it(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        async with with_lake(federation):
            coordinator = await begun(harness, federation)
            token = Principal("ann", Role.OPERATOR, token="t1", sources=("desks",))
            with pytest.raises(BindingError, match="may not read table moved"):
                await coordinator.execute(
                    "INSERT INTO desks (desk) SELECT desk FROM moved", principal=token
                )

    harness.run(scenario)


def test_changes_are_done_in_the_order_in_which_they_come(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        async with with_lake(federation):
            coordinator = await begun(harness, federation)
            texts = ["INSERT INTO desks VALUES ('d0', 'r', 0)"]
            for number in range(1, 6):
                texts += [
                    f"INSERT INTO desks SELECT 'd{number}', MAX(room) || 'r', COUNT(*) FROM desks",
                    "UPDATE desks SET n = n + 10",
                ]
            await asyncio.gather(*map(coordinator.execute, texts))
            shown = await harness.start_query(coordinator, "SELECT desk, room, n FROM desks")
            rows = [(f"d{n}", "r" * (n + 1), n + 10 * min(6 - n, 5)) for n in range(6)]
            await harness.until_rows(coordinator, shown, rows)

    harness.run(scenario)


def test_what_takes_too_long_is_refused_and_others_go_on(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        started = threading.Event()

        def late(found: TableStore, _: object) -> LocalExecutor:
            started.wait()
            return LocalExecutor(found)

        async with with_lake(federation, late):
            coordinator = await begun(harness, federation)
            monkeypatch.setattr(change_requests, "BEGIN_SECONDS", 0.3)
            with pytest.raises(DeploymentError, match="Spark is starting; table desks has not"):
                await coordinator.execute("INSERT INTO desks (desk) SELECT desk FROM moved")
            monkeypatch.setattr(change_requests, "BEGIN_SECONDS", 15.0)
            said = await say(coordinator, "INSERT INTO desks (desk) VALUES ('d1')")
            assert said == "1 row inserted into table desks"
            started.set()
            await harness.until(lambda: of_static(coordinator).state.ready)
            said = await say(coordinator, "INSERT INTO desks (desk) SELECT 'x' || desk FROM moved")
            assert said == "3 rows inserted into table desks"

    harness.run(scenario)


def of_static(coordinator: Any) -> Any:
    return next(site for site in coordinator.sites() if site.site == "static")
