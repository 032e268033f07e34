"""One SELECT block: FROM, WHERE, GROUP BY, HAVING, the select list, DISTINCT, ORDER BY, LIMIT."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression, conjunction, map_columns
from streamsql.algebra.operators import Distinct, Plan, Project, SortKey, TopN
from streamsql.binder.aggregates import Aggregation, group_expressions, has_aggregate
from streamsql.binder.empty_groups import over_no_rows, when
from streamsql.binder.environment import Environment, identifier_text
from streamsql.binder.from_clause import FromBinder, Input
from streamsql.binder.joins import Part
from streamsql.binder.queries import Block, Queries
from streamsql.binder.ranks import HINT, conjunct_nodes, is_rank, may_rank
from streamsql.binder.scope import Scope
from streamsql.binder.select_items import SelectItem, select_items, unique
from streamsql.binder.shape import only, queries_refused
from streamsql.binder.subqueries import SubqueryJoins, reads_subquery
from streamsql.binder.top import Extent, extent, ordered_nodes, ordinal, sort_key, topped

__all__ = ["bind_block", "unique"]

_CLAUSES = (
    "expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "order",
    "limit", "offset",
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
    plain = not grouped and distinct is None and window is None
    source = FromBinder(environment, queries).bind(select, lift=lift and plain)
    environment = source.environment
    items = select_items(select, source.scope, environment)
    outputs = _Outputs(select, environment, items)
    if distinct is not None and distinct.args.get("on") is not None:
        outputs.add_distinct_on(distinct.args["on"])
    outputs.add_rank()
    if select.args.get("order") is not None:
        if window is None and not outputs.first_of:
            only(select, environment, *(c for c in _CLAUSES if c != "order"))
        outputs.add_order()
    empty: tuple[Expression, ...] | None = None
    if grouped:
        plan, empty = _aggregated(select, source, queries, outputs)
    else:
        plan = _computed(source, queries, outputs)
    plan = outputs.shaped(plan, source, window, is_set=distinct is not None)
    return Block(plan, len(source.prefix), source.joins, source.domain, empty)


@dataclass(slots=True)
class _Outputs:
    """What one SELECT computes: its list, and hidden columns that order or choose its rows.

    Attributes:
        nodes: What is to be computed, as written; the select list comes first.
        expressions: The same bound, over the plan's rows.
        order: ORDER BY by places in `nodes`.
        first_of: DISTINCT ON by places in `nodes`.
        rank: Partition and order of a ROW_NUMBER(), its item and its node.
    """

    select: exp.Select
    environment: Environment
    items: list[SelectItem]
    nodes: list[exp.Expr] = field(init=False)
    expressions: list[Expression] = field(default_factory=list)
    order: list[SortKey] = field(default_factory=list)
    first_of: list[int] = field(default_factory=list)
    rank: tuple[tuple[int, ...], tuple[SortKey, ...], int, exp.Expr] | None = None

    def __post_init__(self) -> None:
        """Begin with the select list."""
        self.nodes = [item.node for item in self.items]

    def _place(self, node: exp.Expr) -> int:
        """Return the place of an expression of ORDER BY, adding a hidden one if need be."""
        number = ordinal(node, len(self.items), self.environment)
        if number is not None:
            return number
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            name = identifier_text(node.this)
            named = [n for n, item in enumerate(self.items) if item.name == name]
            if named:
                return named[0]
        if node in self.nodes:
            return self.nodes.index(node)
        self.nodes.append(node)
        return len(self.nodes) - 1

    def add_distinct_on(self, on: exp.Expr) -> None:
        """Add the expressions of DISTINCT ON (…)."""
        parts = on.expressions if isinstance(on, exp.Tuple) else [on]
        self.first_of = [self._place(part.unnest()) for part in parts]

    def add_order(self) -> None:
        """Add the keys of ORDER BY."""
        nodes = ordered_nodes(self.select.args["order"], self.environment)
        self.order = [sort_key(node, self._place(node.this)) for node in nodes]

    def add_rank(self) -> None:
        """Add partition and order of a ROW_NUMBER(), if there is one."""
        found = [n for n, item in enumerate(self.items) if is_rank(item.node)]
        if not found:
            return
        node = self.items[found[0]].node
        if len(found) > 1 or not may_rank(self.select) or self.select.args.get("distinct"):
            raise self.environment.unsupported(
                node, "a ROW_NUMBER() that nothing bounds is not supported", hint=HINT
            )
        only(node, self.environment, "this", "partition_by", "order", "over")
        partition = [self._hidden(part) for part in node.args.get("partition_by") or []]
        ordered = ordered_nodes(node.args.get("order"), self.environment)
        order = tuple(sort_key(key, self._hidden(key.this)) for key in ordered)
        self.rank = (tuple(partition), order, found[0], node)
        self.nodes[found[0]] = exp.Null()

    def _hidden(self, node: exp.Expr) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def given(self, number: int) -> Column | None:
        """Return the column that `*` expanded to at a place."""
        return self.items[number].column if number < len(self.items) else None

    def shaped(self, plan: Plan, source: Input, window: Extent | None, *, is_set: bool) -> Plan:
        """Return the rows: projected, without repetitions, chosen by order."""
        prefix = len(source.prefix)
        width = len(self.items)
        names = [f"key_{n + 1}" for n in range(prefix)]
        names += [item.name for item in self.items]
        names += [f"order_{n + 1}" for n in range(len(self.nodes) - width)]
        plan = projected(plan, self.expressions, unique(names))
        keys = tuple(range(prefix))

        def moved(order: tuple[SortKey, ...] | list[SortKey]) -> tuple[SortKey, ...]:
            return tuple(
                SortKey(key.position + prefix, key.descending, key.nulls_first) for key in order
            )

        if self.first_of:
            chosen = (*keys, *(prefix + n for n in self.first_of))
            plan = TopN(plan, moved(self.order), 1, 0, chosen)
        elif is_set:
            self._check_set(width)
            plan = Distinct(plan)
        if self.rank is not None:
            partition, order, item, node = self.rank
            by = tuple(prefix + n for n in partition)
            plan = TopN(plan, moved(order), None, 0, by)
            place = self.environment.place(node)
            self.environment.binding.ranked[plan] = (item, place)
        if window is not None:
            plan = topped(plan, moved(self.order), window, keys)
        if len(self.nodes) == width:
            return plan
        schema = plan.schema
        kept = [Column(n, f.name, f.dtype) for n, f in enumerate(schema.fields[: prefix + width])]
        return Project(plan, tuple(kept), schema.names[: prefix + width])

    def _check_set(self, width: int) -> None:
        if len(self.nodes) > width:
            raise self.environment.error(
                self.nodes[width],
                "with DISTINCT, ORDER BY takes columns of the select list only",
                hint="select it, or group by the columns and order by MIN or MAX of it",
            )


def _computed(source: Input, queries: Queries, outputs: _Outputs) -> Plan:
    """Bind the select list of a SELECT without aggregates."""
    subqueries = SubqueryJoins(source.environment, queries, source.scope)
    binder = subqueries.binder()
    bound = [outputs.given(n) or binder.bind(node) for n, node in enumerate(outputs.nodes)]
    part = Part(source.plan, tuple(range(len(source.plan.schema))))
    part = subqueries.apply_all(part, lambda expression, _node: expression, 0)
    outputs.expressions = [*source.prefix, *(part.expression(e) for e in bound)]
    return part.plan


def _aggregated(
    select: exp.Select, source: Input, queries: Queries, outputs: _Outputs
) -> tuple[Plan, tuple[Expression, ...] | None]:
    """Bind GROUP BY, HAVING and the select list.

    Returns:
        The groups, and the select list over no rows if a subquery may be asked for it.
    """
    environment = source.environment
    aggregation = Aggregation(environment, source.plan, source.scope)
    aggregation.group.extend(source.fixed)
    clause, having = select.args.get("group"), select.args.get("having")
    refuse = queries_refused(environment, "GROUP BY and the arguments of aggregates")
    for node in _inside_groups(outputs.nodes, having, clause, environment):
        refuse(node)
    if clause is not None:
        only(clause, environment, "expressions")
    group_expressions(
        aggregation,
        clause,
        lambda node: _group_target(node, outputs.items, source.scope, environment),
    )
    subqueries = SubqueryJoins(environment, queries, source.scope)
    binder = subqueries.binder(aggregation.hook)
    bound = [outputs.given(n) or binder.bind(node) for n, node in enumerate(outputs.nodes)]
    nodes = [] if having is None else conjunct_nodes(having.this)
    conditions = subqueries.conjuncts(nodes, binder, "HAVING")
    # A subquery may call a grouped column otherwise than GROUP BY does.
    canonical = {c.position: c for c in aggregation.group if isinstance(c, Column)}

    def rewrite(expression: Expression, node: exp.Expr) -> Expression:
        known = map_columns(expression, lambda c: canonical.get(c.position, c))
        return aggregation.rewrite(known, node)

    empty: tuple[Expression, ...] | None = None
    if clause is None and source.prefix:
        bound = [when(conjunction(conditions), e) for e in bound]
        conditions = []
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


def projected(plan: Plan, expressions: list[Expression], names: list[str]) -> Plan:
    """Return the projection, or the plan itself when nothing would change."""
    schema = plan.schema
    same = tuple(names) == schema.names and all(
        isinstance(expression, Column) and expression.position == position
        for position, expression in enumerate(expressions)
    )
    return plan if same else Project(plan, tuple(expressions), tuple(names))


def _is_aggregated(select: exp.Select, environment: Environment) -> bool:
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    order = select.args.get("order")
    nodes = [*select.expressions, *([order] if order is not None else [])]
    return any(not isinstance(n, exp.Query) and has_aggregate(n, environment) for n in nodes)


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
                hint=f"positions go from 1 to {len(items)}",
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
