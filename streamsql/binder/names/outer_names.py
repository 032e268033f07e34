"""Columns and aggregates of the query around a subquery, and the query each belongs to."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression, columns_of, map_columns, walk
from streamsql.binder.names.environment import (
    Environment,
    Scope,
    ScopeColumn,
    identifier_text,
    only_one,
)


def owner_of(call: exp.Expr) -> exp.Select | None:
    """Return the query that an aggregate call belongs to.

    A name without its table is taken for one of the innermost query that has a FROM.
    """
    nearest = call.find_ancestor(exp.Select)
    while isinstance(call.parent, exp.Filter | exp.WithinGroup) and call.parent.this is call:
        call = call.parent
    columns = [c for c in call.find_all(exp.Column) if not isinstance(c.this, exp.Star)]
    if not columns:
        return nearest
    found = nearest
    while found is not None and not any(_reads(found, column) for column in columns):
        found = around(found)
    return nearest if found is None else found


def around(select: exp.Select) -> exp.Select | None:
    """Return the query in whose expressions a query stands; None for one in FROM or WITH."""
    node: exp.Expr = select
    while isinstance(node.parent, exp.Subquery | exp.Paren):
        node = node.parent
    clause = node.parent
    if clause is None or isinstance(clause, exp.From | exp.Join | exp.CTE | exp.SetOperation):
        return None
    return clause.find_ancestor(exp.Select) if not isinstance(clause, exp.Select) else clause


def between(node: exp.Expr, outermost: exp.Expr) -> Iterator[exp.Select]:
    """Yield the queries around a node that stand inside another one, innermost first."""
    found = node.find_ancestor(exp.Select)
    while found is not None and found is not outermost:
        yield found
        found = found.find_ancestor(exp.Select)


def relation_names(select: exp.Select) -> frozenset[str]:
    """Return what the relations of a FROM are called."""
    clause = select.args.get("from_")
    waiting = [] if clause is None else [clause.this]
    waiting += [join.this for join in select.args.get("joins") or []]
    names = set()
    while waiting:
        node = waiting.pop()
        alias = node.args.get("alias")
        if alias is not None and alias.this is not None:
            names.add(identifier_text(alias.this))
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            names.add(identifier_text(node.this))
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery):
            waiting.append(node.this)
        waiting += [join.this for join in node.args.get("joins") or []]
    return frozenset(names)


def _reads(select: exp.Select, column: exp.Column) -> bool:
    table = column.args.get("table")
    if table is None:
        return select.args.get("from_") is not None
    return identifier_text(table) in relation_names(select)


OUTER = 1 << 30
"""Number of the first column of the query around a subquery."""
SUBQUERY = 1 << 20
"""Number of the first column that a subquery adds to the query around it."""
KEYS = 1 << 22
"""Number of the first column that is computed for a key of the join with a subquery."""


@dataclass(frozen=True, slots=True)
class Outer:
    """The columns of the query around a subquery.

    Attributes:
        scope: The columns by their numbers in the query around.
        parent: What is visible further out; its columns are columns from `OUTER` on in the query
            around, too.
        blocked: Why none of them can be read here; empty where they can.
        places: Where they stand in the rows of the subquery, once that is known.
        select: The query around.
        aggregates: Gives the aggregates of the query around columns; None where it has none at
            the place of the subquery.
    """

    scope: Scope
    parent: "Outer | None" = None
    blocked: str = ""
    places: Mapping[int, int] | None = None
    select: exp.Select | None = None
    aggregates: Callable[[exp.Expr], Expression | None] | None = None

    def knows(self, node: exp.Column) -> bool:
        """Whether a reference means a column of this query or of one further out."""
        if self.scope.lookup(node):
            return True
        return self.parent is not None and not self._hides(node) and self.parent.knows(node)

    def _hides(self, node: exp.Column) -> bool:
        """Whether a relation of this query has the name that a reference is qualified by."""
        table = node.args.get("table")
        return table is not None and identifier_text(table) in self.scope.tables

    def owns(self, node: exp.Expr) -> bool:
        """Whether a node is an aggregate of this query or of one further out."""
        if not isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup):
            return False
        owner = owner_of(node)
        level: Outer | None = self
        while level is not None and level.select is not owner:
            level = level.parent
        return owner is not None and level is not None

    def aggregate(self, node: exp.Expr, environment: Environment) -> ScopeColumn | None:
        """Return the column of an aggregate that belongs to a query around, None for others."""
        if not self.owns(node):
            return None
        if self.parent is not None and self.parent.owns(node):
            found = self.parent.aggregate(node, environment)
            return found and self._placed(found, node, environment)
        column = None if self.aggregates is None else self.aggregates(node)
        if not isinstance(column, Column):
            raise environment.error(
                node,
                "this aggregate belongs to the outer query, which cannot have aggregates "
                "in this place",
                hint="an aggregate of the outer query is allowed in subqueries of its select "
                "list and HAVING; an aggregate that reads a column of the subquery belongs "
                "to the subquery",
                code="misplaced_aggregate",
            )
        made = ScopeColumn("", column.name, column.dtype, column.position)
        return self._placed(made, node, environment)

    def check_column(self, node: exp.Column, table: str, environment: Environment) -> None:
        """Check that a relation of the query around, if it is one, has a column."""
        if table in self.scope.tables and not self.scope.lookup(node):
            raise self.scope.unknown(node, environment)

    def resolve(self, node: exp.Column, environment: Environment) -> ScopeColumn | None:
        """Return the column that a reference means, or None where it means none."""
        found = self.scope.lookup(node)
        if not found:
            if self.parent is None or self._hides(node):
                return None
            further = self.parent.resolve(node, environment)
            if further is None:
                return None
            return self._placed(further, node, environment)
        return self._placed(only_one(found, node.sql(), node, environment), node, environment)

    def blocked_by(self, reason: str) -> "Outer":
        """Return the columns for a part that cannot read any of them."""
        return replace(self, blocked=reason)

    def _placed(self, column: ScopeColumn, node: exp.Expr, environment: Environment) -> ScopeColumn:
        """Return a column of the query around as the subquery reads it."""
        number = column.position
        if self.blocked:
            raise environment.unsupported(
                node,
                f"{node.sql()} belongs to the outer query, {self.blocked}",
                hint="read it in the WHERE of a subquery, or join the queries in FROM",
                code="unsupported_correlation",
            )
        if self.places is None:
            return replace(column, position=OUTER + number)
        if number not in self.places:
            bare = isinstance(node, exp.Column) and node.args.get("table") is None
            raise environment.unsupported(
                node,
                f"{node.sql()} of an outer query cannot be read here",
                hint=f"write its relation: table.{node.name}"
                if bare
                else "read it in the WHERE of the subquery, or join the queries in FROM",
                code="unsupported_correlation",
            )
        return replace(column, position=self.places[number])


def outer_of(environment: Environment) -> Outer | None:
    """Return what a part of a query may read of the query around it."""
    return environment.outer if isinstance(environment.outer, Outer) else None


def outer_columns(expression: Expression) -> frozenset[int]:
    """Return the columns an expression reads of the query around, by their numbers there."""
    return frozenset(n - OUTER for n in columns_of(expression) if n >= OUTER)


def outer_reads(expressions: Iterable[Expression]) -> dict[int, Column]:
    """Return the columns that expressions read of the query around, by their numbers there."""
    return {
        part.position - OUTER: Column(part.position - OUTER, part.name, part.dtype)
        for expression in expressions
        for part in walk(expression)
        if isinstance(part, Column) and part.position >= OUTER
    }


def with_outer(expression: Expression, stands_for: Mapping[int, Expression]) -> Expression:
    """Return an expression that reads what stands for the columns of the query around."""
    return map_columns(
        expression, lambda c: c if c.position < OUTER else stands_for[c.position - OUTER]
    )


def reads_subquery(expression: Expression, besides: Collection[int] = ()) -> bool:
    """Whether an expression reads columns that subqueries add, others than those named."""
    return any(SUBQUERY <= n < KEYS and n not in besides for n in columns_of(expression))


def inner_columns(expression: Expression) -> frozenset[int]:
    """Return the columns of its own query that an expression reads."""
    return frozenset(n for n in columns_of(expression) if n < OUTER)


def from_outside(expression: Expression) -> Expression:
    """Return an expression over outer columns as the query around numbers them."""
    return map_columns(expression, lambda c: Column(c.position - OUTER, c.name, c.dtype))
