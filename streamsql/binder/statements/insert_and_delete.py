"""INSERT and DELETE: rows and predicates for a source."""

from dataclasses import dataclass

from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression, Literal
from streamsql.algebra.operators import Plan, Project
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.binder.expressions.coercion import converted, time_value
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.names.environment import Environment, Scope
from streamsql.binder.statements.bind import bind_query, statement_environment
from streamsql.binder.statements.stored_rows import check_stored
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.system import is_system
from streamsql.data.schema import Field
from streamsql.data.types import DataType, Row, Value, coerce, common_type
from streamsql.errors import BindingError
from streamsql.syntax.cursor import did_you_mean
from streamsql.syntax.statements import Delete, Insert, Name, Query

_TIMES = (DataType.TIMESTAMP, DataType.INTERVAL)
STORED_HINT = (
    "ask for the past of a stream: FROM stream FOR SYSTEM_TIME AS OF NOW; what gateways sent is "
    "there some seconds later"
)


@dataclass(frozen=True, slots=True)
class BoundInsert:
    """Rows to insert into a source or table, in its column order.

    Attributes:
        given: Positions of the columns that the statement names; all, if it names none.
        query: What computes the rows, in place of `rows`; its columns are those of the table.
    """

    definition: SourceDefinition
    rows: tuple[Row, ...]
    given: tuple[int, ...]
    query: Plan | None = None


@dataclass(frozen=True, slots=True)
class BoundDelete:
    """Rows to delete from a source or table; all of them without a predicate."""

    definition: SourceDefinition
    predicate: Expression | None


def bind_insert(statement: Insert, catalog: Catalog) -> BoundInsert:
    """Return the rows of an INSERT; columns that are not named become NULL.

    Raises:
        BindingError: The source or a column is unknown, or a value does not fit its column.
        UnsupportedError: Its query reads a stream.
    """
    definition = changed_relation(statement.source, catalog)
    environment = statement_environment(catalog, statement.script)
    positions = _positions(statement, definition)
    if statement.query is not None:
        plan = _queried(statement.query, definition, positions, catalog)
        return BoundInsert(definition, (), positions, plan)
    binder = ExpressionBinder(environment, Scope())
    rows = []
    for nodes in statement.rows:
        if len(nodes) != len(positions):
            raise environment.error(
                nodes[0],
                f"{len(nodes)} values for {len(positions)} columns",
                hint=f"the columns are {definition.schema}",
                code="column_count",
            )
        values: list[Value] = [None] * len(definition.schema)
        for position, node in zip(positions, nodes, strict=True):
            field = definition.schema.fields[position]
            values[position] = bind_value(node, field, binder)
        rows.append(tuple(values))
    return BoundInsert(definition, tuple(rows), positions)


def _queried(
    query: Query, definition: SourceDefinition, positions: tuple[int, ...], catalog: Catalog
) -> Plan:
    """Return the rows of a query as rows of a table."""
    bound = bind_query(query, catalog)
    check_stored(bound, query.span, "INSERT", STORED_HINT, "unsupported_statement")
    if len(bound.schema) != len(positions):
        raise BindingError(
            f"the query has {len(bound.schema)} columns for {len(positions)}",
            span=query.span,
            hint=f"the columns are {definition.schema}",
            code="column_count",
        )
    given: dict[int, Expression] = {}
    for place, (position, found) in enumerate(zip(positions, bound.schema.fields, strict=True)):
        field = definition.schema.fields[position]
        if common_type(field.dtype, found.dtype) != field.dtype:
            raise BindingError(
                f"column {field.name!r} is {field.dtype}, but the query gives {found.name!r} of "
                f"type {found.dtype}",
                span=query.span,
                hint=f"CAST(… AS {field.dtype}) converts it",
                code="type_mismatch",
            )
        if found.dtype != DataType.NULL:
            given[position] = converted(Column(place, found.name, found.dtype), field.dtype)
    values = tuple(
        given.get(position, Literal(None, field.dtype))
        for position, field in enumerate(definition.schema.fields)
    )
    return Project(bound.plan, values, definition.schema.names)


