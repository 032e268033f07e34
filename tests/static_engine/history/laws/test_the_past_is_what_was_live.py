"""The past of the lake is what the stream engine showed, and what DuckDB finds in the files."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from deploy.session.engines import StreamExecutor
from deploy.session.history import History
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.history.past_readings import PastReadings
from static_engine.lake.lake import Lake
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_store import TableStore
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta, expand
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.history.past_plans import fixed
from tests.static_engine.lake.lake_rows import keep, lake_in
from tests.streamsql.from_text import bound_query, catalog_of

SECOND = 1_000_000
BEGIN = 20_000 * 86_400 * SECOND - 30 * SECOND
"""Half a minute before midnight: what happens lies in two days."""
SCRIPT = """
CREATE SOURCE climate (room TEXT, celsius DOUBLE, ts TIMESTAMP) WITH (ttl = '20 s');
CREATE SOURCE seat (desk TEXT, room TEXT, taken BOOLEAN, ts TIMESTAMP, KEY (desk))
  WITH (ttl = '40 s');
CREATE LINK SOURCE wire (src TEXT, dst TEXT, cost DOUBLE);
CREATE VIEW crowded AS SELECT s.desk, c.celsius FROM seat s JOIN climate c ON c.room = s.room
  WHERE s.taken;
CREATE VIEW means AS SELECT room, AVG(celsius) AS mean, COUNT(*) AS n
  FROM climate [RANGE 10 SECONDS] GROUP BY room;
CREATE VIEW last_two AS SELECT * FROM climate [PARTITION BY room ROWS 2];
CREATE RECURSIVE VIEW reach (src, dst) AS SELECT src, dst FROM wire
  UNION SELECT r.src, w.dst FROM reach r JOIN wire w ON w.src = r.dst;
CREATE VIEW cheapest AS WITH RECURSIVE p(src, dst, cost) AS (SELECT src, dst, cost FROM wire
  UNION SELECT p.src, w.dst, p.cost + w.cost FROM p JOIN wire w ON w.src = p.dst)
  SELECT src, dst, MIN(cost) AS cost FROM p GROUP BY src, dst;
"""
RELATIONS = (
    *("climate", "seat", "wire", "crowded", "means", "last_two", "reach", "cheapest"),
    "climate [RANGE 5 SECONDS]",
    "seat [ROWS 3]",
)


@dataclass(frozen=True, slots=True)
class Happened:
    """A minute of random events: the catalog, the events in their order, and the lake of them."""

    catalog: Catalog
    events: list[tuple[str, SourceEvent]]
    lake: Lake
    past: LocalExecutor

    def live(self, text: str, at: int) -> Delta:
        """Return what a query over the present showed at a time, by the stream engine."""
        history = History()
        for source, event in self.events:
            if event.ts <= at:
                history.record(source, (event,))
        history.advance(at)
        return StreamExecutor(2).answer(bound_query(text, self.catalog), history, self.catalog)

    def then(self, text: str, at: int) -> Delta:
        """Return what a query says of the past, asked at a time."""
        return self.past.evaluate(fixed(bound_query(text, self.catalog).plan, at))


def happened(seed: int, folder: Path) -> Happened:
    chance = random.Random(seed)
    events: list[tuple[str, SourceEvent]] = []
    links: set[tuple[str, str]] = set()
    for second in range(60):
        ts = BEGIN + second * SECOND
        room = chance.choice("abc")
        events.append(("climate", SourceEvent((room, chance.choice((19.5, 21.0)), ts), ts)))
        desk = chance.choice("defg")
        if chance.random() < 0.2:
            events.append(("seat", SourceEvent((desk, None, None, None), ts, delete=True)))
        else:
            seat: Row = (desk, chance.choice("abc"), chance.random() < 0.7, ts)
            events.append(("seat", SourceEvent(seat, ts)))
        ends = (chance.choice("hijk"), chance.choice("hijk"))
        if ends in links and chance.random() < 0.6:
            links.discard(ends)
            events.append(("wire", SourceEvent((*ends, None), ts, delete=True)))
        else:
            links.add(ends)
            events.append(("wire", SourceEvent((*ends, float(chance.randrange(1, 9))), ts)))
    catalog, lake = catalog_of(SCRIPT), lake_in(folder / "lake")
    for name in ("climate", "seat", "wire"):
        definition = catalog.find(name)
        assert isinstance(definition, SourceDefinition)
        keep(lake, definition, [event for source, event in events if source == name])
    store = TableStore(Locations(folder), folder / "snapshots", snapshots=False)
    return Happened(catalog, events, lake, LocalExecutor(store, PastReadings(lake)))


@pytest.mark.parametrize("seed", range(2))
def test_as_of_a_time_is_what_the_stream_engine_showed_then(seed: int, tmp_path: Path) -> None:
    minute = happened(seed, tmp_path)
    for second in (9, 29, 30, 47, 59):
        at = BEGIN + second * SECOND
        for relation in RELATIONS:
            name, _, window = relation.partition(" ")
            live = minute.live(f"SELECT * FROM {name} {window}", at)
            past = f"SELECT * FROM {name} FOR SYSTEM_TIME AS OF NOW {window}"
            assert minute.then(past, at) == live, (relation, second)


AS_OF = """
WITH kept AS (SELECT * FROM read_parquet($files, union_by_name = true)
              WHERE _event_time > $at - INTERVAL 40 SECOND AND _event_time <= $at),
     there AS (SELECT * FROM kept k WHERE NOT _withdrawn AND NOT EXISTS (
       SELECT 1 FROM kept w WHERE w._withdrawn AND w.desk = k.desk AND w._gateway = k._gateway
       AND (w._epoch, w._seq, w._place) > (k._epoch, k._seq, k._place)))
