"""New rows of a table come once each, over polls, ties, restarts and a database that is away."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy

from gateway.connectors.sql.database import PAGE
from gateway.connectors.sql.sql_connector import SqlConnector
from streamsql.errors import DeploymentError
from tests.gateway.connectors.serving import Served, in_loop, serving, until
from tests.static_engine.postgres_server import postgres_server

METER = """
CREATE SOURCE meter (
  meter TEXT,
  kwh   DOUBLE FROM 'counter' IN 'Wh' UNIT 'kWh',
  ts    TIMESTAMP FROM 'read_at' ZONE 'Europe/Berlin',
  KEY (meter)
) WITH (connector = 'sql', endpoint = 'home', table = 'readings',
        watermark = 'id', interval = '0.1 s')
"""
CREATE = "CREATE TABLE readings (id INTEGER, meter VARCHAR(20), counter NUMERIC, read_at TIMESTAMP)"


class Base:
    """A database with a table of readings, as another program writes it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine = sqlalchemy.create_engine(url)

    def do(self, *statements: str) -> None:
        with self._engine.begin() as connection:
            for statement in statements:
                connection.execute(sqlalchemy.text(statement))

    def add(self, *rows: tuple[int, str, int]) -> None:
        self.do(
            *(
                f"INSERT INTO readings VALUES ({mark}, '{meter}', {value}, '2026-06-01 12:00:00')"
                for mark, meter, value in rows
            )
        )

    def close(self) -> None:
        self._engine.dispose()


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with postgres_server("sql-connector") as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Base]:
    url = f"sqlite:///{tmp_path}/plant.db"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres")
    found = Base(url)
    found.do("DROP TABLE IF EXISTS readings", CREATE)
    yield found
    found.close()


def meters(served: Served) -> list[object]:
    return [row[0] for row in served.rows]


def test_rows_come_once_in_order_and_typed(base: Base) -> None:
    @in_loop
    async def scenario() -> None:
        base.add((1, "a", 1500), (2, "b", 250))
        async with serving(SqlConnector(), {"url": base.url}, METER) as served:
            await served.until_rows(2)
            base.add((3, "c", 3))
            await served.until_rows(3)
            base.do("UPDATE readings SET counter = 7 WHERE id = 1")  # long read
            base.add((4, "d", 0))
            await served.until_rows(4)
        assert served.problems == []
        at = 1_780_308_000_000_000
        assert served.rows == [("a", 1.5, at), ("b", 0.25, at), ("c", 0.003, at), ("d", 0.0, at)]
        # What is remembered goes before the rows that it knows of.
        assert served.steps[:3] == ["remember", "emit", "kept"]

    scenario()


def test_rows_with_equal_watermarks_come_once_whenever_they_are_written(base: Base) -> None:
    @in_loop
    async def scenario() -> None:
        base.add((5, "a", 1), (5, "b", 1))
        async with serving(SqlConnector(), {"url": base.url}, METER) as served:
            await served.until_rows(2)
            base.add((5, "c", 1), (5, "a", 1))  # as late as that, and a row like one before
            await served.until_rows(4)
            base.add((6, "d", 1))
            await served.until_rows(5)
        assert sorted(map(str, meters(served))) == ["a", "a", "b", "c", "d"]
        assert meters(served)[-1] == "d"

    scenario()


