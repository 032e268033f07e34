"""Statements whose operators are priced, and readings that change their rows."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS, Row
from streamsql.syntax import CreateSource, parse_script

DEVICES = 200
ROOMS = 20
NODES = 24
FIRST = -1
"""A level that no reading has, so that the first one of a device changes its row."""
BEGIN = 1_700_000_000 * MICROSECONDS
PERIOD = MICROSECONDS // 10
"""Between two readings, in the time of the engine."""
SOURCES = """
CREATE SOURCE sensor (mid TEXT, rid TEXT, level INTEGER, v DOUBLE, ts TIMESTAMP, KEY (mid));
CREATE SOURCE place (mid TEXT, rid TEXT, x DOUBLE, ts TIMESTAMP, KEY (mid));
CREATE SOURCE log (mid TEXT, rid TEXT, level INTEGER, v DOUBLE, ts TIMESTAMP)
  WITH (ttl = '60 s');
CREATE LINK SOURCE edge (src TEXT, dst TEXT, cost DOUBLE, ts TIMESTAMP, KEY (src, dst));
"""


class Source(StrEnum):
    """Sources whose readings come; `place` has rows that stay."""

    SENSOR = "sensor"
    LOG = "log"
    EDGE = "edge"


@dataclass(frozen=True, slots=True)
class Workload:
    """A query, and the source whose readings change its rows.

    Attributes:
        text: Of the query; empty: nothing runs, and the site only keeps the rows of its sources.
    """

    text: str
    source: Source = Source.SENSOR


NOTHING = {source: Workload("", source) for source in Source}
SILENT = Workload("SELECT mid, rid, level, v FROM sensor WHERE v > 1000.0")
"""Reads each row and passes none on."""
PLAIN = Workload("SELECT mid, rid, level, v FROM sensor")
PASSED = {
    "filter": Workload("SELECT mid, rid, level, v FROM sensor WHERE v > -1.0"),
    "projection": Workload("SELECT mid, rid, level + 1 AS l, v * 2.0 AS w FROM sensor"),
}
"""Pass every row on."""
LOG = Workload("SELECT mid, rid, level, v FROM log", Source.LOG)
WINDOW = Workload("SELECT mid, rid, level, v FROM log [RANGE 60 SECONDS]", Source.LOG)
"""Rows stay as long in the window as in their source."""
JOIN = Workload("SELECT a.mid, a.v, b.x FROM sensor a JOIN place b ON a.mid = b.mid")
GROUPS = {
    "sums": Workload("SELECT rid, COUNT(*) AS n, SUM(v) AS s FROM sensor GROUP BY rid"),
    "maximum": Workload("SELECT rid, MAX(v) AS m FROM sensor GROUP BY rid"),
    "distinct": Workload("SELECT DISTINCT rid, level FROM sensor"),
    "first": Workload("SELECT mid, v FROM sensor ORDER BY v DESC LIMIT 5"),
}
RECURSION = Workload(
    "WITH RECURSIVE reach (src, dst) AS (SELECT src, dst FROM edge UNION "
    "SELECT r.src, e.dst FROM reach r JOIN edge e ON e.src = r.dst) SELECT src, dst FROM reach",
    Source.EDGE,
)


def catalog() -> Catalog:
    """Return the sources of all workloads."""
    found = Catalog(())
    for statement in parse_script(SOURCES):
        if isinstance(statement, CreateSource):
            found.define(define(statement, found))
    return found


def standing(now: int) -> Iterator[tuple[str, SourceEvent]]:
    """Yield the rows that are there before anything is measured, by source."""
    for device in range(DEVICES):
        mid, rid = f"m-{device}", f"r-{device % ROOMS}"
        yield Source.SENSOR, SourceEvent((mid, rid, FIRST, device / 2, now), now)
        yield "place", SourceEvent((mid, rid, 1.0 * device, now), now)
    for src, dst in _edges():
        yield Source.EDGE, SourceEvent((src, dst, 1.0, now), now)


def readings(source: Source, chance: random.Random, now: int) -> Iterator[SourceEvent]:
    """Yield readings without end, each of which changes the rows of its source.

    Args:
        source: Of which.
        chance: Where values come from.
        now: After this time, by the engine's clock.
    """
    edges, gone = _edges(), None
    while True:
        now += PERIOD
        if source != Source.EDGE:
            yield SourceEvent(_row(chance.randrange(DEVICES), chance, now), now)
        elif gone is None:
            # A link goes and comes back: half of the changes are deletions.
            gone = chance.choice(edges)
            yield SourceEvent((*gone, 1.0, now), now, delete=True)
        else:
            yield SourceEvent((*gone, 1.0, now), now)
            gone = None


def _row(device: int, chance: random.Random, now: int) -> Row:
    rid = f"r-{device % ROOMS}"
    return (f"m-{device}", rid, chance.randrange(4), chance.randrange(25_600) / 256, now)


def _edges() -> list[tuple[str, str]]:
    """Return a ring with chords, in one direction."""
    return [(f"n-{n}", f"n-{(n + step) % NODES}") for n in range(NODES) for step in (1, 5)]
