"""Outputs of a SELECT with window functions or QUALIFY."""

from dataclasses import dataclass, field

from sqlglot import exp

from streamsql.algebra.expressions import Expression
from streamsql.algebra.operators import Filter, Plan, Project, SortKey, TopN, identity_columns
from streamsql.binder.aggregation.order_and_limit import sort_key
from streamsql.binder.aggregation.over_calls import (
    Over,
    OverWindows,
    over_of,
    place_parts,
    windows_in,
)
from streamsql.binder.aggregation.over_specs import check_used, spec_of
from streamsql.binder.aggregation.select_items import Outputs, moved, projected
from streamsql.binder.names.environment import conjunct_nodes, identifier_text
from streamsql.binder.names.ranks import Bounds, comparisons, is_rank, may_rank, named

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
class WindowOutputs(Outputs):
    """The outputs of a SELECT with window functions.

    Attributes:
        rank: A ROW_NUMBER() that chooses rows.
        around: What contains window functions, by its place in `nodes`, where a NULL stands.
        overs: The window functions, each once.
        qualify: Place of the condition of QUALIFY.
        shown: How many `nodes` there are before what only window functions read.
    """

    rank: Rank | None = None
    around: dict[int, exp.Expr] = field(default_factory=dict)
    overs: list[Over] = field(default_factory=list)
    qualify: int | None = None
    shown: int = 0

    @property
    def has_windows(self) -> bool:
        """Whether a function is left to compute, or a ROW_NUMBER() chooses rows."""
        return bool(self.around) or self.rank is not None

    @property
    def selected(self) -> int:
        """Without the condition of QUALIFY, too."""
        return self.shown - (self.qualify is not None) if self.around else len(self.nodes)

    def add_rank(self) -> None:
        """Add partition and order of a ROW_NUMBER() that only chooses rows, if there is one.

        QUALIFY bounds it, or the query around may; others are window functions like all.
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
        partition = [self.computed(part) for part in spec.partition]
        order = tuple(sort_key(key, self.computed(key.this)) for key in spec.order)
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
        if any(_has_windows(node) for node in others):
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
        bounds = Bounds.of(said)
        return None if others or (number is not None and bounds.limit != 1) else bounds

    def add_windows(self) -> None:
        """Add what the window functions read, and what QUALIFY tests."""
        clause = self.select.args.get("qualify")
        if clause is not None and (self.rank is None or self.rank.bounds is None):
            self.qualify = self.computed(self._unaliased(clause.this))
            if not _has_windows(self.nodes[self.qualify]):
                raise self.environment.unsupported(
                    clause.this,
                    "QUALIFY without a window function",
                    hint="put conditions on rows into WHERE and conditions on groups into "
                    "HAVING; QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) <= "
                    "3",
                    code="unsupported_window",
                )
        self.shown = len(self.nodes)
        self.around = {n: node for n, node in enumerate(self.nodes) if _has_windows(node)}
        overs: dict[exp.Expr, Over] = {}
        for number in self.around:
            self.nodes[number] = exp.Null()
        for node in self.around.values():
            for window in windows_in(node):
                if window not in overs:
                    overs[window] = over_of(window, self.select, self.environment, self.computed)
            place_parts(node, self.computed, self.environment)
        self.overs = list(overs.values())
        used = [*overs, *(() if self.rank is None else (self.rank.node,))]
        check_used(self.select, used, self.environment)

    def _unaliased(self, node: exp.Expr) -> exp.Expr:
        """Return a condition with the names of selected window functions replaced by these."""
        known = {item.name: item.node for item in self.items if _has_windows(item.node)}

        def change(part: exp.Expr) -> exp.Expr:
            bare = isinstance(part, exp.Column) and part.args.get("table") is None
            found = known.get(identifier_text(part.this)) if bare else None
            return part if found is None else found.copy()

        return node.transform(change)

    def held(self, node: exp.Expr) -> int | None:
        """Return the place of what is computed before the window functions."""
        for number, known in enumerate(self.nodes):
            # Window functions have left a constant at their places, which is not what is meant.
            stands_in = number in self.around or (self.rank and number == self.rank.item)
            if known == node and not stands_in:
                return number
        return None

    def projected(self, plan: Plan, names: list[str], keys: tuple[int, ...]) -> Plan:
        """Return the rows with their window functions, as far as QUALIFY wants them."""
        if not self.around:
            return projected(plan, self.expressions, names)
        prefix = len(keys)
        held = [n for n in range(len(names)) if n - prefix not in self.around]
        positions = {place - prefix: position for position, place in enumerate(held)}
        plan = projected(plan, [self.expressions[n] for n in held], [names[n] for n in held])
        windows = OverWindows(self.environment, self.overs, self.held)
        plan, binder = windows.applied(plan, positions, keys)
        if self.qualify is not None:
            plan = Filter(plan, binder.predicate(self.around[self.qualify], "QUALIFY"))
        columns = identity_columns(plan.schema)
        places = [n for n in range(self.shown) if n != self.qualify]
        shown: list[Expression] = [
            binder.bind(self.around[n]) if n in self.around else columns[positions[n]]
            for n in places
        ]
        called = (*keys, *(prefix + place for place in places))
        return Project(plan, (*columns[:prefix], *shown), tuple(names[n] for n in called))

    def ranked(self, plan: Plan, prefix: int) -> Plan:
        """Return the rows that a ROW_NUMBER() chooses, or may choose for the query around."""
        rank = self.rank
        if rank is None:
            return plan
        by = (*range(prefix), *(prefix + n for n in rank.partition))
        order = moved(rank.order, prefix)
        if rank.bounds is not None:
            return TopN(plan, order, rank.bounds.limit, rank.bounds.first - 1, by)
        plan = TopN(plan, order, None, 0, by)
        self.environment.binding.ranked[plan] = rank.item or 0
        return plan


def _has_windows(node: exp.Expr) -> bool:
    return next(windows_in(node), None) is not None
