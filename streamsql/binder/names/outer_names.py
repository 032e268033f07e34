"""What a subquery may read of the query around it.

Inside a subquery the columns of the query around it are columns with numbers from `OUTER` on, until
`correlated_conditions` of the subqueries has turned the conditions that read them into join
conditions.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression, columns_of, map_columns
from streamsql.binder.names.environment import Environment, identifier_text
from streamsql.binder.names.levels import owner_of
from streamsql.binder.names.scope import Scope, ScopeColumn

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
        """Return the column of an aggregate that belongs to a query around, None for others.

        Raises:
            BindingError: The subquery stands where the query around has no aggregates.
        """
        if not self.owns(node):
            return None
        if self.parent is not None and self.parent.owns(node):
            found = self.parent.aggregate(node, environment)
            return found and self._placed(found, found.position, node, environment)
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
        return self._placed(made, column.position, node, environment)

    def check_column(self, node: exp.Column, table: str, environment: Environment) -> None:
        """Check that a relation of the query around, if it is one, has a column.

        Raises:
            BindingError: It has not.
        """
        if table in self.scope.tables and not self.scope.lookup(node):
            raise self.scope.unknown(node, identifier_text(node.this), environment)

    def resolve(self, node: exp.Column, environment: Environment) -> ScopeColumn | None:
        """Return the column that a reference means, or None where it means none.

        Raises:
            BindingError: It means several.
            UnsupportedError: It cannot be read at this place.
        """
        found = self.scope.lookup(node)
        name = node.sql()
        if not found:
            if self.parent is None or self._hides(node):
                return None
            further = self.parent.resolve(node, environment)
            if further is None:
                return None
            return self._placed(further, further.position, node, environment)
        if len(found) > 1:
            owners = ", ".join(f"{c.table}.{c.name}" for c in found)
            raise environment.error(
                node,
                f"column {name!r} is ambiguous",
                hint=f"write one of {owners}",
                code="ambiguous_column",
            )
        return self._placed(found[0], found[0].position, node, environment)

    def _placed(
        self, column: ScopeColumn, number: int, node: exp.Expr, environment: Environment
    ) -> ScopeColumn:
        """Return a column of the query around as the subquery reads it."""
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


def without_outer(environment: Environment, reason: str) -> Environment:
    """Return the environment of a part that cannot read the query around; says why."""
    outer = outer_of(environment)
    return (
        environment if outer is None else replace(environment, outer=replace(outer, blocked=reason))
    )


def outer_columns(expression: Expression) -> frozenset[int]:
    """Return the columns an expression reads of the query around, by their numbers there."""
    return frozenset(n - OUTER for n in columns_of(expression) if n >= OUTER)


def reads_subquery(expression: Expression, besides: Collection[int] = ()) -> bool:
    """Whether an expression reads columns that subqueries add, others than those named."""
    return any(SUBQUERY <= n < KEYS and n not in besides for n in columns_of(expression))


def inner_columns(expression: Expression) -> frozenset[int]:
    """Return the columns of its own query that an expression reads."""
    return frozenset(n for n in columns_of(expression) if n < OUTER)


def from_outside(expression: Expression) -> Expression:
    """Return an expression over outer columns as the query around numbers them."""
    return map_columns(expression, lambda c: Column(c.position - OUTER, c.name, c.dtype))