SELECT desk, room, taken FROM there
QUALIFY ROW_NUMBER() OVER (PARTITION BY desk ORDER BY _event_time DESC, _seq DESC) = 1
"""
BETWEEN = """
SELECT room, COUNT(*), MAX(celsius) FROM read_parquet($files, union_by_name = true)
WHERE NOT _withdrawn AND _event_time BETWEEN $at - INTERVAL 45 SECOND AND $at GROUP BY room
"""
REACH = """
WITH RECURSIVE kept AS (SELECT * FROM read_parquet($files, union_by_name = true)
                        WHERE _event_time <= $at),
  wire AS (SELECT DISTINCT src, dst FROM kept k WHERE NOT _withdrawn AND NOT EXISTS (
    SELECT 1 FROM kept w WHERE w._withdrawn AND w.src = k.src AND w.dst = k.dst
    AND (w._epoch, w._seq) > (k._epoch, k._seq))),
  reach AS (SELECT src, dst FROM wire UNION
            SELECT r.src, w.dst FROM reach r JOIN wire w ON w.src = r.dst)
SELECT src, dst FROM reach
"""
QUESTIONS = (
    ("seat", "SELECT desk, room, taken FROM seat FOR SYSTEM_TIME AS OF NOW", AS_OF),
    (
        "climate",
        "SELECT room, COUNT(*), MAX(celsius) FROM climate "
        "FOR SYSTEM_TIME BETWEEN NOW - INTERVAL '45 s' AND NOW GROUP BY room",
        BETWEEN,
    ),
    ("wire", "SELECT src, dst FROM reach FOR SYSTEM_TIME AS OF NOW", REACH),
)


@pytest.mark.parametrize("seed", range(2))
def test_duckdb_finds_the_same_in_the_files_of_the_lake(seed: int, tmp_path: Path) -> None:
    minute = happened(seed + 100, tmp_path)
    for source, text, sql in QUESTIONS:
        for second in (3, 31, 58):
            at = BEGIN + second * SECOND
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)
            files = [path.removeprefix("file://") for path in minute.lake.plan(source).paths]
            with duckdb.connect() as connection:
                connection.execute("SET TimeZone = 'UTC'")
                found = connection.execute(sql, {"files": files, "at": moment}).fetchall()
            assert sorted(expand(minute.then(text, at)), key=repr) == sorted(found, key=repr)
