"""The queries of the gate: of the literature, of the building, and generated ones."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle

from benchmarks._optimizer.worlds import Load, World


@dataclass(frozen=True, slots=True)
class Question:
    """A query in a world.

    Attributes:
        plain: DuckDB answers it, too.
    """

    name: str
    text: str
    world: World
    plain: bool = True


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

OF_TABLES = {
    "readings of a watched sensor": """
        SELECT t.sensor, t.celsius, w.why FROM Temperature [RANGE 1 MINUTE] t
        JOIN Watched w ON w.sensor = t.sensor""",
    "loads of machines with LaTeX": """
        SELECT l.mid, l.cpu, s.version FROM MachineLoad l JOIN MachineSoftware s ON s.mid = l.mid
        WHERE s.software = 'LaTeX'""",
    "few rows of a large table": """
        SELECT l.mid, g.day, g.note FROM MachineLoad l JOIN Ledger g ON g.mid = l.mid""",
    "a day of few machines in a large table": """
        SELECT l.mid, g.note FROM MachineLoad l JOIN Ledger g ON g.mid = l.mid
        WHERE l.cpu > 50.0 AND g.day = 1""",
}
"""Joins of streams with stored tables: a short one that few rows match, and a long one."""

OF_RECURSIONS = {
    "reachable": "SELECT src, dst FROM reachable",
    "reachable from one": "SELECT dst FROM reachable WHERE src = '{first}'",
    "cheapest from one": "SELECT dst, cost FROM cheapest_path WHERE src = '{first}'",
}

OF_TRACE = {
    "good links": "SELECT src, dst FROM Link WHERE pdr > 0.9",
    "worst link": "SELECT MIN(pdr) AS p FROM Link",
    "links": "SELECT COUNT(*) AS n FROM Link",
    "links by mote": "SELECT src, COUNT(*) AS n FROM Link GROUP BY src",
    "heard by": "SELECT dst, COUNT(*) AS n, MAX(pdr) AS p FROM Link GROUP BY dst",
    "three worst": "SELECT src, dst, pdr FROM Link ORDER BY pdr, src, dst LIMIT 3",
    "motes": "SELECT DISTINCT src FROM Link",
    "motes that are heard": "SELECT COUNT(DISTINCT dst) AS n FROM Link",
    "better in one direction": """
        SELECT a.src, a.dst FROM Link a JOIN Link b ON b.src = a.dst AND b.dst = a.src
        WHERE a.pdr > 0.95 AND b.pdr < 0.7""",
    "two steps from one": """
        SELECT a.dst AS middle, b.dst FROM Link a JOIN Link b ON b.src = a.dst
        WHERE a.src = '{first}'""",
    "only one way": "SELECT src FROM Link WHERE pdr < 0.6 EXCEPT SELECT dst FROM Link",
    "links of sinks": """
        SELECT l.src, l.dst, m.floor FROM Link l JOIN Mote m ON m.mote = l.src
        WHERE m.kind = 'sink'""",
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


def generated(world: World) -> Iterator[Question]:
    """Yield twenty queries over rates, selectivities, sizes and skews."""
    bounds, loads = cycle((100.0, 50.0, 5.0)), cycle(_LOADS)
    for number in range(2 * len(_TEMPLATES)):
        text = _TEMPLATES[number % len(_TEMPLATES)].format(
            bound=next(bounds),
            least=("MIN", "MAX")[number // len(_TEMPLATES)],
            k=(1, 5)[number // len(_TEMPLATES)],
        )
        name = "reading" if " reading" in text else "place"
        yield Question(f"generated {number + 1}", text, replace(world, loads={name: next(loads)}))


def of_building(world: World) -> Iterator[Question]:
    """Yield the queries of the literature and the building, over tables, and recursions."""
    for name, text in {**OF_LITERATURE, **OF_BUILDING, **OF_TABLES}.items():
        yield Question(name, text, replace(world, links=replace(world.links, ends=())))
    regions = replace(world, links=replace(world.links, ends=()))
    hot = "SELECT regionid, sensorid FROM HotRegion"
    yield Question("hot regions", hot, regions)
    yield from of_recursions(world)


def of_recursions(world: World) -> Iterator[Question]:
    """Yield recursions over links."""
    only = replace(world, loads={})
    first = min(world.links.owner)
    for name, text in OF_RECURSIONS.items():
        yield Question(name, text.format(first=first), only, plain="cheapest" not in name)


def of_trace(world: World) -> Iterator[Question]:
    """Yield queries over recorded links."""
    first = min(world.links.owner)
    for name, text in OF_TRACE.items():
        yield Question(name, text.format(first=first), world)
    yield from of_recursions(world)
