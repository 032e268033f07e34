"""Meetings of the two sides of a join at gateways, when their rows come from different ones."""

from dataclasses import dataclass

from federated_optimizer.alternatives.gateway_pieces import TwoSided
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


def why_not_in_network(plan: TwoSided, left: GatewayPiece, right: GatewayPiece) -> str:
    """Return why no gateway joins rows of two pieces, whatever travels; else an empty string."""
    if not isinstance(plan, Join):
        return "only joins are computed where rows of other gateways come to"
    if not plan.keys:
        return "products and joins without an equality never run in the network"
    if left.joins + right.joins:
        return "at most one join runs in the network per fragment"
    if not left.sites or not right.sites:
        return "no gateway has one of its sides"
    if len(set(left.sites) | set(right.sites)) == 1:
        return "both sides are at one gateway"
    return ""


def meeting_sites(left: GatewayPiece, right: GatewayPiece, topology: Topology) -> tuple[str, ...]:
    """Return the gateways of both sides, without those that have been away for too long."""
    sites = tuple(sorted({*left.sites, *right.sites}))
    return tuple(site for site in sites if site not in topology.absent) or sites
