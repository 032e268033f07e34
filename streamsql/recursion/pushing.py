"""Rules applied where they hold: below aggregates, and where best rows are joined back.

    Fixpoint F JOIN (Aggregate[g] MIN(c) over F) ON F.g = g AND F.c = MIN(c)

gives the best rows of F as a whole, all ties. When the aggregate's selection can be pushed, F on
the other side of the join needs no other rows either, and both sides share one recursion.
"""

from dataclasses import dataclass, field

import msgspec

from streamsql.algebra.choices import Copies
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateSelection,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Materialize,
    Plan,
    Project,
    with_inputs,
)
from streamsql.recursion.aggregate_selection import Refused, selection_of
from streamsql.recursion.column_tracing import trace
from streamsql.recursion.counted_copies import replaced, with_counted_copies


@dataclass(frozen=True, slots=True)
class Pushed:
    """A plan after the rule.

    Attributes:
        reasons: Why it did not apply, by fixpoint name.
    """

    plan: Plan
    reasons: dict[str, str] = field(default_factory=dict)


def push_selections(plan: Plan) -> Pushed:
    """Apply the rule wherever it holds, and say why where it does not."""
    reasons: dict[str, str] = {}
    return Pushed(_push(plan, reasons), reasons)


def _push(plan: Plan, reasons: dict[str, str]) -> Plan:
    match plan:
        case Join(kind=JoinKind.INNER):
            plan = _push_joined(plan, reasons)
        case Aggregate():
            plan = _push_below(plan, reasons)
        case _:
            pass
    inputs = tuple(_push(child, reasons) for child in plan.inputs)
    return plan if inputs == plan.inputs else with_inputs(plan, inputs)


def _push_below(plan: Aggregate, reasons: dict[str, str]) -> Plan:
    fixpoint = _fixpoint_below(plan.input)
    if fixpoint is None:
        _note_barrier(plan.input, reasons)
        return plan
    if fixpoint.selection is not None:
        return plan
    if fixpoint.copies != Copies.ONE:
        return with_counted_copies(plan, fixpoint)
    selection = selection_of(plan, fixpoint)
    if isinstance(selection, Refused):
        reasons.setdefault(fixpoint.name, selection.reason)
        return plan
    return replaced(plan, fixpoint, msgspec.structs.replace(fixpoint, selection=selection))


def _note_barrier(plan: Plan, reasons: dict[str, str]) -> None:
    """Note of a recursion below a MATERIALIZED table that nothing is pushed into it."""
    while isinstance(plan, Project | Filter | Distinct):
        plan = plan.input
    if isinstance(plan, Materialize) and (fixpoint := _fixpoint_below(plan.input)) is not None:
        why = f"{plan.name} is MATERIALIZED and read more than once, so it keeps all rows"
        reasons.setdefault(fixpoint.name, why)


def _fixpoint_below(plan: Plan) -> Fixpoint | None:
    match plan:
        case Fixpoint():
            return plan
        case Project(input=child) | Filter(input=child) | Distinct(input=child):
            return _fixpoint_below(child)
        case _:
            return None


# --- best rows joined back -----------------------------------------------------------------------


def _push_joined(join: Join, reasons: dict[str, str]) -> Plan:
    for whole, best in ((0, 1), (1, 0)):
        sides = (join.left, join.right)
        fixpoint = _fixpoint_below(sides[whole])
        aggregate = _aggregate_below(sides[best])
        if fixpoint is None or aggregate is None or fixpoint.selection is not None:
            continue
        if fixpoint.copies != Copies.ONE or _fixpoint_below(aggregate.input) != fixpoint:
            continue
        pairs = [(pair[whole], pair[best]) for pair in join.keys]
        compared = _compared(sides[whole], fixpoint, sides[best], aggregate, pairs)
        selection = _joined_selection(aggregate, fixpoint, *compared, reasons)
        if selection is not None:
            best_rows = msgspec.structs.replace(fixpoint, selection=selection)
            return with_inputs(join, tuple(replaced(s, fixpoint, best_rows) for s in sides))
    return join


def _aggregate_below(plan: Plan) -> Aggregate | None:
    match plan:
        case Aggregate():
            return plan
        case Project(input=child) | Filter(input=child):
            return _aggregate_below(child)
        case _:
            return None


def _compared(
    whole: Plan,
    fixpoint: Fixpoint,
    best: Plan,
    aggregate: Aggregate,
    pairs: list[tuple[int, int]],
) -> tuple[set[int], set[int]]:
    """Return the columns that a join compares with their group and with their best value.

    `whole` reads the rows of the fixpoint, `best` the aggregate of it. `pairs` are positions in
    both that the join compares.
    """
    rows = trace(whole, lambda plan: plan == fixpoint).columns
    found = trace(best, lambda plan: plan == aggregate).columns
    below = trace(aggregate.input, lambda plan: plan == fixpoint).columns
    groups: set[int] = set()
    values: set[int] = set()
    for mine, theirs in pairs:
        row, other = rows[mine], found[theirs]
        if not isinstance(row, Column) or not isinstance(other, Column):
            continue
        if other.position < len(aggregate.group):
            source, compared = below[aggregate.group[other.position]], groups
        else:
            call = aggregate.aggregates[other.position - len(aggregate.group)]
            argument = call.arguments[0] if len(call.arguments) == 1 else None
            if not isinstance(argument, Column):
                continue
            source, compared = below[argument.position], values
        if isinstance(source, Column) and source.position == row.position:
            compared.add(row.position)
    return groups, values


def _joined_selection(
    aggregate: Aggregate,
    fixpoint: Fixpoint,
    groups: set[int],
    values: set[int],
    reasons: dict[str, str],
) -> AggregateSelection | None:
    """Return the selection that holds for both sides of a join, or None."""
    if not values:
        return None
    selection = selection_of(aggregate, fixpoint, frozenset(values))
    if isinstance(selection, Refused):
        reasons.setdefault(fixpoint.name, selection.reason)
        return None
    missing = [fixpoint.columns.names[c] for c in selection.group if c not in groups]
    if missing:
        reasons.setdefault(fixpoint.name, f"its best rows are joined back without {missing[0]}")
        return None
    return selection
