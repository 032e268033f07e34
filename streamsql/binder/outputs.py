"""What one SELECT computes, and how its rows are shaped: DISTINCT, ORDER BY, LIMIT, QUALIFY."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.operators import Distinct, Plan, Project, SortKey, TopN
from streamsql.binder.environment import Environment, identifier_text
from streamsql.binder.from_clause import Input
from streamsql.binder.ranks import (
    HINT,
    Bounds,
    comparisons,
    conjunct_nodes,
    is_rank,
    may_rank,
    named,
)
from streamsql.binder.select_items import SelectItem, unique
from streamsql.binder.shape import only
from streamsql.binder.top import Extent, ordered_nodes, ordinal, sort_key, topped


@dataclass(frozen=True, slots=True)
class Rank:
    """A ROW_NUMBER() that chooses rows.

    Attributes:
        partition: Places of the expressions of PARTITION BY.
        order: Of the rows of a partition, by places.
        item: Its place in the select list, or None.
        bounds: Which numbers QUALIFY wants; None when the query around says so.
    """

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    item: int | None
    node: exp.Expr
    bounds: Bounds | None


@dataclass(slots=True)
class Outputs:
    """What one SELECT computes: its list, and hidden columns that order or choose its rows.

    Attributes:
        nodes: What is to be computed, as written; the select list comes first.
        expressions: The same bound, over the plan's rows.
        order: ORDER BY by places in `nodes`.
        first_of: DISTINCT ON by places in `nodes`.
        rank: A ROW_NUMBER() that chooses rows.
    """

    select: exp.Select
    environment: Environment
    items: list[SelectItem]
    nodes: list[exp.Expr] = field(init=False)
    expressions: list[Expression] = field(default_factory=list)
    order: list[SortKey] = field(default_factory=list)
    first_of: list[int] = field(default_factory=list)
    rank: Rank | None = None

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
        return self._computed(node)

    def add_distinct_on(self, on: exp.Expr) -> None:
        """Add the expressions of DISTINCT ON (…)."""
        parts = on.expressions if isinstance(on, exp.Tuple) else [on]
        self.first_of = [self._place(part.unnest()) for part in parts]

    def add_order(self) -> None:
        """Add the keys of ORDER BY."""
        nodes = ordered_nodes(self.select.args["order"], self.environment)
        self.order = [sort_key(node, self._place(node.this)) for node in nodes]

    def add_rank(self) -> None:
        """Add partition and order of a ROW_NUMBER(), if there is one, and what QUALIFY wants.

        Raises:
            UnsupportedError: Nothing bounds it.
        """
        found = [n for n, item in enumerate(self.items) if is_rank(item.node)]
        clause = self.select.args.get("qualify")
        tests = [] if clause is None else conjunct_nodes(clause.this)
        inside = [w for test in tests for w in test.find_all(exp.Window) if is_rank(w)]
        if not found and clause is None:
            return
        number = found[0] if found else None
        window: exp.Expr = self.items[found[0]].node if found else next(iter(inside), self.select)
        distinct = self.select.args.get("distinct") is not None
        if distinct or len(found) > 1 or (clause is None and not may_rank(self.select)):
            raise self.environment.unsupported(
                window,
                "a ROW_NUMBER() that nothing bounds is not supported",
                hint=HINT,
                code="unbounded_row_number",
            )
        bounds = None if clause is None else self._qualified(tests, window, number)
        only(window, self.environment, "this", "partition_by", "order", "over")
        partition = [self._computed(part) for part in window.args.get("partition_by") or []]
        ordered = ordered_nodes(window.args.get("order"), self.environment)
        order = tuple(sort_key(key, self._computed(key.this)) for key in ordered)
        self.rank = Rank(tuple(partition), order, number, window, bounds)
        if number is not None:
            one = bounds is not None and bounds.limit == 1
            shown = exp.Literal.number(bounds.first) if one and bounds is not None else exp.Null()
            self.nodes[number] = shown

    def _qualified(self, tests: list[exp.Expr], window: exp.Expr, number: int | None) -> Bounds:
        """Return which row numbers QUALIFY wants."""
        alias = named("", self.items[number].name) if number is not None else None
        said, others = comparisons(
            tests, lambda node: node == window or (alias is not None and alias(node))
        )
        if others or not is_rank(window):
            raise self.environment.unsupported(
                others[0] if others else window,
                "QUALIFY takes one ROW_NUMBER() compared with numbers",
                hint="QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) <= 3; other "
                "conditions go into WHERE and HAVING",
                code="unbounded_row_number",
            )
        bounds = Bounds()
        bounds.narrow_all(said)
        if number is not None and bounds.limit != 1:
            raise self.environment.unsupported(
                self.items[number].node,
                "a ROW_NUMBER() chooses rows, but numbers of several rows are not shown",
                hint="leave it out of the select list and keep it in QUALIFY",
                code="unbounded_row_number",
            )
        return bounds

    def _computed(self, node: exp.Expr) -> int:
        """Return the place of an expression over the rows, adding a hidden one if need be.

        What is selected anyway is not computed, sent and shown in plans a second time.
        """
        if node in self.nodes:
            return self.nodes.index(node)
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

        if self.first_of:
            chosen = (*keys, *(prefix + n for n in self.first_of))
            plan = TopN(plan, _moved(self.order, prefix), 1, 0, chosen)
        elif is_set:
            self._check_set(width)
            plan = Distinct(plan)
        if self.rank is not None:
            plan = self._ranked(plan, self.rank, prefix)
        if window is not None:
            plan = topped(plan, _moved(self.order, prefix), window, keys)
        if len(self.nodes) == width:
            return plan
        schema = plan.schema
        kept = [Column(n, f.name, f.dtype) for n, f in enumerate(schema.fields[: prefix + width])]
        return Project(plan, tuple(kept), schema.names[: prefix + width])

    def _ranked(self, plan: Plan, rank: Rank, prefix: int) -> Plan:
        by = (*range(prefix), *(prefix + n for n in rank.partition))
        bounds = rank.bounds
        if bounds is not None:
            order = _moved(rank.order, prefix)
            return TopN(plan, order, bounds.limit, bounds.first - 1, by)
        plan = TopN(plan, _moved(rank.order, prefix), None, 0, by)
        place = self.environment.place(rank.node)
        self.environment.binding.ranked[plan] = (rank.item or 0, place)
        return plan

    def _check_set(self, width: int) -> None:
        if len(self.nodes) > width:
            raise self.environment.error(
                self.nodes[width],
                "with DISTINCT, ORDER BY takes columns of the select list only",
                hint="select it, or group by the columns and order by MIN or MAX of it",
                code="unsupported_order",
            )


def _moved(order: Iterable[SortKey], by: int) -> tuple[SortKey, ...]:
    return tuple(SortKey(key.position + by, key.descending, key.nulls_first) for key in order)


def projected(plan: Plan, expressions: list[Expression], names: list[str]) -> Plan:
    """Return the projection, or the plan itself when nothing would change."""
    schema = plan.schema
    same = tuple(names) == schema.names and all(
        isinstance(expression, Column) and expression.position == position
        for position, expression in enumerate(expressions)
    )
    return plan if same else Project(plan, tuple(expressions), tuple(names))
