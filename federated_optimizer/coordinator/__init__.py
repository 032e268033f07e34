"""The IO half of the optimizer: catalog, deployment, results, membership of one federation."""

from federated_optimizer.coordinator.service import ClientFactory, Coordinator
from federated_optimizer.coordinator.settings import CoordinatorSettings

__all__ = ["ClientFactory", "Coordinator", "CoordinatorSettings"]
