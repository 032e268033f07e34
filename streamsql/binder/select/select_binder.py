"""One SELECT block: FROM, WHERE, GROUP BY, HAVING, the select list, DISTINCT, ORDER BY, LIMIT."""

from collections.abc import Iterator

from sqlglot import exp

from streamsql.algebra.expressions import Call, Column, Expression, Literal, map_columns
from streamsql.algebra.operators import Plan
from streamsql.binder.aggregation.aggregate_binder import (
    Aggregation,
    group_expressions,
    has_aggregate,
)
from streamsql.binder.aggregation.order_and_limit import extent
from streamsql.binder.aggregation.over_calls import windows_in
from streamsql.binder.aggregation.select_items import (
    SelectItem,
    doubled_names,
    select_items,
    unique,
)
from streamsql.binder.expressions.coercion import converted
from streamsql.binder.names.environment import Environment, identifier_text
from streamsql.binder.names.outer_names import reads_subquery
from streamsql.binder.names.ranks import conjunct_nodes
from streamsql.binder.names.refused_clauses import only, queries_refused
from streamsql.binder.names.scope import Scope
from streamsql.binder.relations.join_tree import Part
from streamsql.binder.select.empty_groups import over_no_rows, presence, when
from streamsql.binder.select.from_clause import FromBinder, Input
from streamsql.binder.select.outputs import Outputs
from streamsql.binder.subqueries.nested_queries import Block, EmptyGroup, Queries
from streamsql.binder.subqueries.subquery_joins import SubqueryJoins
from streamsql.data.types import DataType

__all__ = ["bind_block", "unique"]

_CLAUSES = (
    "expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "order",
    "limit", "offset", "qualify", "windows",
)  # fmt: skip


def bind_block(
    select: exp.Select, environment: Environment, queries: Queries, *, lift: bool
) -> Block:
    """Return the plan of a SELECT without its WITH clause.

    Args:
        select: The query.
        environment: Visible names; of a subquery with those of the query around.
        queries: Bind the queries inside it.
        lift: Whether conditions on the query around may be left to the join with it.

    Raises:
        BindingError: A name, a type or the grouping is wrong.
        UnsupportedError: A clause is refused.
    """
    only(select, environment, *_CLAUSES)
    distinct = select.args.get("distinct")
    window = extent(select, environment)
    grouped = _is_aggregated(select, environment)
    simple = all(select.args.get(word) is None for word in ("distinct", "qualify"))
    simple = simple and not any(True for node in select.expressions for _ in windows_in(node))
    plain = simple and not grouped and window is None
    source = FromBinder(environment, queries).bind(select, lift=lift and plain)
    environment = source.environment
    items = select_items(select, source.scope, environment)
    single = grouped and select.args.get("group") is None and bool(source.prefix)
    present = presence(select, window) if single else None
    if present is not None:
        items.append(SelectItem("present", present))
    outputs = Outputs(select, environment, items)
    if distinct is not None and distinct.args.get("on") is not None:
        outputs.add_distinct_on(distinct.args["on"])
    outputs.add_rank()
    if select.args.get("order") is not None:
        if window is None and not outputs.first_of:
            only(select, environment, *(c for c in _CLAUSES if c != "order"))
        outputs.add_order()
    outputs.add_windows()
    empty: EmptyGroup | None = None
    if single:
        _check_no_windows(select, outputs, environment)
        window = None  # of one row
    if grouped:
        flagged = present is not None
        plan, values = _aggregated(select, source, queries, outputs, flagged=flagged)
        if values is not None:
            empty = EmptyGroup(values, values[-1] if flagged else None)
    else:
        plan = _computed(source, queries, outputs)
    plan = outputs.shaped(plan, source, window, is_set=distinct is not None)
    environment.binding.note_doubled(plan, doubled_names(items))
    return Block(plan, len(source.prefix), source.joins, source.domain, empty)