def test_a_long_table_comes_in_pages_each_kept_before_the_next(base: Base) -> None:
    number = 2 * PAGE + 500

    @in_loop
    async def scenario() -> None:
        base.add(*((mark // 3, f"m{mark}", 1) for mark in range(number)))
        async with serving(SqlConnector(), {"url": base.url}, METER) as served:
            await served.until_rows(number)
        assert sorted(map(str, meters(served))) == sorted(f"m{mark}" for mark in range(number))
        assert served.steps[:6] == ["remember", "emit", "kept"] * 2

    scenario()


def test_it_goes_on_where_an_earlier_life_has_kept(base: Base) -> None:
    @in_loop
    async def scenario() -> None:
        base.add((5, "a", 1), (5, "b", 1))
        async with serving(SqlConnector(), {"url": base.url}, METER) as first:
            await first.until_rows(2)
        base.add((5, "c", 1), (6, "d", 1))
        second = Served(memory=first.memories[-1])
        async with serving(SqlConnector(), {"url": base.url}, METER, served=second):
            await second.until_rows(2)
        assert meters(second) == ["c", "d"]
        other = METER.replace("table = 'readings'", "query = 'SELECT * FROM readings;'")
        third = Served(memory=first.memories[-1])
        async with serving(SqlConnector(), {"url": base.url}, other, served=third):
            await third.until_rows(4)
        assert len(third.rows) == 4, "what is known of a table says nothing of a query"

    scenario()


def test_a_query_may_compute_and_begin_with_new_rows(base: Base) -> None:
    query = (
        "SELECT id, UPPER(meter) AS meter, counter * 2 AS counter, read_at "
        "FROM readings WHERE meter <> ''skip''"
    )
    text = METER.replace("table = 'readings'", f"query = '{query}', start = 'new'")

    @in_loop
    async def scenario() -> None:
        base.add((1, "a", 1), (2, "b", 1))
        async with serving(SqlConnector(), {"url": base.url}, text) as served:
            for number in range(3, 1_000):
                base.add((number, "skip", 1), (number, "new", 500))
                await asyncio.sleep(0.02)
                if served.readings:
                    break
        assert served.rows[0][:2] == ("NEW", 1.0)

    scenario()


@pytest.mark.parametrize("rows", [[], [(1, "a", 1), (2, "b", 1)]])
def test_new_rows_are_those_after_the_first_start_also_when_none_came_before_the_next(
    base: Base, rows: list[tuple[int, str, int]]
) -> None:
    text = METER.replace("watermark", "start = 'new', watermark")

    @in_loop
    async def scenario() -> None:
        base.add(*rows)
        async with serving(SqlConnector(), {"url": base.url}, text) as first:
            await until(lambda: first.memories != [])
        assert first.readings == []
        base.add((7, "c", 1))  # while nobody reads
        second = Served(memory=first.memories[-1])
        async with serving(SqlConnector(), {"url": base.url}, text, served=second):
            await second.until_rows(1)
        assert meters(second) == ["c"]

    scenario()


def test_colons_and_percent_signs_are_the_querys_own(base: Base) -> None:
    cast = "id::integer" if base.url.startswith("postgresql") else "id"
    query = (
        f"SELECT {cast} AS id, ''at :noon, 100 %'' AS meter, counter, read_at FROM readings "
        "WHERE ''10:30'' <> '':x'' AND meter LIKE ''%a''"
    )
    text = METER.replace("table = 'readings'", f"query = '{query}'")

    @in_loop
    async def scenario() -> None:
        base.add((1, "a", 1000), (2, "b", 1))
        async with serving(SqlConnector(), {"url": base.url}, text) as served:
            rows = await served.until_rows(1)
        assert [row[:2] for row in rows] == [("at :noon, 100 %", 1.0)]
        assert served.problems == []

    scenario()


@pytest.mark.postgres
def test_no_transaction_is_open_between_polls(postgres: str) -> None:
    base = Base(postgres)
    base.do("DROP TABLE IF EXISTS readings", CREATE)

    @in_loop
    async def scenario() -> None:
        base.add((1, "a", 1))
        text = METER.replace("0.1 s", "60 s")
        async with serving(SqlConnector(), {"url": base.url}, text) as served:
            await served.until_rows(1)
            await until(lambda: "kept" in served.steps)
            # An open transaction on the table would keep this waiting.
            base.do("SET lock_timeout = '5s'", "ALTER TABLE readings ADD COLUMN more INTEGER")

    scenario()
    base.close()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("'readings'", "'nowhere'", "nowhere"),
        ("'readings'", "'readings; DROP TABLE readings'", "readings"),
        ("FROM 'counter'", "FROM 'odd'", "odd"),
        ("= 'id'", "= 'odd'", "odd"),
        ("table = 'readings'", "query = 'DELETE FROM readings RETURNING *'", ""),
    ],
)
def test_a_wrong_query_is_its_sources_problem_and_changes_nothing(
    base: Base, old: str, new: str, said: str
) -> None:
    good = METER.replace("SOURCE meter", "SOURCE good")

    @in_loop
    async def scenario() -> None:
        base.add((1, "a", 1))
        both = f"{METER.replace(old, new)};{good}"
        async with serving(SqlConnector(), {"url": base.url}, both) as served:
            await until(lambda: bool(served.problems))
            await served.until_rows(1)
            base.add((2, "b", 1))
            await served.until_rows(2)
        assert said in served.problems[0]
        assert {reading.source for reading in served.readings} == {"good"}

    scenario()


def test_odd_values_are_said_and_the_rows_after_them_come(base: Base) -> None:
    @in_loop
    async def scenario() -> None:
        base.do(
            "INSERT INTO readings VALUES (1, NULL, 1, NULL)",
            f"INSERT INTO readings VALUES (2, 'a', 1{'0' * 400}, NULL)"
            if base.url.startswith("postgresql")
            else "INSERT INTO readings VALUES (2, 'a', 'much', 'at noon')",
            "INSERT INTO readings VALUES (NULL, 'lost', 1, NULL)",
            "INSERT INTO readings VALUES (3, 'b', 1, NULL)",
        )
        async with serving(SqlConnector(), {"url": base.url}, METER) as served:
            await served.until_rows(2)
        assert [row[:2] for row in served.rows] == [("a", None), ("b", 0.001)]
        assert any("the key column meter has no value" in text for text in served.problems)
        assert any("column kwh" in text for text in served.problems)

    scenario()


def test_a_slow_query_ends_in_time_and_so_does_the_connector(base: Base) -> None:
    slow = (
        "SELECT 1 AS id, ''x'' AS meter, COUNT(*) AS counter, NULL AS read_at FROM ("
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) "
        "SELECT i FROM n) AS many"
    )
    text = METER.replace("table = 'readings'", f"query = '{slow}'")

    @in_loop
    async def scenario() -> None:
        endpoint = {"url": base.url, "timeout": 1}
        async with serving(SqlConnector(), endpoint, text) as served:
            await until(lambda: bool(served.problems))
        assert "longer than 1 s" in served.problems[0] or "timeout" in served.problems[0]
        async with serving(SqlConnector(), {"url": base.url}, text):
            await asyncio.sleep(0.3)  # time passes: the query runs; it is ended in a second

    scenario()


