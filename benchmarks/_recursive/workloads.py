"""Seeded traces: W1 links of a transit-stub network, W2 sensors in a grid, W3 a building.

A trace is data, so that every engine, ours or not, works on exactly the same changes.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stream_engine.simulation.topologies import transit_stub
from streamsql.data.types import Row

Link = tuple[str, str, int]
"""Source, target, cost."""

REACHABLE = """CREATE LINK SOURCE link (src TEXT, dst TEXT, cost INTEGER);
WITH RECURSIVE (LIMIT 10000000) reachable (src, dst) AS (
  SELECT src, dst FROM link
  UNION
  SELECT l.src, r.dst FROM link l JOIN reachable r ON l.dst = r.src)
SELECT src, dst FROM reachable"""

CHEAPEST = """CREATE LINK SOURCE link (src TEXT, dst TEXT, cost INTEGER);
WITH RECURSIVE (LIMIT 10000000) path (src, dst, cost) AS (
  SELECT src, dst, cost FROM link
  UNION
  SELECT l.src, p.dst, l.cost + p.cost FROM link l JOIN path p ON l.dst = p.src)
SELECT src, dst, MIN(cost) AS cost FROM path GROUP BY src, dst"""

REGION = """CREATE LINK SOURCE triggered (sensor INTEGER, x INTEGER, y INTEGER);
CREATE LINK SOURCE region_seed (region INTEGER, sensor INTEGER);
WITH RECURSIVE active (region, sensor) AS (
  SELECT s.region, t.sensor FROM region_seed s JOIN triggered t ON t.sensor = s.sensor
  UNION
  SELECT a.region, far.sensor
  FROM active a JOIN triggered near ON near.sensor = a.sensor
  JOIN triggered far ON distance(near.x, near.y, far.x, far.y) < 20.0)
SELECT region, sensor FROM active"""

NEAREST = """CREATE LINK SOURCE corridor (src INTEGER, dst INTEGER, metres INTEGER);
CREATE LINK SOURCE free (point INTEGER, machine INTEGER);
WITH RECURSIVE way (point, machine, metres) AS (
  SELECT point, machine, 0 FROM free
  UNION
  SELECT c.src, w.machine, c.metres + w.metres FROM corridor c JOIN way w ON c.dst = w.point)
