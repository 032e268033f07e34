"""Meetings of the two sides of a join at gateways, when their rows come from different ones."""

from dataclasses import dataclass

from federated_optimizer.alternatives.gateway_pieces import TwoSided, pairs_of
from federated_optimizer.alternatives.heuristics import Heuristic, Heuristics
from federated_optimizer.alternatives.method import Refused, not_considered
from federated_optimizer.alternatives.pieces import Colocation, GatewayPiece
from federated_optimizer.network.topology import Topology
from streamsql.algebra.operators import Join


@dataclass(frozen=True, slots=True)
class Move:
    """Rows of one side on their way to the gateways where the join is.

    Attributes:
        partition: Columns that say to which of them a row goes; without any each row goes to all.
        homes: Values with the index of the gateway where rows about them go; others go by hash.
        away: Share of the rows that leave their gateway for it, if it is known.
    """

    partition: tuple[int, ...] = ()
    homes: tuple[tuple[str, int], ...] = ()
    away: float | None = None


@dataclass(frozen=True, slots=True)
class Meeting:
    """A join at gateways to which rows of other gateways travel.

    Attributes:
        sites: Where it is computed.
        left: How the rows of the left side come; None: they stay where they are.
        right: Likewise.
        colocations: Of its rows.
        words: The method as EXPLAIN names it.
    """

    sites: tuple[str, ...]
    left: Move | None
    right: Move | None
    colocations: tuple[Colocation, ...]
    words: str


def why_not_in_network(
    plan: TwoSided,
    stays: tuple[GatewayPiece, ...],
    goes: tuple[GatewayPiece, ...],
    kept: Heuristics,
) -> Refused | None:
    """Return why no gateway joins rows of two pieces, one of which may stay where it is."""
    sides = (*stays, *goes)
    if not isinstance(plan, Join):
        return Refused("only joins are computed where rows of other gateways come to")
    if not all(side.sites for side in sides):
        return Refused("no gateway has one of its sides")
    if len({site for side in sides for site in side.sites}) == 1:
        return Refused("both sides are at one gateway")
    if not plan.keys and Heuristic.NO_PRODUCT in kept:
        return not_considered(Heuristic.NO_PRODUCT)
    if any(side.joins for side in stays) and Heuristic.ONE_JOIN in kept:
        return not_considered(Heuristic.ONE_JOIN)
    if any(side.joins for side in goes) and Heuristic.TO_BASE in kept:
        return not_considered(Heuristic.TO_BASE)
    return None


def why_not_by_key(
    plan: TwoSided, left: GatewayPiece, right: GatewayPiece, kept: Heuristics
) -> Refused | None:
    """Return why rows of both sides do not go to a gateway that their keys say."""
    refused = why_not_in_network(plan, (), (left, right), kept)
    if refused is None and not pairs_of(plan):
        return Refused("without an equality no column says where rows meet")
    return refused


def meeting_sites(left: GatewayPiece, right: GatewayPiece, topology: Topology) -> tuple[str, ...]:
    """Return the gateways of both sides, without those that have been away for too long."""
    sites = tuple(sorted({*left.sites, *right.sites}))
    return tuple(site for site in sites if site not in topology.absent) or sites
