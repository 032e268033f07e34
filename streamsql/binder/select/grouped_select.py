"""GROUP BY and HAVING of a SELECT, and values of a correlated aggregate over no rows.

A correlated aggregate without GROUP BY is grouped by its correlation columns: an outer row that
finds no rows finds no group. Its join then takes the values of `over_no_rows`, where COUNT is 0.
"""

from collections.abc import Iterator

from sqlglot import exp

from streamsql.algebra.expressions import Call, Column, Expression, Literal, columns_of, map_columns
from streamsql.algebra.operators import AggregateCall, AggregateFunction, Plan
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.binder.aggregation.aggregate_binder import (
    Aggregation,
    group_expressions,
    has_aggregate,
)
from streamsql.binder.aggregation.order_and_limit import Extent, ordinal
from streamsql.binder.aggregation.select_items import Outputs, SelectItem
from streamsql.binder.expressions.coercion import converted
from streamsql.binder.expressions.conditions import filtered
from streamsql.binder.names.environment import Environment, Scope, conjunct_nodes, identifier_text
from streamsql.binder.names.outer_names import OUTER, outer_of, reads_subquery
from streamsql.binder.names.refused_clauses import only, queries_refused
from streamsql.binder.relations.join_tree import Part
from streamsql.binder.select.from_clause import Input
from streamsql.binder.subqueries.subquery_joins import SubqueryJoins
from streamsql.data.types import DataType

_COUNTS = (AggregateFunction.COUNT_ALL, AggregateFunction.COUNT)


def bind_groups(
    select: exp.Select, source: Input, outputs: Outputs, *, flagged: bool
) -> tuple[Plan, tuple[Expression, ...] | None]:
    """Bind GROUP BY, HAVING and the select list into `outputs`.

    With `flagged`, the last item holds whether the one row is there, in place of HAVING.

    Returns:
        The groups, and the select list over no rows if a subquery may be asked for it.
    """
    having = select.args.get("having")
    aggregation, is_grouped = _grouping(select, source, outputs)
    subqueries = SubqueryJoins(source.environment, source.scope)
    binder = subqueries.binder(aggregation.hook)
    bound = [outputs.given(n) or binder.bind(node) for n, node in enumerate(outputs.nodes)]
    alone = not is_grouped and bool(source.prefix)
    nodes = [] if having is None or alone else conjunct_nodes(having.this)
    conditions = subqueries.conjuncts(nodes, binder, "HAVING")
    # A subquery may call a grouped column otherwise than GROUP BY does.
    canonical = {c.position: c for c in aggregation.group if isinstance(c, Column)}

    def rewrite(expression: Expression, node: exp.Expr) -> Expression:
        known = map_columns(expression, lambda c: canonical.get(c.position, c))
        return aggregation.rewrite(known, node)

    empty: tuple[Expression, ...] | None = None
    if alone:
        last = len(outputs.items) - 1
        if flagged:
            flag = converted(bound[last], DataType.BOOLEAN)
            bound = [filtered(flag, e) for e in bound]
            bound[last] = Call("COALESCE", (flag, Literal(False, DataType.BOOLEAN)), flag.dtype)
        shown = bound[: len(outputs.items)]
        empty = over_no_rows(shown, aggregation.calls, source, subqueries, select)
    rewritten = [rewrite(e, node) for e, node in zip(bound, outputs.nodes, strict=True)]
    tests = [rewrite(condition, having or select) for condition in conditions]
    part = Part.of(aggregation.finish())
    shift = len(aggregation.group) - len(source.plan.schema)
    held = [test for test in tests if reads_subquery(_moved(test, -shift))]
    part = part.filtered([test for test in tests if test not in held])
    part = subqueries.apply_all(part, rewrite, shift).filtered(held)
    keys = [Column(n, column.name, column.dtype) for n, column in enumerate(source.prefix)]
    outputs.expressions = [*keys, *(part.expression(e) for e in rewritten)]
    return part.plan, empty


def _grouping(select: exp.Select, source: Input, outputs: Outputs) -> tuple[Aggregation, bool]:
    """Return the values of GROUP BY, and whether it lists any."""
    environment = source.environment
    aggregation = Aggregation(environment, source.plan, source.scope)
    aggregation.group.extend(source.fixed)
    clause, having = select.args.get("group"), select.args.get("having")
    if clause is not None:
        only(clause, environment, "expressions", "all")
        if clause.args.get("all") is False:
            raise environment.unsupported(
                clause,
                "GROUP BY DISTINCT is not supported",
                hint="remove DISTINCT, and list each grouping set once",
                code="unsupported_clause",
            )
        if clause.args.get("all") and not clause.expressions:
            aggregation.group_all(outputs.items)
            clause = None
    refuse = queries_refused(environment, "GROUP BY and the arguments of aggregates")
    for node in _inside_groups(outputs.nodes, having, clause, environment):
        refuse(node)
    group_expressions(
        aggregation,
        clause,
        lambda node: _group_target(node, outputs.items, source.scope, environment),
    )
    return aggregation, clause is not None


def _inside_groups(
    nodes: list[exp.Expr],
    having: exp.Expr | None,
    clause: exp.Expr | None,
    environment: Environment,
) -> Iterator[exp.Expr]:
    """Yield what is below GROUP BY and below the aggregates of this query."""
    if clause is not None:
        yield from clause.walk()
    for node in (*nodes, *(() if having is None else (having,))):
        for part in node.walk(prune=lambda n: isinstance(n, exp.Query | exp.AggFunc)):
            if isinstance(part, exp.AggFunc) and has_aggregate(part, environment):
                yield from part.walk()


def _moved(expression: Expression, shift: int) -> Expression:
    return map_columns(expression, lambda c: Column(c.position + shift, c.name, c.dtype))


def _group_target(
    node: exp.Expr, items: list[SelectItem], scope: Scope, environment: Environment
) -> exp.Expr | None:
    """Return the select item that `GROUP BY 1` or `GROUP BY alias` means."""
    position = ordinal(node, len(items), "GROUP BY", environment)
    if position is not None:
        return items[position].node
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        name = identifier_text(node.this)
        # As in PostgreSQL a column of FROM wins over an alias of the select list.
        if any(column.name == name for column in scope.visible()):
            return None
        aliased = [item for item in items if item.name == name and item.column is None]
        return aliased[0].node if aliased else None
    return None


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
    """Return the select list of an empty group, over outer columns.

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
            result[position] = Column(OUTER + number, fields[position].name, fields[position].dtype)
    return result


def _folded(expression: Expression) -> Expression:
    if isinstance(expression, Literal) or columns_of(expression):
        return expression
    return Literal(compile_expression(expression)(()), expression.dtype)
