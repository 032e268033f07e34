"""UPDATE and MERGE: new values of rows, and when they are taken."""

from dataclasses import dataclass

from sqlglot import exp

from streamsql.algebra.expressions import Expression, Literal
from streamsql.algebra.operators import Plan
from streamsql.algebra.row_changes import NewValues, RowAction, RowMerge
from streamsql.binder.expressions.coercion import converted, time_value
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.names.environment import Environment, Scope
from streamsql.binder.statements.bind import bind_query, statement_environment
from streamsql.binder.statements.insert_and_delete import (
    STORED_HINT,
    changed_relation,
    check_own_rows,
    column_position,
)
from streamsql.binder.statements.stored_rows import check_stored
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Field
from streamsql.data.types import DataType, coerce, common_type
from streamsql.errors import BindingError
from streamsql.syntax.statement_parsers.change_statements import (
    Assignment,
    Merge,
    MergeAction,
    Update,
)
from streamsql.syntax.statements import Name

_TIMES = (DataType.TIMESTAMP, DataType.INTERVAL)


@dataclass(frozen=True, slots=True)
class BoundUpdate:
    """New values of the rows that fit; all rows without a predicate."""

    definition: SourceDefinition
    values: NewValues
    predicate: Expression | None


@dataclass(frozen=True, slots=True)
class BoundMerge:
    """Rows that meet a table's, and what happens then."""

    definition: SourceDefinition
    rows: Plan
    merge: RowMerge


def bind_update(statement: Update, catalog: Catalog) -> BoundUpdate:
    """Return the new values of an UPDATE.

    Raises:
        BindingError: A name is unknown, or a value does not fit its column.
        UnsupportedError: It reads another relation.
    """
    definition = changed_relation(statement.source, catalog)
    environment = statement_environment(catalog, statement.script)
    binder = ExpressionBinder(environment, Scope.of(definition.name, definition.schema))
    values = _new_values(statement.assignments, definition, binder)
    if statement.predicate is None:
        return BoundUpdate(definition, values, None)
    check_own_rows(statement.predicate, "the condition of UPDATE", environment)
    return BoundUpdate(definition, values, binder.predicate(statement.predicate, "WHERE"))


def bind_merge(statement: Merge, catalog: Catalog) -> BoundMerge:
    """Return the parts of a MERGE.

    Raises:
        BindingError: A name is unknown, a value does not fit its column, or types differ.
        UnsupportedError: A construct is refused.
    """
    definition = changed_relation(statement.source, catalog)
    source = bind_query(statement.rows, catalog)
    check_stored(source, statement.rows.span, "MERGE", STORED_HINT, "unsupported_statement")
    if statement.alias.text == statement.row_name.text:
        raise BindingError(
            f"the table and the rows of USING are both called {statement.row_name.text!r}",
            span=statement.row_name.span,
            hint="give one another name, with AS",
            code="duplicate_name",
        )
    environment = statement_environment(catalog, statement.script)
    width = len(definition.schema)
    mine = Scope.of(statement.alias.text, definition.schema)
    theirs = Scope.of(statement.row_name.text, source.plan.schema, width)
    both = ExpressionBinder(environment, mine + theirs)
    check_own_rows(statement.on, "ON", environment)
    on = both.predicate(statement.on, "ON")
    only_theirs = ExpressionBinder(environment, theirs)
    actions = tuple(
        _action(action, definition, both if action.matched else only_theirs)
        for action in statement.actions
    )
    return BoundMerge(definition, source.plan, RowMerge(width, on, actions))


def _action(
    action: MergeAction, definition: SourceDefinition, binder: ExpressionBinder
) -> RowAction:
    condition = None
    if action.condition is not None:
        check_own_rows(action.condition, "the condition of WHEN", binder.environment)
        condition = binder.predicate(action.condition, "WHEN")
    match action.verb:
        case "DELETE":
            return RowAction(action.matched, condition, delete=True)
        case "UPDATE":
            values = _new_values(action.assignments, definition, binder)
            return RowAction(action.matched, condition, values=values)
        case "INSERT":
            return RowAction(
                action.matched, condition, values=_inserted(action, definition, binder)
            )
        case _:
            return RowAction(action.matched, condition)


def _new_values(
    assignments: tuple[Assignment, ...], definition: SourceDefinition, binder: ExpressionBinder
) -> NewValues:
    values: dict[int, Expression] = {}
    for assignment in assignments:
        position = _once(assignment.column, definition, values)
        field = definition.schema.fields[position]
        values[position] = _assigned(assignment.value, field, binder)
    return tuple(values.items())


def _inserted(
    action: MergeAction, definition: SourceDefinition, binder: ExpressionBinder
) -> NewValues:
    fields = definition.schema.fields
    given: dict[int, Expression] = {}
    positions = list(range(len(fields)))
    if action.columns:
        named: dict[int, Expression] = {}
        for name in action.columns:
            named[_once(name, definition, named)] = Literal(None, DataType.NULL)
        positions = list(named)
    if len(action.values) != len(positions):
        raise BindingError(
            f"{len(action.values)} values for {len(positions)} columns",
            span=action.span,
            hint=f"the columns are {definition.schema}",
            code="column_count",
        )
    for position, node in zip(positions, action.values, strict=True):
        given[position] = _assigned(node, fields[position], binder)
    nothing = Literal(None, DataType.NULL)
    return tuple((position, given.get(position, nothing)) for position in range(len(fields)))


def _once(name: Name, definition: SourceDefinition, seen: dict[int, Expression]) -> int:
    position = column_position(name, definition)
    if position in seen:
        raise BindingError(
            f"column {name.text!r} is named twice",
            span=name.span,
            hint="name it once",
            code="duplicate_name",
        )
    return position


def _assigned(node: exp.Expr, field: Field, binder: ExpressionBinder) -> Expression:
    """Return an expression as a value of a column."""
    environment: Environment = binder.environment
    check_own_rows(node, "a new value", environment)
    bound = binder.bind(node)
    if isinstance(bound, Literal) and bound.value is not None:
        return _constant(bound, node, field, environment)
    if common_type(field.dtype, bound.dtype) != field.dtype:
        raise environment.type_mismatch(
            node,
            f"column {field.name!r} is {field.dtype}, but this has type {bound.dtype}",
            f"CAST(… AS {field.dtype}) converts it",
        )
    return bound if bound.dtype == DataType.NULL else converted(bound, field.dtype)


def _constant(
    literal: Literal, node: exp.Expr, field: Field, environment: Environment
) -> Expression:
    if isinstance(literal.value, str) and field.dtype in _TIMES:
        return Literal(time_value(literal.value, field.dtype, node, environment), field.dtype)
    if (literal.dtype in _TIMES or field.dtype in _TIMES) and literal.dtype != field.dtype:
        raise environment.error(
            node,
            f"column {field.name!r} is {field.dtype}, but this has type {literal.dtype}",
            code="type_mismatch",
        )
    try:
        return Literal(coerce(literal.value, field.dtype), field.dtype)
    except ValueError as error:
        raise environment.error(
            node,
            f"column {field.name!r}: {error}",
            hint=f"it takes {field.dtype}",
            code="bad_literal",
        ) from None
