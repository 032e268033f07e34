"""Devices by the births of gateways."""

import pytest

from federated_optimizer.coordinator.facts import announced_devices
from federated_optimizer.coordinator.facts.announced_devices import devices_of
from federated_optimizer.costs.estimates import row_bytes
from federated_optimizer.statistics.fact import Fact, Origin, Quantity, Subject, SubjectKind
from federated_optimizer.statistics.fact_store import Facts
from streamsql.algebra.operators import RemoteSource
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
    found = devices_of(CATALOG.sources, births, Facts())
    assert found.gateways == {"seat": {"a": "g1", "b": "g1", "d": "g2"}}
    assert (found.bytes, found.homes) == ({}, {})


def test_a_device_sends_its_share_of_what_was_counted() -> None:
    facts = Facts()
    for quantity, value in ((Quantity.SENSORS, 4.0), (Quantity.CHANGES, 2.0)):
        subject = Subject(SubjectKind.SOURCE, "seat", "g1")
        facts.put(Fact(subject, quantity, value, value, value, 1, 1.0, Origin.COUNTED))
    found = devices_of(CATALOG.sources, [birth("g1", "Seat", ("a", 1))], facts)
    assert found.bytes == {("seat", "g1"): 0.5 * row_bytes(SEAT.schema)}
    assert found.sent("seat", "g2") == 1.0


def test_homes_of_a_running_query_are_those_of_what_it_sends() -> None:
    leaf = RemoteSource("f2", SEAT.schema)
    homes = (("a", 1),)
    sent = Fragment("f1", Engine.GATEWAY, leaf, ("g1",), "f0", ("g1", "g2"), (0,), homes=homes)
    recursion = Fragment("f0", Engine.GATEWAY, leaf, ("g1", "g2"), homes=(("b", 0),))
    bundle = FragmentBundle("q", 1, (recursion, sent), SEAT.schema)
    found = devices_of(CATALOG.sources, [], Facts(), bundle)
    assert found.homes == {("g1", "g2"): homes}


def test_devices_beyond_a_bound_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announced_devices, "MAX_DEVICES", 3)
    births = [birth(f"g{n}", "Seat", (f"a{n}", 1), (f"b{n}", 1)) for n in range(3)]
    found = announced_devices.devices_of(CATALOG.sources, births, Facts())
    assert found.gateways == {"seat": {"a0": "g0", "b0": "g0", "a1": "g1"}}