def _computed(source: Input, queries: Queries, outputs: Outputs) -> Plan:
    """Bind the select list of a SELECT without aggregates."""
    subqueries = SubqueryJoins(source.environment, queries, source.scope)
    binder = subqueries.binder()
    bound = [outputs.given(n) or binder.bind(node) for n, node in enumerate(outputs.nodes)]
    part = Part(source.plan, tuple(range(len(source.plan.schema))))
    part = subqueries.apply_all(part, lambda expression, _node: expression, 0)
    outputs.expressions = [*source.prefix, *(part.expression(e) for e in bound)]
    return part.plan


def _check_no_windows(select: exp.Select, outputs: Outputs, environment: Environment) -> None:
    if outputs.around or outputs.rank is not None:
        raise environment.unsupported(
            select,
            "a window function over an aggregate without GROUP BY is not supported in a "
            "correlated subquery",
            hint="remove the window function: there is only one row",
            code="unsupported_subquery",
        )


def _aggregated(
    select: exp.Select, source: Input, queries: Queries, outputs: Outputs, *, flagged: bool
) -> tuple[Plan, tuple[Expression, ...] | None]:
    """Bind GROUP BY, HAVING and the select list.

    Args:
        select: The query.
        source: Its input.
        queries: Bind the queries inside it.
        outputs: The select list.
        flagged: Whether its last item says whether the one row is there, in place of HAVING.

    Returns:
        The groups, and the select list over no rows if a subquery may be asked for it.
    """
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
    subqueries = SubqueryJoins(environment, queries, source.scope)
    binder = subqueries.binder(aggregation.hook)
    bound = [outputs.given(n) or binder.bind(node) for n, node in enumerate(outputs.nodes)]
    alone = clause is None and bool(source.prefix)
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
            bound = [when(flag, e) for e in bound]
            bound[last] = Call("COALESCE", (flag, Literal(False, DataType.BOOLEAN)), flag.dtype)
        shown = bound[: len(outputs.items)]
        empty = over_no_rows(shown, aggregation.calls, source, subqueries, select)
    rewritten = [rewrite(e, node) for e, node in zip(bound, outputs.nodes, strict=True)]
    tests = [rewrite(condition, having or select) for condition in conditions]
    plan: Plan = aggregation.finish()
    part = Part(plan, tuple(range(len(plan.schema))))
    shift = len(aggregation.group) - len(source.plan.schema)
    if having is not None:
        part = part.filtered([t for t in tests if not reads_subquery(_moved(t, -shift))])
    part = subqueries.apply_all(part, rewrite, shift)
    part = part.filtered([t for t in tests if reads_subquery(_moved(t, -shift))])
    names = zip(range(len(source.prefix)), source.prefix, strict=True)
    keys = [Column(position, column.name, column.dtype) for position, column in names]
    outputs.expressions = [*keys, *(part.expression(e) for e in rewritten)]
    return part.plan, empty


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


def _is_aggregated(select: exp.Select, environment: Environment) -> bool:
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    order = select.args.get("order")
    nodes = [*select.expressions, *([order] if order is not None else [])]
    return any(has_aggregate(n, environment) for n in nodes)


def _group_target(
    node: exp.Expr, items: list[SelectItem], scope: Scope, environment: Environment
) -> exp.Expr | None:
    """Return the select item that `GROUP BY 1` or `GROUP BY alias` means."""
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        position = int(node.name) if node.name.isdigit() and len(node.name) < 6 else 0
        if not 1 <= position <= len(items):
            raise environment.error(
                node,
                f"GROUP BY {node.name}: there is no such column in the select list",
                hint=f"positions range from 1 to {len(items)}",
                code="unknown_position",
            )
        return items[position - 1].node
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        name = identifier_text(node.this)
        # As in PostgreSQL a column of FROM wins over an alias of the select list.
        if any(column.name == name for column in scope.visible()):
            return None
        aliased = [item for item in items if item.name == name and item.column is None]
        return aliased[0].node if aliased else None
    return None
