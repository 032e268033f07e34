"""The parts of a recursion that do not recur, and how its sites agree on the rest."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from federated_optimizer.alternatives.recursion.recursions import Chosen
from streamsql.algebra.expressions import Column, Expression, columns_of, map_columns, substituted
from streamsql.algebra.operators import (
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    RecursiveReference,
    Scan,
    UnionAll,
    is_open,
    with_inputs,
)


def with_leaves(branch: Plan, leaf: Callable[[Plan], Plan]) -> Plan:
    """Return a branch of a recursion with its parts that do not recur replaced."""
    if isinstance(branch, RecursiveReference):
        return branch
    if is_open(branch):
        inputs = tuple(with_leaves(child, leaf) for child in branch.inputs)
        return with_inputs(branch, inputs)
    return leaf(branch)


@dataclass(frozen=True, slots=True)
class _Read:
    """Rows of a source: columns and conditions over it."""

    source: Scan
    columns: tuple[Expression, ...]
    conditions: tuple[Expression, ...] = ()

    @property
    def positions(self) -> frozenset[int]:
        """Columns of the source that are read."""
        return frozenset[int]().union(*map(columns_of, (*self.columns, *self.conditions)))

    @property
    def is_plain(self) -> bool:
        """Whether it is all rows, with nothing but columns of the source."""
        return not self.conditions and all(isinstance(e, Column) for e in self.columns)


def _read(plan: Plan) -> _Read | None:
    """Return what a plan reads of a source, if it is that and no more."""
    match plan:
        case Scan():
            fields = plan.schema.fields
            return _Read(plan, tuple(Column(i, f.name, f.dtype) for i, f in enumerate(fields)))
        case Filter(input=child, predicate=predicate):
            below = _read(child)
            condition = substituted(predicate, below.columns) if below is not None else None
            if below is None or condition is None:
                return None
            return _Read(below.source, below.columns, (*below.conditions, condition))
        case Project(input=child, expressions=expressions):
            below = _read(child)
            if below is None:
                return None
            made = [substituted(e, below.columns) for e in expressions]
            columns = tuple(e for e in made if e is not None)
            complete = len(columns) == len(made)
            return _Read(below.source, columns, below.conditions) if complete else None
        case _:
            return None


def at_one_base(leaf: Plan, others: tuple[Plan, ...], gathered: Callable[[Plan], Plan]) -> Plan:
    """Return a leaf at the base; rows of one source are sent once.

    A leaf that has some rows or columns of another one is computed of those, there. So is the left
    side of a semi join.

    Args:
        leaf: Of a recursion.
        others: All leaves of the recursion.
        gathered: Brings a plan to the base.
    """
    if isinstance(leaf, Join) and leaf.kind == JoinKind.SEMI:
        left = at_one_base(leaf.left, others, gathered)
        return with_inputs(leaf, (left, gathered(leaf.right)))
    mine = _read(leaf)
    if mine is None:
        return gathered(leaf)
    found, most = leaf, mine.positions if mine.is_plain else frozenset[int]()
    for other in others:
        whole = _read(other)
        if whole is None or whole.source != mine.source or not whole.is_plain:
            continue
        if mine.positions <= whole.positions and len(whole.positions) > len(most):
            found, most = other, whole.positions
    return gathered(leaf) if found == leaf else _over(gathered(found), found, mine, leaf)


def _over(whole: Plan, sent: Plan, mine: _Read, leaf: Plan) -> Plan:
    """Return a leaf, computed of another one that was sent."""
    read = _read(sent)
    columns = read.columns if read is not None else ()
    places = {e.position: i for i, e in enumerate(columns) if isinstance(e, Column)}

    def placed(expression: Expression) -> Expression:
        return map_columns(expression, lambda c: Column(places[c.position], c.name, c.dtype))

    for condition in mine.conditions:
        whole = Filter(whole, placed(condition))
    return Project(whole, tuple(map(placed, mine.columns)), leaf.schema.names)


def as_set(plan: Plan) -> Plan:
    """Return a plan with the same rows, perhaps other copies of them: a recursion counts none."""
    match plan:
        case Distinct(input=child):
            return as_set(child)
        case Filter() | Project() | UnionAll() | Join():
            return with_inputs(plan, tuple(map(as_set, plan.inputs)))
        case _:
            return plan


def agreed(plan: Fixpoint, chosen: Chosen) -> Fixpoint:
    """Return the recursion with its way written down, so that all its sites take the same."""
    choice = msgspec.structs.replace(plan.choice, way=chosen.way)
    return msgspec.structs.replace(plan, choice=choice)
