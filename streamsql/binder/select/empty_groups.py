"""A correlated aggregate without GROUP BY over no rows: COUNT is 0, and there is a row after all.

Its plan is grouped by the correlation columns, so an outer row that finds nothing finds no group
either; the join with it then takes what is computed here.
"""

from sqlglot import exp

from streamsql.algebra.expressions import Call, Column, Expression, Literal, columns_of, map_columns
from streamsql.algebra.operators import AggregateCall, AggregateFunction
from streamsql.algebra.scalar import compile_expression
from streamsql.binder.aggregation.order_and_limit import Extent
from streamsql.binder.names.outer_names import OUTER, outer_of, reads_subquery
from streamsql.binder.select.from_clause import Input
from streamsql.binder.subqueries.subquery_joins import SubqueryJoins

_COUNTS = (AggregateFunction.COUNT_ALL, AggregateFunction.COUNT)


def when(condition: Expression | None, value: Expression) -> Expression:
    """Return a value where a condition holds, else NULL."""
    if condition is None:
        return value
    return Call("CASE", (condition, value, Literal(None, value.dtype)), value.dtype)


def presence(select: exp.Select, window: Extent | None) -> exp.Expr | None:
    """Return the condition under which an aggregate without GROUP BY gives its row; None: always.

    LIMIT 0 and OFFSET 1 leave nothing of one row.
    """
    if window is not None and (window.limit == 0 or window.offset > 0):
        return exp.Boolean(this=False)
    having = select.args.get("having")
    return None if having is None else having.this


def over_no_rows(
    items: list[Expression],
    calls: list[AggregateCall],
    source: Input,
    subqueries: SubqueryJoins,
    select: exp.Select,
) -> tuple[Expression, ...]:
    """Return what the select list gives for an empty group, over outer columns.

    Args:
        items: The select list; columns behind those of the input stand for aggregates.
        calls: The aggregates.
        source: The input, with its correlation columns.
        subqueries: Of the select list, for places.
        select: The query, for places.

    Raises:
        UnsupportedError: It cannot be told.
    """
    environment = subqueries.environment
    width = len(source.plan.schema)
    outside = _outside(source)
    if any(reads_subquery(item) for item in items):
        raise environment.unsupported(
            select,
            "a subquery next to an aggregate is not supported in a correlated subquery",
            hint="compute one of them in the outer query",
            code="unsupported_subquery",
        )

    def change(column: Column) -> Expression:
        if column.position >= width:
            call = calls[column.position - width]
            if call.function == AggregateFunction.USER:
                raise environment.unsupported(
                    select,
                    f"{call.implementation} is not supported in a correlated subquery: its "
                    "value over no rows is unknown",
                    hint="LEFT JOIN a query in FROM that groups by the column",
                    code="unsupported_subquery",
                )
            return Literal(0 if call.function in _COUNTS else None, call.dtype)
        return outside.get(column.position, column)

    return tuple(_folded(map_columns(item, change)) for item in items)


def _outside(source: Input) -> dict[int, Expression]:
    """Return the outer expressions that correlation columns are equal to, by position."""
    result: dict[int, Expression] = {}
    for condition in source.joins:
        if isinstance(condition, Call) and isinstance(condition.arguments[0], Column):
            place = condition.arguments[0].position
            result[source.prefix[place].position] = condition.arguments[1]
    outer = outer_of(source.environment)
    if outer is not None and outer.places is not None:
        fields = source.plan.schema.fields
        for number, position in outer.places.items():
            field = fields[position]
            result[position] = Column(OUTER + number, field.name, field.dtype)
    return result


def _folded(expression: Expression) -> Expression:
    if isinstance(expression, Literal) or columns_of(expression):
        return expression
    return Literal(compile_expression(expression)(()), expression.dtype)
