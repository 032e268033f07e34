"""What do a window that starts full and a trial on the past cost, beside reading alone?

    python benchmarks/past_replay.py [--quick] [--sensors N] [--hours N] [--json]

A lake is filled with a reading a second of some sensors. Then the same readings are

    read     out of the lake as Arrow batches, and nothing else
    pieces   cut into answers for a gateway, as the static engine does
    fill     given to a window at a gateway's engine, from such answers
    trial    run through the engines of a federation, from the lake to the changes of an alarm

Each is given in thousands of readings a second, and for the trial how often faster than the
sensors. How to read it: ratios within one run; `read` is the bound of all others.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks._figures import print_tables
from deploy.history.lake_past import LakePast
from deploy.history.order_run import OrderRun
from federated_optimizer import Topology
from federated_optimizer import plan as place
from federated_optimizer.coordinator.trials.history_runner import HistoryOrder
from static_engine.filling.lake_pieces import LakePieces
from static_engine.lake.kept_readings import TIME
from static_engine.lake.lake import Lake
from static_engine.lake.lake_settings import LakeSettings
from static_engine.lake.readings_files import write_readings
from stream_engine.site.site_engine import SiteEngine
from streamsql.binder import BoundQuery, bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import DataType
from streamsql.syntax import Query, parse_statement
from streamsql.syntax.statements import CreateSource
from streamsql.wire.fill_messages import FillColumn, FillRow, FillWanted

SECOND = 1_000_000
NOON = 1_780_308_000 * SECOND
SOURCE = "CREATE SOURCE climate (sensor INTEGER, celsius DOUBLE)"
ALARM = (
    "SELECT sensor, AVG(celsius) AS mean FROM climate [RANGE 5 MINUTES] GROUP BY sensor "
    "HAVING AVG(celsius) > 29"
)


def catalog() -> tuple[Catalog, SourceDefinition]:
    """Return the source that is kept."""
    made = Catalog()
    statement = parse_statement(SOURCE)
    if not isinstance(statement, CreateSource):
        raise TypeError(SOURCE)
    definition = define(statement, made)
    if not isinstance(definition, SourceDefinition):
        raise TypeError(SOURCE)
    made.define(definition)
    return made, definition


def keep(lake: Lake, definition: SourceDefinition, sensors: int, hours: int) -> int:
    """Keep a reading a second of each sensor, the last at noon; return how many."""
    table, _ = lake.ensure(definition)
    schema = lake.schema_of(definition, table)
    for hour in range(hours):
        seconds = NOON - (np.arange(3_600) + hour * 3_600) * SECOND
        when = np.repeat(seconds, sensors)
        which = np.tile(np.arange(sensors), len(seconds))
        count = len(when)
        times = pa.array(when, pa.int64()).cast(TIME)
        columns = [
            pa.array(which),
            pa.array(20.0 + (which * 7919 + when // SECOND) % 100 / 10),
            pa.array(["gw-1"] * count),
            pa.array(np.ones(count, np.int64)),
            pa.array(when // SECOND),
            pa.array(which.astype(np.int32)),
            times,
            pa.array(np.zeros(count, np.bool_)),
            times,
        ]
        rows = pa.Table.from_arrays(columns, schema=schema)
        files = write_readings(rows, table.location(), f"bench-{hour}", table.io)
        lake.commit(table, files, hour, "bench")
    return hours * 3_600 * sensors


def timed(work: Callable[[], int]) -> tuple[int, float]:
    """Return what work has counted, and its seconds."""
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def pieces_of(lake: Lake, take: Callable[[tuple[FillRow, ...]], None]) -> int:
    """Read all pieces of the lake; return how many rows."""
    columns = (FillColumn("sensor", DataType.INTEGER), FillColumn("celsius", DataType.DOUBLE))
    pieces, after, count = LakePieces(lake), None, 0
    while True:
        wanted = FillWanted("b", "q", "climate", columns, "gw-1", 0, after=after)
        found = pieces.piece(wanted)
        take(found.rows)
        count, after = count + len(found.rows), found.after
        if found.done:
            return count


def bound(known: Catalog, text: str) -> BoundQuery:
    """Return a query's plan."""
    statement = parse_statement(text)
    if not isinstance(statement, Query):
        raise TypeError(text)
    return bind_query(statement, known)


def fill(lake: Lake, known: Catalog, topology: Topology) -> int:
    """Fill a window of a year at a gateway."""
    query = bound(
        known, "SELECT sensor, COUNT(*) AS n FROM climate [RANGE 365 DAYS] GROUP BY sensor"
    )
    engine = SiteEngine("gw-1", 1)
    engine.install(place(query, topology, query="q"))

    def take(rows: tuple[FillRow, ...]) -> None:
        engine.fill("q", "climate", [SourceEvent(row.row, row.ts) for row in rows])
        engine.step(NOON)

    return pieces_of(lake, take)


def trial(lake: Lake, known: Catalog, topology: Topology, hours: int) -> int:
    """Run an alarm's query over all of it; return how many readings were run."""
    definition = known.find("climate")
    if not isinstance(definition, SourceDefinition):
        raise TypeError("climate")
    since = NOON - hours * 3_600 * SECOND
    order = HistoryOrder(
        query=bound(known, ALARM),
        topology=topology,
        sources=(definition,),
        since=since,
        until=NOON,
        lookback=0,
        tables={},
        grace=5 * SECOND,
    )
    run = OrderRun(order, LakePast(lake, {"climate": definition}))
    return sum(1 for _ in run.messages()) and hours * 3_600


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Windows that start full and trials.")
    parser.add_argument("--quick", action="store_true", help="20 sensors, one hour")
    parser.add_argument("--sensors", type=int, help="a reading a second of each")
    parser.add_argument("--hours", type=int, help="before noon")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    sensors = options.sensors or (20 if options.quick else 1_000)
    hours = options.hours or (1 if options.quick else 24)
    topology = Topology({"gw-1": frozenset({"climate"})}, bases=("base",))
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as name:
        folder, (known, definition) = Path(name), catalog()
        lake = Lake(LakeSettings(f"sqlite:///{folder / 'catalog.db'}", str(folder / "lake")))
        count = keep(lake, definition, sensors, hours)
        works: dict[str, Callable[[], int]] = {
            "read": lambda: sum(b.num_rows for b in lake.plan("climate").batches()),
            "pieces": lambda: pieces_of(lake, lambda _rows: None),
            "fill": lambda: fill(lake, known, topology),
            "trial": lambda: trial(lake, known, topology, hours) * sensors,
        }
        for title, work in works.items():
            done, seconds = timed(work)
            figures[title] = {
                "thousands/s": done / seconds / 1_000,
                "times live": done / seconds / sensors,
            }
    if options.json:
        print(json.dumps({"benchmark": "past_replay", "readings": count, "asked": figures}))
        return 0
    print(f"{count:,} readings of {sensors} sensors in {hours} h")
    print_tables({"readings": figures}, digits=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
