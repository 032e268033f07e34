"""ROW_NUMBER() with a bound on it: the first rows of every partition.

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
from streamsql.binder.names.environment import Binding, identifier_text
from streamsql.data.types import DataType

_SYMBOLS: dict[type[exp.Expr], str] = {
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.EQ: "=",
}
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
    found = binding.ranked.get(plan) if isinstance(plan, TopN) else None
    return None if found is None else found[0]


Comparison = tuple[type[exp.Expr], int]


@dataclass(slots=True)
class Bounds:
    """Which row numbers are wanted; `last` is None for all from the first wanted one on."""

    first: int = 1
    last: int | None = None

    def narrow_all(self, said: Iterable[Comparison]) -> None:
        """Take comparisons of the row number into account."""
        for kind, number in said:
            self.narrow(kind, number)

    @property
    def limit(self) -> int | None:
        """How many rows are wanted; None for all from the first on."""
        return None if self.last is None else max(self.last - self.first + 1, 0)

    def narrow(self, kind: type[exp.Expr], number: int) -> None:
        """Take one comparison of the row number into account."""
        low = {">": number + 1, ">=": number, "=": number}.get(_SYMBOLS[kind])
        high = {"<": number - 1, "<=": number, "=": number}.get(_SYMBOLS[kind])
        if low is not None:
            self.first = max(self.first, low)
        if high is not None:
            self.last = high if self.last is None else min(self.last, high)

    def applied(self, plan: Plan, binding: Binding) -> Plan:
        """Return the relation with its row numbers bounded."""
        if isinstance(plan, Project):
            return with_inputs(plan, (self.applied(plan.input, binding),))
        if not isinstance(plan, TopN) or plan not in binding.ranked:
            return plan
        below = plan.input
        if self.limit == 1 and isinstance(below, Project):
            position, _ = binding.ranked[plan]
            shown = list(below.expressions)
            shown[position] = Literal(self.first, DataType.INTEGER)
            below = Project(below.input, tuple(shown), below.names)
        return msgspec.structs.replace(plan, input=below, limit=self.limit, offset=self.first - 1)


def comparisons(
    conditions: list[exp.Expr], means: Callable[[exp.Expr], bool]
) -> tuple[list[Comparison], list[exp.Expr]]:
    """Return what conditions say about a row number, and the conditions that say other things.

    Args:
        conditions: Conjuncts as written.
        means: Whether a node is the row number.
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
        low, high = _number(node.args["low"]), _number(node.args["high"])
        return [] if low is None or high is None else [(exp.GTE, low), (exp.LTE, high)]
    if type(node) not in _FLIPPED:
        return []
    left, right = node.this, node.expression
    if means(left) and (number := _number(right)) is not None:
        return [(type(node), number)]
    if means(right) and (number := _number(left)) is not None:
        return [(_FLIPPED[type(node)], number)]
    return []


def _number(node: exp.Expr) -> int | None:
    text = node.name if isinstance(node, exp.Literal) and not node.args.get("is_string") else ""
    return int(text) if text.isdigit() and len(text) < 10 else None


def conjunct_nodes(node: exp.Expr | None) -> list[exp.Expr]:
    """Split a condition as written at its top-level ANDs."""
    if node is None:
        return []
    if isinstance(node, exp.Paren):
        inner = node.unnest()
        return conjunct_nodes(inner) if isinstance(inner, exp.And) else [node]
    if isinstance(node, exp.And):
        return conjunct_nodes(node.this) + conjunct_nodes(node.expression)
    return [node]


def numbered(plan: Plan, binding: Binding) -> Plan:
    """Return a relation with the numbers of its ROW_NUMBER() in their column.

    Args:
        plan: With a `ranked_column`, bounded or not.
        binding: Where it is noted.
    """
    if isinstance(plan, Project):
        return with_inputs(plan, (numbered(plan.input, binding),))
    if not isinstance(plan, TopN):
        return plan
    whole = msgspec.structs.replace(plan, limit=None, offset=0)
    if whole not in binding.ranked:
        return plan
    position, _ = binding.ranked[whole]
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

    Args:
        select: The query.
        name: Of the column.
        besides: Parts of it that do not count.
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
    if not binding.ranked:
        return plan

    def change(node: Plan) -> Plan:
        known = isinstance(node, TopN) and node in binding.ranked
        return numbered(node, binding) if known else node

    return transform_up(plan, change)
