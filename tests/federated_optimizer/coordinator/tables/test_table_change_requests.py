"""Changes of a stored table in a federation with a real static engine."""

import asyncio
import contextlib
import inspect
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from federated_optimizer.coordinator.tables import table_change_requests as table_changes
from static_engine.changing.change_requests import ChangeRequests
from static_engine.changing.change_table import change_table
from static_engine.lake.lake_settings import LakeSettings
from static_engine.lake.managed_tables import ManagedTables
from static_engine.sources.table_locations import Locations
from static_engine.sources.table_reader import read_table
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row
from streamsql.errors import BindingError, DeploymentError, FederationError, UnsupportedError
from streamsql.syntax import CreateSource, parse_statement
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.stored_tables.table_changes import TableChange, TableChanged
from tests.federated_optimizer.coordinator.running_static_engine import (
    SELDOM,
    begin,
    static_engine,
)

TABLE = "CREATE TABLE desks (desk TEXT PRIMARY KEY, room TEXT, n INTEGER)"
FIRST: tuple[Row, ...] = (("d1", "r1", 1), ("d2", "r1", 2), ("d3", "r2", None))


def desks() -> SourceDefinition:
    statement = parse_statement(TABLE)
    assert isinstance(statement, CreateSource)
    definition = define(statement, Catalog())
    assert isinstance(definition, SourceDefinition)
    return definition


def lake(folder: Path) -> ManagedTables:
    return ManagedTables(LakeSettings(f"sqlite:///{folder / 'lake.db'}", str(folder / "lake")))


def kept(federation: Any) -> list[Row]:
    """Return the rows of the managed table, as another process reads them."""
    found: list[Row] = []
    for batch in read_table(desks(), Locations(federation.folder, managed=lake(federation.folder))):
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return sorted(found, key=str)


@contextlib.asynccontextmanager
async def with_desks(federation: Any, epoch: int = 1) -> AsyncIterator[None]:
    managed = lake(federation.folder)
    if not kept(federation):
        locations = Locations(federation.folder, managed=managed)
        change_table(TableChange("first", 0, desks(), FIRST), locations)
    async with static_engine(federation, epoch=epoch, poll_seconds=SELDOM, managed=managed):
        yield


