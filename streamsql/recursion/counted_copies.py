"""Rule: push COUNT and SUM into a recursion that counts copies (UNION ALL).

    Aggregate[g] COUNT(*), SUM(v) over Fixpoint with copies
    ->  the same over Fixpoint cut to g, v and what its steps read, whose copies are a number

Rows that agree on what is left are one row with a number of copies: of 2^30 paths between two ends
there is one row per round. Sound for every aggregate that needs only the number of equal rows:
COUNT, SUM, AVG, MIN and MAX. Over a set (UNION) it would not be: rows that differ in a column that
is cut would count once.
"""

import msgspec

from streamsql.algebra.choices import Copies
from streamsql.algebra.expressions import Column, Expression, Literal, columns_of
from streamsql.algebra.operators import (
    Aggregate,
    AggregateFunction,
    Filter,
    Fixpoint,
    Plan,
    Project,
    RecursiveReference,
    transform_up,
    with_inputs,
)
from streamsql.data.schema import Schema
from streamsql.recursion.column_tracing import reads, trace
from streamsql.recursion.growth import step_traces

_COUNTING = frozenset(
    (
        AggregateFunction.COUNT_ALL,
        AggregateFunction.COUNT,
        AggregateFunction.SUM,
        AggregateFunction.AVG,
        AggregateFunction.MIN,
        AggregateFunction.MAX,
    )
)


def with_counted_copies(plan: Aggregate, fixpoint: Fixpoint) -> Plan:
    """Return an aggregate over a recursion that keeps no more than it has to count."""
    if not all(call.function in _COUNTING for call in plan.aggregates):
        return plan
    if not _is_direct(plan.input):
        return plan
    kept = _needed(plan, fixpoint)
    counted = _cut(fixpoint, sorted(kept))
    return with_inputs(plan, (replaced(plan.input, fixpoint, counted),))


def _is_direct(plan: Plan) -> bool:
    """Whether copies reach the aggregate: no DISTINCT stands between."""
    while isinstance(plan, Project | Filter):
        plan = plan.input
    return isinstance(plan, Fixpoint)


def replaced(plan: Plan, fixpoint: Fixpoint, other: Plan) -> Plan:
    """Return a chain of operators over a recursion as one over another plan."""
    if plan == fixpoint:
        return other
    (child,) = plan.inputs
    return with_inputs(plan, (replaced(child, fixpoint, other),))


def _needed(plan: Aggregate, fixpoint: Fixpoint) -> set[int]:
    """Return the columns that the aggregate reads, and those that steps compute these from."""
    above = trace(plan.input, lambda node: node == fixpoint)
    asked = [above.columns[position] for position in plan.group]
    for call in plan.aggregates:
        for argument in call.arguments:
            asked.extend(above.columns[position] for position in columns_of(argument))
    needed = {p for expression in (*asked, *above.predicates) for p in reads(expression)}
    if fixpoint.rounds is not None:
        needed.add(len(fixpoint.columns) - 1)
    steps = step_traces(fixpoint)
    for step in steps:
        for predicate in step.predicates:
            needed |= step.columns_read(predicate)
    before = -1
    while len(needed) > before:
        before = len(needed)
        for step in steps:
            needed |= {c for at in tuple(needed) for c in step.columns_read(step.columns[at])}
    return needed


def _cut(fixpoint: Fixpoint, kept: list[int]) -> Plan:
    """Return the recursion with some of its columns, and NULL in the place of the others."""
    fields = fixpoint.columns.fields
    schema = Schema(tuple(fields[position] for position in kept))
    reference = _padded(RecursiveReference(fixpoint.name, schema), fixpoint.columns, kept)

    def cut(branch: Plan) -> Plan:
        columns = tuple(Column(p, fields[p].name, fields[p].dtype) for p in kept)
        return Project(branch, columns, schema.names)

    def reading(node: Plan) -> Plan:
        is_reference = isinstance(node, RecursiveReference) and node.name == fixpoint.name
        return reference if is_reference else node

    counted = msgspec.structs.replace(
        fixpoint,
        columns=schema,
        base=tuple(map(cut, fixpoint.base)),
        step=tuple(cut(transform_up(branch, reading)) for branch in fixpoint.step),
        copies=Copies.COUNTED,
    )
    return _padded(counted, fixpoint.columns, kept)


def _padded(plan: Plan, columns: Schema, kept: list[int]) -> Plan:
    if len(kept) == len(columns):
        return plan
    places = {position: number for number, position in enumerate(kept)}
    expressions: list[Expression] = [
        Column(places[position], field.name, field.dtype)
        if position in places
        else Literal(None, field.dtype)
        for position, field in enumerate(columns.fields)
    ]
    return Project(plan, tuple(expressions), columns.names)