@in_loop
async def test_too_many_rows_with_one_watermark_are_said(tmp_path: Path) -> None:
    base = Base(f"sqlite:///{tmp_path}/plant.db")
    base.do(CREATE)
    base.add(*((1, f"m{number}", 1) for number in range(1_001)))
    async with serving(SqlConnector(), {"url": base.url}, METER) as served:
        await served.until_problem("more than 1,000 rows have the watermark 1")
    assert len(served.rows) == 1_000
    base.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:////nowhere/plant.db", "there is no file"),
        ("postgresql+psycopg://me:hidden@127.0.0.1:1/db", "no connection"),
    ],
)
@in_loop
async def test_a_database_that_is_away_ends_the_connector(url: str, said: str) -> None:
    async with serving(SqlConnector(), {"url": url}, METER) as served:
        task = served.task
        assert task is not None
        await until(task.done)
    error = task.exception()
    assert isinstance(error, ConnectionError)
    assert said in str(error)
    assert "hidden" not in str(error)


@pytest.mark.parametrize(
    ("url", "said"),
    [("oracle://h/db", "driver"), ("odd://h/db", "url: "), ("sqlite://x:y:z", "url: ")],
)
@in_loop
async def test_a_wrong_address_is_said(url: str, said: str) -> None:
    with pytest.raises(DeploymentError, match=said):
        async with serving(SqlConnector(), {"url": url}, METER) as served:
            await until(lambda: served.task is not None and served.task.done())


@in_loop
async def test_a_database_is_only_read(tmp_path: Path) -> None:
    path = tmp_path / "plant.db"
    with sqlite3.connect(path) as connection:
        connection.execute(CREATE)
    connection.close()
    before = path.read_bytes()
    async with serving(SqlConnector(), {"url": f"sqlite:///{path}"}, METER) as served:
        with pytest.raises(TimeoutError):
            await until(lambda: bool(served.readings), 0.5)
    assert path.read_bytes() == before
