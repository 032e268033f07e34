"""Queries planned over what runs: what they may read, and the nodes that they want."""

from dataclasses import dataclass
from itertools import count

from msgspec.structs import replace

from federated_optimizer.coordinator.queries.planned_queries import PlannedNode
from federated_optimizer.coordinator.queries.runs.readable_offers import ReadableOffers, rows_of
from federated_optimizer.registering.registration import register
from federated_optimizer.registering.registration_terms import Planning, Registration, Sharing
from federated_optimizer.sharing.computation_index import Allowed
from federated_optimizer.sharing.strategy import Materialize, Strategy
from streamsql.algebra.operators import Plan, Scan, walk_plan
from streamsql.binder import BoundQuery
from streamsql.catalog.read_gate import Read

_FIRST_PROVISIONAL = 10**30
"""Provisional numbers of runs begin here: they are greater than all that a catalog gives."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The rules by which a query is planned over what runs.

    Attributes:
        offers: Of all runs.
        allowed: Returns whether the query may read an offer.
        makes_nodes: Whether new nodes are made for it.
        moves: Whether running queries move to what costs less.
    """

    offers: ReadableOffers
    allowed: Allowed
    makes_nodes: bool
    moves: bool = False


def registered(
    bound: BoundQuery,
    planning: Planning,
    reading: Reading,
    strategy: Strategy,
    materialize: Materialize,
) -> Registration:
    """Return a query over what runs. The index of offers is left as it was, whatever happens.

    Raises:
        UnsupportedError: As for `planning.plan`.
    """
    index = reading.offers.index()
    numbers = count(_FIRST_PROVISIONAL)
    sharing = Sharing(
        index,
        strategy,
        materialize,
        reading.allowed,
        rows_of(reading.offers.runs, reading.offers.estimates(planning.statistics)),
        makes_nodes=reading.makes_nodes,
        moves=reading.moves,
    )
    with reading.offers.restored():
        return register(bound, sharing, planning, lambda: f"q{next(numbers)}")


def new_nodes(made: Registration, bound: BoundQuery) -> tuple[PlannedNode, ...]:
    """Return the nodes of a registration, and what somebody has to be allowed to read."""
    return tuple(
        PlannedNode(
            node.plan,
            replace(node.bundle, text=""),
            reads_of(node.plan, bound.reads),
            node.widens,
            bound.reads | node.tells,
        )
        for node in made.nodes
    )


def reads_of(plan: Plan, reads: frozenset[Read]) -> frozenset[Read]:
    """Return those reads of a query that lead to the sources of a part of its plan.

    A source may be read through views: these, too, have to be allowed.
    """
    waiting = {node.source.lower() for node in walk_plan(plan) if isinstance(node, Scan)}
    found: set[Read] = set()
    while waiting:
        relation = waiting.pop()
        new = {read for read in reads if read.relation == relation} - found
        found |= new
        waiting |= {read.within for read in new if read.within}
    return frozenset(found)
