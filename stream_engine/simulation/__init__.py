"""Many sites in one process, under seeded adversarial networks."""

from stream_engine.simulation.network import Faults, Network, Traffic, UnsettledError

__all__ = ["Faults", "Network", "Traffic", "UnsettledError"]
