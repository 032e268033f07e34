"""Shares of rows that are read off facts about columns are those that DuckDB counts."""

import random

import duckdb
import pytest

from federated_optimizer.coordinator.facts.heard_columns import HeardColumns
from federated_optimizer.coordinator.facts.planned_facts import KnownColumns
from federated_optimizer.costs.relations.estimates import estimate
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.passing_rows import passed
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from stream_engine.site.site_sources import SiteSources
from streamsql.algebra.operators import Filter, walk_plan
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE log (room TEXT, level INTEGER, v DOUBLE) WITH (ttl = '1000 s');"
)
SECOND = 1_000_000
CONDITIONS = (
    "v < 10.0",
    "v >= 75.0",
    "v > 20.0 AND v <= 40.0",
    "30.0 > v",
    "v < -5.0",
    "v < 1000.0",
    "level = 0",
    "level = 3",
    "level <> 0",
    "level <= 2",
    "level = 77",
    "room = 'r-3'",
    "room <> 'r-3' AND v < 50.0",
)


def readings(chance: random.Random) -> list[Row]:
    """Readings of rooms, with a skew, some NULL values, and numbers that are spread otherwise."""
    skew, rooms, levels = chance.choice((0.0, 1.0, 2.0)), chance.choice((4, 30)), 10
    weights = [1 / (k + 1) ** skew for k in range(levels)]
    power = chance.choice((0.5, 1.0, 3.0))
    return [
        (
            f"r-{chance.randrange(rooms)}",
            chance.choices(range(levels), weights)[0],
            None if chance.random() < 0.05 else 100.0 * chance.random() ** power,
        )
        for _ in range(1_500)
    ]


def counted(rows: list[Row], sites: int) -> Statistics:
    """Facts as the coordinator has them of gateways that have read these rows."""
    facts, log = Facts(), CATALOG.sources[0]
    heard = HeardColumns(facts, lambda _: log)
    for site in range(sites):
        sources = SiteSources(f"gw-{site}")
        sources.declare(log.scan(), 0)
        for number, row in enumerate(rows[site::sites]):
            now = number * SECOND
            sources.ingest("log", [SourceEvent(row, now)], "")
            sources.advance(now)
            heard.hear(f"gw-{site}", sources.columns.report(now))
        heard.hear(f"gw-{site}", sources.columns.report(100_000 * SECOND))
    heard.look(0)
    return Statistics({"log": SourceFacts(float(len(rows)), 2.0)}, columns=KnownColumns(facts, 0))


def by_duckdb(rows: list[Row], *queries: str) -> list[float]:
    with duckdb.connect() as duck:
        duck.execute("CREATE TABLE log (room VARCHAR, level INTEGER, v DOUBLE)")
        columns = [list(column) for column in zip(*rows, strict=True)]
        duck.execute("INSERT INTO log SELECT UNNEST(?), UNNEST(?), UNNEST(?)", columns)
        return [float(duck.execute(query).fetchall()[0][0]) for query in queries]


@pytest.mark.parametrize("seed", range(6))
def test_shares_are_in_their_ranges_and_nothing_is_assumed(seed: int) -> None:
    chance = random.Random(seed)
    rows = readings(chance)
    statistics = counted(rows, chance.choice((1, 3)))
    counts = by_duckdb(rows, *(f"SELECT COUNT(*) FROM log WHERE {each}" for each in CONDITIONS))
    for condition, count in zip(CONDITIONS, counts, strict=True):
        plan = bound_query(f"SELECT * FROM log WHERE {condition}", CATALOG).plan
        node = next(node for node in walk_plan(plan) if isinstance(node, Filter))
        found = passed(node, statistics)
        assert not found.assumed, condition
        share = count / len(rows)
        assert found.low <= share <= found.high, (condition, share, found)
        assert found.low <= found.share <= found.high
        assert found.high - found.low < 0.6, f"{condition}: a range that says nothing"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("columns", ["room", "level", "room, level"])
def test_groups_are_as_many_as_there_are(seed: int, columns: str) -> None:
    chance = random.Random(seed)
    rows = readings(chance)
    statistics = counted(rows, 3)
    (wanted,) = by_duckdb(rows, f"SELECT COUNT(*) FROM (SELECT DISTINCT {columns} FROM log)")
    for text in (
        f"SELECT DISTINCT {columns} FROM log",
        f"SELECT {columns}, COUNT(*) AS n FROM log GROUP BY {columns}",
    ):
        found = estimate(bound_query(text, CATALOG).plan, statistics)
        assert wanted / 1.5 <= found.rows <= wanted * 1.5, text


def test_a_join_meets_as_many_rows_as_share_a_value() -> None:
    rows = readings(random.Random(4))
    statistics = counted(rows, 1)
    text = "SELECT a.v FROM log a JOIN log b ON a.room = b.room"
    (wanted,) = by_duckdb(rows, f"SELECT COUNT(*) FROM ({text})")
    assert estimate(bound_query(text, CATALOG).plan, statistics).rows == pytest.approx(wanted, 0.3)
