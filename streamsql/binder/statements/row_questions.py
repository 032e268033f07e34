"""Questions about rows: their values typed, their sources and columns found.

The answers are computed elsewhere, from the base rows that the bound query reads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from streamsql.algebra.operators import Plan, Scan, walk_plan
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.names.bound_query import BoundQuery
from streamsql.binder.names.environment import Scope
from streamsql.binder.statements.bind import bind_query, statement_environment
from streamsql.binder.statements.insert_and_delete import bind_value, column_position
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.read_gate import Read
from streamsql.data.schema import Schema
from streamsql.data.types import Row, Value
from streamsql.errors import BindingError, UnsupportedError
from streamsql.syntax.cursor import did_you_mean
from streamsql.syntax.row_question_statements import (
    ColumnName,
    ExplainConfidence,
    ExplainWhatIf,
    ExplainWhy,
    LostGateway,
    LostNode,
    RowPattern,
)
from streamsql.syntax.script_places import Script
from streamsql.syntax.statements import Name


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A numeric column of a source that a query reads, by position."""

    definition: SourceDefinition
    column: int


@dataclass(frozen=True, slots=True)
class BoundWhy:
    """A question for the base rows that a row of a query rests on.

    Attributes:
        row: One value per column of the query.
        limit: Most minimal sets of base rows to show.
        confidence: Where the probability of a base row stands, or None.
    """

    query: BoundQuery
    row: Row
    limit: int
    confidence: SourceColumn | None


@dataclass(frozen=True, slots=True)
class Deletion:
    """Rows of a source by their first values; None matches anything."""

    definition: SourceDefinition
    values: tuple[Value, ...]

    @property
    def sources(self) -> frozenset[str]:
        """The sources it takes rows from."""
        return frozenset((self.definition.name,))

    def matches(self, source: str, row: Row) -> bool:
        """Whether a row of a source is meant."""
        return source == self.definition.name and all(
            want is None or want == have
            for want, have in zip(self.values, row[: len(self.values)], strict=True)
        )


@dataclass(frozen=True, slots=True)
class NodeDeletion:
    """Rows that have a node in their key: its links, and what it measures itself.

    Attributes:
        keys: Positions of the key per source; stored tables have no nodes that die.
    """

    node: str | int
    keys: Mapping[str, tuple[int, ...]]

    @property
    def sources(self) -> frozenset[str]:
        """The sources it takes rows from."""
        return frozenset(self.keys)

    def matches(self, source: str, row: Row) -> bool:
        """Whether a row of a source is meant."""
        return any(
            row[position] == self.node and type(row[position]) is type(self.node)
            for position in self.keys.get(source, ())
        )


@dataclass(frozen=True, slots=True)
class GatewayDeletion:
    """All base rows that a gateway owns.

    A row does not hold its gateway: the caller must know where it came from.

    Attributes:
        sources: Those that a gateway can have.
    """

    gateway: str
    sources: frozenset[str]

    def matches(self, _source: str, _row: Row) -> bool:
        """Return False: no row is meant by its values."""
        return False


BoundLoss = Deletion | NodeDeletion | GatewayDeletion


@dataclass(frozen=True, slots=True)
class BoundWhatIf:
    """A question for the rows that a query would lose without some base rows."""

    query: BoundQuery
    deletions: tuple[BoundLoss, ...]

    def chosen(self, source: str, row: Row) -> bool:
        """Whether a row of a source is to be deleted, by its values."""
        return any(deletion.matches(source, row) for deletion in self.deletions)


@dataclass(frozen=True, slots=True)
class BoundConfidence:
    """A question for the probabilities of the rows of a query.

    Attributes:
        using: Where the probability of a base row stands.
        limit: Most rows to show, or None for all.
    """

    query: BoundQuery
    using: SourceColumn
    limit: int | None


def bind_why(statement: ExplainWhy, catalog: Catalog) -> BoundWhy:
    """Bind EXPLAIN WHY.

    Raises:
        QueryError: The query is wrong, the row does not fit it, or the column of probabilities is
            none of a source that it reads.
    """
    query = bind_query(statement.inner, catalog)
    row = bind_row(statement.row, query.schema, statement.script)
    column = None
    if statement.confidence is not None:
        column = _column(statement.confidence, query.plan, catalog)
    return BoundWhy(query, row, statement.limit, column)


def bind_what_if(statement: ExplainWhatIf, catalog: Catalog) -> BoundWhatIf:
    """Bind EXPLAIN WHAT IF DELETE … FOR (query).

    Raises:
        QueryError: The query is wrong, there is none, or a deletion does not fit a source that it
            reads.
    """
    if statement.inner is None:
        raise UnsupportedError(
            "WHAT IF without FOR asks about running queries, but a local session has none",
            span=statement.span,
            hint="add FOR (query), or FOR and the name of a view",
            code="needs_federation",
        )
    query = bind_query(statement.inner, catalog)
    return BoundWhatIf(
        query, _losses(statement, catalog, lambda name: _source(name, query.plan, catalog))
    )


def bind_deletions(statement: ExplainWhatIf, catalog: Catalog) -> tuple[BoundLoss, ...]:
    """Bind the deletions of EXPLAIN WHAT IF DELETE, whatever reads their sources.

    Raises:
        QueryError: There is no such source, or the values do not fit it.
    """
    return _losses(statement, catalog, lambda name: _known_source(name, catalog))


