"""The interface between the expression binder and its parts."""

from typing import Protocol

from sqlglot import exp

from streamsql.algebra.expressions import Expression
from streamsql.binder.names.environment import Environment, Scope


class NodeBinder(Protocol):
    """Binds the nodes below the one at hand."""

    @property
    def environment(self) -> Environment:
        """Names and places."""

    @property
    def scope(self) -> Scope:
        """Visible columns."""

    def bind(self, node: exp.Expr) -> Expression:
        """Return the typed expression of a node."""

    def predicate(self, node: exp.Expr, where: str) -> Expression:
        """Return the condition a node means; `where` says what needs it."""

    def over(self, environment: Environment, scope: Scope) -> "NodeBinder":
        """Return a binder over other names, without aggregates."""