def bind_delete(statement: Delete, catalog: Catalog) -> BoundDelete:
    """Return the predicate of a DELETE over the source's columns.

    Raises:
        BindingError: The source or a column is unknown, or the condition is none.
    """
    definition = changed_relation(statement.source, catalog)
    if statement.predicate is None:
        return BoundDelete(definition, None)
    environment = statement_environment(catalog, statement.script)
    check_own_rows(statement.predicate, "the condition of DELETE", environment)
    binder = ExpressionBinder(environment, Scope.of(definition.name, definition.schema))
    return BoundDelete(definition, binder.predicate(statement.predicate, "WHERE"))


def check_own_rows(node: exp.Expr, what: str, environment: Environment) -> None:
    """Check that an expression reads no other relation.

    Raises:
        UnsupportedError: It has a query in it.
    """
    inner = node.find(exp.Query)
    if inner is not None:
        raise environment.unsupported(
            inner,
            f"{what} can read only its own relation",
            hint="find the rows with SELECT, then list them: WHERE column IN (…)",
            code="unsupported_subquery",
        )


def changed_relation(name: Name, catalog: Catalog) -> SourceDefinition:
    """Return the source or table whose rows a statement changes.

    Raises:
        BindingError: There is none of that name, or its rows are derived or measured.
    """
    definition = catalog.find(name.text)
    if isinstance(definition, SourceDefinition):
        if is_system(definition):
            raise BindingError(
                f"{definition.name} is a system source: Pando measures its rows",
                span=name.span,
                hint="create a source of your own",
                code="not_a_source",
            )
        if definition.refresh is None:
            return definition
    if definition is not None:
        raise BindingError(
            f"{name.text!r} is a view: its rows are derived from other relations",
            span=name.span,
            hint="change the sources that it reads",
            code="not_a_source",
        )
    known = [d.name for d in catalog if isinstance(d, SourceDefinition)]
    raise BindingError(
        f"there is no source or table {name.text!r}",
        span=name.span,
        hint=did_you_mean(name.text, known, "CREATE SOURCE or CREATE TABLE first"),
        code="unknown_relation",
    )


def _positions(statement: Insert, definition: SourceDefinition) -> tuple[int, ...]:
    schema = definition.schema
    if not statement.columns:
        return tuple(range(len(schema)))
    positions: list[int] = []
    for name in statement.columns:
        position = column_position(name, definition)
        if position in positions:
            raise BindingError(
                f"column {name.text!r} is named twice",
                span=name.span,
                hint="name it once",
                code="duplicate_name",
            )
        positions.append(position)
    return tuple(positions)


def column_position(name: Name, definition: SourceDefinition) -> int:
    """Return the position of a column of a source."""
    schema = definition.schema
    if name.text not in schema.names:
        raise BindingError(
            f"{definition.name!r} has no column {name.text!r}",
            span=name.span,
            hint=did_you_mean(name.text, schema.names, f"the columns are {schema}"),
            code="unknown_column",
        )
    return schema.index_of(name.text)


def bind_value(node: exp.Expr, field: Field, binder: ExpressionBinder) -> Value:
    """Return a constant as a value of a column."""
    environment = binder.environment
    _check_constant(node, environment)
    bound = binder.bind(node)
    try:
        value: Value = compile_expression(bound)(())
    except (ArithmeticError, ValueError) as error:
        raise environment.error(
            node,
            f"this value cannot be computed: {error}",
            hint="write the value itself",
            code="not_computable",
        ) from None
    if isinstance(value, str) and field.dtype in _TIMES:
        return time_value(value, field.dtype, node, environment)
    if bound.dtype in _TIMES and field.dtype != bound.dtype:
        raise environment.error(
            node,
            f"column {field.name!r} is {field.dtype}, but this has type {bound.dtype}",
            code="type_mismatch",
        )
    try:
        return coerce(value, field.dtype)
    except ValueError as error:
        raise environment.error(
            node,
            f"column {field.name!r}: {error}",
            hint=f"it takes {field.dtype}",
            code="bad_literal",
        ) from None


def _check_constant(node: exp.Expr, environment: Environment) -> None:
    """Refuse a name and a query."""
    if isinstance(node, exp.Column | exp.Identifier):
        default = node.name.upper() == "DEFAULT"
        raise environment.error(
            node,
            f"{node.name!r:.60} is not a value",
            hint="omit the column: INSERT INTO t (others) VALUES (…)"
            if default
            else "put text in single quotes",
            code="not_constant",
        )
    inner = node.find(exp.Query)
    if inner is not None:
        raise environment.error(
            inner,
            "a query is not a value",
            hint="run SELECT first, then INSERT its rows",
            code="not_constant",
        )
