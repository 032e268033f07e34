"""Devices by the births of gateways."""

from typing import Any

import pytest

from federated_optimizer.coordinator.facts import announced_devices
from federated_optimizer.coordinator.facts.announced_devices import (
    AnnouncedDevices,
    at_homes_of,
    devices_of,
    gateways_of,
)
from federated_optimizer.coordinator.sites.federation_membership import Membership
from federated_optimizer.costs.relations.estimates import row_bytes
from federated_optimizer.statistics.fact import Fact, Origin, Quantity, Subject, SubjectKind
from federated_optimizer.statistics.fact_store import Facts
from streamsql.algebra.operators import Join, JoinKind, RemoteSource, Scan, SourceKind
from streamsql.data.types import Row
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_messages import Birth, SourceRows
from tests.streamsql.from_text import catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE Seat (mid TEXT, weight INTEGER, KEY (mid));"
    "CREATE SOURCE Meter (number INTEGER, watt INTEGER, KEY (number));"
    "CREATE SOURCE Pair (a TEXT, b TEXT, KEY (a, b));"
)
SEAT = CATALOG.sources[0]


def birth(gateway: str, source: str, *rows: Row) -> Birth:
    return Birth(gateway, 1, 0, 0, current=(SourceRows(source, rows),))


def test_keys_of_announced_rows_are_devices() -> None:
    births = [
        birth("g1", "Seat", ("a", 1), ("b", None), (None, 3), ("c",)),
        birth("g2", "seat", ("d", 1)),
        birth("g2", "Meter", (1, 2)),
        birth("g2", "Pair", ("x", "y")),
        birth("g2", "Gone", ("z", 1)),
    ]
    found = devices_of(CATALOG.sources, gateways_of(CATALOG.sources, births), Facts())
    assert found.gateways == {"seat": {"a": "g1", "b": "g1", "d": "g2"}}
    assert (found.bytes, found.homes) == ({}, {})


def test_a_device_sends_its_share_of_what_was_counted() -> None:
    facts = Facts()
    for quantity, value in ((Quantity.SENSORS, 4.0), (Quantity.CHANGES, 2.0)):
        subject = Subject(SubjectKind.SOURCE, "seat", "g1")
        facts.put(Fact(subject, quantity, value, value, value, 1, 1.0, Origin.COUNTED))
    gateways = gateways_of(CATALOG.sources, [birth("g1", "Seat", ("a", 1))])
    found = devices_of(CATALOG.sources, gateways, facts)
    assert found.bytes == {("seat", "g1"): 0.5 * row_bytes(SEAT.schema)}
    assert found.sent("seat", "g2") == 1.0


ROOM = Scan("Room", SourceKind.STREAM, SEAT.schema, key=(0,))
TO_ROOM = Scan("Ticket", SourceKind.STREAM, SEAT.schema, key=(1,))
"""Its rows name a room, and are about something else."""


def sent(name: str, plan: Scan, home: int, to: str) -> Fragment:
    homes = (("a", home),)
    return Fragment(name, Engine.GATEWAY, plan, ("g1",), to, ("g1", "g2"), (0,), homes=homes)


def joined(name: str, left: str, right: str) -> Fragment:
    sides = RemoteSource(left, SEAT.schema), RemoteSource(right, SEAT.schema)
    return Fragment(
        name, Engine.GATEWAY, Join(*sides, JoinKind.INNER, ((0, 0),)), ("g1", "g2"), "f0", ("base",)
    )


def test_homes_of_a_running_query_are_those_of_each_join() -> None:
    leaf, seat = RemoteSource("f2", SEAT.schema), SEAT.scan()
    assert isinstance(seat, Scan)
    recursion = Fragment(
        "f0", Engine.GATEWAY, leaf, ("g1", "g2"), partition=(0,), homes=(("b", 0),)
    )
    fragments = (
        recursion,
        *(joined("f1", "f2", "f3"), sent("f2", seat, 1, "f1"), sent("f3", ROOM, 1, "f1")),
        *(joined("f4", "f5", "f6"), sent("f5", ROOM, 0, "f4"), sent("f6", TO_ROOM, 0, "f4")),
    )
    bundle = FragmentBundle("q", 1, fragments, SEAT.schema)
    found = at_homes_of(devices_of(CATALOG.sources, {}, Facts()), bundle)
    sites = ("g1", "g2")
    assert found.homes == {
        (("room", "seat"), sites): (("a", 1),),
        (("", "room"), sites): (("a", 0),),
    }


class Coordinator:
    """The facts of a coordinator, with the births that it has heard."""

    def __init__(self) -> None:
        self.catalog, self.membership, self.facts = CATALOG, Membership(), Facts()


def test_births_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    known, looked = Coordinator(), []
    real = gateways_of

    def counting(*args: Any) -> Any:
        looked.append(args)
        return real(*args)

    monkeypatch.setattr(announced_devices, "gateways_of", counting)
    devices = AnnouncedDevices(known)
    assert devices.devices(None).gateways == {}
    known.membership.hear_birth(birth("g1", "Seat", ("a", 1)))
    for _ in range(3):
        assert devices.devices(None).gateways == {"seat": {"a": "g1"}}
    assert len(looked) == 2


def test_devices_beyond_a_bound_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announced_devices, "MAX_DEVICES", 3)
    births = [birth(f"g{n}", "Seat", (f"a{n}", 1), (f"b{n}", 1)) for n in range(3)]
    found = devices_of(CATALOG.sources, gateways_of(CATALOG.sources, births), Facts())
    assert found.gateways == {"seat": {"a0": "g0", "b0": "g0", "a1": "g1"}}
