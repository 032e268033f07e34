"""Sites that queries are placed on: put together when something of them changes, and only then."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.planning_processes import OnTheLoop
from federated_optimizer.coordinator.queries.planning.known_sites import KnownSites
from federated_optimizer.coordinator.shared_parts import SharedParts, open_shared_parts
from federated_optimizer.network.topology import Topology
from host.mqtt.in_memory import InMemoryBroker
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.site_messages import Birth, SiteRole, SiteState

SEAT = SourceDefinition("seat", SourceKind.STREAM, Schema.of(("rid", DataType.TEXT)))
PLACED = replace(SEAT, options=(("colocate", "rid"),))


@dataclass(slots=True)
class World:
    """Sites, and the microsecond that it is."""

    shared: SharedParts
    sites: KnownSites
    now: int = 1

    def hear(self, site: str, *, online: bool, role: SiteRole = SiteRole.GATEWAY) -> None:
        state = SiteState(online=online, epoch=1, ts=0, role=role)
        self.shared.membership.hear_state(site, state, now=self.now)

    def hear_birth(self, site: str, *sources: str) -> None:
        self.shared.membership.hear_birth(Birth(site, 1, 0, self.now, sources=sources))


@pytest.fixture
def world(tmp_path: Path) -> World:
    settings = CoordinatorSettings(database=f"sqlite:///{tmp_path}/catalog.db", patience=1.0)
    client: Any = lambda will: InMemoryBroker().client("coordinator", will=will)  # noqa: E731
    found: list[World] = []
    clock = lambda: found[0].now if found else 1  # noqa: E731
    shared, _ = asyncio.run(open_shared_parts(settings, client, clock, OnTheLoop()))
    found.append(World(shared, KnownSites(shared)))
    return found[0]


def changed(world: World, before: Topology) -> Topology:
    """Return the topology of now, which has to be another one than before."""
    now = world.sites.topology()
    assert now != before
    return now


def test_what_stays_the_same_is_put_together_once(world: World) -> None:
    world.hear("gw-1", online=True)
    first = world.sites.topology()
    for _ in range(5):
        world.hear("gw-1", online=True)
        assert world.sites.topology() is first
    assert world.sites.made == 1


def test_each_change_of_sites_and_sources_is_seen(world: World) -> None:
    seen = world.sites.topology()
    world.hear("gw-1", online=True)
    seen = changed(world, seen)
    assert seen.gateways == {"gw-1": frozenset()}
    world.hear_birth("gw-1", "Seat")
    seen = changed(world, seen)
    assert seen.gateways == {"gw-1": frozenset({"seat"})}
    world.shared.catalog.define(SEAT)
    world.sites.topology()
    world.shared.catalog.define(PLACED, replace=True)
    seen = changed(world, seen)
    assert seen.colocation == {("seat", "rid"): "rid"}
    world.hear("hall", online=True, role=SiteRole.BASE)
    seen = changed(world, seen)
    assert "hall" in seen.bases
    world.hear("gw-1", online=False)
    world.now += 1_000_000
    seen = changed(world, seen)
    assert seen.absent == {"gw-1"}
    world.hear("gw-1", online=True, role=SiteRole.BASE)
    seen = changed(world, seen)
    assert "gw-1" in seen.bases
    world.shared.membership.forget("gw-1")
    world.sites.forget("gw-1")
    assert "gw-1" not in changed(world, seen).gateways


def test_a_gateway_that_is_away_keeps_its_sources(world: World) -> None:
    world.hear_birth("gw-1", "seat")
    world.sites.topology()
    world.shared.membership.hear_birth(Birth("gw-1", 2, 0, 0, sources=("desk",)))
    assert world.sites.topology().gateways == {"gw-1": frozenset({"seat", "desk"})}
