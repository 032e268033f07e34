"""Variables of an OPC UA server are offered by the object that has them."""

import pytest
from asyncua import ua
from asyncua.server.server import Server

from broker.free_ports import free_port
from gateway.connectors.opcua.opcua_connector import OpcuaConnector
from streamsql.data.types import DataType
from streamsql.errors import DeploymentError
from streamsql.mapping.offers import OfferedRecord, OfferedValue
from tests.gateway.connectors.browsed import browsed
from tests.gateway.connectors.serving import in_loop

ORGANIZES = 35
"""A reference that says what belongs to what."""


async def plant(server: Server) -> str:
    """Give a server a line with a press in it; return its address."""
    await server.init()
    url = f"opc.tcp://127.0.0.1:{free_port()}/plant"
    server.set_endpoint(url)
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    await server.register_namespace("urn:plant")
    line = await server.nodes.objects.add_object("ns=2;s=Line", "2:Line")
    press = await line.add_object("ns=2;s=Line.Press", "2:Press")
    heat = await press.add_variable("ns=2;s=Line.Press.Heat", "2:Heat", 180.5)
    units = ua.EUInformation(DisplayName=ua.LocalizedText("°C"))
    await heat.add_property("ns=2;s=Line.Press.Heat.Unit", "0:EngineeringUnits", units)
    await press.add_variable("ns=2;s=Line.Press.Jobs", "2:Jobs", 12)
    await press.add_variable("ns=2;s=Line.Press.Curve", "2:Curve", [1.0, 2.0])
    await line.add_variable("ns=2;s=Line.Running", "2:Running", True)
    # A loop in the tree, as real servers have them.
    await press.add_reference(line, ORGANIZES)
    return url


RUNNING = OfferedRecord(
    "Line", (OfferedValue("Running", "ns=2;s=Line.Running", DataType.BOOLEAN, sample=True),)
)
PRESS = OfferedRecord(
    "Press",
    (
        OfferedValue("Heat", "ns=2;s=Line.Press.Heat", DataType.DOUBLE, "°C", 180.5),
        OfferedValue("Jobs", "ns=2;s=Line.Press.Jobs", DataType.INTEGER, sample=12),
    ),
)


@in_loop
async def test_variables_come_with_type_unit_and_value() -> None:
    server = Server()
    endpoint = {"url": await plant(server), "timeout": 2}
    async with server:
        records, notes = await browsed(OpcuaConnector(), endpoint)
        assert [record for record in records if record.name != "Objects"] == [RUNNING, PRESS]
        assert notes == []
        assert (await browsed(OpcuaConnector(), endpoint, below="ns=2;s=Line.Press"))[0][0] == PRESS


@in_loop
async def test_a_place_that_is_not_there_is_said() -> None:
    server = Server()
    endpoint = {"url": await plant(server), "timeout": 2}
    async with server:
        with pytest.raises(ConnectionError, match="node"):
            await browsed(OpcuaConnector(), endpoint, below="ns=2;s=Nowhere")
        with pytest.raises(DeploymentError, match="below must be a node id"):
            await browsed(OpcuaConnector(), endpoint, below="Line")


@in_loop
async def test_a_server_that_is_away_is_said() -> None:
    endpoint = {"url": f"opc.tcp://127.0.0.1:{free_port()}/plant", "timeout": 1}
    with pytest.raises(ConnectionError, match="nothing listens there"):
        await browsed(OpcuaConnector(), endpoint)
