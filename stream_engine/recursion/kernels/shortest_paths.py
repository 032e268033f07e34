"""Least sums, bottlenecks and labels from sources, under changes of sources and edges."""

from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any

from typing_extensions import override

from stream_engine.recursion.kernels.kernel_graph import Change, Graph
from stream_engine.recursion.kernels.kernel_search import At, Core, Keys, Old, most_repaired


class Costs(Core):
    """Least sums of non-negative weights.

    Ramalingam and Reps: after a deletion, first the nodes that lose their last support, then a
    search as Dijkstra's over these. A support is a predecessor whose key plus the weight is the
    node's key and whose own key is *smaller*: along edges of weight zero (or one that a large sum
    swallows) nodes could hold up each other, so such edges are no proof, and their ends are
    searched again. Keys are summed along the path in the order of the rule, so floats equal those
    of an evaluation from scratch.
    """

    @override
    def losing(self, at: At, gone: list[Change]) -> dict[Any, list[int]]:
        found: dict[Any, list[int]] = {}
        for a, b, w in gone:
            others = tuple(self._inn[b].items())
            for group, d in at[a].items():
                x = d[a] + w
                if x == d.get(b):
                    for p, weight in others:
                        y = d.get(p, inf)
                        if y < x and y + weight == x:
                            break
                    else:
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
        found: dict[Any, list[Change]] = {}
        for edge in come:
            a, b, w = edge
            for group, d in at[a].items():
                if d[a] + w < d.get(b, inf):
                    found.setdefault(group, []).append(edge)
        return found

    @override
    def rests_on(self, key: Any, start: Any) -> bool:
        return bool(key == start)

    @override
    def repair(
        self,
        d: Keys,
        sources: Mapping[int, Any],
        lost: list[int],
        come: list[Change],
        started: list[int],
    ) -> Old:
        inn, get = self._inn, d.get
        old: Old = {}
        heap: list[tuple[Any, int]] = []
        if lost:
            if not self._drop(d, sources, lost, old):
                return self._again(d, sources, old)
            for b in old:
                best = sources.get(b, inf)
                for p, w in inn[b].items():
                    x = get(p, inf) + w
                    if x < best:  # noqa: PLR1730  (min is slower)
                        best = x
                if best < inf:
                    heap.append((best, b))
        heap.extend((sources[b], b) for b in started if sources[b] < get(b, inf))
        for a, b, w in come:
            x = get(a, inf) + w
            if x < get(b, inf):
                heap.append((x, b))
        if len(heap) > 1:
            heapify(heap)
        self._settle(d, heap, old)
        return old

    def _drop(self, d: Keys, sources: Mapping[int, Any], lost: list[int], old: Old) -> bool:
        """Drop the nodes without support; return False when they are too many to repair."""
        out, inn, get = self._out, self._inn, d.get
        most = most_repaired(self._elastic, len(d))
        while lost:
            b = lost.pop()
            x = get(b)
            if x is None or sources.get(b) == x:
                continue
            for p, w in inn[b].items():
                y = get(p, inf)
                if y < x and y + w == x:
                    break
            else:
                del d[b]
                old[b] = x
                if len(old) > most:
                    return False
                for c, w in out[b].items():
                    if x + w == get(c):
                        lost.append(c)
        return True

    def _settle(self, d: Keys, heap: list[tuple[Any, int]], old: Old) -> None:
        out, get = self._out, d.get
        while heap:
            x, a = heappop(heap)
            y = get(a)
            if y is not None and y <= x:
                continue
            if a not in old:
                old[a] = y
            d[a] = x
            for b, w in out[a].items():
                z = x + w
                if z < get(b, inf):
                    heappush(heap, (z, b))

    @override
    def _search(self, d: Keys, sources: Mapping[int, Any]) -> None:
        heap = [(key, node) for node, key in sources.items()]
        heapify(heap)
        self._settle(d, heap, {})


def _raised(level: Any, weight: Any) -> Any:
    return max(level, weight)


def _kept(level: Any, _weight: Any) -> Any:
    return level


class Plateaus(Core):
    """Least bottlenecks, or least labels.

    A key is a pair (level, rank): the level is the greatest weight on the best way, and the rank
    proves that nodes of one level do not hold up each other: it is above that of a predecessor on
    the same level, and 0 where the level begins. As in `reach`, ranks need not be least.

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
