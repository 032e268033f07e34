"""Names visible at one point of a statement: common tables, columns, and errors about them."""

import itertools
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from sqlglot import exp

from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import Plan, TopN
from streamsql.algebra.past_times import History
from streamsql.catalog.catalog import Catalog, is_relation
from streamsql.catalog.definitions import Definition, ViewDefinition
from streamsql.catalog.read_gate import Read
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import BindingError, Span, UnsupportedError
from streamsql.syntax.cursor import did_you_mean
from streamsql.syntax.script_places import Script
from streamsql.syntax.statements import Query


class OuterColumns(Protocol):
    """The columns of the query around a subquery; see `streamsql.binder.names.outer_names`."""

    def resolve(self, node: exp.Column, environment: "Environment") -> "ScopeColumn | None":
        """Return the column of a scope that a reference means, or None."""

    def aggregate(self, node: exp.Expr, environment: "Environment") -> "ScopeColumn | None":
        """Return the column of an aggregate that belongs to a query around, or None."""

    def check_column(self, node: exp.Column, table: str, environment: "Environment") -> None:
        """Check that a relation of the query around has a column."""

    def blocked_by(self, reason: str) -> "OuterColumns":
        """Return the columns for a part that cannot read any of them."""


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A relation named in a WITH clause.

    Attributes:
        plan: What it stands for; a `RecursiveReference` inside its own definition.
        recursive: Whether it is the relation being defined.
    """

    plan: Plan
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class Queries:
    """Binds the queries inside a query; given by the statements, which all parts are below.

    Attributes:
        relation: Returns the plan of a query in FROM, WITH or a set operation.
        view: Returns the plan of a view's query.
        block: Returns the `Block` of a SELECT inside an expression.
    """

    relation: Callable[[exp.Expr, "Environment"], Plan]
    view: Callable[[ViewDefinition, Query, "Environment"], Plan]
    block: Callable[..., Any]


@dataclass(slots=True)
class Binding:
    """State that the parts of one statement share while it is bound.

    Attributes:
        places: Where each recursion was written, or where its view is read, by fixpoint name.
        views: Plans of views already expanded, so that a view read twice is one shared plan; by
            its name, for whom it is read, and the past that is read.
        reads: The relations that were named so far.
        ranked: The column of each ROW_NUMBER() that no condition bounds yet; see
            `streamsql.binder.names.ranks`.
        materialized: Names of MATERIALIZED tables, by wanted name and input.
        subqueries: Number of subqueries bound so far; makes names.
        doubled: Names that a query gave to several columns, by the identity of its plan: an equal
            plan may have been written with other names.
    """

    catalog: Catalog
    queries: Queries
    warnings: list[str] = field(default_factory=list)
    places: dict[str, Span | None] = field(default_factory=dict)
    views: dict[tuple[Read, History | None], Plan] = field(default_factory=dict)
    reads: set[Read] = field(default_factory=set)
    ranked: dict[TopN, int] = field(default_factory=dict)
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
    names = itertools.chain((wanted,), (f"{wanted}_{number}" for number in itertools.count(2)))
    return next(name for name in names if name not in taken)


@dataclass(frozen=True, slots=True)
class Environment:
    """Names visible at one point of a statement.

    Attributes:
        script: The text that places refer to.
        tables: Relations of enclosing WITH clauses.
        expanding: Views being expanded, outermost first.
        outer: Columns of the query around, in a subquery.
        history: The past in which a view around reads its sources.
    """

    binding: Binding
    script: Script
    tables: Mapping[str, CommonTable] = field(default_factory=dict)
    expanding: tuple[str, ...] = ()
    outer: OuterColumns | None = None
    history: History | None = None

    def plan_of(self, tree: exp.Expr) -> Plan:
        """Return the plan of a query inside the one at hand."""
        return self.binding.queries.relation(tree, self)

    def with_table(self, name: str, table: CommonTable) -> "Environment":
        """Return the environment with one more common table."""
        return replace(self, tables={**self.tables, name: table})

    def definition(self, name: str, node: exp.Expr) -> Definition | None:
        """Return the definition that a name in FROM means, and note that it is read, or None.

        Raises:
            BindingError: Whoever asks may not read it.
        """
        catalog = self.binding.catalog
        found = catalog.find(name)
        if found is None or not is_relation(found):
            return found
        read = catalog.read_of(found.name, self.expanding)
        refused = catalog.refusal(read)
        if refused is not None:
            raise self.error(node, refused.reason, hint=refused.hint, code="not_allowed")
        self.binding.reads.add(read)
        return found

    def without_outer(self, reason: str) -> "Environment":
        """Return the environment of a part that cannot read the query around."""
        return self if self.outer is None else replace(self, outer=self.outer.blocked_by(reason))

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

    def wrong_arguments(self, node: exp.Expr, message: str, hint: str) -> BindingError:
        """Return an error about the number or kind of the arguments of a call or clause."""
        return self.error(node, message, hint=hint, code="wrong_arguments")

    def type_mismatch(self, node: exp.Expr, message: str, hint: str) -> BindingError:
        """Return an error about a value of the wrong type."""
        return self.error(node, message, hint=hint, code="type_mismatch")

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


def whole_number(node: object, digits: int) -> int | None:
    """Return a constant whole number of at most so many digits, or None for anything else."""
    if not isinstance(node, exp.Literal) or node.args.get("is_string"):
        return None
    text = node.name
    return int(text) if text.isdigit() and len(text) <= digits else None


def conjunct_nodes(node: exp.Expr | None) -> list[exp.Expr]:
    """Split a condition as written at its top-level ANDs."""
    if node is None:
        return []
    if isinstance(node, exp.Paren):
        inner = node.unnest()
        return conjunct_nodes(inner) if isinstance(inner, exp.And) else [node]
    if isinstance(node, exp.And):
        return conjunct_nodes(node.this) + conjunct_nodes(node.expression)
    return [node]


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A visible column.

    Attributes:
        table: Alias of the relation it comes from.
        position: Where it stands in the row that expressions read.
        merged: Hidden from `*` and from bare names because USING merged it into another.
        doubled: Whether its query gave another column the same name, so that it means neither.
    """

    table: str
    name: str
    dtype: DataType
    position: int
    merged: bool = False
    doubled: bool = False


