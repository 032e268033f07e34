"""The alarm of stored tables, with a real static engine: raised, kept over restarts, ended."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from federated_optimizer.alarm_life_cycle import AlarmState
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.notices import table_alarm
from static_engine.tables import table_watch
from streamsql.errors import BindingError
from tests.federated_optimizer.coordinator.running_static_engine import begin, static_engine
from tests.static_engine.cutting_proxy import CuttingProxy, cutting_proxy
from tests.static_engine.postgres_server import postgres_server

DESKS = "CREATE TABLE desks (desk INTEGER) WITH (source = 'csv', path = 'desks.csv')"
LEASES = """CREATE TABLE leases (room INTEGER, tenant TEXT)
  WITH (source = 'sql', url = 'sqlite:///leases.db', table = 'leases')"""
COUNT = "SELECT COUNT(*) AS n FROM desks"
RAISED, CLEARED = AlarmState.RAISED, AlarmState.CLEARED
Shown = list[tuple[object, object, object, object, AlarmState]]


def write_desks(folder: Path, count: int) -> None:
    temporary = folder / "desks.new"
    temporary.write_text("desk\n" + "".join(f"{number}\n" for number in range(count)))
    temporary.replace(folder / "desks.csv")


def write_leases(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "leases.db")) as database, database:
        database.execute("CREATE TABLE leases (room INTEGER, tenant TEXT)")
        database.executemany("INSERT INTO leases VALUES (?, ?)", [(1, "a"), (2, "b")])


async def begun(federation: Any, *tables: str) -> Any:
    write_desks(federation.folder, 2_000)
    write_leases(federation.folder)
    return await begin(federation, ";".join(tables), define_schema=False)


def shown(coordinator: Any) -> Shown:
    rows = [row for info in coordinator.alarms() for row in info.rows]
    return [(*row.row[:4], row.state) for row in rows]


def test_a_file_that_loses_most_rows_raises_it_until_it_is_right_or_taken(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        async with static_engine(federation):
            coordinator = await begun(federation, DESKS)
            query = await harness.start_query(coordinator, COUNT)
            await harness.until_rows(coordinator, query, [(2_000,)])
            assert coordinator.alarms() == ()
            write_desks(federation.folder, 150)
            lost = ("desks", "shrunken", 2_000, 150)
            await harness.until(lambda: shown(coordinator) == [(*lost, RAISED)])
            assert coordinator.relation(query) == ((2_000,),)
            (info,) = coordinator.alarms()
            assert "has 150 rows and had 2,000: the old rows stay for" in str(info.rows[0].row[4])
            (listed,) = await coordinator.execute("SHOW ALARMS")
            assert listed.rows[0][:4] == ("sys_table_problems", "warning", "raised", 1)
            number = info.rows[0].id
            # It goes on losing rows: it is the same row still, as somebody may have seen it.
            coordinator.acknowledge(number)
            write_desks(federation.folder, 100)
            detail = "desks has 100 rows"
            await harness.until(lambda: detail in of_static(coordinator).detail)
            assert [row.id for row in coordinator.alarms()[0].rows] == [number]
            # It is right again.
            write_desks(federation.folder, 1_999)
            await harness.until_rows(coordinator, query, [(1_999,)])
            await harness.until(lambda: shown(coordinator) == [(*lost, CLEARED)])
            # It is lost once more, and is so still after the time.
            monkeypatch.setattr(table_watch, "SHRUNKEN_SECONDS", 0.5)
            write_desks(federation.folder, 3)
            again = ("desks", "shrunken", 1_999, 3)
            await harness.until(lambda: (*again, RAISED) in shown(coordinator))
            await harness.until_rows(coordinator, query, [(3,)])
            await harness.until(lambda: (*again, CLEARED) in shown(coordinator))

    harness.run(scenario)


def test_refresh_table_takes_fewer_rows_at_once(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        async with static_engine(federation):
            coordinator = await begun(federation, DESKS, LEASES)
            query = await harness.start_query(coordinator, COUNT)
            await harness.until_rows(coordinator, query, [(2_000,)])
            write_desks(federation.folder, 7)
            lost = ("desks", "shrunken", 2_000, 7)
            await harness.until(lambda: shown(coordinator) == [(*lost, RAISED)])
            await coordinator.execute("REFRESH TABLE leases")
            ann = Principal("ann", Role.ANALYST)
            with pytest.raises(BindingError, match="operator"):
                await coordinator.execute("REFRESH TABLE desks", principal=ann)
            assert shown(coordinator) == [(*lost, RAISED)]
            (done,) = await coordinator.execute("REFRESH TABLE desks")
            assert done.message == "table desks is read again where queries need it"
            await harness.until_rows(coordinator, query, [(7,)])
            await harness.until(lambda: shown(coordinator) == [(*lost, CLEARED)])

    harness.run(scenario)


def of_static(coordinator: Any) -> Any:
    return next(site for site in coordinator.sites() if site.site == "static")


def test_a_database_that_goes_away_raises_it_until_it_is_back(harness: Any) -> None:
    """Over a restart of the coordinator, too."""

    async def scenario(federation: Any) -> None:
        async with static_engine(federation):
            coordinator = await begun(federation, LEASES)
            text = "SELECT room, tenant FROM leases"
            query = await harness.start_query(coordinator, text)
            await harness.until_rows(coordinator, query, [(1, "a"), (2, "b")])
            (federation.folder / "leases.db").rename(federation.folder / "away.db")
            lost = ("leases", "unreadable", 2, None)
            await harness.until(lambda: shown(coordinator) == [(*lost, RAISED)])
            assert sorted(coordinator.relation(query)) == [(1, "a"), (2, "b")]
            (before,) = coordinator.alarms()[0].rows
            alarms = "SELECT alarm, state FROM sys_alarms"
            told = await harness.start_query(coordinator, alarms)
            await harness.until_rows(coordinator, told, [("sys_table_problems", "raised")])
            await coordinator.close()
            coordinator = await federation.coordinator()
            assert shown(coordinator) == [(*lost, RAISED)]
            followed = coordinator._alarms._followed["sys_table_problems"]
            await harness.until(lambda: followed._epoch == 1)  # it has heard what is wrong
            (federation.folder / "away.db").rename(federation.folder / "leases.db")
            await harness.until(lambda: shown(coordinator) == [(*lost, CLEARED)])
            assert coordinator.alarms()[0].rows[0].id == before.id

    harness.run(scenario)


def test_it_stays_raised_while_the_static_engine_is_away_and_is_unknown_when_it_is_back(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        async with static_engine(federation):
            coordinator = await begun(federation, DESKS)
            query = await harness.start_query(coordinator, COUNT)
            await harness.until_rows(coordinator, query, [(2_000,)])
            write_desks(federation.folder, 10)
            lost = ("desks", "shrunken", 2_000, 10)
            await harness.until(lambda: shown(coordinator) == [(*lost, RAISED)])
        await harness.until(lambda: not of_static(coordinator).online)
        assert shown(coordinator) == [(*lost, RAISED)]
        # A new incarnation has no rows of before: it takes what there is.
        async with static_engine(federation, epoch=2):
            await harness.until(lambda: shown(coordinator) == [(*lost, AlarmState.UNKNOWN)])
            monkeypatch.setattr(table_alarm, "DOUBT_MICROSECONDS", 0)
            await harness.until(lambda: shown(coordinator) == [(*lost, CLEARED)])
            await harness.until_rows(coordinator, query, [(10,)])

    harness.run(scenario)


@pytest.mark.postgres
def test_a_server_that_goes_away_raises_it_until_it_answers(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_watch, "_RETRY_SECONDS", 0.2)

    async def scenario(federation: Any, address: str, proxy: CuttingProxy) -> None:
        async with static_engine(federation):
            coordinator = await begun(federation)
            await coordinator.execute(
                "CREATE TABLE leases (room INTEGER, tenant TEXT) WITH (source = 'sql', "
                f"url = '{address}', table = 'leases', refresh = '1 s')"
            )
            query = await harness.start_query(coordinator, "SELECT room, tenant FROM leases")
            await harness.until_rows(coordinator, query, [(1, "a"), (2, "b")])
            proxy.is_away = True
            lost = ("leases", "unreadable", 2, None)
            await harness.until(lambda: shown(coordinator) == [(*lost, RAISED)])
            assert len(coordinator.relation(query)) == 2
            assert "secret" not in str(coordinator.alarms()[0].rows[0].row)
            proxy.is_away = False
            await harness.until(lambda: shown(coordinator) == [(*lost, CLEARED)])

    with postgres_server("alarm") as url:
        with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("CREATE TABLE leases (room INTEGER, tenant TEXT)")
            connection.execute("INSERT INTO leases VALUES (1, 'a'), (2, 'b')")
        port = sa.make_url(url).port
        assert port is not None
        with cutting_proxy(port) as proxy:
            address = url.replace(str(port), str(proxy.own_port))
            harness.run(lambda federation: scenario(federation, address, proxy))


def test_only_rows_of_tables_that_may_be_read_are_shown(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        async with static_engine(federation):
            coordinator = await begun(federation, DESKS, LEASES)
            await coordinator.execute("GRANT SELECT ON TABLE desks TO ROLE analyst")
            for name in ("desks.csv", "leases.db"):
                (federation.folder / name).unlink()
            await harness.until(lambda: len(shown(coordinator)) == 2)
            ann = coordinator.on_behalf(Principal("ann", Role.ANALYST))
            assert [row[0] for row in shown(ann)] == ["desks"]
            assert ann.alarms()[0].raised == 1
            for who, hidden_ in ((coordinator, False), (ann, True)):
                said = "".join(s.state.detail for s in who.sites() if s.state is not None)
                assert ("leases" not in said) is hidden_
            assert ann.acknowledge_all("sys_table_problems") == 1
            hidden = [row for row in coordinator.alarms()[0].rows if row.row[0] == "leases"]
            assert [row.state for row in hidden] == [RAISED]
            with pytest.raises(KeyError):
                ann.acknowledge(hidden[0].id)

    harness.run(scenario)


def test_nobody_else_makes_an_alarm_of_its_name(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        text = "CREATE ALARM sys_table_problems AS SELECT rid FROM RoomSensor SEVERITY 'info'"
        with pytest.raises(BindingError, match="alarm of the system"):
            await coordinator.execute(text)

    harness.run(scenario)
