"""The columns of nodes: those that are wanted now, behind those that were wanted before."""

from federated_optimizer.sharing.computation_index import Found
from federated_optimizer.sharing.forms.alignment import Available, aligned
from federated_optimizer.sharing.forms.blocks import block_of
from federated_optimizer.sharing.forms.group_blocks import group_block_of
from federated_optimizer.sharing.rules import coarser_groups, more_functions
from federated_optimizer.sharing.run_offers import with_outputs
from streamsql.algebra.expressions import Column, columns_of
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
    """Return an offer's plan with the columns that its run needs, and those that are wanted."""
    plan, own = found.offer.plan, found.offer.own
    kept = (*range(own), *(c for c in read_columns(found) if c >= own))
    if len(kept) == len(plan.schema):
        return plan
    fields = plan.schema.fields
    columns = tuple(Column(c, fields[c].name, fields[c].dtype) for c in kept)
    return Project(plan, columns, tuple(fields[c].name for c in kept))


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
