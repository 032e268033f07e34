"""A source is served by the gateways that it names, or that have its endpoint."""

import pytest

from streamsql.mapping.assignment import Assigned, Unserved, assignment
from streamsql.mapping.source_mapping import SourceMapping

ENDPOINTS = {"home": "mqtt", "meter": "modbus", "gate": "modbus"}


def source(
    connector: str = "mqtt", endpoint: str = "", gateways: tuple[str, ...] = ()
) -> SourceMapping:
    return SourceMapping(connector, endpoint=endpoint, gateways=gateways)


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        (source(endpoint="home"), Assigned("home")),
        (source(endpoint="home", gateways=("gw-1",)), Assigned("home")),
        (source(endpoint="home", gateways=("gw-2",)), None),
        (source(endpoint="cellar"), None),
        (
            source(endpoint="cellar", gateways=("gw-1",)),
            Unserved("endpoint 'cellar' is unknown here; there are: gate, home, meter"),
        ),
        (
            source("modbus", endpoint="home"),
            Unserved("endpoint home is of connector mqtt here, not modbus"),
        ),
        (source(), Assigned("home")),
        (
            source("modbus"),
            Unserved("it names no endpoint, and 2 here are of connector modbus: gate, meter"),
        ),
        (source("snmp"), None),
        (source("snmp", gateways=("gw-1",)), Unserved("no endpoint here is of connector snmp")),
    ],
)
def test_how_a_gateway_stands_to_a_source(
    mapping: SourceMapping, expected: Assigned | Unserved | None
) -> None:
    assert assignment(mapping, "gw-1", ENDPOINTS) == expected


def test_a_gateway_without_endpoints_says_so() -> None:
    found = assignment(source(endpoint="home", gateways=("gw-1",)), "gw-1", {})
    assert found == Unserved("endpoint 'home' is unknown here; there are: none")
