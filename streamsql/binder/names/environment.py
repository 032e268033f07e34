"""What is known while a statement is bound, and how to complain about it."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from sqlglot import exp

from streamsql.algebra.operators import Plan, SortKey, TopN
from streamsql.catalog.catalog import Catalog
from streamsql.data.schema import Schema
from streamsql.errors import BindingError, Span, UnsupportedError
from streamsql.syntax.script_places import Script


class OuterColumns(Protocol):
    """The columns of the query around a subquery; see `streamsql.binder.names.outer_names`."""

    def resolve(self, node: exp.Column, environment: "Environment") -> Any:
        """Return the column of a scope that a reference means, or None."""

    def aggregate(self, node: exp.Expr, environment: "Environment") -> Any:
        """Return the column of an aggregate that belongs to a query around, or None."""

    def check_column(self, node: exp.Column, table: str, environment: "Environment") -> None:
        """Check that a relation of the query around has a column."""


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A relation named in a WITH clause.

    Attributes:
        plan: What it stands for; a `RecursiveReference` inside its own definition.
        recursive: Whether it is the relation being defined.
    """

    plan: Plan
    recursive: bool = False


@dataclass(slots=True)
class Binding:
    """What the parts of one statement share while it is bound.

    Attributes:
        places: Where each recursion was written, or where its view is read, by fixpoint name.
        views: Plans of views already expanded, so that a view read twice is one shared plan.
        ranked: Queries with ROW_NUMBER() that a condition on it has still to bound, with the
            column and the place of the call; see `streamsql.binder.names.ranks`.
        materialized: Inputs of MATERIALIZED tables with the name of each, which is its own.
        subqueries: How many were bound so far; for names.
        doubled: Names that queries gave to several columns, with the plan, by its identity: an
            equal one may have been written with other names.
    """

    catalog: Catalog
    warnings: list[str] = field(default_factory=list)
    places: dict[str, Span | None] = field(default_factory=dict)
    views: dict[str, Plan] = field(default_factory=dict)
    ranked: dict[TopN, tuple[int, Span | None]] = field(default_factory=dict)
    materialized: dict[tuple[str, Plan], str] = field(default_factory=dict)
    subqueries: int = 0
    doubled: dict[int, tuple[Plan, frozenset[str]]] = field(default_factory=dict)

    def warn(self, text: str) -> None:
        """Add a warning once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def note_doubled(self, plan: Plan, names: frozenset[str]) -> None:
        """Note the names that a query gave to several of its columns."""
        if names:
            self.doubled[id(plan)] = (plan, names)

    def doubled_of(self, plan: Plan) -> frozenset[str]:
        """Return the names that a query gave to several of its columns."""
        return self.doubled[id(plan)][1] if id(plan) in self.doubled else frozenset()

    def materialized_name(self, wanted: str, plan: Plan) -> str:
        """Return the name of a MATERIALIZED table, which no other one of the statement has."""
        if (wanted, plan) not in self.materialized:
            taken = set(self.materialized.values())
            self.materialized[wanted, plan] = _free_name(wanted, taken)
        return self.materialized[wanted, plan]

    def fixpoint_name(self, wanted: str, place: Span | None) -> str:
        """Return a name no other recursion of the statement has."""
        name = _free_name(wanted, self.places)
        self.places[name] = place
        return name


def _free_name(wanted: str, taken: Container[str]) -> str:
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


@dataclass(frozen=True, slots=True)
class Environment:
    """Names visible at one point of a statement.

    Attributes:
        script: The text that places refer to.
        tables: Relations of enclosing WITH clauses.
        expanding: Views being expanded, outermost first.
        outer: Columns of the query around, in a subquery.
    """

    binding: Binding
    script: Script
    tables: Mapping[str, CommonTable] = field(default_factory=dict)
    expanding: tuple[str, ...] = ()
    outer: OuterColumns | None = None

    def with_table(self, name: str, table: CommonTable) -> "Environment":
        """Return the environment with one more common table."""
        return replace(self, tables={**self.tables, name: table})

    def place(self, node: exp.Expr | None) -> Span | None:
        """Return where a node, or the nearest one around it that carries a place, was written."""
        while node is not None:
            span = self.script.span_of(node)
            if span is not None:
                return span
            node = node.parent
        return None

    def error(
        self, node: exp.Expr | None, message: str, *, hint: str = "", code: str = ""
    ) -> BindingError:
        """Return an error about a name, a type or a shape."""
        return BindingError(message, span=self._some_place(node), hint=hint, code=code)

    def unsupported(
        self, node: exp.Expr | None, message: str, *, hint: str, code: str = ""
    ) -> UnsupportedError:
        """Return an error about something understood but refused."""
        return UnsupportedError(message, span=self._some_place(node), hint=hint, code=code)

    def _some_place(self, node: exp.Expr | None) -> Span:
        return self.place(node) or self.script.span(0, 0)


def identifier_text(identifier: exp.Expr) -> str:
    """Return a name as names are compared: lower case unless quoted."""
    text = identifier.name
    return text if identifier.args.get("quoted") else text.lower()


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query ready to be optimized and run.

    Attributes:
        emit: "relation", or "stream": rows are only added, and nobody keeps them.
        warnings: What its author should know before it runs.
        order: How its result is shown, by output columns; the relation itself has no order.
    """

    plan: Plan
    schema: Schema
    emit: str
    warnings: tuple[str, ...]
    order: tuple[SortKey, ...] = ()
