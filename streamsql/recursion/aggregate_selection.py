"""Rule: push aggregate selection into recursion.

    Aggregate[g] MIN(c), ARG_MIN(x, c) over Fixpoint
    ->  the same over Fixpoint that keeps, per g, only its rows of least c (all ties)

Several aggregates are pushed together when each could be pushed alone; a row is kept when it is
best for one of them. A step may read the recursive relation r once or several times. Sound when, in
every step branch:

1. predicates and the new values of g read nothing of r but g: whether rows lead on, and to which
   group, does not depend on what is dropped; a predicate may also limit c on the side of the worse
   values (`hops < 6` for MIN), because the best row passes it when any does;
2. the new c is isotone in the c of every reading: built from them by +, GREATEST and LEAST with
   what reads nothing of r but g (subtracted only from the right), so that a smaller c never becomes
   a larger one: where a row is replaced by the best one of its group, the result is as good;
3. c does not get better by itself: for MIN no branch adds a negative constant, subtracts or takes
   the LEAST of c and something else, for MAX none adds or takes the GREATEST. Otherwise a best row
   could rest on a worse one of its own group, which it displaces. Costs read from data are taken
   to be non-negative, and positive where another column grows (rows of equal cost would go round
   a cycle that costs nothing); the limits of the fixpoint end it when that is wrong;
4. columns of g come from a finite set;
5. other columns are read by ARG_MIN(x, c) only; with GREATEST/LEAST, where best rows may rest on
   worse ones of the same final c, ARG_MIN is not allowed and no other column may grow; the same
   where a step takes such columns from a reading whose c it does not hand on.

Between aggregate and fixpoint only projections, DISTINCT and filters on g may stand. A column that
a filter fixes to a constant counts as a column of g. COUNT, SUM and AVG need all rows. Mutually
recursive relations keep all rows too: they share columns, and one may have no value where another
has.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateFunction,
    AggregateSelection,
    Best,
    Distinct,
    Filter,
    Fixpoint,
    Plan,
    Project,
    with_inputs,
)
from streamsql.recursion.column_tracing import Trace, reads, trace
from streamsql.recursion.growth import growths, is_mutual, step_traces
from streamsql.recursion.isotone import directions, is_isotone, is_strict, may_better
from streamsql.recursion.loop_bounds import limited_by

_MIN = (AggregateFunction.MIN, AggregateFunction.ARG_MIN)
_MAX = (AggregateFunction.MAX, AggregateFunction.ARG_MAX)
_ARG = (AggregateFunction.ARG_MIN, AggregateFunction.ARG_MAX)


@dataclass(frozen=True, slots=True)
class Refused:
    """The condition of the rule that does not hold, in words."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Groups and best values that an aggregate reads of a fixpoint.

    Attributes:
        bests: Per MIN or MAX, whether columns of its best rows are picked by ARG_MIN or ARG_MAX.
    """

    group: frozenset[int]
    bests: dict[Best, bool]


def _without_distinct(plan: Plan) -> Plan:
    match plan:
        case Distinct(input=child):
            return _without_distinct(child)
        case Project(input=child) | Filter(input=child):
            return with_inputs(plan, (_without_distinct(child),))
        case _:
            return plan


def selection_of(
    aggregate: Aggregate, fixpoint: Fixpoint, joined: frozenset[int] = frozenset()
) -> AggregateSelection | Refused:
    """Return the selection that an aggregate over a fixpoint allows.

    Args:
        aggregate: Above the fixpoint, perhaps with projections, DISTINCT and filters between.
        fixpoint: Without selection.
        joined: Aggregated columns whose best rows are read as a whole, by joining them back.
    """
    wanted = _wanted(aggregate, fixpoint)
    if isinstance(wanted, Refused):
        return wanted
    for reason in _refusals(wanted, fixpoint, joined):
        return Refused(reason)
    return AggregateSelection(tuple(sorted(wanted.group)), tuple(wanted.bests))


def _refusals(wanted: _Wanted, fixpoint: Fixpoint, joined: frozenset[int]) -> Iterator[str]:
    """Yield the conditions that do not hold; the first one is checked first."""
    names = fixpoint.columns.names
    if is_mutual(fixpoint):
        yield "several mutually recursive relations share columns"
    growing = {growth.column for growth in growths(fixpoint)}
    for column in sorted(wanted.group & growing):
        yield f"the step computes new values of the grouped column {names[column]}"
    steps = step_traces(fixpoint)
    for number, step in enumerate(steps, start=1):
        yield from _group_refusals(number, step, wanted.group, names)
    for best, picks in wanted.bests.items():
        carried = growing - {best.value}
        whole = picks or best.value in joined
        yield from _tie_refusals(best, whole, carried, wanted.group, fixpoint)
        for number, step in enumerate(steps, start=1):
            yield from _test_refusals(number, step, best, wanted.group, names)
            yield from _value_refusals(number, step, best, wanted.group, names)
            yield from _progress_refusals(number, step, best, names, carried)


def _wanted(aggregate: Aggregate, fixpoint: Fixpoint) -> _Wanted | Refused:
    above = trace(_without_distinct(aggregate.input), lambda plan: plan == fixpoint)
    names = fixpoint.columns.names
    group = set()
    for position in aggregate.group:
        grouped = above.columns[position]
        if not isinstance(grouped, Column):
            return Refused("it groups by a computed value")
        group.add(grouped.position)
    for predicate in above.predicates:
        group |= _fixed(predicate)
    for predicate in above.predicates:
        for column in sorted(reads(predicate) - group):
            return Refused(f"a filter reads {names[column]}, which is not in GROUP BY")
    bests = _bests(aggregate, above)
    if isinstance(bests, Refused):
        return bests
    for best in bests:
        if best.value in group:
            return Refused(f"{names[best.value]} is both grouped and aggregated")
    return _Wanted(frozenset(group), bests)


def _fixed(predicate: Expression) -> set[int]:
    match predicate:
        case Call(function="=", arguments=(Column(position=position), Literal())):
            return {position}
        case Call(function="=", arguments=(Literal(), Column(position=position))):
            return {position}
        case _:
            return set()


def _bests(aggregate: Aggregate, above: Trace) -> dict[Best, bool] | Refused:
    """Return the aggregated columns in the order written, and whether their rows are picked."""
    if not aggregate.aggregates:
        return Refused("it has no MIN or MAX")
    found: dict[Best, bool] = {}
    for call in aggregate.aggregates:
        if call.function not in _MIN + _MAX:
            beside = " next to MIN or MAX" if len(aggregate.aggregates) > 1 else ""
            return Refused(
                f"{call.function.value}{beside} needs all rows: it would not count a "
                "pruned row, and UNION keeps equal rows once"
            )
        argument = call.arguments[1] if call.function in _ARG else call.arguments[0]
        traced = above.columns[argument.position] if isinstance(argument, Column) else argument
        if not isinstance(traced, Column) or not isinstance(argument, Column):
            return Refused("it aggregates a computed value")
        best = Best(traced.position, minimum=call.function in _MIN)
        found[best] = found.get(best, False) or call.function in _ARG
    return found


def _group_refusals(
    number: int, step: Trace, group: frozenset[int], names: tuple[str, ...]
) -> Iterator[str]:
    for grouped in sorted(group):
        for column in sorted(step.columns_read(step.columns[grouped]) - group):
            yield (
                f"step {number} computes {names[grouped]} from {names[column]}, which is not in "
                "GROUP BY"
            )


def _test_refusals(
    number: int, step: Trace, best: Best, group: frozenset[int], names: tuple[str, ...]
) -> Iterator[str]:
    """Yield the tests that a row passes where the best row of its group may not."""
    for predicate in step.predicates:
        limited, from_above = limited_by(predicate) or (predicate, False)
        if from_above == best.minimum and is_isotone(limited, best.value, group, step):
            continue
        for column in sorted(step.columns_read(predicate) - group):
            yield f"step {number} tests {names[column]}, which is not in GROUP BY"


def _tie_refusals(
    best: Best, picks: bool, carried: set[int], group: frozenset[int], fixpoint: Fixpoint
) -> Iterator[str]:
    """Yield whether best rows may rest on worse ones, where more than the value is read."""
    names = fixpoint.columns.names
    if not (picks or carried):
        return
    if all(is_strict(best.value, group, step) for step in step_traces(fixpoint)):
        return
    yield (
        f"equal values of {names[best.value]} can come from worse rows, so "
        f"{'columns picked with them' if picks else names[min(carried)]} would depend on "
        "pruned rows"
    )


def _value_refusals(
    number: int, step: Trace, best: Best, group: frozenset[int], names: tuple[str, ...]
) -> Iterator[str]:
    if not is_isotone(step.columns[best.value], best.value, group, step):
        yield (
            f"step {number} computes {names[best.value]} in a way that can make a better "
            "value worse"
        )


def _progress_refusals(
    number: int, step: Trace, best: Best, names: tuple[str, ...], carried: set[int]
) -> Iterator[str]:
    """Yield the ways in which repeating a step makes the value better for ever."""
    name = names[best.value]
    signs = directions(step.columns[best.value])
    if 0 in signs and carried:
        yield (f"step {number} leaves {name} unchanged while {names[min(carried)]} grows")
    if (-1 if best.minimum else 1) in signs:
        word, change = ("MIN", "smaller") if best.minimum else ("MAX", "larger")
        yield (f"step {number} can make {name} {change} at every step, so {word} would never end")
    if may_better(step.columns[best.value], minimum=best.minimum):
        yield (
            f"step {number} can replace {name} by a better value, but {name} would depend "
            "on the replaced rows"
        )
