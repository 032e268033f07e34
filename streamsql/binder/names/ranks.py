"""ROW_NUMBER() with a bound: the first rows of every partition.

    SELECT … FROM (SELECT …, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) AS n FROM t) AS q
    WHERE n <= 3

The inner query is bound to a TopN without limit, noted in `Binding.ranked`; the query that reads it
in FROM puts its conditions on `n` in. Where numbers are read otherwise they are those of a window
function over the rows chosen, or over all rows if nothing bounds them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec
from sqlglot import exp

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    OverWindow,
    Plan,
    Project,
    TopN,
    WindowCall,
    WindowFunction,
    identity_columns,
    transform_up,
    with_inputs,
)
from streamsql.binder.names.environment import Binding, identifier_text, whole_number
from streamsql.data.types import DataType

_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
}


def is_rank(node: exp.Expr) -> bool:
    """Whether a node is `ROW_NUMBER() OVER (…)`."""
    return isinstance(node, exp.Window) and isinstance(node.this, exp.RowNumber)


def may_rank(select: exp.Select) -> bool:
    """Whether a SELECT stands where the query around can bound its ROW_NUMBER()."""
    parent = select.parent
    while isinstance(parent, exp.Subquery):
        if isinstance(parent.parent, exp.From | exp.Join):
            return True
        parent = parent.parent
    return isinstance(parent, exp.CTE)


def ranked_column(plan: Plan, binding: Binding) -> int | None:
    """Return the position of an unbounded ROW_NUMBER() in a relation, or None."""
    while isinstance(plan, Project):
        plan = plan.input
    return binding.ranked.get(plan) if isinstance(plan, TopN) else None


Comparison = tuple[type[exp.Expr], int]


@dataclass(slots=True)
class Bounds:
    """Row numbers that are wanted; `last` is None for all from the first wanted one on."""

    first: int = 1
    last: int | None = None

    @staticmethod
    def of(said: Iterable[Comparison]) -> "Bounds":
        """Return the numbers for which all comparisons hold."""
        bounds = Bounds()
        for kind, number in said:
            if kind in (exp.GT, exp.GTE, exp.EQ):
                bounds.first = max(bounds.first, number + (kind is exp.GT))
            if kind in (exp.LT, exp.LTE, exp.EQ):
                high = number - (kind is exp.LT)
                bounds.last = high if bounds.last is None else min(bounds.last, high)
        return bounds

    @property
    def limit(self) -> int | None:
        """How many rows are wanted; None for all from the first on."""
        return None if self.last is None else max(self.last - self.first + 1, 0)

    def applied(self, plan: Plan, binding: Binding) -> Plan:
        """Return the relation with its row numbers bounded."""
        if isinstance(plan, Project):
            return with_inputs(plan, (self.applied(plan.input, binding),))
        if not isinstance(plan, TopN) or plan not in binding.ranked:
            return plan
        below = plan.input
        if self.limit == 1 and isinstance(below, Project):
            shown = list(below.expressions)
            shown[binding.ranked[plan]] = Literal(self.first, DataType.INTEGER)
            below = Project(below.input, tuple(shown), below.names)
        return msgspec.structs.replace(plan, input=below, limit=self.limit, offset=self.first - 1)


def comparisons(
    conditions: list[exp.Expr], means: Callable[[exp.Expr], bool]
) -> tuple[list[Comparison], list[exp.Expr]]:
    """Return what conditions say about a row number, and the conditions that say other things.

    `means` says whether a node is the row number.
    """
    said: list[Comparison] = []
    others = []
    for condition in conditions:
        found = _comparison(condition, means)
        said += found
        if not found:
            others.append(condition)
    return said, others


def named(table: str, name: str, *, bare: bool = True) -> Callable[[exp.Expr], bool]:
    """Return a test for a column by name; `bare`: also without its table."""

    def means(node: exp.Expr) -> bool:
        if not isinstance(node, exp.Column) or identifier_text(node.this) != name:
            return False
        qualifier = node.args.get("table")
        return bare if qualifier is None else identifier_text(qualifier) == table

    return means


def _comparison(node: exp.Expr, means: Callable[[exp.Expr], bool]) -> list[Comparison]:
    node = node.unnest() if isinstance(node, exp.Paren) else node
    if isinstance(node, exp.Between) and means(node.this):
        low, high = whole_number(node.args["low"], 9), whole_number(node.args["high"], 9)
        return [] if low is None or high is None else [(exp.GTE, low), (exp.LTE, high)]
    if type(node) not in _FLIPPED:
        return []
    left, right = node.this, node.expression
    if means(left) and (number := whole_number(right, 9)) is not None:
        return [(type(node), number)]
    if means(right) and (number := whole_number(left, 9)) is not None:
        return [(_FLIPPED[type(node)], number)]
    return []


def numbered(plan: Plan, binding: Binding) -> Plan:
    """Return a relation with the numbers of its ROW_NUMBER() in their column."""
    if isinstance(plan, Project):
        return with_inputs(plan, (numbered(plan.input, binding),))
    if not isinstance(plan, TopN):
        return plan
    whole = msgspec.structs.replace(plan, limit=None, offset=0)
    if whole not in binding.ranked:
        return plan
    position = binding.ranked[whole]
    chosen = plan.input if plan == whole else plan
    name = plan.schema.names[position]
    call = WindowCall(WindowFunction.ROW_NUMBER, "row_number")
    over = OverWindow(chosen, plan.partition, plan.order, (call,))
    number: Expression = Column(len(plan.schema), name, DataType.INTEGER)
    if plan.offset:
        skipped = Literal(plan.offset, DataType.INTEGER)
        number = Call("+", (number, skipped), DataType.INTEGER)
    shown = list(identity_columns(plan.schema))
    shown[position] = number
    return Project(over, tuple(shown), plan.schema.names)


def reads_name(select: exp.Select, name: str, besides: Iterable[exp.Expr]) -> bool:
    """Whether a query may read a column of a name: it names it somewhere, or all columns.

    Parts in `besides` do not count.
    """
    skipped = {id(node) for node in besides}
    clause = select.args.get("with_")
    if clause is not None:
        skipped.add(id(clause))
    for node in select.walk(prune=lambda part: id(part) in skipped):
        if id(node) in skipped:
            continue
        if isinstance(node, exp.Identifier) and identifier_text(node) == name:
            return True
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            return True
        if isinstance(node, exp.Join) and node.args.get("method"):
            return True
    return False


def with_numbers(plan: Plan, binding: Binding) -> Plan:
    """Return a finished plan in which every ROW_NUMBER() that nothing bounds has its numbers."""

    def change(node: Plan) -> Plan:
        known = isinstance(node, TopN) and node in binding.ranked
        return numbered(node, binding) if known else node

    return transform_up(plan, change)
