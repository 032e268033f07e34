"""Every connector of ours passes the conformance kit with a real peer."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.broker_launch import Preference, find_mosquitto
from gateway.connectors.registry import BUILT_IN, ConnectorRegistry
from gateway.connectors.testing import checks
from gateway.connectors.testing.beside_checks import leaves_a_running_one_alone
from gateway.connectors.testing.checks import Check, name_of, run_check
from gateway.connectors.testing.peer import Peer
from gateway.connectors.testing.source_change_checks import acknowledges_nothing_that_is_refused
from tests.gateway.connectors.bacnet.thermostat_peer import ThermostatPeer
from tests.gateway.connectors.calendar.calendar_peer import CalendarPeer
from tests.gateway.connectors.coap.sensor_peer import SensorPeer
from tests.gateway.connectors.file.folder_peer import FolderPeer
from tests.gateway.connectors.http.page_peer import PagePeer
from tests.gateway.connectors.http_push.sender_peer import SenderPeer
from tests.gateway.connectors.modbus.meter_peer import MeterPeer
from tests.gateway.connectors.mqtt.broker_peer import BrokerPeer
from tests.gateway.connectors.opcua.machine_peer import MachinePeer
from tests.gateway.connectors.snmp.agent_peer import AgentPeer
from tests.gateway.connectors.sql.table_peer import TablePeer

PEERS: dict[str, Callable[[Path], Peer]] = {
    "http": lambda _folder: PagePeer(),
    "http_push": lambda _folder: SenderPeer(),
    "modbus": lambda _folder: MeterPeer(),
    "file": FolderPeer,
    "sql": TablePeer,
    "coap": lambda _folder: SensorPeer(),
    "snmp": lambda _folder: AgentPeer(),
    "bacnet": lambda _folder: ThermostatPeer(),
    "opcua": lambda _folder: MachinePeer(),
    "calendar": CalendarPeer,
}
"""All but those of mqtt, which is tried with two brokers."""

WITHOUT_PEERS = ("motes", "replay", "soft_sensors")
"""Nobody can tell them a number: see `test_without_peers.py`."""
ACKNOWLEDGING = {"mqtt", "http_push"}
FLOODED = {"mqtt", "http_push", "file", "sql"}
"""What sends on its own or is read in pages; whoever is asked at intervals gives one value."""
HUGE = {"mqtt", "http_push", "http", "file", "coap"}
"""What sends payloads; the others hand over single values."""
CALLED = {"http_push"}
"""The connector is the server."""


def applies(kind: str, check: Check) -> bool:
    """Whether a check is one for this connector."""
    groups = {
        checks.acknowledges_what_is_kept: ACKNOWLEDGING,
        acknowledges_nothing_that_is_refused: ACKNOWLEDGING,
        checks.is_bounded: FLOODED,
        checks.refuses_huge_payloads: HUGE,
    }
    if check in groups:
        return kind in groups[check]
    needs_us_to_call = {
        checks.stops_while_its_peer_is_away,
        checks.reconnects_with_pauses,
        leaves_a_running_one_alone,
    }
    return kind not in CALLED or check not in needs_us_to_call


def test_every_connector_of_ours_is_tried() -> None:
    assert {*PEERS, *WITHOUT_PEERS, "mqtt"} == BUILT_IN.keys()


@pytest.mark.end_to_end
@pytest.mark.parametrize("check", checks.CHECKS, ids=name_of)
@pytest.mark.parametrize("kind", PEERS)
def test_it_conforms(kind: str, check: Check, tmp_path: Path) -> None:
    make, peer = ConnectorRegistry().factory(kind), PEERS[kind](tmp_path)
    assert asyncio.run(run_check(check, make, peer)) == applies(kind, check)


@pytest.mark.broker
@pytest.mark.parametrize("broker", ["embedded", "mosquitto"])
@pytest.mark.parametrize("check", checks.CHECKS, ids=name_of)
def test_mqtt_conforms(check: Check, broker: Preference, tmp_path: Path) -> None:
    if broker == "mosquitto" and find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    make, peer = ConnectorRegistry().factory("mqtt"), BrokerPeer(broker, tmp_path)
    assert asyncio.run(run_check(check, make, peer)) == applies("mqtt", check)


@pytest.mark.end_to_end
def test_a_flood_is_put_off_by_http_push() -> None:
    peer = SenderPeer()
    make = ConnectorRegistry().factory("http_push")
    assert asyncio.run(run_check(checks.is_bounded, make, peer))
    assert peer.put_off > 0
