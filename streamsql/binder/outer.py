"""What a subquery may read of the query around it.

Inside a subquery the columns of the query around it are columns with numbers from `OUTER` on, until
`streamsql.binder.correlation` has turned the conditions that read them into join conditions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression, columns_of, map_columns
from streamsql.binder.environment import Environment, identifier_text
from streamsql.binder.scope import Scope, ScopeColumn

OUTER = 1 << 30
"""Number of the first column of the query around a subquery."""


@dataclass(frozen=True, slots=True)
class Outer:
    """The columns of the query around a subquery.

    Attributes:
        scope: The columns by their numbers in the query around.
        parent: What is visible further out; only named in messages.
        blocked: Why none of them can be read here; empty where they can.
        places: Where they stand in the rows of the subquery, once that is known.
    """

    scope: Scope
    parent: "Outer | None" = None
    blocked: str = ""
    places: Mapping[int, int] | None = None

    def knows(self, node: exp.Column) -> bool:
        """Whether a reference means a column of this query or of one further out."""
        found = bool(self.scope.lookup(node))
        return found or (self.parent is not None and self.parent.knows(node))

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
            if self.parent is None or not self.parent.knows(node):
                return None
            raise environment.unsupported(
                node,
                f"{name} belongs to a query two levels further out",
                hint="select it in the query between, or join the queries in FROM",
                code="unsupported_correlation",
            )
        if self.blocked:
            raise environment.unsupported(
                node,
                f"{name} belongs to the query around this one, {self.blocked}",
                hint="read it in the WHERE of a subquery, or join the queries in FROM",
                code="unsupported_correlation",
            )
        if len(found) > 1:
            owners = ", ".join(f"{c.table}.{c.name}" for c in found)
            raise environment.error(
                node,
                f"column {name!r} is ambiguous",
                hint=f"write one of {owners}",
                code="ambiguous_column",
            )
        number = found[0].position
        if self.places is None:
            return replace(found[0], position=OUTER + number)
        if number not in self.places:
            raise environment.unsupported(
                node,
                f"{name} of the query around this one cannot be read here",
                hint="read it in the WHERE of the subquery, or join the queries in FROM",
                code="unsupported_correlation",
            )
        return replace(found[0], position=self.places[number])


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


def inner_columns(expression: Expression) -> frozenset[int]:
    """Return the columns of its own query that an expression reads."""
    return frozenset(n for n in columns_of(expression) if n < OUTER)


def from_outside(expression: Expression) -> Expression:
    """Return an expression over outer columns as the query around numbers them."""
    return map_columns(expression, lambda c: Column(c.position - OUTER, c.name, c.dtype))
