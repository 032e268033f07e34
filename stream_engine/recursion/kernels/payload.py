"""Rows that tie as best of a node: which source they come from, which way they went.

Where columns other than group, node and value tell rows apart, a node has one row per distinct
payload. The payloads of a node follow from those of its *tight* predecessors (whose key leads to
the node's key) and of its own best starts. After the keys have been brought up to date, payloads
are computed again for the nodes whose tight edges changed, in order of their keys; nodes of one
level that feed each other (over edges of weight zero) are computed together, from nothing, so that
no payload survives on a cycle.

Only best rows lead on. Where rounding makes a worse row lead to the same sum as the best one, the
row that rests on the worse one is not kept: sums as floats are then a little less than all ties.
"""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from operator import add
from typing import Any

from stream_engine.recursion.kernels.graph_problem import GraphProblem, Kind, RowShape
from stream_engine.recursion.kernels.kernel_input import GraphInput, InputChange
from stream_engine.recursion.kernels.kernel_search import Keys, Old
from stream_engine.recursion.kernels.rows_view import search_of
from stream_engine.recursion.program.program import Program
from streamsql.algebra.scalar_functions.scalar import compile_row
from streamsql.data.delta import Delta
from streamsql.data.types import Row

_NO_PAYLOADS: frozenset[Row] = frozenset()


class Transfer:
    """The payloads of starts, and how edges change payloads.

    State: the starts with their payloads; and, where payloads are computed from edges, what they
    read of every edge.

    Attributes:
        leads_to: The level that an edge of a weight gives, from that of its beginning.
    """

    def __init__(self, problem: GraphProblem, values: list[Any]) -> None:
        self.leads_to = _leads_to(problem)
        self._values = values
        self._negated = problem.negated
        self._row_of = RowShape(problem).full_row_of
        self._functions = [
            None if rule.expressions is None else compile_row(rule.expressions)
            for rule in problem.payload_rules
        ]
        self._computes = any(function is not None for function in self._functions)
        self._starts: dict[tuple[Any, int], dict[tuple[Any, Row], int]] = {}
        self._edges: dict[tuple[int, int], dict[tuple[Any, int, Row], int]] = {}

    def count(self, change: InputChange) -> None:
        """Ingest changes of starts and edges."""
        for group, node, key, payload, count in change.source_rows:
            _tally(self._starts, (group, node), (key, payload), count)
        if self._computes:
            for a, b, weight, rule, extra, count in change.edge_rows:
                _tally(self._edges, (a, b), (weight, rule, extra), count)

    def starts(self, group: Any, node: int, level: Any) -> frozenset[Row]:
        """Return the payloads with which a node starts at a level."""
        known = self._starts.get((group, node))
        if known is None:
            return _NO_PAYLOADS
        return frozenset([payload for key, payload in known if key == level])

    def over(
        self, edge: tuple[int, int], group: Any, below: Any, here: Any, payloads: frozenset[Row]
    ) -> frozenset[Row]:
        """Return what the tight edges between two nodes make of payloads."""
        if not self._computes:
            return payloads
        found: set[Row] = set()
        value = -below if self._negated else below
        for weight, rule, extra in self._edges[edge]:
            if self.leads_to(below, weight) != here:
                continue
            function = self._functions[rule]
            if function is None:
                found |= payloads
                continue
            name = self._values[edge[0]]
            for payload in payloads:
                found.add(function(self._row_of(group, name, value, payload) + extra))
        return frozenset(found)


def _leads_to(problem: GraphProblem) -> Callable[[Any, Any], Any]:
    if problem.kind is Kind.COST:
        return add
    if problem.weighted:
        return max
    return lambda level, _weight: level


def _tally(into: dict[Any, dict[Any, int]], key: Any, item: Any, count: int) -> None:
    counts = into.setdefault(key, {})
    left = counts.get(item, 0) + count
    if left:
        counts[item] = left
        return
    del counts[item]
    if not counts:
        del into[key]


Payloads = frozenset[Row]
Touched = dict[Any, tuple[Keys, Old]]
"""Per group whose keys changed: its keys, and the old ones of what was touched."""

_NONE: Payloads = frozenset()


