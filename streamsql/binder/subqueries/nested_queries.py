"""Bound queries inside expressions, and the interface to the joins that they become."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.operators import JoinKind, Plan
from streamsql.binder.names.environment import Environment
from streamsql.binder.subqueries.correlated_conditions import Domain


@dataclass(frozen=True, slots=True)
class EmptyGroup:
    """Result of a correlated aggregate without GROUP BY for no rows, over outer columns.

    Attributes:
        values: The select list.
        present: Whether its HAVING leaves the row; None where there is a row always. With it the
            last column of the plan holds the same for groups that have rows.
    """

    values: tuple[Expression, ...]
    present: Expression | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A bound SELECT, perhaps one that reads the query around it.

    Attributes:
        plan: Its rows: the correlation columns, then the select list.
        prefix: How many correlation columns there are.
        joins: Conditions under which a row belongs to one of the query around; a column below
            `OUTER` is a place in the row.
        domain: The outer values that the plan reads by a reference, or None.
        empty: Of a correlated aggregate without GROUP BY, whose plan has no row where the group is
            empty.
    """

    plan: Plan
    prefix: int = 0
    joins: tuple[Expression, ...] = ()
    domain: Domain | None = None
    empty: EmptyGroup | None = None

    @property
    def width(self) -> int:
        """How many columns the select list has."""
        flags = self.empty is not None and self.empty.present is not None
        return len(self.plan.schema) - self.prefix - flags

    @property
    def correlated(self) -> bool:
        """Whether it reads the query around it."""
        return bool(self.joins) or self.domain is not None


class Joins(Protocol):
    """Takes the joins that subqueries become; see `streamsql.binder.subqueries.subquery_joins`."""

    @property
    def environment(self) -> Environment:
        """Of the query around."""

    def block(self, tree: exp.Expr, *, lift: bool) -> Block:
        """Bind the query of a subquery."""

    def join(
        self,
        node: exp.Expr,
        block: Block,
        plan: Plan,
        kind: JoinKind,
        more: Callable[[list[Column]], Sequence[Expression]] | None = None,
    ) -> list[Column]:
        """Add a join with a subquery and return the columns it adds."""
