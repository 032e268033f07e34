"""First queries to try, by what the federation senses."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """A query somebody can run with one click."""

    title: str
    text: str


_REACHABLE = """WITH RECURSIVE reachable(src, dst) AS (
  SELECT src, dst FROM Link
  UNION
  SELECT l.src, r.dst FROM Link l JOIN reachable r ON l.dst = r.src)
SELECT src, dst FROM reachable"""

_CHEAPEST = """WITH RECURSIVE path(src, dst, cost) AS (
  SELECT src, dst, cost FROM Link
  UNION
  SELECT l.src, p.dst, l.cost + p.cost FROM Link l JOIN path p ON l.dst = p.src)
SELECT src, dst, MIN(cost) AS cost FROM path GROUP BY src, dst"""

BUILDING = (
    Example(
        "Occupied seats",
        "SELECT mid, rid, weightLevel FROM SeatSensor WHERE weightLevel > 5.0",
    ),
    Example(
        "Average temperature per room, last minute",
        "SELECT rid, AVG(celsius) AS celsius, COUNT(*) AS readings\n"
        "FROM Temperature [RANGE 1 MINUTE]\nGROUP BY rid",
    ),
    Example(
        "Free machines in an open lab with Word",
        "SELECT m.mid, sr.rid\n"
        "FROM Machines m, MachineSoftware ms, SeatSensor ss, RoomSensor sr\n"
        "WHERE software = 'Word' AND ms.mid = m.mid AND ss.mid = m.mid\n"
        "  AND ss.weightLevel < 5.0 AND sr.rid = ss.rid AND sr.status = 'open'",
    ),
    Example("Reachable pairs of motes", _REACHABLE),
    Example("Cheapest radio paths", _CHEAPEST),
    Example(
        "Contiguous regions of hot sensors",
        "SELECT regionid, COUNT(*) AS sensors FROM HotRegion GROUP BY regionid",
    ),
    Example(
        "Walk from L101 to the nearest free machine with LaTeX",
        "WITH RECURSIVE walk(point, cost, path) AS (\n"
        "  SELECT point, 0.0, point FROM Rooms WHERE rid = 'L101'\n"
        "  UNION\n"
        "  SELECT e.dst, w.cost + e.distance, w.path || '>' || e.dst\n"
        "  FROM walk w JOIN RoutingPoint e ON e.src = w.point),\n"
        "best AS (SELECT point, MIN(cost) AS cost, ARG_MIN(path, cost) AS path\n"
        "         FROM walk GROUP BY point)\n"
        "SELECT MIN(b.cost) AS distance, ARG_MIN(f.mid, b.cost) AS mid,\n"
        "       ARG_MIN(b.path, b.cost) AS path\n"
        "FROM best b JOIN FreeMachines f ON f.point = b.point\n"
        "JOIN MachineSoftware s ON s.mid = f.mid WHERE s.software = 'LaTeX'",
    ),
)

TRACE = (
    Example("Links and their delivery ratio", "SELECT src, dst, cost, pdr FROM Link"),
    Example("Reachable pairs of nodes", _REACHABLE),
    Example("Cheapest paths", _CHEAPEST),
    Example(
        "Links per node",
        "SELECT src, COUNT(*) AS links, AVG(pdr) AS pdr FROM Link GROUP BY src",
    ),
)


def examples_for(layers: str) -> tuple[Example, ...]:
    """Return the examples for a building or a trace."""
    return TRACE if layers == "trace" else BUILDING
