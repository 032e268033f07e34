"""The federated optimizer: from a bound query to fragments, each where its data is."""

from federated_optimizer.placement import Topology, colocation_of, direct_scans, explain_bundle
from federated_optimizer.planning import normalize, plan

__all__ = [
    "Topology",
    "colocation_of",
    "direct_scans",
    "explain_bundle",
    "normalize",
    "plan",
]
