"""Subqueries in the ON of outer joins, whatever sides of the join they read.

A condition that reads only the side whose unmatched rows are dropped filters that side. A value
computed from one side becomes a column of it, which the join's condition reads. In all other cases
the matching pairs M are an inner join of both sides with the subqueries joined to its rows, and

    LEFT    M + (L without partner in M, padded)        FULL   both
    SEMI    L with partner in M                          ANTI   L without

Whether a row has a partner depends only on what the condition reads of it, so partners are found by
those columns, NULL meeting NULL. That is exact for rows that are there several times, too.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from streamsql.algebra.expressions import Column, Expression, Literal, columns_of
from streamsql.algebra.operators import Distinct, Join, JoinKind, Plan, Project, UnionAll
from streamsql.binder.names.outer_names import SUBQUERY
from streamsql.binder.relations.join_tree import Condition, JoinType, Part, joined
from streamsql.binder.subqueries.correlated_conditions import null_safe
from streamsql.binder.subqueries.subquery_joins import SubqueryJoins

_KEYS = 1 << 23
"""Number of the first column by which partners are found."""


@dataclass(frozen=True, slots=True)
class HeldCondition:
    """A conjunct of an ON that holds subqueries.

    Attributes:
        predicates: What must hold of a pair, over the columns of the sides and of the subqueries.
        subqueries: Become joins with the pairs, or with the rows of one side.
    """

    predicates: tuple[Expression, ...]
    subqueries: SubqueryJoins

    @property
    def reads(self) -> frozenset[int]:
        """Numbers of the columns of the sides that it reads."""
        own = frozenset(n for p in self.predicates for n in columns_of(p) if n < SUBQUERY)
        return own | self.subqueries.reads

    def filtered(self, part: Part) -> Part:
        """Return the rows of a part for which it holds."""
        found = self.subqueries.joined_to(part).filtered(list(self.predicates))
        return found.restricted(part.layout)


def joined_on(
    left: Part, right: Part, on: Iterable[Expression], held: Iterable[HeldCondition], kind: JoinType
) -> Part:
    """Return an INNER, LEFT, RIGHT, FULL, SEMI or ANTI join; RIGHT keeps all rows of `right`.

    `on` are conjuncts of the ON without subqueries, over column numbers; `held` those with some.
    """
    conditions = _Conditions(left, right, list(on))
    for condition in held:
        conditions.add(condition, kind)
    if conditions.pairwise or kind == JoinType.INNER:
        return _partners(conditions, kind)
    first, second = conditions.left_with_values, conditions.right_with_values
    if kind == JoinType.RIGHT:
        found = joined(second, first, conditions.on, JoinKind.LEFT)
    else:
        found = joined(first, second, conditions.on, JoinKind(kind))
    return found.restricted(conditions.layout(kind))


@dataclass(slots=True)
class _Conditions:
    """The sides of a join, and where each of its conditions is tested.

    Attributes:
        left: Without rows that a condition on it alone drops.
        right: Likewise.
        on: Conjuncts that the join itself tests.
        reads: Columns of the sides that conditions on pairs read.
        pairwise: Conjuncts whose subqueries are joined to pairs.
        left_with_values: With columns for subqueries that read it alone.
        right_with_values: Likewise.
    """

    left: Part
    right: Part
    on: list[Expression]
    reads: set[int]
    pairwise: list[HeldCondition]
    left_with_values: Part
    right_with_values: Part

    def __init__(self, left: Part, right: Part, on: list[Expression]) -> None:
        self.left = self.left_with_values = left
        self.right = self.right_with_values = right
        self.on = on
        self.reads = {n for predicate in on for n in columns_of(predicate)}
        self.pairwise = []

    def add(self, condition: HeldCondition, kind: JoinType) -> None:
        """Note where a condition is tested."""
        reads, subqueries = condition.reads, condition.subqueries
        left, right = set(self.left.layout), set(self.right.layout)
        if kind in (JoinType.LEFT, JoinType.SEMI, JoinType.ANTI) and reads <= right:
            self.right = condition.filtered(self.right)
            self.right_with_values = condition.filtered(self.right_with_values)
        elif kind in (JoinType.RIGHT, JoinType.SEMI) and reads <= left:
            self.left = condition.filtered(self.left)
            self.left_with_values = condition.filtered(self.left_with_values)
        elif subqueries.keeps_rows and subqueries.reads <= left:
            self.left_with_values = subqueries.joined_to(self.left_with_values)
            self.on += condition.predicates
            self.reads |= reads
        elif subqueries.keeps_rows and subqueries.reads <= right:
            self.right_with_values = subqueries.joined_to(self.right_with_values)
            self.on += condition.predicates
            self.reads |= reads
        else:
            self.pairwise.append(condition)
            self.reads |= reads

    def layout(self, kind: JoinType) -> tuple[int, ...]:
        """Return the columns of the join."""
        left, right = self.left.layout, self.right.layout
        if kind in (JoinType.SEMI, JoinType.ANTI):
            return left
        return right + left if kind == JoinType.RIGHT else left + right

    def pairs(self) -> Part:
        """Return the rows of both sides that match."""
        found = joined(
            self.left_with_values, self.right_with_values, self.on, JoinKind.INNER
        ).restricted(self.left.layout + self.right.layout)
        for condition in self.pairwise:
            found = condition.filtered(found)
        return found


def _partners(conditions: _Conditions, kind: JoinType) -> Part:
    """Return a join by way of its matching pairs."""
    pairs, left, right = conditions.pairs(), conditions.left, conditions.right
    match kind:
        case JoinType.INNER:
            return pairs
        case JoinType.SEMI | JoinType.ANTI:
            return _by_partner(left, pairs, conditions, JoinKind(kind))
        case _:
            branches = [pairs.plan]
            if kind in (JoinType.LEFT, JoinType.FULL):
                alone = _by_partner(left, pairs, conditions, JoinKind.ANTI)
                branches.append(_padded(alone, pairs))
            if kind in (JoinType.RIGHT, JoinType.FULL):
                alone = _by_partner(right, pairs, conditions, JoinKind.ANTI)
                branches.append(_padded(alone, pairs))
            return Part(UnionAll(tuple(branches)), pairs.layout)


def _by_partner(side: Part, pairs: Part, conditions: _Conditions, kind: JoinKind) -> Part:
    """Return the rows of one side that are in a matching pair, or those that are in none."""
    equated = {
        n
        for predicate in conditions.on
        for n in Condition(predicate).pair() or ()
        if n in side.layout
    }
    keys = sorted(conditions.reads & set(side.layout))
    numbers = itertools.count(_KEYS)
    computed: dict[int, Expression] = {}
    links: list[int] = []
    for number in keys:
        if number in equated:  # it is not NULL in any pair
            links.append(number)
            continue
        field = side.plan.schema.fields[side.position(number)]
        for expression in null_safe(Column(number, field.name, field.dtype)):
            computed[(added := next(numbers))] = expression
            links.append(added)
    rows = side.extended(computed, "key")
    partners = pairs.extended(computed, "key").restricted(tuple(links))
    on = tuple((rows.position(number), partners.position(number)) for number in links)
    plan = Join(rows.plan, Distinct(partners.plan), kind, on)
    return Part(plan, rows.layout).restricted(side.layout)


def _padded(alone: Part, pairs: Part) -> Plan:
    """Return rows of one side with NULLs for the columns of the other."""
    fields = alone.plan.schema.fields
    shown: list[Expression] = []
    for number, wanted in zip(pairs.layout, pairs.plan.schema.fields, strict=True):
        if number in alone.layout:
            place = alone.position(number)
            shown.append(Column(place, fields[place].name, fields[place].dtype))
        else:
            shown.append(Literal(None, wanted.dtype))
    return Project(alone.plan, tuple(shown), pairs.plan.schema.names)
