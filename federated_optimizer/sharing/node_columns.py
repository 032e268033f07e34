"""The columns of nodes: those that are wanted now, behind those that were wanted before."""

from federated_optimizer.sharing.computation_index import Found
from federated_optimizer.sharing.forms.alignment import Available, aligned
from federated_optimizer.sharing.forms.block_names import equal_pair
from federated_optimizer.sharing.forms.blocks import block_of
from federated_optimizer.sharing.forms.group_blocks import group_block_of
from federated_optimizer.sharing.rules import coarser_groups, more_functions
from federated_optimizer.sharing.run_offers import with_outputs
from streamsql.algebra.expressions import Call, Column, Expression, Literal, columns_of
from streamsql.algebra.operators import (
    Aggregate,
    Filter,
    Plan,
    Project,
    RemoteSource,
)


def read_columns(found: Found) -> tuple[int, ...]:
    """Return the columns of an offer that an answer reads, in order."""
    everything = tuple(range(len(found.offer.columns)))
    chain: list[Plan] = []
    plan = found.plan
    while not isinstance(plan, RemoteSource):
        if len(plan.inputs) != 1:
            return everything
        chain.append(plan)
        (plan,) = plan.inputs
    read: set[int] = set()
    for operator in reversed(chain):
        match operator:
            case Filter(predicate=predicate):
                read |= columns_of(predicate)
                continue
            case Project(expressions=expressions):
                pass
            case Aggregate(group=group, aggregates=calls):
                read |= {*group}
                expressions = tuple(a for call in calls for a in call.arguments)
            case _:
                return everything
        return tuple(sorted(read.union(*map(columns_of, expressions))))
    return everything


def narrowed(found: Found) -> Plan:
    """Return an offer's plan with the columns that its run needs, and those that are wanted.

    A join that is asked for partners shows what its conditions read, too: each query has its own.
    """
    plan, own = found.offer.plan, found.offer.own
    kept = (*range(own), *(c for c in read_columns(found) if c >= own))
    if len(kept) < len(plan.schema):
        fields = plan.schema.fields
        columns = tuple(Column(c, fields[c].name, fields[c].dtype) for c in kept)
        plan = Project(plan, columns, tuple(fields[c].name for c in kept))
    return with_checked(plan) if found.offer.for_partners else plan


def with_checked(plan: Plan) -> Plan:
    """Return a plan of a block with the columns that its predicates read, behind its own.

    Stronger predicates on them can be checked over its rows then. Columns are left out that have
    to be equal to others or to a constant: conditions on these vary less.
    """
    block = block_of(plan)
    if block.is_trivial or group_block_of(plan) is not None:
        return plan
    available = Available.of(block)
    known = {available.text(c) for p in block.predicates if (c := _constant(p)) is not None}
    more: dict[str, Expression] = {}
    for predicate in block.predicates:
        if equal_pair(predicate) is not None:
            continue
        for place in sorted(columns_of(predicate)):
            column = block.columns[place]
            text = available.text(column)
            if text not in available.places and text not in known:
                more.setdefault(text, column)
    return with_outputs(block, tuple(more.values())) if more else plan


def _constant(predicate: Expression) -> Column | None:
    """Return the column that has to be equal to a constant; None: another predicate."""
    match predicate:
        case Call(function="=", arguments=(Column() as column, Literal())):
            return column
        case _:
            return None


def widened(node: Plan, found: Found) -> Plan | None:
    """Return a node's plan with the columns behind its own that an answer over it wants.

    None: they are no columns of its block, as further functions of groups are not.

    Args:
        node: What the node computes.
        found: An answer over the same rows with more columns.
    """
    if group_block_of(node) is not None:
        wanted = narrowed(found)
        wide_groups = more_functions.widened(wanted, node)
        if wide_groups is not None:
            return wide_groups
        has_all = coarser_groups.answer(wanted, node, node) is not None
        return node if has_all else None
    block = block_of(node)
    available = Available.of(block)
    for wide in aligned(block_of(found.offer.plan), block):
        more = {
            available.text(expression): expression
            for expression in (wide.outputs[c] for c in read_columns(found))
            if available.text(expression) not in available.places
        }
        return with_outputs(block, tuple(more.values()))
    return None
