"""The queries of the gate: of the literature, of the building, and generated ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from benchmarks._optimizer.worlds import Load, World
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.data.types import Row
from streamsql.library import library_views
from streamsql.syntax import CreateSource, CreateView, parse_script

SCHEMA = Path(__file__).resolve().parent.parent.parent / "deploy" / "schema" / "building.sql"
THREE = ("gw-1", "gw-2", "gw-3")
TWELVE = tuple(f"gw-{number}" for number in range(1, 13))

GENERATED = """
    CREATE SOURCE reading (device TEXT, rid TEXT, level INTEGER, v DOUBLE, ts TIMESTAMP)
      WITH (ttl = '60 s');
    CREATE SOURCE place (device TEXT, rid TEXT, open BOOLEAN, level INTEGER, v DOUBLE,
                         ts TIMESTAMP, KEY (device)) WITH (ttl = '90 s');"""
"""The sources of generated queries: every reading of the last minute, and the last of a device."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query in a world.

    Attributes:
        plain: Its text where it means the same over tables with the rows that hold; "" elsewhere.
    """

    name: str
    text: str
    world: World
    plain: str = ""


def catalog_of(script: str, *, library: bool = False) -> Catalog:
    """Return the catalog of a script's definitions."""
    catalog = Catalog(library_views() if library else ())
    for statement in parse_script(script):
        if isinstance(statement, CreateSource | CreateView):
            catalog.define(define(statement, catalog), replace=True)
    return catalog


def building(gateways: tuple[str, ...], period: float) -> World:
    """Return the sample building's sources, in twelve rooms with two machines each."""
    loads = dict.fromkeys(
        ("seatsensor", "temperature", "energymeter", "machineload"), Load(period=period)
    )
    loads["roomsensor"] = Load(devices=12, period=period)
    machines: tuple[Row, ...] = tuple(
        (f"m-{n}", f"r-{n % 12}", f"host{n}", "x86", 3.0 * n, 1.0, n % 3, f"p-{n}")
        for n in range(24)
    )
    software: tuple[Row, ...] = tuple(
        (f"m-{n}", name, "1") for n in range(24) for name in ("Word", "R", "LaTeX")[: 1 + n % 3]
    )
    catalog = catalog_of(SCHEMA.read_text(encoding="utf-8"), library=True)
    return World(catalog, gateways, loads, {"machines": machines, "machinesoftware": software})


OF_LITERATURE = {
    "example 14": """
        SELECT m.mid, sr.rid FROM Machines m, MachineSoftware ms, SeatSensor ss, RoomSensor sr
        WHERE ms.software = 'Word' AND ms.mid = m.mid AND ss.mid = m.mid AND ss.weightLevel < 5.0
          AND sr.rid = ss.rid AND sr.status = 'open'""",
    "example 14, most seats": """
        SELECT ss.mid, sr.rid FROM SeatSensor ss, RoomSensor sr
        WHERE sr.rid = ss.rid AND ss.weightLevel < 95.0 AND sr.light > 5.0""",
    "warmest reading": "SELECT MAX(celsius) AS m FROM Temperature [RANGE 1 MINUTE]",
    "average by room": """
        SELECT rid, AVG(celsius) AS c FROM Temperature [RANGE 1 MINUTE] GROUP BY rid""",
    "average of all": "SELECT AVG(celsius) AS c FROM Temperature [RANGE 1 MINUTE]",
    "readings by level": """
        SELECT level, COUNT(*) AS n FROM Temperature [RANGE 1 MINUTE] GROUP BY level""",
    "top 3": "SELECT mid, cpu FROM MachineLoad ORDER BY cpu DESC LIMIT 3",
    "levels": "SELECT DISTINCT level FROM Temperature [RANGE 1 MINUTE]",
}

OF_BUILDING = {
    "free machines": "SELECT mid, rid FROM FreeMachines",
    "loaded": "SELECT mid, cpu, task FROM MachineLoad WHERE cpu > 50.0",
    "open rooms": "SELECT rid FROM RoomSensor WHERE status = 'open'",
    "rooms by status": "SELECT status, COUNT(*) AS n FROM RoomSensor GROUP BY status",
    "most watts": "SELECT MAX(watts) AS w, COUNT(*) AS n FROM EnergyMeter",
    "users": "SELECT SUM(users) AS n FROM MachineLoad",
    "hot sensors": "SELECT sensor, x, y, level FROM HotSensor",
    "statuses": "SELECT DISTINCT status FROM RoomSensor",
    "which is the warmest": """
        SELECT ARG_MAX(rid, celsius) AS rid, MAX(celsius) AS c FROM Temperature [RANGE 1 MINUTE]""",
    "loads with rooms": """
        SELECT l.mid, m.rid, l.cpu FROM MachineLoad l JOIN Machines m ON m.mid = l.mid
        WHERE l.cpu > 90.0""",
    "coldest by room": """
        SELECT rid, MIN(celsius) AS c FROM Temperature [RANGE 1 MINUTE] GROUP BY rid""",
    "seats with rooms": """
        SELECT s.mid, r.light FROM SeatSensor s JOIN RoomSensor r ON r.rid = s.rid""",
}

_TEMPLATES = (
    "SELECT {least}(v) AS m FROM reading WHERE v < {bound}",
    "SELECT level, COUNT(*) AS n, {least}(v) AS m FROM reading GROUP BY level",
    "SELECT level, SUM(level) AS s FROM reading WHERE v < {bound} GROUP BY level",
    "SELECT DISTINCT level FROM reading WHERE v < {bound}",
    "SELECT device, v FROM reading WHERE v < {bound} ORDER BY v LIMIT {k}",
    "SELECT open, COUNT(*) AS n FROM place WHERE v < {bound} GROUP BY open",
    "SELECT level, {least}(v) AS m, COUNT(*) AS n FROM place GROUP BY level",
    "SELECT DISTINCT rid, level FROM place WHERE v < {bound}",
    "SELECT device, level FROM place WHERE v < {bound} ORDER BY v DESC LIMIT {k}",
    "SELECT COUNT(DISTINCT level) AS n FROM reading WHERE v < {bound}",
)
_LOADS = (
    Load(devices=12, period=4.0, levels=2),
    Load(devices=48, period=10.0, levels=200),
    Load(devices=24, period=5.0, levels=20, skew=1.5),
)


def generated() -> Iterator[Question]:
    """Yield twenty queries over rates, selectivities, sizes and skews."""
    catalog = catalog_of(GENERATED)
    bounds, loads = cycle((100.0, 50.0, 5.0)), cycle(_LOADS)
    for number in range(2 * len(_TEMPLATES)):
        text = _TEMPLATES[number % len(_TEMPLATES)].format(
            bound=next(bounds),
            least=("MIN", "MAX")[number // len(_TEMPLATES)],
            k=(1, 5)[number // len(_TEMPLATES)],
        )
        load = next(loads)
        name = "reading" if " reading" in text else "place"
        world = World(catalog, THREE if number % 4 else TWELVE, {name: load})
        yield Question(f"generated {number + 1}", text, world, text)


def questions(*, quick: bool) -> list[Question]:
    """Return all queries, or a few of each kind."""
    house = building(THREE, 10.0)
    named = {**OF_LITERATURE, **OF_BUILDING}
    found = [Question(name, text, house) for name, text in named.items()]
    made = list(generated())
    if quick:
        return [*found[2:8:2], *made[3:10:3]]
    return [*found, *made]
