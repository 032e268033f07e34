"""What answers must be, computed from scratch the plain way."""

import heapq
from typing import Any

from tests.end_to_end.federation import Federation, Row

CLOSE = 1e-6
"""Metres by which two sums of the same distances may differ."""


def closure(links: set[Row]) -> set[Row]:
    """Return what is reachable over the links."""
    onward: dict[str, set[str]] = {}
    for source, target, *_ in links:
        onward.setdefault(source, set()).add(target)
    found: set[Row] = set()
    for start, next_nodes in onward.items():
        todo = list(next_nodes)
        seen: set[str] = set()
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo.extend(onward.get(node, ()))
        found |= {(start, node) for node in seen}
    return found


def is_closure(up: Federation, links: str, reachable: str) -> bool:
    """Whether, at one moment, one query's rows are the closure of another's, and not nothing."""
    before = up.rows(links)
    found = up.rows(reachable)
    return bool(before) and before == up.rows(links) and found == closure(before)


def shortest(edges: list[dict[str, Any]], start: str) -> dict[str, float]:
    """Return walking distances from a point in metres, by Dijkstra's algorithm."""
    onward: dict[str, list[tuple[str, float]]] = {}
    for edge in edges:
        onward.setdefault(edge["src"], []).append((edge["dst"], float(edge["distance"])))
        onward.setdefault(edge["dst"], []).append((edge["src"], float(edge["distance"])))
    best: dict[str, float] = {}
    heap = [(0.0, start)]
    while heap:
        cost, node = heapq.heappop(heap)
        if node not in best:
            best[node] = cost
            for to, length in onward.get(node, ()):
                heapq.heappush(heap, (cost + length, to))
    return best


class FreeMachines:
    """The free machines with a package and how far they are from a room, at every moment.

    Attributes:
        start: The room's routing point.
    """

    def __init__(self, up: Federation, room: str, software: str) -> None:
        self._up = up
        self.start = next(s["point"] for s in up.features("space") if s["id"] == room)
        self._distances = shortest(up.features("edge"), self.start)
        self._query = up.start_query(
            "SELECT f.mid, f.point FROM FreeMachines f JOIN MachineSoftware s ON s.mid = f.mid "
            f"WHERE s.software = '{software}'"
        )

    def distances(self) -> dict[str, float]:
        """Return metres by machine."""
        return {mid: self._distances[point] for mid, point in self._up.rows(self._query)}

    def is_nearest(self, mid: str, metres: float | None = None) -> bool:
        """Whether no free machine is nearer than this one, and it is so far, if that is given."""
        free = self.distances()
        if mid not in free or free[mid] > min(free.values()) + CLOSE:
            return False
        return metres is None or abs(free[mid] - metres) < CLOSE

    def close(self) -> None:
        """Stop the query behind this."""
        self._up.stop_query(self._query)
