"""Spark reads the past as this process does, recursions in rounds included."""

import random
from pathlib import Path

import pytest

from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.history.past_readings import PastReadings
from static_engine.lowering import spark_recursion
from static_engine.sources.table_locations import Locations
from static_engine.spark import past_frames
from static_engine.spark.spark_executor import SparkExecutor
from static_engine.spark.spark_session import RunningSpark
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import Plan
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.errors import RecursionLimitError
from streamsql.history.past_plans import fixed
from tests.static_engine.lake.lake_rows import keep, lake_in
from tests.streamsql.from_text import bound_query, catalog_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SECOND = 1_000_000
DAY = 86_400 * SECOND
NOON = 20_000 * DAY + DAY // 2
SCRIPT = """
CREATE SOURCE climate (room TEXT, celsius DOUBLE, ts TIMESTAMP) WITH (ttl = '1 h');
CREATE SOURCE seat (desk TEXT, taken BOOLEAN, ts TIMESTAMP, KEY (desk));
CREATE LINK SOURCE wire (src TEXT, dst TEXT, cost DOUBLE);
"""
WIRES = "wire FOR SYSTEM_TIME AS OF NOW"
QUERIES = {
    "contents": "SELECT desk, taken FROM seat FOR SYSTEM_TIME AS OF NOW - INTERVAL '2 h'",
    "window": "SELECT room, COUNT(*) AS n "
    "FROM climate FOR SYSTEM_TIME AS OF NOW [RANGE 30 MINUTES] GROUP BY room",
    "hours": "SELECT room, window_start, MAX(celsius) AS warmest "
    "FROM TUMBLE(climate FOR SYSTEM_TIME ALL, ts, INTERVAL '1 hour') GROUP BY room, window_start",
}
RECURSIONS = {
    "doubling": "WITH RECURSIVE r(src, dst) AS (SELECT src, dst FROM "
    f"{WIRES} UNION SELECT a.src, b.dst FROM r a JOIN r b ON a.dst = b.src) SELECT * FROM r",
    "cheapest": "WITH RECURSIVE r(src, dst, cost) AS (SELECT src, dst, cost FROM "
    f"{WIRES} UNION SELECT r.src, w.dst, r.cost + w.cost FROM r JOIN {WIRES} AS w ON w.src = r.dst)"
    " SELECT src, dst, MIN(cost) AS cost FROM r GROUP BY src, dst",
    "copies": "WITH RECURSIVE r(src, dst, hops) AS (SELECT src, dst, 1 FROM "
    f"{WIRES} UNION ALL SELECT r.src, w.dst, r.hops + 1 FROM r JOIN {WIRES} AS w ON w.src = r.dst "
    "WHERE r.hops < 4) SELECT src, dst, hops, COUNT(*) AS n FROM r GROUP BY src, dst, hops",
}


def filled(folder: Path) -> tuple[Catalog, PastReadings]:
    """Return a catalog and the past of its sources: some days of random readings and links."""
    catalog, lake, chance = catalog_of(SCRIPT), lake_in(folder), random.Random(7)
    events: dict[str, list[SourceEvent]] = {"climate": [], "seat": [], "wire": []}
    for number in range(120):
        ts = NOON - chance.randrange(3 * DAY if number % 3 else 2 * 3600 * SECOND)
        room, warm = chance.choice("abc"), chance.choice((19.5, 20.0, None))
        events["climate"].append(SourceEvent((room, warm, ts), ts))
        desk = chance.choice("defg")
        gone = number % 9 == 0
        seat = (desk, None if gone else chance.choice((True, False)), None if gone else ts)
        events["seat"].append(SourceEvent(seat, ts, delete=gone))
    for number in range(24):
        link = (chance.choice("hijklm"), chance.choice("hijklm"), float(chance.randrange(1, 9)))
        events["wire"].append(SourceEvent(link, NOON - (30 - number) * SECOND))
    last = events["wire"][-1].row
    events["wire"].append(SourceEvent((*last[:2], None), NOON, delete=True))
    for name, made in events.items():
        definition = catalog.find(name)
        assert isinstance(definition, SourceDefinition)
        half = len(made) // 2
        keep(lake, definition, made[:half])
        keep(
            lake, definition, made[half:], gateway="gw-2" if name == "climate" else "gw-1", first=99
        )
    return catalog, PastReadings(lake)


def plan_of(text: str, catalog: Catalog) -> Plan:
    return fixed(bound_query(text, catalog).plan, NOON)


@pytest.fixture(scope="module")
def executors(
    spark: RunningSpark, tmp_path_factory: pytest.TempPathFactory
) -> tuple[SparkExecutor, LocalExecutor, Catalog]:
    folder = tmp_path_factory.mktemp("past")
    catalog, past = filled(folder)
    store = TableStore(Locations(folder), folder / "snapshots")
    return SparkExecutor(spark, store, past), LocalExecutor(store, past), catalog


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_spark_reads_the_past_as_this_process_does(
    text: str,
    executors: tuple[SparkExecutor, LocalExecutor, Catalog],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_spark, here, catalog = executors
    monkeypatch.setattr(past_frames, "FEW_ROWS", 0)
    plan = plan_of(text, catalog)
    wanted = here.evaluate(plan)
    assert wanted
    assert on_spark.evaluate(plan) == wanted


@pytest.mark.parametrize("text", RECURSIONS.values(), ids=RECURSIONS)
def test_recursions_run_in_rounds_of_spark_and_end_on_cycles(
    text: str,
    executors: tuple[SparkExecutor, LocalExecutor, Catalog],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_spark, here, catalog = executors
    monkeypatch.setattr(spark_recursion, "FEW_ROWS", 0)
    monkeypatch.setattr(spark_recursion, "_PIECES", 2)
    plan = plan_of(text, catalog)
    wanted = here.evaluate(plan)
    assert wanted
    assert on_spark.evaluate(plan) == wanted


def test_a_recursion_over_few_rows_is_computed_in_this_process_within_its_limit(
    executors: tuple[SparkExecutor, LocalExecutor, Catalog],
) -> None:
    on_spark, here, catalog = executors
    plan = plan_of(RECURSIONS["cheapest"], catalog)
    assert on_spark.evaluate(plan) == here.evaluate(plan)
    bounded = RECURSIONS["doubling"].replace("RECURSIVE", "RECURSIVE (LIMIT 9)")
    with pytest.raises(RecursionLimitError, match="more than 9 rows"):
        on_spark.evaluate(plan_of(bounded, catalog))
