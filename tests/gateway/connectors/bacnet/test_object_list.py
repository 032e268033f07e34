"""Objects of a BACnet device are offered with their names, units and values."""

import pytest

from broker.free_ports import free_port
from gateway.connectors.bacnet.bacnet_connector import BacnetConnector
from streamsql.data.types import DataType
from streamsql.mapping.offers import OfferedRecord, OfferedValue
from tests.gateway.connectors.bacnet.devices import Thermostat, bacnet, local
from tests.gateway.connectors.browsed import browsed
from tests.gateway.connectors.serving import in_loop

ROOM = OfferedRecord(
    "thermostat",
    (
        OfferedValue("room temperature", "analog-input:3", DataType.DOUBLE, "Cel", 21.5),
        OfferedValue("set point", "analog-value:1", DataType.DOUBLE, sample=22.0),
        OfferedValue("heating", "binary-value:7", DataType.BOOLEAN, sample=True),
    ),
)


@in_loop
async def test_a_device_is_asked_for_its_instance_and_its_objects() -> None:
    with bacnet(Thermostat()) as port:
        assert await browsed(BacnetConnector(), local(port)) == ([ROOM], [])
        assert await browsed(BacnetConnector(), local(port), device="1001") == ([ROOM], [])


@in_loop
async def test_a_device_that_is_away_is_said() -> None:
    with pytest.raises(ConnectionError, match="it does not answer in time"):
        await browsed(BacnetConnector(), local(free_port()))
