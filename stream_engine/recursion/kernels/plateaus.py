"""Least bottlenecks (or least labels) from sources, under changes of sources and edges.

A key is a pair (level, rank): the level is the greatest weight on the best way, and the rank proves
that nodes of one level do not hold up each other: it is above that of a predecessor on the same
level, and 0 where the level begins. As in `reach`, ranks need not be least.
"""

from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush
from typing import Any

from typing_extensions import override

from stream_engine.recursion.kernels.kernel_graph import Change, Graph
from stream_engine.recursion.kernels.kernel_search import At, Core, Keys, Old, most_repaired


def _raised(level: Any, weight: Any) -> Any:
    return max(level, weight)


def _kept(level: Any, _weight: Any) -> Any:
    return level


class Plateaus(Core):
    """Keeps the levels of one group; see `Core`.

    Args:
        weighted: Whether weights raise levels; otherwise every step keeps the level.
    """

    def __init__(self, graph: Graph, elastic: float, *, weighted: bool) -> None:
        super().__init__(graph, elastic)
        self._raised: Callable[[Any, Any], Any] = _raised if weighted else _kept

    @override
    def losing(self, at: At, gone: list[Change]) -> dict[Any, list[int]]:
        found: dict[Any, list[int]] = {}
        for a, b, w in gone:
            for group, d in at[a].items():
                if b in d and self._rests(d[b], d[a], w):
                    found.setdefault(group, []).append(b)
        return found

    @override
    def gaining(
        self,
        at: At,
        come: list[Change],
        *,
        every: bool,
    ) -> dict[Any, list[Change]]:
        raised = self._raised
        found: dict[Any, list[Change]] = {}
        for edge in come:
            a, b, w = edge
            for group, d in at[a].items():
                if b not in d or raised(d[a][0], w) < d[b][0]:
                    found.setdefault(group, []).append(edge)
        return found

    @override
    def rests_on(self, key: Any, start: Any) -> bool:
        return key is not None and key[0] == start

    def _rests(self, key: tuple[Any, int], below: tuple[Any, int], weight: Any) -> bool:
        """Whether an edge of that weight from a node with key `below` proves a key."""
        level, rank = below
        return bool(self._raised(level, weight) == key[0] and (level < key[0] or rank < key[1]))

    @override
    def repair(
        self,
        d: Keys,
        sources: Mapping[int, Any],
        lost: list[int],
        come: list[Change],
        started: list[int],
    ) -> Old:
        inn, get, raised = self._inn, d.get, self._raised
        old: Old = {}
        heap: list[tuple[Any, int, int]] = []
        if lost:
            if not self._drop(d, sources, lost, old):
                return self._again(d, sources, old)
            for b in old:
                best = (sources[b], 0) if b in sources else None
                for p, w in inn[b].items():
                    below = get(p)
                    if below is not None:
                        level = raised(below[0], w)
                        found = (level, below[1] + 1 if level == below[0] else 0)
                        if best is None or found < best:
                            best = found
                if best is not None:
                    heap.append((*best, b))
        heap.extend((sources[b], 0, b) for b in started if b not in d or sources[b] < d[b][0])
        for a, b, w in come:
            if a in d:
                level, rank = d[a]
                new = raised(level, w)
                if b not in d or new < d[b][0]:
                    heap.append((new, rank + 1 if new == level else 0, b))
        heapify(heap)
        self._settle(d, heap, old)
        return old

    def _drop(self, d: Keys, sources: Mapping[int, Any], lost: list[int], old: Old) -> bool:
        """Drop the nodes without support; return False when they are too many to repair."""
        out, inn, get, rests = self._out, self._inn, d.get, self._rests
        most = most_repaired(self._elastic, len(d))
        while lost:
            b = lost.pop()
            key = get(b)
            if key is None or sources.get(b) == key[0]:
                continue
            if any(p in d and rests(key, d[p], w) for p, w in inn[b].items()):
                continue
            del d[b]
            old[b] = key
            if len(old) > most:
                return False
            lost.extend(c for c, w in out[b].items() if c in d and rests(d[c], key, w))
        return True

    def _settle(self, d: Keys, heap: list[tuple[Any, int, int]], old: Old) -> None:
        out, get, raised = self._out, d.get, self._raised
        while heap:
            x, rank, a = heappop(heap)
            key = get(a)
            if key is not None and key[0] <= x:
                continue
            if a not in old:
                old[a] = key
            d[a] = (x, rank)
            for b, w in out[a].items():
                level = raised(x, w)
                other = get(b)
                if other is None or level < other[0]:
                    heappush(heap, (level, rank + 1 if level == x else 0, b))

    @override
    def _search(self, d: Keys, sources: Mapping[int, Any]) -> None:
        heap = [(level, 0, node) for node, level in sources.items()]
        heapify(heap)
        self._settle(d, heap, {})

    @override
    def _differs(self, before: Any, now: Any) -> bool:
        return bool(before[0] != now[0])