class PayloadView:
    """The payloads of all nodes, and the rows they make.

    State: a set of payloads per group and node; equal sets that are handed on are one object. Work
    per change: the edges at nodes whose key, tight edges or payloads change.
    """

    def __init__(
        self, program: Program, problem: GraphProblem, source: GraphInput, elastic: float
    ) -> None:
        self.size = 0
        self.touched = 0
        self._program = program
        self._row_of = RowShape(problem).full_row_of
        self._values = source.nodes.values
        self._graph = source.graph
        self._search = search_of(problem, source, elastic)
        self._negated = problem.negated
        self._has_ranks = problem.kind is Kind.PLATEAU
        self._transfer = Transfer(problem, source.nodes.values)
        self._of: dict[Any, dict[int, Payloads]] = {}

    def change(self, change: InputChange) -> Delta:
        """Bring the view up to date after the graph and its sources changed."""
        changes = self._search.change(change.gone, change.come, change.sources)
        touched = {group: (d, old) for group, d, old in changes}
        self.touched += sum(len(old) for _, old in touched.values())
        self._transfer.count(change)
        delta: Delta = {}
        for group, nodes in self._dirtied(change, touched).items():
            d, old = touched.get(group) or (self._search.groups.get(group, {}), {})
            self._run(group, d, old, nodes, delta)
        return delta

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the view."""
        for group, payloads in self._of.items():
            d = self._search.groups[group]
            for node, found in payloads.items():
                value = self._value(self._level(d[node]))
                for payload in found:
                    yield self._row_of(group, self._values[node], value, payload)

    def _level(self, key: Any) -> Any:
        """Return the part of a key (or None) that decides what is best."""
        return key[0] if self._has_ranks and key is not None else key

    def _value(self, level: Any) -> Any:
        return -level if self._negated else level

    def _dirtied(self, change: InputChange, touched: Touched) -> dict[Any, set[int]]:
        """Return per group the nodes whose payloads may change first."""
        level, leads_to, out = self._level, self._transfer.leads_to, self._graph.out
        dirty: dict[Any, set[int]] = {}
        for group, node, *_ in change.source_rows:
            dirty.setdefault(group, set()).add(node)
        for group, (d, old) in touched.items():
            nodes = dirty.setdefault(group, set())
            for a, key in old.items():
                before = level(key)
                if before == level(d.get(a)):
                    continue
                nodes.add(a)
                if before is not None:
                    for b, weight in out[a].items():
                        if leads_to(before, weight) == level(old.get(b, d.get(b))):
                            nodes.add(b)
        for a, b, weight, *_ in change.edge_rows:
            nobody: tuple[Keys, Old] = ({}, {})
            for group, d in {
                **self._search.reaching(a),
                **{group: keys for group, (keys, _) in touched.items()},
            }.items():
                old = touched.get(group, nobody)[1]
                for keys in ((d.get(a), d.get(b)), (old.get(a, d.get(a)), old.get(b, d.get(b)))):
                    here, there = level(keys[0]), level(keys[1])
                    if None not in (here, there) and leads_to(here, weight) == there:
                        dirty.setdefault(group, set()).add(b)
        return dirty

    def _run(self, group: Any, d: Keys, old: Old, dirty: set[int], delta: Delta) -> None:
        level, out, leads_to = self._level, self._graph.out, self._transfer.leads_to
        payloads = self._of.setdefault(group, {})
        for node in dirty:
            if node not in d:
                self._replace(group, node, (level(old.get(node)), None), _NONE, delta)
        heap = [(level(d[node]), node) for node in dirty if node in d]
        heapify(heap)
        while heap:
            here, node = heap[0]
            members = {node}
            while heap and heap[0][0] == here:
                members.add(heappop(heap)[1])
            members = self._closed(here, members, d)
            for member, found in self._computed(group, here, members, d, payloads).items():
                before = level(old.get(member, d[member]))
                if found == payloads.get(member, _NONE) and before == here:
                    continue
                self._replace(group, member, (before, here), found, delta)
                for b, weight in out[member].items():
                    if b in d and b not in members and leads_to(here, weight) == level(d[b]):
                        heappush(heap, (level(d[b]), b))
            self._program.check_size(self.size)
        if not payloads:
            del self._of[group]

    def _closed(self, here: Any, members: set[int], d: Keys) -> set[int]:
        todo = list(members)
        while todo:
            for b, weight in self._graph.out[todo.pop()].items():
                if (
                    b not in members
                    and b in d
                    and self._level(d[b]) == here
                    and self._transfer.leads_to(here, weight) == here
                ):
                    members.add(b)
                    todo.append(b)
        return members

    def _computed(
        self, group: Any, here: Any, members: set[int], d: Keys, payloads: dict[int, Payloads]
    ) -> dict[int, Payloads]:
        level, transfer = self._level, self._transfer
        found: dict[int, Payloads] = {}
        feeds_inside = False
        for b in members:
            parts = [transfer.starts(group, b, here)]
            for a, weight in self._graph.inn[b].items():
                if a not in d:
                    continue
                below = level(d[a])
                if transfer.leads_to(below, weight) != here:
                    continue
                if a in members:
                    feeds_inside = True
                else:
                    parts.append(transfer.over((a, b), group, below, here, payloads[a]))
            parts = [part for part in parts if part]
            found[b] = parts[0] if len(parts) == 1 else _NONE.union(*parts)
        if feeds_inside:
            self._spread(group, here, members, found)
        return found

    def _spread(self, group: Any, here: Any, members: set[int], found: dict[int, Payloads]) -> None:
        """Let nodes of one level feed each other until nothing is new."""
        transfer = self._transfer
        fresh = {node: payloads for node, payloads in found.items() if payloads}
        rounds = 0
        while fresh:
            rounds += 1
            self._program.check_rounds(rounds, len(members))
            arrived: dict[int, set[Row]] = {}
            for a, new in fresh.items():
                for b, weight in self._graph.out[a].items():
                    if b in members and transfer.leads_to(here, weight) == here:
                        over = transfer.over((a, b), group, here, here, new)
                        arrived.setdefault(b, set()).update(over)
            fresh = {}
            for b, rows in arrived.items():
                new = frozenset(rows - found[b])
                if new:
                    fresh[b] = new
                    found[b] |= new
            self._program.check_size(self.size + sum(map(len, found.values())) // 2)

    def _replace(
        self,
        group: Any,
        node: int,
        levels: tuple[Any, Any],
        new: Payloads,
        delta: Delta,
    ) -> None:
        """Give a node other payloads, at its old and its new level; note the changed rows."""
        payloads = self._of[group]
        old = payloads.pop(node, _NONE)
        if new:
            payloads[node] = new
        self.size += len(new) - len(old)
        stay = old & new if levels[0] == levels[1] else _NONE
        name, row_of = self._values[node], self._row_of
        for payload in old - stay:
            delta[row_of(group, name, self._value(levels[0]), payload)] = -1
        for payload in new - stay:
            delta[row_of(group, name, self._value(levels[1]), payload)] = 1
