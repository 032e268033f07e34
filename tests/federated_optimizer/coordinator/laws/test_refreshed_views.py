"""CREATE MATERIALIZED VIEW … REFRESH AT in a federation with a real static engine."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from static_engine.tables import table_store
from streamsql.errors import BindingError, DeploymentError, UnsupportedError
from tests.federated_optimizer.coordinator.running_static_engine import begin, static_engine
from tests.static_engine.polls import polls

DAY = 86_400_000_000
NOON = 20_000 * DAY + DAY // 2
TABLE = """
CREATE TABLE desks (desk TEXT PRIMARY KEY, room TEXT) WITH (source = 'csv', path = 'desks.csv');
"""
VIEW = """
CREATE MATERIALIZED VIEW per_room (room, desks) REFRESH AT ('14:00', '24:00') COST WEIGHTS (0.5, 1)
AS SELECT room, COUNT(*) FROM desks GROUP BY room;
"""


class Clock:
    """The time by which views are refreshed."""

    now = NOON

    def __call__(self) -> int:
        return self.now


def write(folder: Path, *rows: str) -> None:
    temporary = folder / "desks.new"
    temporary.write_text("\n".join(("desk,room", *rows, "")))
    temporary.replace(folder / "desks.csv")


async def begun(federation: Any) -> Any:
    write(federation.folder, "d1,r1", "d2,r1", "d3,r2")
    return await begin(federation)


async def shown(coordinator: Any, name: str) -> str:
    (result,) = await coordinator.execute("SHOW VIEWS")
    return str(next(row[3] for row in result.rows if row[0] == name))


def test_joins_with_streams_see_a_refresh_as_one_change(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        clock = Clock()
        coordinator = await begun(federation)
        async with static_engine(federation, clock=clock) as engine:
            await harness.until(lambda: sum(s.online for s in coordinator.sites()) == 3)
            await coordinator.execute(TABLE + VIEW)
            gateway = federation.sites["gw-1"]
            gateway.put("roomsensor", ("r1", "open"), ("r2", "open"))
            query = await harness.start_query(
                coordinator,
                "SELECT s.rid, v.desks FROM RoomSensor s JOIN per_room v ON v.room = s.rid",
            )
            await harness.until_rows(coordinator, query, [("r1", 2), ("r2", 1)])
            write(federation.folder, "d1,r1", "d4,r2", "d5,r2")
            await polls(engine, 5)
            assert sorted(coordinator.relation(query)) == [("r1", 2), ("r2", 1)]
            clock.now += DAY // 12
            await harness.until_rows(coordinator, query, [("r1", 1), ("r2", 2)])
            write(federation.folder, "d1,r1")
            (done,) = await coordinator.execute("REFRESH MATERIALIZED VIEW per_room")
            assert "is being refreshed" in done.message
            await harness.until_rows(coordinator, query, [("r1", 1)])

    harness.run(scenario)


def test_a_table_is_read_again_when_that_is_asked(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing tells that a database has changed: with `refresh` a day away, it must be asked."""

    async def scenario(federation: Any) -> None:
        with contextlib.closing(sqlite3.connect(federation.folder / "d.db")) as database:
            database.execute("CREATE TABLE desks (desk TEXT, room TEXT)")
            database.execute("INSERT INTO desks VALUES ('d1', 'r1')")
            database.commit()
            coordinator = await begun(federation)
            monkeypatch.setattr(table_store, "fingerprint", lambda *_: None)  # as of a server
            async with static_engine(federation, clock=Clock()):
                await harness.until(lambda: sum(s.online for s in coordinator.sites()) == 3)
                await coordinator.execute(
                    "CREATE TABLE served (desk TEXT, room TEXT) WITH (source = 'sql', "
                    "url = 'sqlite:///d.db', table = 'desks', refresh = '1 day')"
                )
                query = await harness.start_query(coordinator, "SELECT desk FROM served")
                await harness.until_rows(coordinator, query, [("d1",)])
                database.execute("INSERT INTO desks VALUES ('d2', 'r1')")
                database.commit()
                (said,) = await coordinator.execute("REFRESH TABLE served")
                assert "read again" in said.message
                await harness.until_rows(coordinator, query, [("d1",), ("d2",)])
                await coordinator.execute(TABLE + VIEW)
                for name, code in (
                    ("nothing", "unknown_relation"),
                    ("per_room", "not_refreshable"),
                    ("roomsensor", "not_refreshable"),
                    ("sys_audit", "not_refreshable"),
                ):
                    with pytest.raises(BindingError) as refused:
                        await coordinator.execute(f"REFRESH TABLE {name}")
                    assert refused.value.code == code

    harness.run(scenario)


