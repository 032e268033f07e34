"""Objects and tables of an SNMP agent are offered."""

from pathlib import Path

import pytest

from gateway.connectors.snmp.snmp_connector import SnmpConnector
from streamsql.data.types import DataType
from streamsql.errors import DeploymentError
from streamsql.mapping.offers import OfferedRecord, OfferedValue
from tests.gateway.connectors.browsed import browsed
from tests.gateway.connectors.serving import in_loop
from tests.gateway.connectors.snmp.agents import agent

PDU = "1.3.6.1.4.1.318.1.1.26"
RECORDS = (
    "1.3.6.1.2.1.1.3.0|67|4200",
    f"{PDU}.9.1.0|2|12",
    *(f"{PDU}.9.4.1.1.{row}|2|{row}" for row in (1, 2, 3)),
    *(f"{PDU}.9.4.1.7.{row}|2|{row * 10}" for row in (1, 2, 3)),
)


@in_loop
async def test_objects_and_tables_are_told_apart(tmp_path: Path) -> None:
    with agent(tmp_path, *RECORDS) as port:
        endpoint = {"host": "127.0.0.1", "port": port, "community": "pdu"}
        system = OfferedRecord(
            "agent",
            (
                OfferedValue("sys_descr", "1.3.6.1.2.1.1.1.0", DataType.TEXT, sample="agent"),
                OfferedValue("sys_up_time", "1.3.6.1.2.1.1.3.0", DataType.INTEGER, sample=4200),
            ),
        )
        assert await browsed(SnmpConnector(), endpoint) == ([system], [])
        records, _ = await browsed(SnmpConnector(), endpoint, below=PDU)
        assert records == [
            OfferedRecord(
                "agent",
                (OfferedValue("oid_26_9_1", f"{PDU}.9.1.0", DataType.INTEGER, sample=12),),
            ),
            OfferedRecord(
                "oid_9_4_1",
                (
                    OfferedValue("row", "@index", DataType.TEXT, sample="1"),
                    OfferedValue("oid_4_1_1", f"{PDU}.9.4.1.1", DataType.INTEGER, sample=1),
                    OfferedValue("oid_4_1_7", f"{PDU}.9.4.1.7", DataType.INTEGER, sample=10),
                ),
                key=("row",),
            ),
        ]
        with pytest.raises(DeploymentError, match="below must be an OID"):
            await browsed(SnmpConnector(), endpoint, below="enterprises")
