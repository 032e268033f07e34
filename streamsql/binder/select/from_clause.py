"""The FROM clause with its joins, and WHERE: one plan and the scope above it."""

import itertools
from dataclasses import dataclass, field, replace

from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.operators import JoinKind, Plan, Values
from streamsql.binder.names.environment import Environment, Scope
from streamsql.binder.names.outer_names import outer_of, reads_subquery
from streamsql.binder.relations.join_tree import Condition, JoinTree, JoinType, Part
from streamsql.binder.select.from_items import FromItems, Item
from streamsql.binder.select.on_subqueries import joined_on
from streamsql.binder.subqueries.correlated_conditions import (
    Correlation,
    Domain,
    correlate,
    outer_uses,
)
from streamsql.binder.subqueries.subquery_joins import SubqueryJoins
from streamsql.data.schema import Schema

_COMPUTED = 1 << 24
"""Number of the first column that is neither a relation's nor a subquery's."""


@dataclass(frozen=True, slots=True)
class Input:
    """The input of the select list.

    Attributes:
        environment: For the clauses above; knows where outer columns stand in the rows.
        prefix: The correlation columns of the rows.
        fixed: These, and columns that stand for others of the query around.
        joins: Conditions of the join with the query around; see `Block`.
        domain: The outer values that the plan reads, or None.
    """

    plan: Plan
    scope: Scope
    environment: Environment
    prefix: tuple[Column, ...] = ()
    fixed: tuple[Column, ...] = ()
    joins: tuple[Expression, ...] = ()
    domain: Domain | None = None


@dataclass(slots=True)
class FromBinder:
    """Binds one FROM with its WHERE."""

    environment: Environment
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(_COMPUTED))

    def bind(self, select: exp.Select, *, lift: bool = False) -> Input:
        """Return the joined and filtered input of a SELECT.

        With `lift`, conditions on the query around may become conditions of the join with it.
        """
        inside = self.environment.without_outer("and a query in FROM cannot read it")
        found = FromItems(select, inside, self._nested)
        found.bind()
        subqueries = SubqueryJoins(self.environment, found.scope)
        conditions = self._conditions(found, subqueries)
        predicates = subqueries.conjuncts(found.where, subqueries.binder(), "WHERE")
        conditions += [Condition(predicate) for predicate in predicates]
        if self.environment.outer is None:
            correlation = Correlation(conditions)
        else:
            others = outer_uses(select, found.scope, self.environment) | subqueries.outer_columns()
            correlation = correlate(conditions, others, self.environment, self._numbers, lift=lift)
            subqueries.substitute(correlation.stands_for)
        whole = self._joined(found.items, subqueries, correlation)
        return self._input(whole, found.scope, correlation)

    def _nested(self, group: exp.Select) -> tuple[Plan, Scope]:
        """Return joins in parentheses as one relation."""
        inside = self.environment.without_outer("and joins in parentheses cannot read it")
        inner = FromBinder(inside).bind(group)
        return inner.plan, inner.scope

    def _conditions(self, found: FromItems, subqueries: SubqueryJoins) -> list[Condition]:
        """Return the conditions of inner joins."""
        conditions = []
        for number, item in enumerate(found.items):
            later = any(other.brings_back for other in found.items[number:])
            if item.kind != JoinType.INNER:
                continue
            if later and item.subqueries:  # it would bring back what the WHERE removes
                item.held = found.bound_apart(item, item.subqueries)
                continue
            conditions += [Condition(predicate, number) for predicate in item.on]
            for node in item.subqueries:
                predicates = subqueries.conjuncts([node], subqueries.binder(), "ON")
                conditions += [Condition(predicate) for predicate in predicates]
        return conditions

    def _joined(
        self, items: list[Item], subqueries: SubqueryJoins, correlation: Correlation
    ) -> Part:
        held = []
        if not subqueries.is_empty:
            held = [c for c in correlation.conditions if reads_subquery(c.predicate)]
        tree = JoinTree([c for c in correlation.conditions if c not in held])
        for number, item in enumerate(items):
            if item.kind == JoinType.INNER and not item.held:
                tree.parts.append(item.part)
                continue
            safe = not any(later.brings_back for later in items[number:])
            if item.as_of is not None:
                kind = JoinKind.LEFT if item.kind == JoinType.ASOF_LEFT else JoinKind.INNER
                tree.as_of(item.part, item.as_of, kind, number=number, where=safe)
            else:
                left = tree.before(number, where=safe)
                tree.parts = [joined_on(left, item.part, item.on, item.held, item.kind)]
            tree.parts = [tree.parts[0].extended(item.computed, "merged")]
        if correlation.part is not None:
            tree.parts.append(correlation.part)
        if not tree.parts:
            tree.parts.append(Part(Values(((),), Schema(())), ()))
        if subqueries.is_empty:
            return tree.finish()
        for single in subqueries.single_rows():
            tree.parts.append(single)
        ready = set(subqueries.single_numbers())
        early = [c for c in held if not reads_subquery(c.predicate, besides=ready)]
        tree.conditions += early
        whole = subqueries.apply(tree.finish())
        return whole.filtered([c.predicate for c in held if c not in early])

    def _input(self, whole: Part, scope: Scope, correlation: Correlation) -> Input:
        computed: dict[int, Expression] = {
            next(self._numbers): e for e in correlation.prefix if not isinstance(e, Column)
        }
        whole = whole.extended(computed, "key")
        number_of = {expression: number for number, expression in computed.items()}

        def column(expression: Expression) -> Column:
            number = (
                expression.position if isinstance(expression, Column) else number_of[expression]
            )
            position = whole.position(number)
            name = expression.name if isinstance(expression, Column) else ""
            shown = name or whole.plan.schema.names[position]
            return Column(position, shown, expression.dtype)

        environment = self.environment
        outer = None if environment.outer is None else outer_of(environment)
        if outer is not None and not outer.blocked:
            places = {number: column(e).position for number, e in correlation.stands_for.items()}
            environment = replace(environment, outer=replace(outer, places=places))
        prefix = tuple(map(column, correlation.prefix))
        standing = (column(e) for e in correlation.stands_for.values())
        layout = {number: position for position, number in enumerate(whole.layout)}
        return Input(
            whole.plan,
            scope.moved(layout),
            environment,
            prefix,
            tuple(dict.fromkeys((*prefix, *standing))),
            tuple(correlation.joins),
            correlation.domain,
        )