def only_one(
    found: list[ScopeColumn], name: str, node: exp.Expr, environment: Environment
) -> ScopeColumn:
    """Return the only column that a reference may mean."""
    if len(found) > 1:
        owners = ", ".join(f"{c.table}.{c.name}" for c in found)
        raise environment.error(
            node,
            f"column {name!r} is ambiguous",
            hint=f"write one of {owners}",
            code="ambiguous_column",
        )
    return found[0]


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns visible at one point, in the order `*` expands to."""

    columns: tuple[ScopeColumn, ...] = ()

    @staticmethod
    def of(
        table: str, schema: Schema, offset: int = 0, doubled: frozenset[str] = frozenset()
    ) -> "Scope":
        """Return the scope of one relation whose columns begin at a position."""
        return Scope(
            tuple(
                ScopeColumn(table, f.name, f.dtype, offset + number, doubled=f.name in doubled)
                for number, f in enumerate(schema.fields)
            )
        )

    def __add__(self, other: "Scope") -> "Scope":
        """Return the columns of both."""
        return Scope(self.columns + other.columns)

    @property
    def tables(self) -> tuple[str, ...]:
        """Aliases in order of appearance."""
        return tuple(dict.fromkeys(column.table for column in self.columns))

    def of_table(self, table: str) -> tuple[ScopeColumn, ...]:
        """Return the columns of one relation in its order, which USING does not change."""
        found = [column for column in self.columns if column.table == table]
        return tuple(sorted(found, key=lambda column: column.position))

    def read(self, column: ScopeColumn) -> Column:
        """Return the expression that reads a column, labelled so that EXPLAIN is unambiguous."""
        shared = any(c.name == column.name and c.table != column.table for c in self.columns)
        label = f"{column.table}.{column.name}" if shared and column.table else column.name
        return Column(column.position, label, column.dtype)

    def visible(self) -> tuple[ScopeColumn, ...]:
        """Return what `*` expands to."""
        return tuple(column for column in self.columns if not column.merged)

    def hiding(self, positions: Iterable[int]) -> "Scope":
        """Return the scope with some columns merged away."""
        hidden = frozenset(positions)
        return Scope(
            tuple(
                replace(column, merged=True) if column.position in hidden else column
                for column in self.columns
            )
        )

    def moved(self, layout: dict[int, int]) -> "Scope":
        """Return the scope over a row whose columns were rearranged."""
        # `dataclasses.replace` takes three times as long, and each join comes here.
        return Scope(
            tuple(
                ScopeColumn(c.table, c.name, c.dtype, layout[c.position], c.merged, c.doubled)
                for c in self.columns
            )
        )

    def lookup(self, node: exp.Column) -> list[ScopeColumn]:
        """Return the columns that a reference may mean."""
        name = identifier_text(node.this)
        qualifier = node.args.get("table")
        if qualifier is None:
            return [c for c in self.visible() if c.name == name]
        table = identifier_text(qualifier)
        found = [c for c in self.columns if c.name == name and c.table == table]
        return sorted(found, key=lambda column: column.position)

    def resolve(self, node: exp.Column, environment: Environment) -> ScopeColumn:
        """Return the column that a reference means, of this query or of the one around it."""
        if node.args.get("db") is not None or node.args.get("catalog") is not None:
            raise environment.error(
                node,
                "write a column as name or table.name",
                hint="schemas are not supported",
                code="bad_column_name",
            )
        name = identifier_text(node.this)
        qualifier = node.args.get("table")
        found = self.lookup(node)
        if not found:
            elsewhere = qualifier is None or identifier_text(qualifier) not in self.tables
            if elsewhere and environment.outer is not None:
                outside = environment.outer.resolve(node, environment)
                if outside is not None:
                    return outside
                if qualifier is not None:
                    environment.outer.check_column(node, identifier_text(qualifier), environment)
            if qualifier is not None:
                self.check_table(identifier_text(qualifier), qualifier, environment)
            raise self.unknown(node, environment)
        if found[0].doubled:
            raise environment.error(
                node,
                f"column {name!r} is ambiguous: the query has several columns of this name",
                hint=f"give its columns different names: … AS {name}, … AS {name}2",
                code="ambiguous_column",
            )
        return only_one(found, name, node, environment)

    def check_table(self, table: str, node: exp.Expr, environment: Environment) -> None:
        """Check that an alias is visible."""
        if table in self.tables:
            return
        known = ", ".join(self.tables) or "none: the query has no FROM"
        hint = did_you_mean(table, self.tables, f"known here: {known}")
        raise environment.error(
            node,
            f"there is no relation {table!r} in this FROM",
            hint=hint,
            code="unknown_qualifier",
        )

    def unknown(self, node: exp.Column, environment: Environment) -> BindingError:
        """Return the error about a column that is not there."""
        name = identifier_text(node.this)
        qualifier = node.args.get("table")
        columns = self.visible()
        if qualifier is not None:
            columns = self.of_table(identifier_text(qualifier))
        names = list(dict.fromkeys(c.name for c in columns))
        shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        hint = did_you_mean(name, names, f"columns here: {shown or 'none'}")
        return environment.error(
            node, f"there is no column {name!r}", hint=hint, code="unknown_column"
        )
