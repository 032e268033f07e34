"""Joins by repartition: rows of both sides go to the gateway that the hash of their keys says.

Any join is legal: rows that meet are at one gateway, and so are all those that a lonely row could
have met. A key with NULL meets nothing, wherever it is.
"""

from federated_optimizer.alternatives.gateway_pieces import TwoSided, pairs_of
from federated_optimizer.alternatives.meeting import (
    Meeting,
    Move,
    meeting_sites,
    why_not_in_network,
)
from federated_optimizer.alternatives.method import Refused
from federated_optimizer.alternatives.pieces import Colocation, GatewayPiece
from federated_optimizer.alternatives.words import join_words
from federated_optimizer.network.topology import Topology
from streamsql.algebra.operators import JoinKind


def hashed_join(
    plan: TwoSided, left: GatewayPiece, right: GatewayPiece, topology: Topology
) -> Meeting | Refused:
    """Return the join at the gateways of both sides, or why it is not there."""
    reason = why_not_in_network(plan, left, right)
    if reason:
        return Refused(reason)
    lefts, rights = zip(*pairs_of(plan), strict=True)
    sites = meeting_sites(left, right, topology)
    words = f"both sides sent to {len(sites)} gateways by hash of their keys, joined there"
    return Meeting(sites, Move(lefts), Move(rights), met_colocations(plan, lefts), words)


def met_colocations(plan: TwoSided, keys: tuple[int, ...]) -> tuple[Colocation, ...]:
    """Return that joined rows with equal keys of the left side are at one gateway.

    In a full join a row of the right side is where its own key says, and those of the left are
    NULL.
    """
    return () if plan.kind == JoinKind.FULL else (Colocation(f"rows of {join_words(plan)}", keys),)
