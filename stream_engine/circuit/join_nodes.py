"""Which operator runs a join, or a whole tree of inner joins."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from stream_engine.circuit.nodes import Wiring
from stream_engine.operators.joins.as_of_join import AsOfJoinOperator
from stream_engine.operators.joins.band_bounds import find_band
from stream_engine.operators.joins.join import BandJoinOperator, JoinOperator
from stream_engine.operators.joins.multi_join import MOST_INPUTS, MultiJoin
from stream_engine.operators.joins.outer_join import (
    CountedOuterJoinOperator,
    KeyedOuterJoinOperator,
)
from stream_engine.operators.joins.semi_join import CountedSemiJoinOperator, SemiJoinOperator
from stream_engine.operators.rows.operator import Operator
from streamsql.algebra.expressions import Column, Expression, conjuncts, map_columns
from streamsql.algebra.operators import AsOfJoin, Filter, Join, JoinKind, Plan, Project


def join_operator(plan: Join | AsOfJoin) -> Operator:
    """Return the operator of a join of two inputs."""
    if isinstance(plan, AsOfJoin):
        return AsOfJoinOperator(plan)
    keys, residual = plan.keys, plan.residual
    left, right = len(plan.left.schema), len(plan.right.schema)
    match plan.kind:
        case JoinKind.INNER:
            if find_band(residual, left) is not None:
                return BandJoinOperator(keys, residual, left)
            return JoinOperator(keys, residual)
        case JoinKind.LEFT | JoinKind.FULL as kind:
            paddings = ((None,) * right, (None,) * left if kind == JoinKind.FULL else None)
            if residual is None:
                return KeyedOuterJoinOperator(keys, paddings)
            return CountedOuterJoinOperator(keys, residual, left, paddings)
        case JoinKind.SEMI | JoinKind.ANTI as kind:
            anti = kind == JoinKind.ANTI
            if residual is None:
                return SemiJoinOperator(keys, anti=anti)
            return CountedSemiJoinOperator(keys, residual, left, anti=anti)


@dataclass(slots=True)
class MultiwayWiring(Wiring):
    """The wiring of a node of several joins."""

    ways: int = 0

    def label(self) -> str:
        """Return how many inputs there are, and what EXPLAIN writes for the topmost operator."""
        return f"MultiJoin of {self.ways}: {Wiring.label(self)}"


def shared_plans(plan: Plan) -> frozenset[Plan]:
    """Return the subplans that more than one operator reads."""
    readers: Counter[Plan] = Counter()
    seen: set[Plan] = set()
    waiting = [plan]
    while waiting:
        reader = waiting.pop()
        if reader in seen:
            continue
        seen.add(reader)
        readers.update(reader.inputs)
        waiting.extend(reader.inputs)
    return frozenset(read for read, count in readers.items() if count > 1)


def multiway(plan: Plan, shared: frozenset[Plan]) -> tuple[MultiJoin, tuple[Plan, ...]] | None:
    """Return a tree of inner joins as one join and its inputs, or None where it has to stay a tree.

    Joins, and filters and selections of columns between them, are taken together unless another
    operator reads a plan between them (`shared`). A join whose condition has a band stays apart: an
    index in the order of the band serves it better. The inputs must be connected by equal columns.
    There must be at least three (two have no intermediate result) or a selection of columns above
    two, and not more than an operator can take.
    """
    if not _is_joined(plan, lambda _: False):
        return None
    tree = _Tree(shared)
    output = tree.take(plan, top=True)
    classes = _classes(tree.equalities)
    fewest = 2 if isinstance(plan, Project) else 3
    if not fewest <= len(tree.inputs) <= MOST_INPUTS:
        return None
    if not _connected(tree.starts, tree.width, classes):
        return None
    widths = tuple(len(taken.schema) for taken in tree.inputs)
    return MultiJoin(widths, classes, tuple(tree.residuals), output), tuple(tree.inputs)


@dataclass(slots=True)
class _Tree:
    """The inputs found so far and the conditions between them, over columns of all inputs."""

    shared: frozenset[Plan]
    inputs: list[Plan] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    width: int = 0
    equalities: list[tuple[int, int]] = field(default_factory=list)
    residuals: list[Expression] = field(default_factory=list)

    def take(self, plan: Plan, *, top: bool = False) -> tuple[int, ...]:
        """Take a subplan in; return where its columns are."""
        is_joined = top or _is_joined(plan, self.shared.__contains__)
        match plan:
            case Join(left=left, right=right, keys=keys, residual=residual) if is_joined:
                first, second = self.take(left), self.take(right)
                self.equalities.extend((first[a], second[b]) for a, b in keys)
                self._require(residual, first + second)
                return first + second
            case Filter(input=child, predicate=predicate) if is_joined:
                columns = self.take(child)
                self._require(predicate, columns)
                return columns
            case Project(input=child, expressions=expressions) if is_joined:
                columns = self.take(child)
                return tuple(columns[e.position] for e in expressions if isinstance(e, Column))
            case _:
                start = self.width
                self.inputs.append(plan)
                self.starts.append(start)
                self.width += len(plan.schema)
                return tuple(range(start, self.width))

    def _require(self, predicate: Expression | None, columns: tuple[int, ...]) -> None:
        self.residuals.extend(
            map_columns(part, lambda c: Column(columns[c.position], c.name, c.dtype))
            for part in conjuncts(predicate)
        )


def _is_joined(plan: Plan, is_shared: Callable[[Plan], bool]) -> bool:
    """Whether a subplan is a join to be taken in, or filters and columns of one."""
    if is_shared(plan):
        return False
    match plan:
        case Join(kind=JoinKind.INNER, left=left, residual=residual):
            return find_band(residual, len(left.schema)) is None
        case Filter(input=child):
            return _is_joined(child, is_shared)
        case Project(input=child, expressions=expressions):
            columns_only = all(isinstance(e, Column) for e in expressions)
            return columns_only and _is_joined(child, is_shared)
        case _:
            return False


def _classes(equalities: list[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """Return the classes of columns that equalities make."""
    classes: dict[int, set[int]] = {}
    for a, b in equalities:
        merged = classes.get(a, {a}) | classes.get(b, {b})
        classes.update(dict.fromkeys(merged, merged))
    distinct = {min(members): tuple(sorted(members)) for members in classes.values()}
    return tuple(distinct[first] for first in sorted(distinct))


def _connected(starts: list[int], width: int, classes: tuple[tuple[int, ...], ...]) -> bool:
    """Whether the classes connect all inputs, so that no pipeline needs a product."""
    ends = [*starts[1:], width]
    members = [
        {n for n, (begin, end) in enumerate(zip(starts, ends, strict=True)) if _any(c, begin, end)}
        for c in classes
    ]
    reached = {0}
    while grown := [m for m in members if m & reached and not m <= reached]:
        reached.update(*grown)
    return len(reached) == len(starts)


def _any(columns: tuple[int, ...], begin: int, end: int) -> bool:
    return any(begin <= column < end for column in columns)
