"""Joins by repartition: rows of both sides go to the gateway that the hash of their keys says.

Any join is legal: rows that meet are at one gateway, and so are all those that a lonely row could
have met. A key with NULL meets nothing, wherever it is.
"""

from hashlib import sha256

from federated_optimizer.alternatives.gateway_pieces import TwoSided, pairs_of
from federated_optimizer.alternatives.heuristics import ALL, Heuristics
from federated_optimizer.alternatives.joins.meeting import (
    Meeting,
    Move,
    meeting_sites,
    why_not_by_key,
)
from federated_optimizer.alternatives.method import Refused
from federated_optimizer.alternatives.pieces import Colocation, GatewayPiece
from federated_optimizer.alternatives.words import join_words
from federated_optimizer.network.topology import Topology
from streamsql.algebra.operators import JoinKind


def hashed_join(
    plan: TwoSided,
    left: GatewayPiece,
    right: GatewayPiece,
    topology: Topology,
    kept: Heuristics = ALL,
) -> Meeting | Refused:
    """Return the join at the gateways of both sides, or why it is not there."""
    refused = why_not_by_key(plan, left, right, kept)
    if refused is not None:
        return refused
    lefts, rights = zip(*pairs_of(plan), strict=True)
    sites = meeting_sites(left, right, topology)
    words = f"both sides sent to {len(sites)} gateways by hash of their keys, joined there"
    lie = met_colocations(plan, Move(lefts), sites)
    return Meeting(sites, Move(lefts), Move(rights), lie, words)


def met_colocations(plan: TwoSided, move: Move, sites: tuple[str, ...]) -> tuple[Colocation, ...]:
    """Return that joined rows with equal keys of the left side are at one gateway.

    Rows of two joins are at one gateway only if both take the same gateways and homes.

    In a full join a row of the right side is where its own key says, and those of the left are
    NULL.
    """
    if plan.kind == JoinKind.FULL:
        return ()
    homes = sha256(repr((sites, move.homes)).encode()).hexdigest()[:16]
    return (Colocation(f"rows of {join_words(plan)} by {homes}", move.partition),)
