"""From leaf changes to changes of a numbered graph and of sources."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from stream_engine.recursion.kernels.graph_problem import GraphProblem, Kind, RowShape
from stream_engine.recursion.kernels.kernel_derivations import Derivations, Leaves
from stream_engine.recursion.kernels.kernel_graph import (
    Change,
    Counted,
    Graph,
    Numbering,
    changed_best,
)
from stream_engine.recursion.kernels.kernel_search import SourceChange
from stream_engine.recursion.kernels.proximity import GridError
from stream_engine.recursion.program.item_tables import values_at
from streamsql.data.delta import Delta
from streamsql.data.types import Row

_MOST_INTEGER = 2**63 - 1
_MOST_DOUBLE = 1e308

SourceRow = tuple[Any, int, Any, Row, int]
"""Group, node, start key, payload, and how many derivations of it come (or go)."""

EdgeRow = tuple[int, int, Any, int, Row, int]
"""From, to, weight, step rule, what the payload reads of it, and how many derivations come."""


class GiveUpError(Exception):
    """The data are such that the kernel could be wrong; the text says what. Nothing is changed."""


class TooLargeError(Exception):
    """Compiled code has no room for the problem, or its numbers; the text says why."""


@dataclass(slots=True)
class InputChange:
    """What a change of the leaves does to the problem.

    Attributes:
        gone: Best edges that there are no more, with their old weights.
        come: Best edges that are new, with their new weights.
        sources: How the best start keys change.
        edge_rows: All derivations of edges, for the payload.
        source_rows: All derivations of sources, for the payload.
    """

    gone: list[Change] = field(default_factory=list)
    come: list[Change] = field(default_factory=list)
    sources: list[SourceChange] = field(default_factory=list)
    edge_rows: list[EdgeRow] = field(default_factory=list)
    source_rows: list[SourceRow] = field(default_factory=list)
    derivations: int = 0


class GraphInput:
    """The graph and the sources of a problem, from its leaves.

    State: the graph, the starts, and the numbers of nodes that an edge or a source mentions. Work
    per change: the derivations that come and go.

    Attributes:
        largest_sum: No sum along a path without repeated nodes is larger, nor can become so without
            a change; for sums of weights only.
    """

    def __init__(self, problem: GraphProblem, leaf_count: int) -> None:
        self.graph = Graph()
        self.nodes = Numbering()
        self._problem = problem
        self._shape = RowShape(problem)
        self._steps = len(problem.edges)
        self._derivations = Derivations(problem.edges + problem.base, leaf_count)
        width = len(problem.node)
        self._from = values_at(tuple(range(width)))
        self._to = values_at(tuple(range(width, 2 * width)))
        self._lone = width == 1
        self._weight_at = 2 * width
        self._extra_at = 2 * width + problem.weighted
        self._starts: dict[tuple[Any, int], dict[Any, int]] = {}
        self._best_start: dict[tuple[Any, int], Any] = {}
        self._mentions: list[int] = []
        self._touched: set[int] = set()
        self._most: tuple[Any, Any] = (0, 0)
        self.largest_sum: Any = 0

    def change(self, entered: Leaves, left: Leaves) -> InputChange:
        """Apply changes of the leaves.

        Raises:
            GiveUpError: See there; this object is of no more use.
        """
        try:
            found = self._derivations.change(entered, left)
        except GridError as error:
            raise GiveUpError(str(error)) from None
        change = InputChange()
        counted: list[Counted] = []
        for number in range(self._steps):
            if found[number]:
                self._read_edges(number, found[number], change, counted)
        for derived in found[self._steps :]:
            if derived:
                self._read_sources(derived, change)
        self._check_sums()
        change.derivations = len(counted) + len(change.source_rows)
        change.gone, change.come = self.graph.apply(counted)
        self._change_starts(change)
        return change

    def release(self) -> None:
        """Discard nodes that no edge and no source mentions any more."""
        for node in self._touched:
            if not self._mentions[node] and self.graph.is_isolated(node):
                self.nodes.release(node)
        self._touched = set()

    def _read_edges(
        self, number: int, derived: Delta, change: InputChange, counted: list[Counted]
    ) -> None:
        weighted, at, extra_at = self._problem.weighted, self._weight_at, self._extra_at
        sign = -1 if self._problem.negated else 1
        costs = self._problem.kind is Kind.COST
        keeps_rows = bool(self._problem.payload)
        for row, count in derived.items():
            a, b = self._from(row), self._to(row)
            if a is None if self._lone else None in a:
                continue
            weight: Any = 0
            if weighted:
                weight = row[at]
                if weight is None:
                    continue
                if sign < 0:
                    weight = -weight
                if costs and count > 0:
                    self._check_weight(weight)
            start, end = self._number(a), self._number(b)
            if count < 0:
                self._touched.add(start)
                self._touched.add(end)
            counted.append((start, end, weight, count))
            if keeps_rows:
                change.edge_rows.append((start, end, weight, number, row[extra_at:], count))

    def _read_sources(self, derived: Delta, change: InputChange) -> None:
        problem, shape = self._problem, self._shape
        value = problem.value
        for row, count in derived.items():
            key: Any = 0
            if value is not None:
                key = row[value]
                if key is None:
                    continue
                if problem.negated:
                    key = -key
                if problem.kind is Kind.COST and count > 0:
                    self._most = (max(self._most[0], abs(key)), self._most[1])
            node = self._number(shape.node_of(row))
            payload = shape.payload_of(row)
            change.source_rows.append((shape.group_of(row), node, key, payload, count))

    def _change_starts(self, change: InputChange) -> None:
        before: dict[tuple[Any, int], Any] = {}
        best = self._best_start
        for group, node, key, _, count in change.source_rows:
            place = (group, node)
            old = best.get(place)
            before.setdefault(place, old)
            new = changed_best(self._starts, place, old, key, count)
            if new is None:
                del best[place]
                self._mentions[node] -= 1
                self._touched.add(node)
            else:
                best[place] = new
                self._mentions[node] += old is None
        for (group, node), old in before.items():
            new = best.get((group, node))
            if new != old:
                change.sources.append((group, node, old, new))

    def _number(self, value: Hashable) -> int:
        known = self.nodes.number_of.get(value)
        if known is not None:
            return known
        number = self.nodes.number(value)
        if number >= len(self._mentions):
            self._mentions.append(0)
            self.graph.make_room(number + 1)
        return number

    def _check_weight(self, weight: Any) -> None:
        if weight < 0:
            raise GiveUpError("a weight is negative")
        if weight > self._most[1]:
            self._most = (self._most[0], weight)

    def _check_sums(self) -> None:
        """A sum that leaves the range of its type is NULL, which searches do not know."""
        start, weight = self._most
        steps = len(self.nodes.values) + 1
        self.largest_sum = start + weight * steps
        most = _MOST_INTEGER if isinstance(self.largest_sum, int) else _MOST_DOUBLE
        if self.largest_sum > most:
            raise GiveUpError("sums come near the end of the range of numbers")