def ask(database: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def count(folder: Path) -> int:
    with contextlib.closing(sqlite3.connect(folder / "desks.db")) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM desks").fetchone()[0])


async def begun(federation: Any, options: str = "") -> Any:
    return await begin(federation, f"{TABLE} WITH ({options})" if options else TABLE)


async def is_there(harness: Any, coordinator: Any) -> None:
    await harness.until(lambda: sum(site.online for site in coordinator.sites()) == 3)


def test_who_changes_a_table_is_always_named() -> None:
    given = inspect.signature(table_changes.TableChanges.run).parameters["principal"]
    assert given.default is inspect.Parameter.empty


def test_running_queries_see_a_change_at_once(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        async with with_desks(federation):
            await is_there(harness, coordinator)
            federation.sites["gw-1"].put("roomsensor", ("r1", "open"), ("r2", "open"))
            query = await harness.start_query(
                coordinator,
                "SELECT s.rid, d.desk FROM RoomSensor s JOIN desks d ON d.room = s.rid",
            )
            first = [("r1", "d1"), ("r1", "d2"), ("r2", "d3")]
            await harness.until_rows(coordinator, query, first)
            (done,) = await coordinator.execute(
                "INSERT INTO desks (desk, room) VALUES ('d4', 'r2'), ('d5', 'r' || '2')"
            )
            assert done.message == "2 rows inserted into table desks"
            await harness.until_rows(coordinator, query, [*first, ("r2", "d4"), ("r2", "d5")])
            (done,) = await coordinator.execute("DELETE FROM desks WHERE n = 1")
            assert done.message == "1 row deleted from table desks"
            await harness.until_rows(coordinator, query, [*first[1:], ("r2", "d4"), ("r2", "d5")])
            (done,) = await coordinator.execute("DELETE FROM desks WHERE n = 1")
            assert done.message == "0 rows deleted from table desks"
            assert kept(federation) == [
                ("d2", "r1", 2), ("d3", "r2", None), ("d4", "r2", None), ("d5", "r2", None)
            ]  # fmt: skip

    harness.run(scenario)


KINDS = {
    "lake": "",
    "sqlite": "source = 'sql', url = 'sqlite:///desks.db', table = 'desks'",
}


def store(folder: Path) -> None:
    ask(
        folder / "desks.db",
        "CREATE TABLE desks (desk TEXT, room TEXT DEFAULT 'r2', n INTEGER)",
        "INSERT INTO desks VALUES ('d1', 'r1', 1), ('d2', 'r1', 2), ('d3', 'r2', NULL)",
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_every_kind_is_changed_and_read_at_once(harness: Any, kind: str) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation, KINDS[kind])
        async with with_desks(federation):
            store(federation.folder)
            await is_there(harness, coordinator)
            federation.sites["gw-1"].put("roomsensor", ("r1", "open"), ("r2", "open"))
            query = await harness.start_query(
                coordinator,
                "SELECT s.rid, d.desk FROM RoomSensor s JOIN desks d ON d.room = s.rid",
            )
            first = [("r1", "d1"), ("r1", "d2"), ("r2", "d3")]
            await harness.until_rows(coordinator, query, first)
            (done,) = await coordinator.execute(
                "INSERT INTO desks (desk, room) VALUES ('d4', 'r2'), ('d5', 'r1')"
            )
            assert done.message == "2 rows inserted into table desks"
            await harness.until_rows(coordinator, query, [*first, ("r2", "d4"), ("r1", "d5")])
            (done,) = await coordinator.execute("DELETE FROM desks WHERE n = 1")
            assert done.message == "1 row deleted from table desks"
            rest = [("r1", "d2"), ("r2", "d3"), ("r2", "d4"), ("r1", "d5")]
            await harness.until_rows(coordinator, query, rest)
            (done,) = await coordinator.execute("UPDATE desks SET room = 'r2' WHERE desk = 'd2'")
            assert done.message == "1 row updated in table desks"
            rest[0] = ("r2", "d2")
            await harness.until_rows(coordinator, query, rest)
            if kind == "sqlite":
                await coordinator.execute("INSERT INTO desks (desk) VALUES ('d6')")
                await harness.until_rows(coordinator, query, [*rest, ("r2", "d6")])

    harness.run(scenario)


def test_what_a_trigger_changes_elsewhere_is_read_at_once(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation, KINDS["sqlite"])
        async with with_desks(federation):
            store(federation.folder)
            ask(
                federation.folder / "desks.db",
                "CREATE TABLE seats (desk TEXT)",
                "CREATE TRIGGER t AFTER INSERT ON desks BEGIN "
                "INSERT INTO seats VALUES (NEW.desk); END",
            )
            await coordinator.execute(
                "CREATE TABLE seats (desk TEXT) "
                "WITH (source = 'sql', url = 'sqlite:///desks.db', table = 'seats')"
            )
            await is_there(harness, coordinator)
            query = await harness.start_query(coordinator, "SELECT desk FROM seats")
            await harness.until_rows(coordinator, query, [])
            await coordinator.execute("INSERT INTO desks (desk) VALUES ('d4')")
            await harness.until_rows(coordinator, query, [("d4",)])

    harness.run(scenario)


def test_changes_that_come_together_are_all_done(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        async with with_desks(federation):
            await is_there(harness, coordinator)
            texts = [f"INSERT INTO desks VALUES ('e{n}', 'r1', {n})" for n in range(10)]
            await asyncio.gather(*map(coordinator.execute, texts))
        assert kept(federation)[3:] == [(f"e{n}", "r1", n) for n in range(10)]

    harness.run(scenario)


def test_what_is_refused_leaves_the_file(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        with pytest.raises(DeploymentError, match="not online"):
            await coordinator.execute("INSERT INTO desks VALUES ('d4', 'r1', 1)")
        async with with_desks(federation):
            await is_there(harness, coordinator)
            ask(
                federation.folder / "s.db",
                "CREATE TABLE s (a TEXT CHECK (length(a) < 3))",
                "CREATE VIEW w AS SELECT a FROM s",
            )
            (federation.folder / "j.json").write_text('[{"a": "b"}]')
            await coordinator.execute(
                "CREATE TABLE p (a TEXT) WITH (source = 'parquet', path = 'p.parquet');"
                "CREATE TABLE j (a TEXT) WITH (source = 'json', path = 'j.json');"
                "CREATE TABLE s (a TEXT) WITH (source = 'sql', url = 'sqlite:///s.db', table='s');"
                "CREATE TABLE w (a TEXT) WITH (source = 'sql', url = 'sqlite:///s.db', table='w');"
                "CREATE TABLE f (a TEXT) WITH (source = 'csv', path = '.');"
                "CREATE TABLE m (a TEXT) WITH (source = 'csv', path = 'missing.csv');"
                "CREATE MATERIALIZED VIEW v REFRESH AT ('14:00') AS SELECT desk FROM desks"
            )
            cases: tuple[tuple[str, type[FederationError], str], ...] = (
                ("INSERT INTO RoomSensor VALUES ('r1', 'x')", UnsupportedError, "local_only"),
                ("DELETE FROM RoomSensor", UnsupportedError, "local_only"),
                ("INSERT INTO p VALUES ('a')", UnsupportedError, "not_writable"),
                ("DELETE FROM j", UnsupportedError, "not_writable"),
                ("INSERT INTO s VALUES ('a'), ('too long')", BindingError, "constraint_violated"),
                ("DELETE FROM w", UnsupportedError, "not_writable"),
                ("INSERT INTO f VALUES ('a')", UnsupportedError, "not_writable"),
                ("INSERT INTO m VALUES ('a')", UnsupportedError, "not_writable"),
                ("DELETE FROM v", BindingError, "not_a_source"),
                ("DELETE FROM sys_queries", BindingError, "not_a_source"),
                ("INSERT INTO desks VALUES ('d1', 'r1', 1)", BindingError, "duplicate_key"),
                ("INSERT INTO desks VALUES ('d9', 'r1', 'x')", BindingError, "bad_literal"),
                ("INSERT INTO desks VALUES (DEFAULT, 'r1', 1)", BindingError, "not_constant"),
                (
                    "INSERT INTO desks VALUES ((SELECT MAX(desk) FROM s), 'r1', 1)",
                    BindingError,
                    "not_constant",
                ),
                (
                    "INSERT INTO s SELECT desk FROM desks",
                    UnsupportedError,
                    "unsupported_statement",
                ),
                (
                    "DELETE FROM desks WHERE desk IN (SELECT a FROM s)",
                    UnsupportedError,
                    "unsupported_subquery",
                ),
                (
                    "DELETE FROM desks WHERE EXISTS (SELECT 1 FROM s WHERE a = desk)",
                    UnsupportedError,
                    "unsupported_subquery",
                ),
            )
            for text, kind, code in cases:
                with pytest.raises(kind) as refusal:
                    await coordinator.execute(text)
                assert refusal.value.code == code, text
                assert refusal.value.hint, text
            assert kept(federation) == list(FIRST)

    harness.run(scenario)


def test_without_an_answer_it_says_that_nobody_knows(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_changes, "SECONDS", 0.1)

    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        await federation.site("static", "static", sources=())  # reads no commands of that kind
        await is_there(harness, coordinator)
        with pytest.raises(DeploymentError, match="it is unknown") as refusal:
            await coordinator.execute("DELETE FROM desks")
        assert refusal.value.code == "no_answer"
        assert len(coordinator.definitions()) > 0

    harness.run(scenario)


def test_an_engine_that_goes_away_before_it_answers_is_not_waited_for(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        await federation.site("static", "static", sources=())
        await is_there(harness, coordinator)
        asked = asyncio.create_task(coordinator.execute("DELETE FROM desks"))
        await asyncio.sleep(0)
        federation.broker.cut("static")
        with pytest.raises(
            DeploymentError, match="the static engine stopped before it answered; it is unknown"
        ) as refusal:
            await asked
        assert refusal.value.code == "no_answer"

    harness.run(scenario)


def test_an_engine_that_is_killed_between_commit_and_answer_has_done_it_once(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation, KINDS["sqlite"])
        requests: list[bytes] = []
        peer = federation.broker.client("peer")
        peer.on_messages(lambda burst: requests.extend(message.payload for message in burst))
        await peer.connect()
        await peer.subscribe(federation.topics.command("static", "change"))
        with monkeypatch.context() as patch:
            patch.setattr(ChangeRequests, "_answer", lambda *_: federation.broker.cut("static"))
            async with with_desks(federation):
                store(federation.folder)
                await is_there(harness, coordinator)
                asked = asyncio.create_task(
                    coordinator.execute("INSERT INTO desks VALUES ('d4', 'r2', 4)")
                )
                await harness.until(lambda: count(federation.folder) == 3)
        async with with_desks(federation, epoch=2):
            with pytest.raises(DeploymentError, match="it is unknown") as refusal:
                await asked
            assert refusal.value.code == "no_answer"
            await is_there(harness, coordinator)
            peer.publish(federation.topics.command("static", "change"), requests[0])
            await coordinator.execute("DELETE FROM desks WHERE desk = 'd1'")
            assert count(federation.folder) == 2
        await peer.close()

    harness.run(scenario)


def test_a_request_that_comes_twice_is_done_once_and_an_old_one_not_at_all(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        topics = federation.topics
        answers: list[TableChanged] = []
        peer = federation.broker.client("peer")
        peer.on_messages(
            lambda burst: answers.extend(decode_packed(m.payload, TableChanged) for m in burst)
        )
        await peer.connect()
        await peer.subscribe(topics.response("static"))
        definition = next(d for d in coordinator.definitions() if d.name == "desks")
        async with with_desks(federation, epoch=7):
            await is_there(harness, coordinator)
            rows = (("d4", "r1", 1),)
            change = TableChange("one", 7, definition, rows)
            for sent in (TableChange("old", 6, definition, rows), change, change):
                peer.publish(topics.command("static", "change"), encode_packed(sent))
            await harness.until(lambda: len(answers) >= 1)
            peer.publish(topics.command("static", "change"), encode_packed(change))
            await harness.until(lambda: len(answers) >= 2)
        assert set(answers) == {TableChanged("one", 1)}
        assert kept(federation) == [*FIRST, ("d4", "r1", 1)]
        await peer.close()

    harness.run(scenario)
