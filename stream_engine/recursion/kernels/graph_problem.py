"""What kernels work on: a recursion as a graph problem, its best value, and its rows in parts.

Algorithms work on *keys* that are to be small: the value itself where MIN selects, its negation
where MAX does. A step may only leave a key as it is or make it larger.
"""

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from typing import Any

from stream_engine.recursion.program.item_tables import values_at
from stream_engine.recursion.program.rules import Rule
from streamsql.algebra.expressions import Call, Column, Expression, Literal, columns_of
from streamsql.algebra.scalar_functions.scalar import key_of
from streamsql.data.types import DataType, Row


class Kind(enum.StrEnum):
    """Which algorithm solves it.

    REACH: which nodes a source reaches. COST: the least sum of non-negative weights. PLATEAU: the
    least of the greatest weight on the way (greatest of the least, with negated values), or the
    least value of any source.
    """

    REACH = "reach"
    COST = "cost"
    PLATEAU = "plateau"


@dataclass(frozen=True, slots=True)
class PayloadRule:
    """How one step rule computes the payload columns.

    Attributes:
        expressions: One per payload column, over the relation's row followed by `EdgeRule.extra`
            columns; None when all are carried unchanged.
    """

    expressions: tuple[Expression, ...] | None


@dataclass(frozen=True, slots=True)
class GraphProblem:
    """A recursion R(group, node, value, payload) as a graph problem.

    For every value of the group columns there are sources (base rows) with a start value, and one
    graph whose edges are the same for all groups. The columns of R are those of `group`, `node`,
    `value` and `payload` together, each once.

    Attributes:
        title: For EXPLAIN: "reachable", "cheapest", "hops", "widest", "nearest", …
        group: Columns carried along unchanged, each combination a problem of its own.
        node: Columns that a step replaces by columns of other relations.
        value: The column with the best value, or None without selection.
        payload: Columns that distinguish best rows of the same group and node.
        negated: Whether the greatest value is best; algorithms then work on -value.
        base: Rules that give whole rows of R.
        edges: Per step rule, a rule over leaves whose head is the node columns before the step,
            those after it, the weight (unless there is none) and the columns the payload reads.
        payload_rules: Per step rule, how it computes the payload.
    """

    kind: Kind
    title: str
    group: tuple[int, ...]
    node: tuple[int, ...]
    value: int | None
    payload: tuple[int, ...]
    negated: bool
    base: tuple[Rule, ...]
    edges: tuple[Rule, ...]
    payload_rules: tuple[PayloadRule, ...]
    weighted: bool


_ORDERED = (DataType.INTEGER, DataType.DOUBLE, DataType.TIMESTAMP, DataType.INTERVAL)


@dataclass(frozen=True, slots=True)
class ValueRule:
    """How steps change the best value.

    Attributes:
        weights: Per step, what is added to the key (COST), or bounds it from below (PLATEAU), as a
            value before negation; None where the kind or the step has no weight.
    """

    kind: Kind
    title: str
    negated: bool
    weights: tuple[Expression | None, ...]


def value_rule(heads: list[tuple[Expression, int]], *, minimum: bool) -> ValueRule:
    """Return what the steps do to the best value.

    Args:
        heads: Per step, the new value over the wide row, and the old value's position there.
        minimum: Whether the least value is best.

    Raises:
        ValueError: Not one of the known forms; the text says why.
    """
    if not minimum and heads[0][0].dtype not in _ORDERED:
        raise ValueError(f"the greatest {heads[0][0].dtype} is best")
    found = [_operation(head, at) for head, at in heads]
    kinds = {kind for kind, _ in found} - {"same"}
    best = "least" if minimum else "greatest"
    if not kinds:
        return ValueRule(Kind.PLATEAU, f"{best} label", not minimum, (None,) * len(found))
    if kinds <= {"+", "-"}:
        weights = tuple(_added(kind, w) for kind, w in found)
        hops = minimum and all(isinstance(w, Literal) and w.value == 1 for w in weights)
        title = "hops" if hops else ("cheapest" if minimum else "dearest")
        return ValueRule(Kind.COST, title, not minimum, weights)
    wanted = "GREATEST" if minimum else "LEAST"
    if kinds != {wanted}:
        raise ValueError(f"steps compute {', '.join(sorted(kinds))}, and the {best} value is best")
    if any(kind == "same" for kind, _ in found):
        raise ValueError(f"some steps keep the value and others compute {wanted}")
    title = "narrowest" if minimum else "widest"
    return ValueRule(Kind.PLATEAU, title, not minimum, tuple(w for _, w in found))


def _operation(head: Expression, at: int) -> tuple[str, Expression]:
    match head:
        case Column(position=position) if position == at:
            return "same", head
        case Call(function="+" | "-" as name, arguments=(left, right)):
            if _is_value(left, at) and at not in columns_of(right):
                return name, right
            if name == "+" and _is_value(right, at) and at not in columns_of(left):
                return name, left
        case Call(function="LEAST" | "GREATEST" as name, arguments=arguments):
            others = tuple(a for a in arguments if not _is_value(a, at))
            if len(others) < len(arguments) and not any(at in columns_of(a) for a in others):
                return name, others[0] if len(others) == 1 else Call(name, others, head.dtype)
        case _:
            pass
    raise ValueError("the best value is not the old one plus, LEAST or GREATEST something")


def _is_value(expression: Expression, at: int) -> bool:
    return isinstance(expression, Column) and expression.position == at


def _added(kind: str, weight: Expression) -> Expression:
    if kind == "same":
        return Literal(0, DataType.INTEGER)
    return weight if kind == "+" else Call("NEGATE", (weight,), weight.dtype)


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
