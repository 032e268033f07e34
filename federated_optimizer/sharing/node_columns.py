"""The columns of nodes: those that are wanted now, behind those that were wanted before."""

from federated_optimizer.sharing.alignment import Available, aligned
from federated_optimizer.sharing.blocks import block_of
from federated_optimizer.sharing.computation_index import Found
from federated_optimizer.sharing.run_offers import with_outputs
from streamsql.algebra.expressions import Column, columns_of
from streamsql.algebra.operators import (
    Filter,
    Plan,
    Project,
    RemoteSource,
)


def read_columns(found: Found) -> tuple[int, ...]:
    """Return the columns of an offer that an answer reads, in order."""
    plan = found.plan
    read: set[int] = set()
    while not isinstance(plan, RemoteSource):
        match plan:
            case Project(input=child, expressions=expressions) if isinstance(
                child, RemoteSource | Filter
            ):
                read |= frozenset[int]().union(*map(columns_of, expressions))
            case Filter(input=child, predicate=predicate):
                read |= columns_of(predicate)
            case _:
                return tuple(range(len(found.offer.columns)))
        plan = child
    if isinstance(found.plan, RemoteSource | Filter):
        return tuple(range(len(found.offer.columns)))
    return tuple(sorted(read))


def narrowed(found: Found) -> Plan:
    """Return an offer's plan with the columns that its run needs, and those that are wanted."""
    plan, own = found.offer.plan, found.offer.own
    kept = (*range(own), *(c for c in read_columns(found) if c >= own))
    if len(kept) == len(plan.schema):
        return plan
    fields = plan.schema.fields
    columns = tuple(Column(c, fields[c].name, fields[c].dtype) for c in kept)
    return Project(plan, columns, tuple(fields[c].name for c in kept))


def widened(node: Plan, found: Found) -> Plan:
    """Return a node's plan with the columns behind its own that an answer over it wants.

    Args:
        node: What the node computes.
        found: An answer over the same rows with more columns.
    """
    block = block_of(node)
    available = Available.of(block)
    for wide in aligned(block_of(found.offer.plan), block):
        more = {
            available.text(expression): expression
            for expression in (wide.outputs[c] for c in read_columns(found))
            if available.text(expression) not in available.places
        }
        return with_outputs(block, tuple(more.values()))
    return found.offer.plan
