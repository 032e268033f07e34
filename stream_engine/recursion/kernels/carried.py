"""Least sums with rows that tie, where each step carries the payload along as it is.

"Every point with its nearest machines": one search from all sources, whose payload (the machine)
passes unchanged along the edges on which a key rests. Keys and payloads are repaired together in
one sweep in order of keys: when a node's turn comes, the keys and payloads of all its tight
predecessors (those whose key plus the weight is the node's) are final. That holds while every
weight is a positive integer, so that a predecessor's key is truly smaller; `payload` takes over
when other weights come, and has groups and computed payloads.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any

from stream_engine.recursion.kernels.graph_problem import GraphProblem, Kind, RowShape
from stream_engine.recursion.kernels.kernel_graph import Change
from stream_engine.recursion.kernels.kernel_input import GraphInput, InputChange
from stream_engine.recursion.kernels.kernel_search import SourceChange, most_repaired
from stream_engine.recursion.kernels.payload import Transfer
from stream_engine.recursion.program.program import Program
from streamsql.data.delta import Delta
from streamsql.data.types import Row

Payloads = frozenset[Row]
Before = dict[int, tuple[Any, Payloads]]
"""Nodes whose key or payloads changed or may have, with the old ones."""

_NONE: Payloads = frozenset()
_FAR: Any = inf
"""The key of what is not reached: larger than any other, also with a weight added."""
_ONLY_GROUP: Any = ()
_CHECK_EVERY = 4_096
"""Nodes between two looks at bounds and interruptions."""


class OtherWeightsError(Exception):
    """A weight or start is not a (positive) integer; nothing is changed yet."""


def carries(problem: GraphProblem) -> bool:
    """Return whether a problem is of this form, its weights apart."""
    return (
        problem.kind is Kind.COST
        and not problem.group
        and all(rule.expressions is None for rule in problem.payload_rules)
    )


class CarriedCosts:
    """The keys and payloads of all nodes, and the rows they make.

    State: a key and a set of payloads per node, in lists (to look into a dictionary is a call, and
    keys of neighbours are all that this does); sets that are handed on are one object. Work per
    change: the edges at nodes whose key, tight edges or payloads change.

    Args:
        problem: One for which `carries` is true.
    """

    def __init__(
        self, program: Program, problem: GraphProblem, source: GraphInput, elastic: float
    ) -> None:
        self.size = 0
        self.touched = 0
        self._program = program
        self._row_of = RowShape(problem).full_row_of
        self._values = source.nodes.values
        self._out, self._inn = source.graph.out, source.graph.inn
        self._elastic = elastic
        self._negated = problem.negated
        self._transfer = Transfer(problem, source.nodes.values)
        self._sources: dict[int, Any] = {}
        self._keys: list[Any] = []
        self._payloads: list[Payloads] = []
        self._reached = 0

    def change(self, change: InputChange) -> Delta:
        """Bring the view up to date after the graph and its sources changed."""
        _check_weights(change)
        self._transfer.count(change)
        d, payloads = self._keys, self._payloads
        missing = len(self._out) - len(d)
        if missing > 0:
            d.extend([_FAR] * missing)
            payloads.extend([_NONE] * missing)
        started = self._change_sources(change.sources)
        changed = [node for _, node, key, _, _ in change.source_rows if d[node] == key]
        changed += [b for a, b, w in change.gone if d[a] + w == d[b] < _FAR]
        before: Before = {}
        standing = self._drop(changed, before)
        if standing is None:
            heap = self._all_offers(before)
        else:
            heap = self._offers(before, standing, started, change.come)
        heapify(heap)
        self._settle(heap, before)
        self.touched += len(before)
        return self._changes(before)

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the view."""
        for node, (key, payloads) in enumerate(zip(self._keys, self._payloads, strict=True)):
            for payload in payloads:
                value = -key if self._negated else key
                yield self._row_of(_ONLY_GROUP, self._values[node], value, payload)

    def _change_sources(self, changes: list[SourceChange]) -> list[int]:
        sources = self._sources
        for _, node, _, new in changes:
            if new is None:
                del sources[node]
            else:
                sources[node] = new
        return [node for _, node, _, new in changes if new is not None]

    def _drop(self, changed: list[int], before: Before) -> list[int] | None:
        """Drop the nodes that have lost their last support, and what rested on them.

        Args:
            changed: Nodes that have lost an edge or start on which they rested. Taken apart.
            before: Gets the nodes that are dropped.

        Returns:
            Nodes that stand, but may have lost payloads (some of them may be dropped after all);
            None when too many are dropped to be repaired.
        """
        inn, out, sources, payloads = self._inn, self._out, self._sources, self._payloads
        d = self._keys
        most = most_repaired(self._elastic, self._reached)
        standing: list[int] = []
        while changed:
            b = changed.pop()
            x = d[b]
            if x is _FAR:
                continue
            if b in sources and sources[b] == x:
                standing.append(b)
                continue
            for a, w in inn[b].items():
                if d[a] + w == x:
                    standing.append(b)
                    break
            else:
                before[b] = (x, payloads[b])
                if len(before) > most:
                    return None
                d[b] = _FAR
                payloads[b] = _NONE
                for c, w in out[b].items():
                    if d[c] == x + w:
                        changed.append(c)
        return standing

    def _offers(
        self, dropped: Before, standing: list[int], started: list[int], come: list[Change]
    ) -> list[tuple[Any, int]]:
        """Return nodes to look at, with the keys that they have or may get."""
        inn, sources, d = self._inn, self._sources, self._keys
        offers: list[tuple[Any, int]] = []
        for b, (_, had) in dropped.items():
            self._reached -= 1
            self.size -= len(had)
            best = sources.get(b, _FAR)
            for a, w in inn[b].items():
                x = d[a] + w
                if x < best:  # noqa: PLR1730  (min is slower)
                    best = x
            if best < _FAR:
                offers.append((best, b))
        offers.extend([(d[b], b) for b in standing if d[b] is not _FAR])
        offers.extend([(sources[b], b) for b in started if sources[b] <= d[b]])
        offers.extend([(d[a] + w, b) for a, b, w in come if d[a] + w <= d[b] and d[a] is not _FAR])
        return offers

    def _all_offers(self, dropped: Before) -> list[tuple[Any, int]]:
        """Discard all keys, to search again; return the sources with theirs."""
        d, payloads = self._keys, self._payloads
        for node, key in enumerate(d):
            if key is not _FAR:
                dropped.setdefault(node, (key, payloads[node]))
        d[:] = [_FAR] * len(d)
        payloads[:] = [_NONE] * len(d)
        self.size = self._reached = 0
        return [(key, node) for node, key in self._sources.items()]

    def _settle(self, heap: list[tuple[Any, int]], before: Before) -> None:
        """Give nodes their keys and payloads, least keys first; each has its turn once."""
        inn, out, sources, payloads = self._inn, self._out, self._sources, self._payloads
        d = self._keys
        done: set[int] = set()
        unchecked = 0
        while heap:
            x, b = heappop(heap)
            if b in done:
                continue
            done.add(b)
            unchecked += 1
            if unchecked == _CHECK_EVERY:
                self._program.check_size(self.size)
                unchecked = 0
            found = _NONE
            if b in sources and sources[b] == x:
                found = self._transfer.starts(_ONLY_GROUP, b, x)
            for a, w in inn[b].items():
                if d[a] + w == x:
                    arriving = payloads[a]
                    if not found:
                        found = arriving
                    elif found is not arriving:
                        found |= arriving
            key, had = d[b], payloads[b]
            if key == x and found == had:
                continue
            if b not in before:
                before[b] = (key, had)
            if key is _FAR:
                self._reached += 1
            d[b] = x
            if found is not had:
                payloads[b] = found
                self.size += len(found) - len(had)
            for c, w in out[b].items():
                z = x + w
                if z <= d[c]:
                    heappush(heap, (z, c))

    def _changes(self, before: Before) -> Delta:
        delta: Delta = {}
        row_of, values, d, payloads = self._row_of, self._values, self._keys, self._payloads
        negated = self._negated
        for node, (old, had) in before.items():
            key, now, has = old, d[node], payloads[node]
            if key != now:
                gone, come = had, has
            elif had is has:
                continue
            else:
                gone, come = had - has, has - had
            name = values[node]
            if negated:
                key, now = -key, -now
            for payload in gone:
                delta[row_of(_ONLY_GROUP, name, key, payload)] = -1
            for payload in come:
                delta[row_of(_ONLY_GROUP, name, now, payload)] = 1
        return delta


def _check_weights(change: InputChange) -> None:
    for _, _, weight in change.come:
        if type(weight) is not int or weight <= 0:
            raise OtherWeightsError(f"weight {weight}")
    for _, _, _, key in change.sources:
        if key is not None and type(key) is not int:
            raise OtherWeightsError(f"start {key}")
