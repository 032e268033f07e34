"""The view of a graph problem whose keys compiled code maintains."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_engine.recursion.kernels.compiled_search import NOTHING, Doubles, Integers, maintain
from stream_engine.recursion.kernels.graph_problem import GraphProblem, Kind, RowShape
from stream_engine.recursion.kernels.kernel_graph import Numbering
from stream_engine.recursion.kernels.kernel_input import GraphInput, InputChange, TooLargeError
from streamsql.data.delta import Delta
from streamsql.data.types import DataType, Row

_MOST_KEYS = 1 << 26
"""Keys in a matrix: 512 MiB."""

_MOST_EXACT = 2**53
"""Integers up to here are exact as floats."""

_INF = float("inf")
_NO_INTEGERS: Integers = np.empty((0, 3), np.int64)
_NO_DOUBLES: Doubles = np.empty((0, 2))


class CompiledView:
    """One row per group and node that is reached.

    State: a matrix of keys, nodes by groups, and tables of edges and starts; all grow by doubling.
    Work per change: per group a look at the changed edges, and what the search repairs.

    Args:
        problem: Of kind REACH or COST, without payload.
    """

    def __init__(self, problem: GraphProblem, source: GraphInput) -> None:
        self.size = 0
        self.touched = 0
        self._source = source
        self._loose = problem.kind is Kind.REACH
        self._negated = problem.negated
        self._shape = RowShape(problem)
        self._is_integer = (
            problem.value is not None
            and problem.base[0].head[problem.value].dtype is not DataType.DOUBLE
        )
        self._groups = Numbering()
        self._starts_of_group: dict[int, int] = {}
        self._edge_rows = Numbering()
        self._start_rows = Numbering()
        self._keys = np.full((16, 4), np.inf)
        self._heads = np.full((16, 3), NOTHING, np.int64)
        self._edges = np.full((16, 6), NOTHING, np.int64)
        self._weights = np.zeros(16)
        self._starts = np.full((16, 4), NOTHING, np.int64)
        self._start_keys = np.zeros(16)
        self._scratch = _scratch(0, 0)

    def change(self, change: InputChange) -> Delta:
        """Bring the view up to date after the graph and its sources changed.

        Raises:
            TooLargeError: The matrix would be too large, or integers too large for floats.
        """
        if not self._loose and self._is_integer and self._source.largest_sum > _MOST_EXACT:
            raise TooLargeError("integers beyond 2**53")
        edge_ops, edge_values = self._edge_changes(change)
        start_ops, start_values = self._start_changes(change)
        self._make_room(len(edge_ops) + len(start_ops))
        found, values = maintain(
            (self._keys, self._heads, self._edges, self._weights, self._starts, self._start_keys),
            (
                _integers(edge_ops),
                _doubles(edge_values),
                _integers(start_ops),
                _doubles(start_values),
            ),
            self._scratch,
            len(self._groups.values),
            self._loose,
        )
        delta = self._delta(found, values)
        self._release(change)
        return delta

    def _edge_changes(
        self, change: InputChange
    ) -> tuple[list[tuple[int, int, int]], list[tuple[float, float]]]:
        loose = self._loose
        values: dict[tuple[int, int], tuple[float, float]] = {}
        for a, b, weight in change.gone:
            values[a, b] = (1.0 if loose else weight, _INF)
        for a, b, weight in change.come:
            before = values.get((a, b), (_INF, _INF))[0]
            values[a, b] = (before, 1.0 if loose else weight)
        rows = self._edge_rows
        number_of = rows.number_of
        ops = []
        for pair in values:
            row = number_of.get(pair)
            ops.append((rows.number(pair) if row is None else row, *pair))
        return ops, list(values.values())

    def _start_changes(
        self, change: InputChange
    ) -> tuple[list[tuple[int, int, int]], list[tuple[float, float]]]:
        rows, groups = self._start_rows, self._groups
        ops = []
        values = []
        for name, node, old, new in change.sources:
            group = groups.number_of.get(name)
            if group is None:
                group = groups.number(name)
            pair = (group, node)
            row = rows.number_of.get(pair)
            ops.append((rows.number(pair) if row is None else row, group, node))
            values.append((_INF if old is None else old, _INF if new is None else new))
            more = (new is not None) - (old is not None)
            self._starts_of_group[group] = self._starts_of_group.get(group, 0) + more
        return ops, values

    def _make_room(self, changes: int) -> None:
        nodes, groups = len(self._source.nodes.values), len(self._groups.values)
        rows, columns = _doubled(len(self._keys), nodes), _doubled(self._keys.shape[1], groups)
        if rows * columns > _MOST_KEYS:
            raise TooLargeError(f"{nodes} nodes by {groups} groups")
        if (rows, columns) != self._keys.shape:
            self._keys = _grown(self._keys, (rows, columns), _INF)
            self._heads = _grown(self._heads, (rows, 3), NOTHING)
        edges = _doubled(len(self._edges), len(self._edge_rows.values))
        if edges != len(self._edges):
            self._edges = _grown(self._edges, (edges, 6), NOTHING)
            self._weights = _grown(self._weights, (edges,), 0)
        starts = _doubled(len(self._starts), len(self._start_rows.values))
        if starts != len(self._starts):
            self._starts = _grown(self._starts, (starts, 4), NOTHING)
            self._start_keys = _grown(self._start_keys, (starts,), 0)
        need = edges + starts + rows + changes + 1
        if len(self._scratch[0]) < rows or len(self._scratch[-1]) < need:
            self._scratch = _scratch(rows, need)

    def _delta(self, found: Integers, values: Doubles) -> Delta:
        self.touched += len(found)
        if not len(found):
            return {}
        left, come = values[:, 0] < _INF, values[:, 1] < _INF
        delta: Delta = dict.fromkeys(self._rows_of(found[left], values[left, 0]), -1)
        delta.update(dict.fromkeys(self._rows_of(found[come], values[come, 1]), 1))
        self.size += sum(delta.values())
        return delta

    def _rows_of(self, places: Integers, keys: Doubles) -> Iterator[Row]:
        nodes = map(self._source.nodes.values.__getitem__, places[:, 1].tolist())
        groups = map(self._groups.values.__getitem__, places[:, 0].tolist())
        if self._loose:
            return self._shape.rows_of(groups, nodes, None)
        if self._is_integer:
            keys = keys.astype(np.int64)
        return self._shape.rows_of(groups, nodes, (-keys if self._negated else keys).tolist())

    def _release(self, change: InputChange) -> None:
        """Give back the rows of what has gone."""
        for a, b, _ in change.gone:
            if b not in self._source.graph.out[a]:
                self._edge_rows.release(self._edge_rows.number_of[a, b])
        for name, node, _, new in change.sources:
            if new is None:
                group = self._groups.number_of[name]
                self._start_rows.release(self._start_rows.number_of[group, node])
        for name, _, _, new in change.sources:
            group_now = self._groups.number_of.get(name)
            if new is None and group_now is not None and not self._starts_of_group[group_now]:
                del self._starts_of_group[group_now]
                self._groups.release(group_now)

    def rows(self) -> Iterator[Row]:
        """Yield the rows."""
        places = np.argwhere(self._keys < np.inf)
        return self._rows_of(places[:, ::-1], self._keys[places[:, 0], places[:, 1]])


def _doubled(size: int, need: int) -> int:
    while size < need:
        size *= 2
    return size


def _grown(array: npt.NDArray[Any], shape: tuple[int, ...], fill: float) -> npt.NDArray[Any]:
    larger = np.full(shape, fill, array.dtype)
    larger[tuple(slice(0, size) for size in array.shape)] = array
    return larger


def _scratch(
    nodes: int, need: int
) -> tuple[Integers, Integers, Doubles, Integers, Integers, Doubles, Integers]:
    """Return memory as `compiled_search.Scratch` describes it."""
    return (
        np.zeros(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes),
        np.zeros(1, np.int64),
        np.empty(need, np.int64),
        np.empty(need),
        np.empty(need, np.int64),
    )


def _integers(rows: list[tuple[int, int, int]]) -> Integers:
    return np.array(rows, np.int64) if rows else _NO_INTEGERS


def _doubles(rows: list[tuple[float, float]]) -> Doubles:
    return np.array(rows, np.float64) if rows else _NO_DOUBLES
