"""Scopes: which columns a name may mean at one point of a query."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from streamsql.algebra.expressions import Column
from streamsql.binder.names.environment import Environment, identifier_text
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.syntax.cursor import nearest


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
                ScopeColumn(
                    table,
                    field.name,
                    field.dtype,
                    offset + number,
                    doubled=field.name in doubled,
                )
                for number, field in enumerate(schema.fields)
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
        return Scope(tuple(replace(c, position=layout[c.position]) for c in self.columns))

    def lookup(self, node: exp.Column) -> list[ScopeColumn]:
        """Return the columns that a reference may mean."""
        name = identifier_text(node.this)
        qualifier = node.args.get("table")
        if qualifier is None:
            return [c for c in self.visible() if c.name == name]
        return [c for c in self.of_table(identifier_text(qualifier)) if c.name == name]

    def resolve(self, node: exp.Column, environment: Environment) -> ScopeColumn:
        """Return the column that a reference means, of this query or of the one around it.

        Raises:
            BindingError: There is none, or there are several.
            UnsupportedError: It is one of the query around that cannot be read here.
        """
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
        elsewhere = qualifier is None or identifier_text(qualifier) not in self.tables
        if not found and elsewhere and environment.outer is not None:
            outside: ScopeColumn | None = environment.outer.resolve(node, environment)
            if outside is not None:
                return outside
            if qualifier is not None:
                environment.outer.check_column(node, identifier_text(qualifier), environment)
        if qualifier is not None:
            self.check_table(identifier_text(qualifier), qualifier, environment)
        if not found:
            raise self.unknown(node, name, environment)
        if found[0].doubled:
            raise environment.error(
                node,
                f"column {name!r} is ambiguous: the query has several columns of this name",
                hint=f"give its columns different names: … AS {name}, … AS {name}2",
                code="ambiguous_column",
            )
        if len(found) > 1:
            owners = ", ".join(f"{c.table}.{c.name}" for c in found)
            raise environment.error(
                node,
                f"column {name!r} is ambiguous",
                hint=f"write one of {owners}",
                code="ambiguous_column",
            )
        return found[0]

    def check_table(self, table: str, node: exp.Expr, environment: Environment) -> None:
        """Check that an alias is visible.

        Raises:
            BindingError: It is not.
        """
        if table in self.tables:
            return
        close = nearest(table, self.tables)
        known = ", ".join(self.tables) or "none: the query has no FROM"
        hint = f"did you mean {close}?" if close else f"known here: {known}"
        raise environment.error(
            node,
            f"there is no relation {table!r} in this FROM",
            hint=hint,
            code="unknown_qualifier",
        )

    def unknown(self, node: exp.Column, name: str, environment: Environment) -> Exception:
        """Return the error about a column that is not there."""
        qualifier = node.args.get("table")
        columns = self.visible()
        if qualifier is not None:
            columns = self.of_table(identifier_text(qualifier))
        names = list(dict.fromkeys(c.name for c in columns))
        close = nearest(name, names)
        shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        hint = f"did you mean {close}?" if close else f"columns here: {shown or 'none'}"
        return environment.error(
            node, f"there is no column {name!r}", hint=hint, code="unknown_column"
        )