SELECT point, MIN(metres) AS metres, ARG_MIN(machine, metres) AS machine FROM way GROUP BY point"""


@dataclass(frozen=True, slots=True)
class LinkTrace:
    """Links that are inserted one by one, then some that are deleted one by one.

    Attributes:
        name: For tables.
        links: In order of insertion.
        deletions: Some of them, in order.
        nodes: Number of nodes.
    """

    name: str
    links: tuple[Link, ...]
    deletions: tuple[Link, ...]
    nodes: int

    @property
    def measured_inserts(self) -> int:
        """How many of the last insertions count: when the network is nearly whole."""
        return len(self.links) // 5


def w1(links: int = 400, *, sparse: bool = False, seed: int = 1, share: float = 0.2) -> LinkTrace:
    """Return the transit-stub trace: 100 nodes a domain, 4 (dense) or 2 (sparse) links a node."""
    per_node = 2 if sparse else 4
    network = transit_stub(max(1, round(links / (100 * per_node))), per_node, seed=seed)
    chooser = random.Random(seed + 17)
    rows = [(link.source, link.target, link.latency) for link in network.links]
    chooser.shuffle(rows)
    gone = chooser.sample(rows, int(len(rows) * share))
    kind = "sparse" if sparse else "dense"
    return LinkTrace(f"W1 {len(rows)} links, {kind}", tuple(rows), tuple(gone), len(network.nodes))


@dataclass(frozen=True, slots=True)
class SensorTrace:
    """Sensors in a grid that are triggered one by one, then untriggered one by one.

    Attributes:
        name: For tables.
        places: Of every sensor, in metres.
        seeds: Sensors where regions begin, triggered first.
        triggered: In order.
        untriggered: All of them in another order.
    """

    name: str
    places: tuple[tuple[int, int], ...]
    seeds: tuple[int, ...]
    triggered: tuple[int, ...]
    untriggered: tuple[int, ...]


def w2(spacing: int = 5, *, side: int = 100, seeds: int = 5, seed: int = 1) -> SensorTrace:
    """Return the sensor trace: half of a grid of sensors is triggered; neighbours within 20 m."""
    places = tuple((x, y) for x in range(0, side, spacing) for y in range(0, side, spacing))
    chooser = random.Random(seed)
    first = sorted(chooser.sample(range(len(places)), seeds))
    others = [sensor for sensor in range(len(places)) if sensor not in first]
    chooser.shuffle(others)
    on = first + others[: max(len(places) // 2 - seeds, 0)]
    off = on[:]
    chooser.shuffle(off)
    name = f"W2 {len(places)} sensors, {spacing} m"
    return SensorTrace(name, places, tuple(first), tuple(on), tuple(off))


@dataclass(frozen=True, slots=True)
class BuildingTrace:
    """Corridors and free machines of a building, and updates of both.

    Attributes:
        name: For tables.
        points: Number of routing points, numbered from 0.
        corridors: Directed, both ways: point, point, metres.
        machines: Points with a machine, all free at first.
        updates: Each a list of (source, row, +1 or -1) that happens at once.
    """

    name: str
    points: int
    corridors: tuple[tuple[int, int, int], ...]
    machines: tuple[int, ...]
    updates: tuple[tuple[tuple[str, tuple[int, ...], int], ...], ...]


def w3(points: int = 10_000, count: int = 2_000, *, seed: int = 1) -> BuildingTrace:
    """Return the building trace: 70 % machines taken or freed, 30 % corridors closed or opened.

    Floors are grids of corridors of 50 columns, joined by stairs; 5 % of points have a machine.
    """
    chooser = random.Random(seed)
    edges = _corridors(points, chooser)
    machines = sorted(chooser.sample(range(points), max(10, points // 20)))
    busy: set[int] = set()
    closed: set[tuple[int, int, int]] = set()
    updates: list[tuple[tuple[str, tuple[int, ...], int], ...]] = []
    for _ in range(count):
        if chooser.random() < 0.7:
            machine = chooser.choice(machines)
            sign = 1 if machine in busy else -1
            busy ^= {machine}
            updates.append((("free", (machine, machine), sign),))
        else:
            edge = chooser.choice(edges)
            sign = 1 if edge in closed else -1
            closed ^= {edge}
            a, b, metres = edge
            rows = ((a, b, metres), (b, a, metres))
            updates.append(tuple(("corridor", row, sign) for row in rows))
    both = [row for a, b, metres in edges for row in ((a, b, metres), (b, a, metres))]
    return BuildingTrace(
        f"W3 {points} points", points, tuple(both), tuple(machines), tuple(updates)
    )


def _corridors(points: int, chooser: random.Random) -> list[tuple[int, int, int]]:
    columns = 50
    rows = max(2, min(20, points // columns))
    floor = columns * rows
    edges = []
    for point in range(points):
        y, x = divmod(point % floor, columns)
        if x + 1 < columns and point + 1 < points:
            edges.append((point, point + 1, chooser.randint(2, 9)))
        across = x % 5 == 0 or chooser.random() < 0.3
        if y + 1 < rows and point + columns < points and across:
            edges.append((point, point + columns, chooser.randint(2, 9)))
        if point + floor < points and x % 25 == 0 and y % 10 == 0:
            edges.append((point, point + floor, 15))
    return edges


def closure(links: Iterable[tuple[str, str, Any]]) -> set[Row]:
    """Return what is reachable along links, by search from every node."""
    onward: dict[str, set[str]] = {}
    for source, target, _cost in links:
        onward.setdefault(source, set()).add(target)
    found: set[Row] = set()
    for start, first in onward.items():
        seen: set[str] = set()
        todo = list(first)
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo.extend(onward.get(node, ()))
        found |= {(start, node) for node in seen}
    return found
