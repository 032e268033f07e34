"""Which nodes a set of sources reaches, under changes of sources and edges.

Every node that is reached has a rank above that of some predecessor: sources have rank 0. Ranks are
a proof that nodes do not hold up each other on a cycle; they need not be distances, so a shortcut
changes nothing, and a node that loses an edge stays when *any* predecessor of lower rank is left.
"""

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from stream_engine.recursion.kernels.kernel_graph import Change
from stream_engine.recursion.kernels.kernel_search import At, Core, Keys, Old, most_repaired

_SEVERAL = -1
"""In place of the beginning of the edge that a node has lost, when it has lost several."""


class Reach(Core):
    """Keeps ranks of one group; see `Core`."""

    @override
    def losing(self, at: At, gone: list[Change]) -> dict[Any, list[int]]:
        inn = self._inn
        found: dict[Any, list[int]] = {}
        ends: dict[int, int] = {}
        for a, b, _ in gone:
            ends[b] = _SEVERAL if b in ends else a
        for b, a in ends.items():
            others = inn[b]
            for group, d in at[b].items():
                x = d[b]
                if a != _SEVERAL:
                    y = d.get(a)
                    if y is None or y >= x:
                        continue
                for p in others:
                    y = d.get(p)
                    if y is not None and y < x:
                        break
                else:
                    found.setdefault(group, []).append(b)
        return found

    @override
    def gaining(self, at: At, come: list[Change], *, every: bool) -> dict[Any, list[Change]]:
        found: dict[Any, list[Change]] = {}
        entered: dict[int, set[Any]] = {}
        for edge in come:
            a, b, _ = edge
            if not at[a]:
                continue
            already, known = at[b], entered.get(b)
            if known is None:
                new = at[a].keys() - already.keys()
                if not every:
                    entered[b] = new
            else:
                new = {group for group in at[a] if group not in known and group not in already}
                known |= new
            for group in new:
                found.setdefault(group, []).append(edge)
        return found

    @override
    def rests_on(self, key: Any, _start: Any) -> bool:
        return key is not None

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
        front: list[int] = []
        if lost:
            if not self._drop(d, sources, lost, old):
                return self._again(d, sources, old)
            for b in old:
                for p in inn[b]:
                    rank = get(p)
                    if rank is not None:
                        d[b] = rank + 1
                        front.append(b)
                        break
        for b in started:
            if b not in d:
                d[b] = 0
                front.append(b)
                old.setdefault(b)
        for a, b, _ in come:
            if b not in d and a in d:
                d[b] = d[a] + 1
                front.append(b)
                old.setdefault(b)
        self._spread(d, front, old)
        return old

    def _spread(self, d: Keys, front: list[int], old: Old) -> None:
        out = self._out
        for a in front:  # grows
            rank = d[a] + 1
            for b in out[a]:
                if b not in d:
                    d[b] = rank
                    front.append(b)
                    if b not in old:
                        old[b] = None

    def _drop(self, d: Keys, sources: Mapping[int, Any], lost: list[int], old: Old) -> bool:
        out, inn, get = self._out, self._inn, d.get
        most = most_repaired(self._elastic, len(d))
        while lost:
            b = lost.pop()
            x = get(b)
            if x is None or b in sources:
                continue
            for p in inn[b]:
                y = get(p)
                if y is not None and y < x:
                    break
            else:
                del d[b]
                old[b] = x
                if len(old) > most:
                    return False
                for c in out[b]:
                    z = get(c)
                    if z is not None and z > x:
                        lost.append(c)
        return True

    @override
    def _search(self, d: Keys, sources: Mapping[int, Any]) -> None:
        d.update(dict.fromkeys(sources, 0))
        self._spread(d, list(d), {})

    @override
    def _differs(self, before: Any, now: Any) -> bool:
        return False
