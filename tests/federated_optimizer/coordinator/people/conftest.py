"""An office for each test."""

from pathlib import Path

import pytest

from tests.federated_optimizer.coordinator.people.office import Office


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """Return people in a catalog of their own."""
    return Office(f"sqlite:///{tmp_path / 'catalog.db'}")