def test_lists_tell_times_rows_and_failures(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        clock = Clock()
        coordinator = await begun(federation)
        await coordinator.execute(TABLE + VIEW)
        assert "the static engine has not reported it" in await shown(coordinator, "per_room")
        with pytest.raises(DeploymentError, match="not online"):
            await coordinator.execute("REFRESH MATERIALIZED VIEW per_room")
        async with static_engine(federation, clock=clock):
            await harness.until(
                lambda: any(
                    s.state is not None and s.state.views and s.state.views[0].rows == 2
                    for s in coordinator.sites()
                )
            )
            text = await shown(coordinator, "per_room")
            assert "refreshed at 14:00 (weight 0.5), 24:00 (weight 1), time zone UTC" in text
            assert "last refresh 2024-10-04T12:00:00Z: 2 rows in" in text
            assert "next refresh 2024-10-04T14:00:00Z" in text
            (described,) = await coordinator.execute("DESCRIBE per_room")
            assert described.rows[:2] == (("room", "TEXT", ""), ("desks", "INTEGER", ""))
            assert any("next refresh" in row[2] for row in described.rows)
            (tables,) = await coordinator.execute("SHOW TABLES")
            assert "per_room" not in {row[0] for row in tables.rows}
            (federation.folder / "desks.csv").unlink()
            await coordinator.execute("REFRESH MATERIALIZED VIEW per_room")
            await harness.until(
                lambda: any(
                    s.state is not None and s.state.views and s.state.views[0].problem
                    for s in coordinator.sites()
                )
            )
            text = await shown(coordinator, "per_room")
            assert "2 rows" in text
            assert "failed 2024-10-04T12:00:00Z" in text
            assert "is missing" in text

    harness.run(scenario)


def test_rows_survive_both_processes(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        clock = Clock()
        coordinator = await begun(federation)
        text = "SELECT room, desks FROM per_room"
        async with static_engine(federation, clock=clock):
            await harness.until(lambda: sum(s.online for s in coordinator.sites()) == 3)
            await coordinator.execute(TABLE + VIEW)
            query = await harness.start_query(coordinator, text)
            await harness.until_rows(coordinator, query, [("r1", 2), ("r2", 1)])
        write(federation.folder, "d1,r1")
        await coordinator.close()
        federation.coordinators.remove(coordinator)
        again = await federation.coordinator()
        async with static_engine(federation, clock=clock, epoch=2):
            await harness.until_rows(again, query, [("r1", 2), ("r2", 1)])
            clock.now += DAY
        async with static_engine(federation, clock=clock, epoch=3):  # two times were missed
            await harness.until_rows(again, query, [("r1", 1)])

    harness.run(scenario)


def test_what_is_in_use_stays_and_what_is_refused(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(federation)
        await coordinator.execute(TABLE + VIEW)
        with pytest.raises(BindingError, match="used by view per_room"):
            await coordinator.execute("DROP TABLE desks")
        for text, code in (
            ("SELECT rid FROM RoomSensor", "not_refreshable"),
            ("SELECT query FROM sys_queries", "not_refreshable"),
        ):
            with pytest.raises(UnsupportedError) as refusal:
                await coordinator.execute(
                    f"CREATE MATERIALIZED VIEW w REFRESH AT ('14:00') AS {text}"
                )
            assert refusal.value.code == code
            assert refusal.value.hint
        with pytest.raises(BindingError) as other:
            await coordinator.execute("REFRESH MATERIALIZED VIEW desks")
        assert other.value.code == "not_refreshable"
        (explained,) = await coordinator.execute(
            "EXPLAIN CREATE MATERIALIZED VIEW w REFRESH AT ('14:00') AS SELECT desk FROM desks"
        )
        assert any(
            "a refresh recomputes the whole view; COST WEIGHTS are stored" in warning
            for warning in explained.warnings
        )
        await coordinator.execute("DROP VIEW per_room; DROP TABLE desks")

    harness.run(scenario)


def test_a_zone_that_does_not_exist_is_refused_at_the_start() -> None:
    with pytest.raises(DeploymentError, match="no time zone 'Mars/Olympus'"):
        CoordinatorSettings(time_zone="Mars/Olympus")
