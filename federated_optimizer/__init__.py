"""The federated optimizer: from a bound query to fragments, each where its data is."""

from federated_optimizer.cutting.bundle_explain import explain_bundle
from federated_optimizer.cutting.placing import direct_scans
from federated_optimizer.network.topology import Topology, colocation_of
from federated_optimizer.planning import normalize, plan

__all__ = [
    "Topology",
    "colocation_of",
    "direct_scans",
    "explain_bundle",
    "normalize",
    "plan",
]
