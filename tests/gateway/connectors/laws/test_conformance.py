"""Every connector passes the conformance kit with a real peer.

The connectors mqtt and http_push are in `testing/test_checks.py`.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.connectors.coap.coap_connector import CoapConnector
from gateway.connectors.file.file_connector import FileConnector
from gateway.connectors.http.http_connector import HttpConnector
from gateway.connectors.modbus.modbus_connector import ModbusConnector
from gateway.connectors.registry import MakeConnector
from gateway.connectors.snmp.snmp_connector import SnmpConnector
from gateway.connectors.sql.sql_connector import SqlConnector
from gateway.connectors.testing import checks
from gateway.connectors.testing.checks import Check, name_of, run_check
from gateway.connectors.testing.peer import Peer
from tests.gateway.connectors.coap.sensor_peer import SensorPeer
from tests.gateway.connectors.file.folder_peer import FolderPeer
from tests.gateway.connectors.http.page_peer import PagePeer
from tests.gateway.connectors.modbus.meter_peer import MeterPeer
from tests.gateway.connectors.snmp.agent_peer import AgentPeer
from tests.gateway.connectors.sql.table_peer import TablePeer

Pair = tuple[MakeConnector, Callable[[Path], Peer]]

PAIRS: dict[str, Pair] = {
    "http": (HttpConnector, lambda _folder: PagePeer()),
    "modbus": (ModbusConnector, lambda _folder: MeterPeer()),
    "file": (FileConnector, FolderPeer),
    "sql": (SqlConnector, TablePeer),
    "coap": (CoapConnector, lambda _folder: SensorPeer()),
    "snmp": (SnmpConnector, lambda _folder: AgentPeer()),
}
FLOODED = {"file", "sql"}
"""What is read in pages; whoever is asked at intervals gives one value a time."""


def applies(kind: str, check: Check) -> bool:
    """Whether a check is one for these connectors: none of their protocols acknowledges."""
    if check is checks.is_bounded:
        return kind in FLOODED
    return check is not checks.acknowledges_what_is_kept


@pytest.mark.end_to_end
@pytest.mark.parametrize("check", checks.CHECKS, ids=name_of)
@pytest.mark.parametrize("kind", PAIRS)
def test_it_conforms(kind: str, check: Check, tmp_path: Path) -> None:
    make, peer = PAIRS[kind]
    assert asyncio.run(run_check(check, make, peer(tmp_path))) == applies(kind, check)
