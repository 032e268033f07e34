"""Least sums of non-negative weights from sources, under changes of sources and edges.

Ramalingam and Reps: after a deletion, first the nodes that lose their last support, then a search
as Dijkstra's over these. A support is a predecessor whose key plus the weight is the node's key and
whose own key is *smaller*: along edges of weight zero (or one that a large sum swallows) nodes
could hold up each other, so such edges are no proof, and their ends are searched again. Keys are
summed along the path in the order of the rule, so floats equal those of an evaluation from scratch.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any

from typing_extensions import override

from stream_engine.recursion.kernels.kernel_graph import Change
from stream_engine.recursion.kernels.kernel_search import At, Core, Keys, Old, most_repaired


class Costs(Core):
    """Keeps the least sums of one group; see `Core`."""

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
