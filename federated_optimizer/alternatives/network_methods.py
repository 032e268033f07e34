"""The methods by which gateways join rows of other gateways, by name."""

from federated_optimizer.alternatives.gateway_pieces import TwoSided
from federated_optimizer.alternatives.heuristics import ALL, Heuristics
from federated_optimizer.alternatives.joins.broadcast_join import BROADCASTS, broadcast_join
from federated_optimizer.alternatives.joins.hashed_join import hashed_join
from federated_optimizer.alternatives.joins.meeting import Meeting
from federated_optimizer.alternatives.joins.paired_join import paired_join
from federated_optimizer.alternatives.method import Method, Refused
from federated_optimizer.alternatives.pieces import GatewayPiece
from federated_optimizer.network.topology import Topology
from federated_optimizer.statistics.planning_statistics import Statistics

MEETINGS = (*BROADCASTS, Method.HASHED, Method.PAIRED)
"""In the order of the memo."""


def meeting(  # noqa: PLR0913, PLR0917  (what a method may depend on)
    plan: TwoSided,
    left: GatewayPiece,
    right: GatewayPiece,
    method: Method,
    topology: Topology,
    statistics: Statistics,
    kept: Heuristics = ALL,
) -> Meeting | Refused:
    """Return how the sides of a join meet by a method, or why they do not."""
    match method:
        case Method.BROADCAST_LEFT | Method.BROADCAST_RIGHT:
            return broadcast_join(plan, left, right, method, kept)
        case Method.HASHED:
            return hashed_join(plan, left, right, topology, kept)
        case Method.PAIRED:
            return paired_join(plan, left, right, topology, statistics, kept)
        case _:
            return Refused(f"{method} is no meeting of gateways")
