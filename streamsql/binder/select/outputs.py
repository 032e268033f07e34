"""What one SELECT computes, and how its rows are shaped: DISTINCT, ORDER BY, LIMIT, QUALIFY."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.operators import Distinct, Filter, Plan, Project, SortKey, TopN
from streamsql.binder.aggregation.order_and_limit import (
    Extent,
    ordered_nodes,
    ordinal,
    sort_key,
    topped,
)
from streamsql.binder.aggregation.over_calls import (
    Over,
    OverWindows,
    over_of,
    place_parts,
    windows_in,
)
from streamsql.binder.aggregation.over_specs import check_used, spec_of
from streamsql.binder.aggregation.select_items import SelectItem, unique
from streamsql.binder.names.environment import Environment, identifier_text
from streamsql.binder.names.ranks import (
    Bounds,
    comparisons,
    conjunct_nodes,
    is_rank,
    may_rank,
    named,
)
from streamsql.binder.select.from_clause import Input

_NUMBER = exp.cast(exp.Null(), "BIGINT")
"""Stands for the numbers of a ROW_NUMBER() that only chooses rows."""


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
        around: What contains window functions, by its place in `nodes`, where a NULL stands.
        overs: The window functions, each once.
        qualify: Place of the condition of QUALIFY.
        shown: How many `nodes` there are before what only window functions read.
    """

    select: exp.Select
    environment: Environment
    items: list[SelectItem]
    nodes: list[exp.Expr] = field(init=False)
    expressions: list[Expression] = field(default_factory=list)
    order: list[SortKey] = field(default_factory=list)
    first_of: list[int] = field(default_factory=list)
    rank: Rank | None = None
    around: dict[int, exp.Expr] = field(default_factory=dict)
    overs: list[Over] = field(default_factory=list)
    qualify: int | None = None
    shown: int = 0

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
        if not parts:
            raise self.environment.error(
                self.select,
                "DISTINCT ON () has no columns",
                hint="DISTINCT ON (a) … ORDER BY a, b; or LIMIT 1 for one row of all",
                code="wrong_arguments",
            )
        self.first_of = [self._place(part.unnest()) for part in parts]

    def add_order(self) -> None:
        """Add the keys of ORDER BY."""
        nodes = ordered_nodes(self.select.args["order"], self.environment)
        self.order = [sort_key(node, self._place(node.this)) for node in nodes]

    def add_rank(self) -> None:
        """Add partition and order of a ROW_NUMBER() that only chooses rows, if there is one.

        That is one which QUALIFY bounds, or whose numbers the query around may bound; others are
        window functions like all.
        """
        found = [n for n, item in enumerate(self.items) if is_rank(item.node)]
        clause = self.select.args.get("qualify")
        tests = [] if clause is None else conjunct_nodes(clause.this)
        inside = [w for test in tests for w in windows_in(test)]
        number = found[0] if found else None
        window = self.items[found[0]].node if found else next(iter(inside), None)
        if window is None or not is_rank(window) or not self._chooses(found, inside):
            return
        bounds = None if clause is None else self._qualified(tests, window, number)
        if clause is not None and bounds is None:
            return
        spec = spec_of(window, self.select, self.environment)
        partition = [self._computed(part) for part in spec.partition]
        order = tuple(sort_key(key, self._computed(key.this)) for key in spec.order)
        self.rank = Rank(tuple(partition), order, number, window, bounds)
        if number is not None:
            one = bounds is not None and bounds.limit == 1
            shown = exp.Literal.number(bounds.first) if one and bounds is not None else _NUMBER
            self.nodes[number] = shown

    def _chooses(self, found: list[int], inside: list[exp.Window]) -> bool:
        """Whether a ROW_NUMBER() is the only window function, where its numbers may be bounded."""
        if self.select.args.get("distinct") is not None or len(found) > 1:
            return False
        if self.select.args.get("qualify") is None and not may_rank(self.select):
            return False
        order = self.select.args.get("order")
        others = [item.node for n, item in enumerate(self.items) if n not in found]
        others += [] if order is None else [order]
        if any(window for node in others for window in windows_in(node)):
            return False
        ranks = {self.items[n].node for n in found}
        return len(ranks.union(inside)) == 1

    def _qualified(
        self, tests: list[exp.Expr], window: exp.Expr, number: int | None
    ) -> Bounds | None:
        """Return which row numbers QUALIFY wants; None if it says more, or they are shown."""
        alias = named("", self.items[number].name) if number is not None else None
        said, others = comparisons(
            tests, lambda node: node == window or (alias is not None and alias(node))
        )
        bounds = Bounds()
        bounds.narrow_all(said)
        return None if others or (number is not None and bounds.limit != 1) else bounds

    def add_windows(self) -> None:
        """Add what the window functions read, and what QUALIFY tests."""
        clause = self.select.args.get("qualify")
        if clause is not None and (self.rank is None or self.rank.bounds is None):
            self.qualify = self._computed(self._unaliased(clause.this))
            if not any(True for _ in windows_in(self.nodes[self.qualify])):
                raise self.environment.unsupported(
                    clause.this,
                    "QUALIFY without a window function",
                    hint="put conditions on rows into WHERE and conditions on groups into "
                    "HAVING; QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) <= "
                    "3",
                    code="unsupported_window",
                )
        self.shown = len(self.nodes)
        self.around = {
            n: node for n, node in enumerate(self.nodes) if any(True for _ in windows_in(node))
        }
        overs: dict[exp.Expr, Over] = {}
        for number in self.around:
            self.nodes[number] = exp.Null()
        for node in self.around.values():
            for window in windows_in(node):
                if window not in overs:
                    overs[window] = over_of(window, self.select, self.environment, self._computed)
            place_parts(node, self._computed, self.environment)
        self.overs = list(overs.values())
        used = [*overs, *(() if self.rank is None else (self.rank.node,))]
        check_used(self.select, used, self.environment)

    def _unaliased(self, node: exp.Expr) -> exp.Expr:
        """Return a condition with the names of selected window functions replaced by these."""
        known = {
            item.name: item.node for item in self.items if any(True for _ in windows_in(item.node))
        }

        def change(part: exp.Expr) -> exp.Expr:
            bare = isinstance(part, exp.Column) and part.args.get("table") is None
            found = known.get(identifier_text(part.this)) if bare else None
            return part if found is None else found.copy()

        return node.transform(change)

    def _computed(self, node: exp.Expr) -> int:
        """Return the place of an expression over the rows, adding a hidden one if need be.

        What is selected anyway is not computed, sent and shown in plans a second time.
        """
        known = self._held(node)
        if known is not None:
            return known
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
        keys = tuple(range(prefix))
        if self.around:
            plan = self._over(plan, unique(names), keys)
        else:
            plan = projected(plan, self.expressions, unique(names))

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
        if len(plan.schema) == prefix + width:
            return plan
        schema = plan.schema
        kept = [Column(n, f.name, f.dtype) for n, f in enumerate(schema.fields[: prefix + width])]
        return Project(plan, tuple(kept), schema.names[: prefix + width])

    def _over(self, plan: Plan, names: list[str], keys: tuple[int, ...]) -> Plan:
        """Return the rows with their window functions, as far as QUALIFY wants them."""
        prefix = len(keys)
        held = [n for n in range(len(names)) if n - prefix not in self.around]
        positions = {place - prefix: position for position, place in enumerate(held)}
        plan = projected(plan, [self.expressions[n] for n in held], [names[n] for n in held])
        plan, binder = OverWindows(self.environment, self.overs, self._held).applied(
            plan, positions, keys
        )
        if self.qualify is not None:
            plan = Filter(plan, binder.predicate(self.around[self.qualify], "QUALIFY"))
        fields = plan.schema.fields
        shown: list[Expression] = [
            Column(position, fields[position].name, fields[position].dtype) for position in keys
        ]
        places = [n for n in range(self.shown) if n != self.qualify]
        for place in places:
            if place in self.around:
                shown.append(binder.bind(self.around[place]))
            else:
                field = fields[positions[place]]
                shown.append(Column(positions[place], field.name, field.dtype))
        called = (*keys, *(prefix + place for place in places))
        return Project(plan, tuple(shown), tuple(names[n] for n in called))

    def _held(self, node: exp.Expr) -> int | None:
        """Return the place of what is computed before the window functions."""
        for number, known in enumerate(self.nodes):
            # Window functions have left a constant at their places, which is not what is meant.
            stands_in = number in self.around or (self.rank and number == self.rank.item)
            if known == node and not stands_in:
                return number
        return None

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
        computed = self.shown - (self.qualify is not None) if self.around else len(self.nodes)
        if computed > width:
            raise self.environment.error(
                self.nodes[width],
                "with DISTINCT, ORDER BY takes only columns of the select list",
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
