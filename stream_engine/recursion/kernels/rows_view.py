"""Views with one row per group and node that is reached, made from the keys of a search."""

from collections.abc import Iterator
from typing import Any, Protocol

from stream_engine.recursion.kernels.graph_problem import GraphProblem, Kind, RowShape
from stream_engine.recursion.kernels.kernel_input import GraphInput, InputChange
from stream_engine.recursion.kernels.kernel_search import Core, GroupedSearch, Keys, Old
from stream_engine.recursion.kernels.reach import Reach
from stream_engine.recursion.kernels.shortest_paths import Costs, Plateaus
from streamsql.data.delta import Delta
from streamsql.data.types import Row


class KernelView(Protocol):
    """The view of a graph problem.

    Attributes:
        touched: Keys that were looked at again because of changes, since the start.
    """

    touched: int

    @property
    def size(self) -> int:
        """Number of rows."""

    def change(self, change: InputChange) -> Delta:
        """Bring the view up to date after the graph and its sources changed."""

    def rows(self) -> Iterator[Row]:
        """Yield the rows."""


def search_of(problem: GraphProblem, source: GraphInput, elastic: float) -> GroupedSearch:
    """Return the search that solves a problem, over an empty graph."""
    core: Core
    match problem.kind:
        case Kind.REACH:
            core = Reach(source.graph, elastic)
        case Kind.COST:
            core = Costs(source.graph, elastic)
        case Kind.PLATEAU:
            core = Plateaus(source.graph, elastic, weighted=problem.weighted)
    return GroupedSearch(source.graph, core)


class RowsView:
    """The rows of a problem without payload.

    State: the search's; rows are made from its keys.
    """

    def __init__(self, problem: GraphProblem, source: GraphInput, elastic: float) -> None:
        self.touched = 0
        self._search = search_of(problem, source, elastic)
        self._values = source.nodes.values
        self._row_of = RowShape(problem).row_of
        self._has_value = problem.value is not None
        self._has_ranks = problem.kind is Kind.PLATEAU
        self._negated = problem.negated

    @property
    def size(self) -> int:
        """Number of rows."""
        return self._search.size

    def change(self, change: InputChange) -> Delta:
        """Bring the view up to date after the graph and its sources changed."""
        delta: Delta = {}
        emit = self._emit_values if self._has_value else self._emit_nodes
        for group, d, old in self._search.change(change.gone, change.come, change.sources):
            self.touched += len(old)
            emit(group, d, old, delta)
        return delta

    def _emit_nodes(self, group: Any, d: Keys, old: Old, delta: Delta) -> None:
        row_of, values = self._row_of, self._values
        for node, rank in old.items():
            if node in d:
                if rank is None:
                    delta[row_of(group, values[node], None)] = 1
            elif rank is not None:
                delta[row_of(group, values[node], None)] = -1

    def _emit_values(self, group: Any, d: Keys, old: Old, delta: Delta) -> None:
        row_of, values, negated = self._row_of, self._values, self._negated
        if self._has_ranks:
            old = {node: key and key[0] for node, key in old.items()}
            d = {node: d[node][0] for node in old if node in d}
        for node, before in old.items():
            after = d.get(node)
            if before == after:
                continue
            name = values[node]
            if before is not None:
                delta[row_of(group, name, -before if negated else before)] = -1
            if after is not None:
                delta[row_of(group, name, -after if negated else after)] = 1

    def rows(self) -> Iterator[Row]:
        """Yield the rows."""
        row_of, values, negated = self._row_of, self._values, self._negated
        for group, d in self._search.groups.items():
            for node, key in d.items():
                value = key[0] if self._has_ranks else key
                yield row_of(group, values[node], -value if negated else value)
