"""Questions of the past: random readings answer as in PostgreSQL, which has them as a table."""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from static_engine.history.past_readings import PastReadings
from streamsql.data.events import SourceEvent
from tests.static_engine.history.test_past_readings import (
    DAY,
    NOON,
    defined,
    executor,
    plan_of,
)
from tests.static_engine.lake.lake_rows import keep, lake_in
from tests.static_engine.postgres_server import postgres_server

pytestmark = pytest.mark.postgres

MINUTE = 60_000_000
KEYED = (
    "CREATE SOURCE climate (room TEXT, celsius DOUBLE, ts TIMESTAMP, KEY (room)) WITH (ttl = '3 h')"
)
TABLE = (
    "CREATE TABLE readings (room TEXT, celsius DOUBLE PRECISION, ts BIGINT, gone BOOLEAN, "
    "arrived INTEGER)"
)
BETWEEN = "(SELECT * FROM readings WHERE NOT gone AND ts BETWEEN :a AND :b) AS climate"
FROM_TO = "(SELECT * FROM readings WHERE NOT gone AND ts >= :a AND ts < :b) AS climate"
# A withdrawal takes its key's row away; what arrives afterwards is there again.
AS_OF = (
    "(SELECT * FROM (SELECT DISTINCT ON (room) * FROM readings AS r WHERE NOT gone AND ts <= :b "
    "AND arrived > COALESCE((SELECT max(arrived) FROM readings AS w "
    "WHERE w.gone AND w.room = r.room AND w.ts <= :b), -1) "
    "ORDER BY room, ts DESC, arrived DESC) AS newest WHERE ts + 10800000000 > :b) AS climate"
)
CLAUSES = (
    ("BETWEEN {a} AND {b}", BETWEEN),
    ("FROM {a} TO {b}", FROM_TO),
    ("AS OF {b}", AS_OF),
)
SELECTS = (
    "SELECT room, celsius FROM {past} WHERE celsius > 18",
    "SELECT room, COUNT(*) AS n, MIN(celsius) AS low, MAX(celsius) AS t FROM {past} GROUP BY room",
    "SELECT COUNT(*) AS n, COUNT(DISTINCT room) AS rooms FROM {past}",
    "SELECT DISTINCT celsius FROM {past} WHERE room <> 'r2'",
)


@pytest.fixture(scope="module")
def database() -> Iterator[sa.Engine]:
    with postgres_server("the-past") as url:
        engine = sa.create_engine(url)
        yield engine
        engine.dispose()


@pytest.mark.parametrize("seed", range(6))
def test_the_past_is_as_in_postgres(tmp_path: Path, database: sa.Engine, seed: int) -> None:
    chance = random.Random(seed)
    lake, events = lake_in(tmp_path), []
    newest: dict[str, int] = {}
    now = NOON - 2 * DAY
    for _ in range(250):
        now += chance.randrange(20) * MINUTE
        room, delete = f"r{chance.randrange(5)}", chance.random() < 0.12
        ts = now - chance.choice((0, 0, 0, 5, 40)) * MINUTE
        # A withdrawal is not older than the row that it takes away.
        ts = max(ts, newest.get(room, ts)) if delete else ts
        newest[room] = max(ts, newest.get(room, ts))
        events.append(SourceEvent((room, float(chance.randrange(15, 25)), ts), ts, delete=delete))
    for first in range(0, 250, 50):
        keep(lake, defined(KEYED), events[first : first + 50], first=first)
    run, compared = executor(tmp_path, PastReadings(lake)), 0
    with database.begin() as connection:
        connection.exec_driver_sql("DROP TABLE IF EXISTS readings")
        connection.exec_driver_sql(TABLE)
        names = ("room", "celsius", "ts", "gone", "arrived")
        connection.execute(
            sa.text(f"INSERT INTO readings VALUES ({', '.join(f':{n}' for n in names)})"),
            [dict(zip(names, (*e.row, e.delete, n), strict=True)) for n, e in enumerate(events)],
        )
        for clause, relation in CLAUSES:
            for select in SELECTS:
                b = NOON - chance.randrange(DAY // MINUTE) * MINUTE
                a = b - chance.randrange(DAY // MINUTE) * MINUTE
                times = {"a": written(connection, a), "b": written(connection, b)}
                past = f"climate FOR SYSTEM_TIME {clause.format(**times)}"
                found = run.evaluate(plan_of(select.format(past=past), KEYED))
                wanted = connection.execute(
                    sa.text(select.format(past=relation)), {"a": a, "b": b}
                ).all()
                assert found == Counter(map(tuple, wanted)), (clause, select, times)
                compared += bool(wanted)
    assert compared > 9


def written(connection: sa.Connection, micros: int) -> str:
    """Return a time as a literal, made by PostgreSQL."""
    text = "SELECT to_char(to_timestamp(:s) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
    return f"'{connection.execute(sa.text(text), {'s': micros // 1_000_000}).scalar_one()}'"
