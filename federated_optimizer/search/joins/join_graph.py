"""A block of inner joins as inputs, equalities and other predicates over numbered columns.

Columns are numbered through all inputs in the order written. Equalities between columns of one
type are closed under transitivity, so inputs that are each equal to a third are joined directly.
"""

from dataclasses import dataclass, field
from itertools import pairwise

from federated_optimizer.rules.merge_filters import filtered
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    map_columns,
    shifted,
)
from streamsql.algebra.operators import Filter, Join, JoinKind, Plan, Project
from streamsql.data.schema import Schema
from streamsql.data.types import DataType


@dataclass(frozen=True, slots=True)
class Member:
    """A plan over some of the inputs; `columns` are the block's column numbers it gives."""

    plan: Plan
    columns: tuple[int, ...]


@dataclass(slots=True)
class JoinGraph:
    """The block.

    Attributes:
        inputs: In the order written.
        offsets: Number of the first column of each input.
        output: Column numbers of the block's result.
        classes: Sets of columns of one type that are all equal.
        pairs: Equalities between columns of different types.
        predicates: Everything else, over column numbers.
    """

    inputs: list[Plan] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    width: int = 0
    output: tuple[int, ...] = ()
    classes: list[set[int]] = field(default_factory=list)
    pairs: list[tuple[int, int]] = field(default_factory=list)
    predicates: list[Expression] = field(default_factory=list)

    def member(self, number: int) -> Member:
        """Return one input, filtered by what reads only it: equal columns and predicates."""
        plan, offset = self.inputs[number], self.offsets[number]
        columns = tuple(range(offset, offset + len(plan.schema)))
        equal: list[Expression] = []
        for members in self.classes:
            mine = sorted(members.intersection(columns))
            equal.extend(
                Call("=", (_column(plan, a - offset), _column(plan, b - offset)), DataType.BOOLEAN)
                for a, b in pairwise(mine)
            )
        inside = set(columns)
        equal.extend(
            shifted(p, -offset)
            for p in self.predicates
            if columns_of(p) and columns_of(p) <= inside
        )
        have = set(conjuncts(plan.predicate)) if isinstance(plan, Filter) else set()
        return Member(filtered(plan, [e for e in equal if e not in have]), columns)

    def keys(self, left: Member, right: Member) -> tuple[tuple[int, int], ...]:
        """Return the join keys between two members, as positions in them."""
        found: list[tuple[int, int]] = []
        for members in self.classes:
            a, b = members.intersection(left.columns), members.intersection(right.columns)
            if a and b:
                found.append((min(a), min(b)))
        for pair in self.pairs:
            for a_, b_ in (pair, pair[::-1]):
                if a_ in left.columns and b_ in right.columns:
                    found.append((a_, b_))
        found.sort()
        return tuple((left.columns.index(a), right.columns.index(b)) for a, b in found)

    def connected(self, left: Member, right: Member) -> bool:
        """Whether an equality joins two members."""
        return bool(self.keys(left, right))

    def joined(self, left: Member, right: Member) -> Member:
        """Return the join of two members under every predicate that it makes decidable."""
        columns = left.columns + right.columns
        position = {column: i for i, column in enumerate(columns)}
        before = (set(left.columns), set(right.columns))
        residual = [
            map_columns(p, lambda c: Column(position[c.position], c.name, c.dtype))
            for p in self.predicates
            if columns_of(p) <= position.keys() and not any(columns_of(p) <= b for b in before)
        ]
        keys = self.keys(left, right)
        plan = Join(left.plan, right.plan, JoinKind.INNER, keys, conjunction(residual))
        return Member(plan, columns)

    def restored(self, member: Member, schema: Schema) -> Plan:
        """Return a member of all inputs with the block's result columns and their names."""
        plan = filtered(member.plan, [p for p in self.predicates if not columns_of(p)])
        if member.columns == self.output and plan.schema == schema:
            return plan
        position = {column: i for i, column in enumerate(member.columns)}
        fields = member.plan.schema.fields
        expressions = tuple(
            Column(position[c], fields[position[c]].name, fields[position[c]].dtype)
            for c in self.output
        )
        return Project(plan, expressions, schema.names)


def flatten(plan: Plan) -> JoinGraph:
    """Return the block of inner joins at the top of a plan, seen through column projections."""
    graph = JoinGraph()
    equalities: list[tuple[int, int]] = []
    graph.output = _flatten(plan, graph, equalities)
    types = [f.dtype for child in graph.inputs for f in child.schema.fields]
    for a, b in equalities:
        if types[a] == types[b]:
            _unite(graph.classes, a, b)
        else:
            graph.pairs.append((a, b))
    graph.classes.sort(key=min)
    return graph


def _flatten(plan: Plan, graph: JoinGraph, equalities: list[tuple[int, int]]) -> tuple[int, ...]:
    """Add a plan to the block; return the column numbers of its output."""
    match plan:
        case Join(kind=JoinKind.INNER):
            left = _flatten(plan.left, graph, equalities)
            right = _flatten(plan.right, graph, equalities)
            output = left + right
            equalities.extend((left[a], right[b]) for a, b in plan.keys)
            graph.predicates.extend(
                map_columns(p, lambda c: Column(output[c.position], c.name, c.dtype))
                for p in conjuncts(plan.residual)
            )
            return output
        case Project(input=Join(kind=JoinKind.INNER) as join) if _only_columns(plan):
            below = _flatten(join, graph, equalities)
            return tuple(below[e.position] for e in plan.expressions if isinstance(e, Column))
        case _:
            offset = graph.width
            graph.inputs.append(plan)
            graph.offsets.append(offset)
            graph.width += len(plan.schema)
            return tuple(range(offset, graph.width))


def _only_columns(project: Project) -> bool:
    return all(isinstance(e, Column) for e in project.expressions)


def _unite(classes: list[set[int]], a: int, b: int) -> None:
    touching = [c for c in classes if a in c or b in c]
    for members in touching:
        classes.remove(members)
    classes.append({a, b}.union(*touching))


def _column(plan: Plan, position: int) -> Column:
    field_ = plan.schema.fields[position]
    return Column(position, field_.name, field_.dtype)