def _losses(
    statement: ExplainWhatIf, catalog: Catalog, source_of: Callable[[Name], SourceDefinition]
) -> tuple[BoundLoss, ...]:
    found: list[BoundLoss] = []
    for lost in statement.deletions:
        match lost:
            case RowPattern(source=source):
                found.append(_deletion(source_of(source), lost, catalog, statement.script))
            case LostGateway(gateway=gateway):
                found.append(gateway_deletion(gateway.text, catalog))
            case LostNode(node=node):
                found.append(node_deletion(node, catalog))
    return tuple(found)


def gateway_deletion(gateway: str, catalog: Catalog) -> GatewayDeletion:
    """Return the death of a gateway: all rows of streams and links that it owns."""
    return GatewayDeletion(gateway, frozenset(source.name for source in catalog.sources))


def node_deletion(node: str | int, catalog: Catalog) -> NodeDeletion:
    """Return the death of a node."""
    return NodeDeletion(node, {s.name: s.key for s in catalog.sources if s.key})


def bind_confidence(statement: ExplainConfidence, catalog: Catalog) -> BoundConfidence:
    """Bind EXPLAIN CONFIDENCE.

    Raises:
        QueryError: The query is wrong, or the column is none of a source that it reads.
    """
    query = bind_query(statement.inner, catalog)
    return BoundConfidence(query, _column(statement.using, query.plan, catalog), statement.limit)


def bind_row(values: Sequence[exp.Expr], schema: Schema, script: Script) -> Row:
    """Return the values of a row, one per column of a schema and of its type.

    Args:
        values: As parsed.
        schema: Of the query whose row it is.
        script: The text they come from.

    Raises:
        BindingError: Their number or a type is wrong.
    """
    environment = statement_environment(Catalog(), script)
    if len(values) != len(schema):
        raise environment.error(
            values[0] if values else None,
            f"{len(values)} values for a row of {len(schema)} columns",
            hint=f"the query has the columns {schema}",
            code="column_count",
        )
    binder = ExpressionBinder(environment, Scope())
    return tuple(
        bind_value(node, field, binder) for node, field in zip(values, schema.fields, strict=True)
    )


def _deletion(
    definition: SourceDefinition, pattern: RowPattern, catalog: Catalog, script: Script
) -> Deletion:
    schema = definition.schema
    if len(pattern.values) > len(schema):
        raise BindingError(
            f"{len(pattern.values)} values for {len(schema)} columns",
            span=pattern.source.span,
            hint=f"the columns are {schema}",
            code="column_count",
        )
    binder = ExpressionBinder(statement_environment(catalog, script), Scope())
    values = tuple(
        None if node is None else bind_value(node, field, binder)
        for node, field in zip(pattern.values, schema.fields, strict=False)
    )
    return Deletion(definition, values)


def _column(name: ColumnName, plan: Plan, catalog: Catalog) -> SourceColumn:
    definition = _source(name.source, plan, catalog)
    schema = definition.schema
    position = column_position(name.column, definition)
    if not schema.dtypes[position].is_numeric:
        numbers = [f.name for f in schema.fields if f.dtype.is_numeric]
        raise BindingError(
            f"{definition.name}.{name.column.text} is {schema.dtypes[position]}, not a probability",
            span=name.column.span,
            hint=f"columns with numbers: {', '.join(numbers) or 'none'}",
            code="type_mismatch",
        )
    return SourceColumn(definition, position)


def _known_source(name: Name, catalog: Catalog) -> SourceDefinition:
    """Return a source or table of the catalog."""
    definition = catalog.find(name.text)
    if isinstance(definition, SourceDefinition):
        catalog.check_read(definition.name, name.span)
        return definition
    known = [d.name for d in (*catalog.sources, *catalog.tables)]
    what, code = f"there is no source or table {name.text!r}", "unknown_relation"
    if definition is not None:
        code = "not_a_source"
        what = f"{name.text!r} is a view: its rows are derived from other relations"
    raise BindingError(
        what,
        span=name.span,
        hint=did_you_mean(name.text, known, "SHOW SOURCES or SHOW TABLES"),
        code=code,
    )


def _source(name: Name, plan: Plan, catalog: Catalog) -> SourceDefinition:
    """Return a source that a plan reads."""
    read = list(dict.fromkeys(n.source for n in walk_plan(plan) if isinstance(n, Scan)))
    definition = catalog.find(name.text)
    if isinstance(definition, SourceDefinition) and definition.name in read:
        catalog.check_read(definition.name, name.span)
        return definition
    # A view may read what whoever asks may not, and does not name it.
    read = [source for source in read if catalog.refusal(Read(source.lower())) is None]
    what = f"the query does not read a source {name.text!r}"
    if definition is not None and not isinstance(definition, SourceDefinition):
        what = f"{name.text!r} is a view: its rows are derived from other relations"
    known = f"it reads {', '.join(read)}" if read else "it reads no source that you may read"
    hint = did_you_mean(name.text, read, known)
    raise BindingError(what, span=name.span, hint=hint, code="not_a_source")
