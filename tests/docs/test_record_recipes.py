"""The recipes of field protocols, each with the device's own payload at a real server."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import cbor2
import pytest
from pymodbus.simulator import SimDevice

from gateway.connectors.bacnet.bacnet_connector import BacnetConnector
from gateway.connectors.coap.coap_connector import CoapConnector
from gateway.connectors.connector import Connector
from gateway.connectors.modbus.modbus_connector import ModbusConnector
from gateway.connectors.opcua.opcua_connector import OpcuaConnector
from gateway.connectors.snmp.snmp_connector import SnmpConnector
from tests.docs.recipes import Recipe, as_csv, recipe
from tests.gateway.connectors.bacnet.devices import Thermostat, bacnet, local
from tests.gateway.connectors.coap.sensors import Changing, coap
from tests.gateway.connectors.modbus.meters import device, float32, modbus, registers
from tests.gateway.connectors.opcua.machines import OneUser, machine
from tests.gateway.connectors.serving import serving, until
from tests.gateway.connectors.snmp.agents import agent


async def rows_of(
    connector: Connector, told: Recipe, address: Mapping[str, object], count: int
) -> str:
    """Return the first rows that come with a recipe, as it shows them."""
    async with serving(connector, {**told.endpoint, **address}, told.statement) as served:
        await until(lambda: len(served.readings) >= count)
    assert served.problems == []
    return as_csv(reading.values for reading in served.readings[:count])


def test_a_modbus_meter() -> None:
    """Eastron SDM120: the input registers of its manual."""

    def meter(unit: int, volts: float, watts: float, kwh: float) -> SimDevice:
        values = {0: volts, 6: 6.5, 12: watts, 70: 50.0, 342: kwh}
        return device(
            unit, inputs=[registers(first, *float32(value)) for first, value in values.items()]
        )

    async def scenario() -> None:
        told = recipe("A Modbus meter")
        async with modbus(meter(1, 230.5, 1500.25, 1234.5), meter(2, 231.25, 0, 17.75)) as port:
            address = {"host": "127.0.0.1", "port": port}
            assert await rows_of(ModbusConnector(), told, address, 2) == told.rows

    asyncio.run(scenario())


def test_an_opc_ua_machine() -> None:
    async def scenario() -> None:
        told = recipe("An OPC UA machine")
        values = {"Temperature": 182.5, "Running": True, "Parts": 4711, "State": 1}
        nodes = {f"Machine.{name}": value for name, value in values.items()}
        async with machine(nodes, users=OneUser()) as press:
            address = {"url": press.url, "password": "secret"}
            assert await rows_of(OpcuaConnector(), told, address, 1) == told.rows

    asyncio.run(scenario())


def test_a_coap_sensor() -> None:
    """The SenML of RFC 8428, in CBOR."""
    pack = [
        {-2: "urn:dev:ow:10e2073a01080063:", 0: "temperature", 1: "Cel", 2: 23.5},
        {0: "humidity", 1: "%RH", 2: 67.0},
    ]

    async def scenario() -> None:
        told = recipe("A CoAP sensor")
        async with coap({"sensors": Changing(cbor2.dumps(pack), 112)}) as port:
            address = {"url": f"coap://127.0.0.1:{port}"}
            assert await rows_of(CoapConnector(), told, address, 1) == told.rows

    asyncio.run(scenario())


@pytest.mark.end_to_end
def test_an_snmp_pdu(tmp_path: Path) -> None:
    """The table of outlets in APC's PowerNet-MIB (rPDUOutletStatusTable)."""
    names, states, loads = {1: "switch", 2: "server"}, {1: 1, 2: 2}, {1: 4, 2: 0}
    entry = "1.3.6.1.4.1.318.1.1.12.3.5.1.1"
    records = [
        "1.3.6.1.4.1.318.1.1.12.1.1.0|4|rack 7",
        *(f"{entry}.2.{n}|4|{name}" for n, name in names.items()),
        *(f"{entry}.4.{n}|2|{state}" for n, state in states.items()),
        *(f"{entry}.7.{n}|66|{load}" for n, load in loads.items()),
    ]

    async def scenario(port: int) -> None:
        told = recipe("An SNMP PDU")
        address = {
            "host": "127.0.0.1",
            "port": port,
            "auth_key": "authpass1",
            "priv_key": "privpass1",
        }
        assert await rows_of(SnmpConnector(), told, address, 2) == told.rows

    with agent(tmp_path, *records) as port:
        asyncio.run(scenario(port))


def test_a_bacnet_thermostat() -> None:
    async def scenario() -> None:
        told = recipe("A BACnet thermostat")
        with bacnet(Thermostat()) as port:
            assert await rows_of(BacnetConnector(), told, local(port), 1) == told.rows

    asyncio.run(scenario())
