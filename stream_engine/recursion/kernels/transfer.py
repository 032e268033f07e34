"""What payloads become along an edge, and with which ones sources start."""

from collections.abc import Callable
from operator import add
from typing import Any

from stream_engine.recursion.kernels.kernel_input import InputChange
from stream_engine.recursion.kernels.kernel_shapes import RowShape
from stream_engine.recursion.kernels.problem import GraphProblem, Kind
from streamsql.algebra.scalar import compile_row
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
        """Take in changes of starts and edges."""
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
        """Return what the tight edges between two nodes make of payloads.

        Args:
            edge: From node, to node.
            group: For the row that the payload is computed from.
            below: Level at the beginning.
            here: Level at the end; edges that lead to another one do not count.
            payloads: Of the beginning.
        """
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
