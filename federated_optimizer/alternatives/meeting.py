"""Meetings of the two sides of a join at gateways, when their rows come from different ones."""

from dataclasses import dataclass

from federated_optimizer.alternatives.gateway_pieces import TwoSided
from federated_optimizer.alternatives.pieces import Colocation, GatewayPiece
from streamsql.algebra.operators import Join


@dataclass(frozen=True, slots=True)
class Move:
    """Rows of one side on their way to the gateways where the join is: each row to all of them."""


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
    return ""
