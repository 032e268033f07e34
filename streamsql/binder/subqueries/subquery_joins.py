"""Subqueries in expressions, turned into joins with the query around them.

`SubqueryJoins` gathers them while the expressions of one query are bound: each stands for columns
with fresh numbers, which joins add to the rows afterwards. EXISTS and IN that are conditions of
their own become semi and anti joins, which add nothing.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjuncts,
    map_columns,
)
from streamsql.algebra.operators import (
    Distinct,
    JoinKind,
    Plan,
    Project,
    RecursiveReference,
    transform_up,
)
from streamsql.binder.expressions.expression_binder import AggregateHook, ExpressionBinder
from streamsql.binder.names.environment import Environment, Scope
from streamsql.binder.names.outer_names import (
    KEYS,
    OUTER,
    SUBQUERY,
    Outer,
    outer_of,
    outer_reads,
    reads_subquery,
    with_outer,
)
from streamsql.binder.relations.join_tree import Part, joined
from streamsql.binder.subqueries import quantifiers
from streamsql.binder.subqueries.correlated_conditions import Domain
from streamsql.binder.subqueries.nested_queries import Block
from streamsql.binder.subqueries.uniqueness import exactly_one
from streamsql.syntax.tree_nodes import holds

Rewrite = Callable[[Expression, exp.Expr], Expression]
"""Returns an expression over other columns; the node is the place of what it refuses."""


def holds_query(node: exp.Expr) -> bool:
    """Whether a condition holds a query or VALUES."""
    return holds(node, exp.Query, exp.Values, exp.Exists, exp.All, exp.Any)


def _is_subquery(node: exp.Expr) -> bool:
    """Whether a node may be a subquery, or compare a value with one."""
    if isinstance(node, exp.Exists | exp.Query | exp.Values | exp.In):
        return True
    return isinstance(node.args.get("expression"), exp.Any | exp.All)


@dataclass(frozen=True, slots=True)
class _Join:
    """A join that a subquery became.

    Attributes:
        numbers: Of the columns of its plan.
        conditions: Over the numbers of the query around and its own.
    """

    node: exp.Expr
    plan: Plan
    numbers: tuple[int, ...]
    kind: JoinKind
    conditions: tuple[Expression, ...]
    domain: Domain | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What it reads of the query around: in conditions, and as the domain."""
        return self.conditions if self.domain is None else (*self.conditions, *self.domain.columns)

    def rewritten(self, rewrite: Rewrite, shift: int = 0) -> "_Join":
        """Return it over other numbers of the query around, and its own moved."""
        domain = self.domain
        if domain is not None:
            columns = tuple(rewrite(column, self.node) for column in domain.columns)
            domain = Domain(domain.name, columns)
        return replace(
            self,
            numbers=tuple(n + shift for n in self.numbers),
            conditions=tuple(rewrite(c, self.node) for c in self.conditions),
            domain=domain,
        )


