"""Rows of a recursion taken apart into group, node, value and payload, and put together."""

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from operator import itemgetter
from typing import Any

from stream_engine.recursion.kernels.graph_problem import GraphProblem
from stream_engine.recursion.program.item_tables import values_at
from streamsql.algebra.scalar import key_of
from streamsql.data.types import Row

Part = Any
"""The values of some columns: the bare value of one column, else a tuple."""


class RowShape:
    """Where the parts of a row are.

    Attributes:
        payload_of: The payload columns' values, always as a tuple.
        row_of: The row of group, node and value (the value is ignored when there is none).
    """

    def __init__(self, problem: GraphProblem) -> None:
        self.group_of = values_at(problem.group)
        self.node_of = values_at(problem.node)
        self.payload_of = key_of(problem.payload)
        self.row_of = _assembler(problem)
        self.full_row_of = _full_assembler(problem)
        value = () if problem.value is None else (problem.value,)
        columns = problem.group + problem.node + value
        lone = len(problem.group) <= 1 and len(problem.node) == 1
        letters = ("g" if problem.group else "") + "kv"
        self._order = [letters[columns.index(c)] for c in sorted(columns)] if lone else None

    def rows_of(
        self, groups: Iterable[Part], nodes: Iterable[Part], values: Iterable[Any] | None
    ) -> Iterator[Row]:
        """Return the rows of many groups, nodes and values at once."""
        if self._order is None:
            return map(self.row_of, groups, nodes, repeat(None) if values is None else values)
        columns = {"g": groups, "k": nodes, "v": values or ()}
        return zip(*[columns[letter] for letter in self._order], strict=False)


def _assembler(problem: GraphProblem) -> Callable[[Part, Part, Any], Row]:
    group, node = problem.group, problem.node
    value = () if problem.value is None else (problem.value,)
    columns = group + node + value
    if len(group) <= 1 and len(node) == 1:
        letters = ("g" if group else "") + "kv"
        known = _PLAIN.get("".join(letters[columns.index(c)] for c in sorted(columns)))
        if known is not None:
            return known
    pick = _picker(columns)
    lone_group, lone_node, has_value = len(group) == 1, len(node) == 1, bool(value)

    def assemble(g: Part, k: Part, v: Any) -> Row:
        parts: Row = (g,) if lone_group else g
        parts += (k,) if lone_node else k
        return pick((*parts, v) if has_value else parts)

    return assemble


_PLAIN: dict[str, Callable[[Part, Part, Any], Row]] = {
    "k": lambda _g, k, _v: (k,),
    "gk": lambda g, k, _v: (g, k),
    "kg": lambda g, k, _v: (k, g),
    "kv": lambda _g, k, v: (k, v),
    "vk": lambda _g, k, v: (v, k),
    "gkv": lambda g, k, v: (g, k, v),
    "kgv": lambda g, k, v: (k, g, v),
}
"""Assemblers of rows of single columns, by their order, without any search for places."""


def _full_assembler(problem: GraphProblem) -> Callable[[Part, Part, Any, Row], Row]:
    value = () if problem.value is None else (problem.value,)
    pick = _picker(problem.group + problem.node + value + problem.payload)
    lone_group, lone_node = len(problem.group) == 1, len(problem.node) == 1
    if lone_node and lone_group:
        return lambda g, k, v, y: pick((g, k, v, *y))
    if lone_node and not problem.group:
        return lambda _g, k, v, y: pick((k, v, *y))

    def assemble(g: Part, k: Part, v: Any, y: Row) -> Row:
        parts: Row = (g,) if lone_group else g
        parts += (k,) if lone_node else k
        return pick((*parts, v, *y))

    return assemble


def _picker(positions: tuple[int, ...]) -> Callable[[Row], Row]:
    """Return a function that puts values that are in the order of `positions` in column order."""
    order = [positions.index(column) for column in sorted(positions)]
    if order == list(range(len(order))):
        return lambda row: row
    return itemgetter(*order)  # more than one, as their order differs
