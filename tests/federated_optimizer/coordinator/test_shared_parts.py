"""Shared parts: opened on one catalog, disconnected, with a newer epoch at every opening."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.planning_processes import OnTheLoop
from federated_optimizer.coordinator.shared_parts import SharedParts, open_shared_parts
from host.mqtt import Will
from host.mqtt.in_memory import InMemoryBroker
from streamsql.errors import DeploymentError
from streamsql.wire.topics import Topics


def opened(database: Path) -> tuple[SharedParts, Will, InMemoryBroker]:
    broker, wills = InMemoryBroker(), list[Will]()

    def client(will: Will) -> Any:
        wills.append(will)
        return broker.client("coordinator", will=will)

    settings = CoordinatorSettings(site="hall", database=f"sqlite:///{database}")
    shared, _ = asyncio.run(open_shared_parts(settings, client, lambda: 7, OnTheLoop()))
    return shared, wills[0], broker


def test_every_opening_of_a_catalog_has_a_newer_epoch(tmp_path: Path) -> None:
    first, _, broker = opened(tmp_path / "catalog.db")
    second, will, _ = opened(tmp_path / "catalog.db")
    assert second.presence.epoch > first.presence.epoch
    assert will.topic == Topics("hall").host_state("coordinator")
    assert not broker.retained  # nothing is said before the client connects


def test_a_catalog_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("these are notes, not a database " * 40)
    with pytest.raises(DeploymentError):
        opened(tmp_path / "catalog.db")