@dataclass(slots=True)
class SubqueryJoins:
    """The subqueries of some clauses of one query.

    Attributes:
        environment: Of the query around.
        scope: What the subqueries may read of it.
        aggregates: Gives aggregates of the query around columns, where it has them.
    """

    environment: Environment
    scope: Scope
    aggregates: AggregateHook | None = None
    _joins: list[_Join] = field(default_factory=list)
    _singles: list[_Join] = field(default_factory=list)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(SUBQUERY))
    _keys: "itertools.count[int]" = field(default_factory=lambda: itertools.count(KEYS))

    @property
    def is_empty(self) -> bool:
        """Whether no subquery has become a join."""
        return not (self._joins or self._singles)

    # --- binding -----------------------------------------------------------------------------

    def binder(self, before: AggregateHook | None = None) -> ExpressionBinder:
        """Return a binder for expressions with subqueries; `before` sees every node first."""
        self.aggregates = before
        binder: ExpressionBinder

        def hook(node: exp.Expr) -> Expression | None:
            found = before(node) if before is not None else None
            if found is None and _is_subquery(node):
                found = quantifiers.bind_value(self, binder, node)
            return found

        binder = ExpressionBinder(self.environment, self.scope, hook)
        return binder

    def conjuncts(
        self, nodes: list[exp.Expr], binder: ExpressionBinder, word: str
    ) -> list[Expression]:
        """Bind conditions that all must hold; some become joins only."""
        result: list[Expression] = []
        for node in nodes:
            found = None
            if holds_query(node):
                found = quantifiers.bind_filter(self, binder, node)
            if found is None:
                found = conjuncts(binder.predicate(node, word))
            result += found
        return result

    def block(self, tree: exp.Expr, *, lift: bool) -> Block:
        """Bind the query of a subquery."""
        while isinstance(tree, exp.Subquery | exp.Paren) and tree.args.get("alias") is None:
            tree = tree.this
        outer = Outer(
            self.scope,
            outer_of(self.environment),
            select=tree.find_ancestor(exp.Select),
            aggregates=self.aggregates,
        )
        environment = replace(self.environment, outer=outer)
        if isinstance(tree, exp.Select):
            block: Block = environment.binding.queries.block(tree, environment, lift=lift)
            return block
        reason = "and the queries of a UNION, INTERSECT or EXCEPT cannot read it"
        return Block(environment.without_outer(reason).plan_of(tree))

    def join(
        self,
        node: exp.Expr,
        block: Block,
        plan: Plan,
        kind: JoinKind,
        more: Callable[[list[Column]], Sequence[Expression]] | None = None,
    ) -> list[Column]:
        """Add a join with a subquery and return the columns it adds.

        `plan` is that of the block, or computed from it with the correlation columns in front.
        `kind` is LEFT, SEMI or ANTI; INNER for exactly one row. `more` gives further conditions,
        over the columns behind the correlation columns.
        """
        fields = plan.schema.fields
        numbers = tuple(next(self._numbers) for _ in fields)
        own = [Column(n, f.name, f.dtype) for n, f in zip(numbers, fields, strict=True)]
        conditions = [_placed(condition, own) for condition in block.joins]
        if more is not None:
            conditions += more(own[block.prefix :])
        single = kind == JoinKind.INNER and not conditions and exactly_one(plan)
        join = _Join(node, plan, numbers, kind, tuple(conditions), block.domain)
        (self._singles if single else self._joins).append(join)
        return own

    # --- correlation of the query around -----------------------------------------------------

    def outer_columns(self) -> dict[int, Column]:
        """Return the columns that the joins read of the query around this one, by number there."""
        return outer_reads(expression for join in self._joins for expression in join.expressions)

    def substitute(self, stands_for: Mapping[int, Expression]) -> None:
        """Let the joins read what stands for columns of the query around this one."""
        self._joins = [
            join.rewritten(lambda expression, _node: with_outer(expression, stands_for))
            for join in self._joins
        ]

    # --- in the ON of a join -----------------------------------------------------------------

    def apart(self) -> "SubqueryJoins":
        """Return a list of its own for some subqueries of the same clause."""
        return replace(self, _joins=[], _singles=[])

    @property
    def reads(self) -> frozenset[int]:
        """Numbers of the columns of the query around that the subqueries read."""
        read = [e for join in (*self._singles, *self._joins) for e in join.expressions]
        return frozenset(n for expression in read for n in columns_of(expression) if n < SUBQUERY)

    @property
    def keeps_rows(self) -> bool:
        """Whether they add columns to rows only, and neither drop nor repeat any."""
        return not any(join.kind.is_filter for join in self._joins)

    def joined_to(self, part: Part) -> Part:
        """Return rows with the columns of all subqueries, without those that these drop."""
        return self.apply_all(part, lambda expression, _node: expression, 0)

    # --- joining -----------------------------------------------------------------------------

    def single_rows(self) -> list[Part]:
        """Return the subqueries of exactly one row that read nothing outside, to join as others."""
        return [Part(join.plan, join.numbers) for join in self._singles]

    def single_numbers(self) -> list[int]:
        """Return the numbers of the columns of `single_rows`."""
        return [number for join in self._singles for number in join.numbers]

    def apply(self, part: Part) -> Part:
        """Return the rows with the columns of all other subqueries."""
        ready = set(self.single_numbers())
        filters = [j for j in self._joins if j.kind.is_filter and not _reads_others(j, ready)]
        for join in (*filters, *(j for j in self._joins if j not in filters)):
            part = self._applied(part, join)
        return part

    def apply_all(self, part: Part, rewrite: Rewrite, shift: int) -> Part:
        """Return rows of another layout, as those of groups, with the columns of all subqueries.

        `rewrite` turns expressions over the scope into expressions over the rows, and adds `shift`
        to the numbers of the columns that subqueries add.
        """
        for join in (*self._singles, *self._joins):
            part = self._applied(part, join.rewritten(rewrite, shift))
        return part

    def _applied(self, part: Part, join: _Join) -> Part:
        plan = join.plan
        if join.domain is not None:
            plan = _with_domain(plan, join.domain, part)
        other = Part(plan, join.numbers)
        part, conditions = self._with_keys(part, other, list(join.conditions))
        return joined(part, other, conditions, join.kind)

    def _with_keys(
        self, part: Part, other: Part, conditions: list[Expression]
    ) -> tuple[Part, list[Expression]]:
        """Compute outer sides of equalities as columns, so that they become keys."""
        computed: dict[int, Expression] = {}
        result = []
        for condition in conditions:
            found = _computed_side(condition, part, other)
            if found is None:
                result.append(condition)
                continue
            inner, outer = found
            number = next(self._keys)
            computed[number] = outer
            key = Column(number, "key", outer.dtype)
            result.append(Call("=", (key, inner), condition.dtype))
        return part.extended(computed, "key"), result


def _computed_side(
    condition: Expression, part: Part, other: Part
) -> tuple[Column, Expression] | None:
    """Return column and expression of an equality between a subquery and what is computed."""
    match condition:
        case Call(function="=", arguments=(one, two)):
            inner, outer = (one, two) if isinstance(one, Column) else (two, one)
            mine = isinstance(outer, Call) and columns_of(outer) <= set(part.layout)
            if mine and isinstance(inner, Column) and inner.position in other.layout:
                return (inner, outer) if inner.dtype == outer.dtype else None
        case _:
            pass
    return None


def _placed(condition: Expression, own: list[Column]) -> Expression:
    """Number the columns of a block's join condition."""

    def change(column: Column) -> Column:
        if column.position >= OUTER:
            return Column(column.position - OUTER, column.name, column.dtype)
        return own[column.position]

    return map_columns(condition, change)


def _reads_others(join: _Join, besides: set[int]) -> bool:
    known = besides | set(join.numbers)
    return any(reads_subquery(condition, known) for condition in join.conditions)


def _with_domain(plan: Plan, domain: Domain, part: Part) -> Plan:
    """Put the distinct outer values where a subquery reads them."""
    names = tuple(f"outer_{n + 1}" for n in range(len(domain.columns)))
    values = tuple(part.expression(column) for column in domain.columns)
    relation = Distinct(Project(part.plan, values, names))

    def change(node: Plan) -> Plan:
        here = isinstance(node, RecursiveReference) and node.name == domain.name
        return relation if here else node

    return transform_up(plan, change)
