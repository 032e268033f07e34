"""One SELECT block: FROM, WHERE, GROUP BY, HAVING, the select list, DISTINCT, ORDER BY, LIMIT."""

from sqlglot import exp

from streamsql.algebra.operators import Plan
from streamsql.binder.aggregation.aggregate_binder import has_aggregate
from streamsql.binder.aggregation.order_and_limit import extent
from streamsql.binder.aggregation.over_calls import windows_in
from streamsql.binder.aggregation.select_items import (
    Outputs,
    SelectItem,
    doubled_names,
    select_items,
)
from streamsql.binder.aggregation.window_outputs import WindowOutputs
from streamsql.binder.names.environment import Environment
from streamsql.binder.names.refused_clauses import only
from streamsql.binder.relations.join_tree import Part
from streamsql.binder.select.from_clause import FromBinder, Input
from streamsql.binder.select.grouped_select import bind_groups, presence
from streamsql.binder.subqueries.nested_queries import Block, EmptyGroup
from streamsql.binder.subqueries.subquery_joins import SubqueryJoins
from streamsql.syntax.tree_nodes import holds

_CLAUSES = (
    "expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "order",
    "limit", "offset", "qualify", "windows",
)  # fmt: skip


def bind_block(select: exp.Select, environment: Environment, *, lift: bool) -> Block:
    """Return the plan of a SELECT without its WITH clause.

    With `lift`, conditions on the query around may be left to the join with it.
    """
    only(select, environment, *_CLAUSES)
    distinct = select.args.get("distinct")
    limited = select.args.get("limit") is not None or select.args.get("offset") is not None
    window = extent(select, environment) if limited else None
    grouped = _is_aggregated(select, environment)
    plain = distinct is None and window is None and not grouped
    has_windows = _has_windows(select)
    if plain and has_windows:
        plain = select.args.get("qualify") is None
        plain = plain and not any(True for node in select.expressions for _ in windows_in(node))
    source = FromBinder(environment).bind(select, lift=lift and plain)
    environment = source.environment
    items = select_items(select, source.scope, environment)
    single = grouped and select.args.get("group") is None and bool(source.prefix)
    present = presence(select, window) if single else None
    if present is not None:
        items.append(SelectItem("present", present))
    kind = WindowOutputs if has_windows else Outputs
    outputs = _outputs(kind(select, environment, items), select, environment, limited=limited)
    empty: EmptyGroup | None = None
    if single:
        _check_no_windows(select, outputs, environment)
        window = None  # of one row
    if grouped:
        flagged = present is not None
        plan, values = bind_groups(select, source, outputs, flagged=flagged)
        if values is not None:
            empty = EmptyGroup(values, values[-1] if flagged else None)
    else:
        plan = _computed(source, outputs)
    plan = outputs.shaped(plan, len(source.prefix), window, is_set=distinct is not None)
    environment.binding.note_doubled(plan, doubled_names(items))
    return Block(plan, len(source.prefix), source.joins, source.domain, empty)


def _has_windows(select: exp.Select) -> bool:
    clauses = any(select.args.get(key) for key in ("qualify", "windows"))
    return clauses or holds(select, exp.Window)


def _outputs(
    outputs: Outputs, select: exp.Select, environment: Environment, *, limited: bool
) -> Outputs:
    """Return what a SELECT computes, unbound; `outputs` has its items."""
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        outputs.add_distinct_on(distinct.args["on"])
    if isinstance(outputs, WindowOutputs):
        outputs.add_rank()
    if select.args.get("order") is not None:
        if not limited and not outputs.first_of:
            only(select, environment, *(c for c in _CLAUSES if c != "order"))
        outputs.add_order()
    if isinstance(outputs, WindowOutputs):
        outputs.add_windows()
    return outputs


def _is_aggregated(select: exp.Select, environment: Environment) -> bool:
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    order = select.args.get("order")
    nodes = [*select.expressions, *([order] if order is not None else [])]
    calls = [node for node in nodes if holds(node, exp.AggFunc, exp.Anonymous)]
    return any(has_aggregate(node, environment) for node in calls)


def _computed(source: Input, outputs: Outputs) -> Plan:
    """Bind the select list of a SELECT without aggregates."""
    subqueries = SubqueryJoins(source.environment, source.scope)
    binder = subqueries.binder()
    bound = [outputs.given(n) or binder.bind(node) for n, node in enumerate(outputs.nodes)]
    part = subqueries.joined_to(Part.of(source.plan))
    outputs.expressions = [*source.prefix, *(part.expression(e) for e in bound)]
    return part.plan


def _check_no_windows(select: exp.Select, outputs: Outputs, environment: Environment) -> None:
    if outputs.has_windows:
        raise environment.unsupported(
            select,
            "a window function over an aggregate without GROUP BY is not supported in a "
            "correlated subquery",
            hint="remove the window function: there is only one row",
            code="unsupported_subquery",
        )
