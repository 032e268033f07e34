"""The IO half of the optimizer: catalog, deployment, results, membership of one federation."""

from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.service import ClientFactory, Coordinator

__all__ = ["ClientFactory", "Coordinator", "CoordinatorSettings"]
