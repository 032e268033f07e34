"""Statistics of plans: put together when something of them changes, and only then."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.facts.known_statistics import KnownStatistics
from federated_optimizer.coordinator.planning_processes import OnTheLoop
from federated_optimizer.coordinator.shared_parts import SharedParts, open_shared_parts
from federated_optimizer.statistics.fact import Fact, Origin, Quantity, Subject, SubjectKind
from federated_optimizer.statistics.planning_statistics import Statistics
from host.mqtt.in_memory import InMemoryBroker
from streamsql.data.types import MICROSECONDS
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import LinkMessage
from streamsql.wire.site_messages import Birth, SiteRole, SiteState, SourceRows
from tests.streamsql.from_text import catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE seat (mid TEXT, weight INTEGER, KEY (mid));"
    "CREATE SOURCE room (rid TEXT, floor INTEGER, KEY (rid));"
    "CREATE TABLE big (k INTEGER) WITH (source = 'sql', url = 'sqlite:///x.db', table = 'big');"
)
SEAT, ROOM = (source for source in CATALOG.sources if source.name in {"seat", "room"})
(BIG,) = (table for table in CATALOG.tables if table.name == "big")


@dataclass(slots=True)
class World:
    """What a coordinator knows, and the microsecond that it is."""

    shared: SharedParts
    known: KnownStatistics
    now: int = MICROSECONDS

    def measure(self, quantity: Quantity, value: float, gateway: str = "g1") -> None:
        subject = Subject(SubjectKind.SOURCE, "seat", gateway)
        self.shared.facts.put(
            Fact(subject, quantity, value, value, value, self.now, 1.0, Origin.COUNTED)
        )

    def link(self, cost: float) -> None:
        self.shared.links.put("g1", ("door", "a", "b"), LinkMessage("a", "b", cost))

    def unlink(self) -> None:
        self.shared.links.remove("g1", ("door", "a", "b"))

    def announce(self, gateway: str) -> None:
        rows = (SourceRows("seat", (("a", 1),)),)
        self.shared.membership.hear_birth(Birth(gateway, 1, 0, self.now, current=rows))

    def tell_columns(self, *columns: str) -> None:
        told = {"compared": {"big": columns}, "counters": {"local_rows": 7 * len(columns)}}
        state = SiteState(online=True, epoch=1, ts=self.now, role=SiteRole.STATIC, **told)  # type: ignore[arg-type]
        self.shared.membership.hear_state("static", state, now=self.now)

    def define(self) -> None:
        self.shared.catalog.define(ROOM)

    def wait(self) -> None:
        self.now += 3_600 * MICROSECONDS


@pytest.fixture
def world(tmp_path: Path) -> World:
    settings = CoordinatorSettings(database=f"sqlite:///{tmp_path}/catalog.db")
    client: Any = lambda will: InMemoryBroker().client("coordinator", will=will)  # noqa: E731
    found: list[World] = []
    clock = lambda: found[0].now if found else 1  # noqa: E731
    shared, _ = asyncio.run(open_shared_parts(settings, client, clock, OnTheLoop()))
    for definition in (SEAT, BIG):
        shared.catalog.define(definition)
    found.append(World(shared, KnownStatistics(shared)))
    return found[0]


def said(statistics: Statistics) -> tuple[object, ...]:
    """Return what can be compared of statistics."""
    return (
        *(statistics.sources, statistics.recursions, statistics.homes, statistics.devices),
        *(statistics.local_rows, statistics.wires, statistics.speeds),
    )


CHANGES: tuple[Callable[[World], None], ...] = (
    lambda world: world.measure(Quantity.SENSORS, 12.0),
    lambda world: world.measure(Quantity.CHANGES, 3.0),
    lambda world: world.measure(Quantity.CHANGES, 5.0, "g2"),
    lambda world: world.link(2.0),
    lambda world: world.unlink(),
    lambda world: world.announce("g1"),
    lambda world: world.announce("g2"),
    lambda world: world.tell_columns("k"),
    lambda world: world.define(),
    lambda world: world.wait(),
)


def test_every_change_is_seen_at_once(world: World) -> None:
    seen = [said(world.known.all())]
    for change in CHANGES:
        change(world)
        found = world.known.all()
        assert said(found) == said(KnownStatistics(world.shared).all())
        seen.append(said(found))
    differ = [a != b for a, b in pairwise(seen)]
    # A source of which nothing is known says nothing, and an hour changes only what fades.
    assert differ[:-2] == [True] * len(differ[:-2])


def test_nothing_is_put_together_again_while_nothing_changes(world: World) -> None:
    world.measure(Quantity.SENSORS, 12.0)
    world.announce("g1")
    found = world.known.all()
    made = world.known.made
    world.now += MICROSECONDS // 2
    assert all(world.known.all() is found for _ in range(100))
    assert world.known.made == made
    world.now += MICROSECONDS
    assert world.known.all() is not found
    assert world.known.made == made + 1


def test_what_a_query_runs_is_its_own(world: World) -> None:
    world.announce("g1")
    fragment = Fragment("f0", Engine.GATEWAY, SEAT.scan(), ("g1",))
    found = world.known.of(FragmentBundle("q1", 1, (fragment,), SEAT.schema), is_outgrown=True)
    new = world.known.of(None, is_outgrown=False)
    assert (found.outgrown, new.outgrown) == (True, False)
    assert found.devices == new.devices
    assert new.devices.gateways == {"seat": {"a": "g1"}}
    assert world.known.made == 1
