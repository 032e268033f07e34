"""The connector snmp beside pysnmp: a table of 50 rows and two columns at snmpsim."""

import tempfile
from pathlib import Path

from pysnmp.hlapi.v3arch import asyncio as snmp

from benchmarks._connectors.pair import Cost, Pair, Stopwatch, measure
from gateway.connectors.snmp.snmp_connector import SnmpConnector
from tests.gateway.connectors.snmp.agents import agent

ROWS = 50
TABLE = (1, 3, 6, 1, 2, 1, 2, 2, 1)
_NAME, _OCTETS = (*TABLE, 2), (*TABLE, 10)
RECORDS = (
    *(f"1.3.6.1.2.1.2.2.1.2.{n}|4|eth{n}" for n in range(1, ROWS + 1)),
    *(f"1.3.6.1.2.1.2.2.1.10.{n}|65|{n}" for n in range(1, ROWS + 1)),
    "1.3.6.1.2.1.3.1.0|2|1",
)


async def connector(seconds: float) -> Cost:
    """Read the table every 0.1 s, which is more often than it can be read."""
    text = (
        "CREATE SOURCE ports (port INTEGER FROM '@index', "
        "name TEXT FROM '1.3.6.1.2.1.2.2.1.2', octets INTEGER FROM '1.3.6.1.2.1.2.2.1.10', "
        "KEY (port)) WITH (connector = 'snmp', interval = '0.1 s')"
    )
    with tempfile.TemporaryDirectory() as folder, agent(Path(folder), *RECORDS) as port:
        endpoint = {"host": "127.0.0.1", "port": port, "community": "pdu"}
        return await measure(SnmpConnector(), endpoint, text, seconds)


async def bare(seconds: float) -> Cost:
    """Read the two columns of the table again and again; a row is a reading."""
    readings = 0
    with tempfile.TemporaryDirectory() as folder, agent(Path(folder), *RECORDS) as port:
        engine = snmp.SnmpEngine()
        target = await snmp.UdpTransportTarget.create(("127.0.0.1", port))
        watch = Stopwatch()
        while (cost := watch.cost(readings)).seconds < seconds:
            table: dict[int, list[object]] = {}
            for column in (_NAME, _OCTETS):
                last = column
                while last[: len(column)] == column:
                    bound = snmp.ObjectType(snmp.ObjectIdentity(last))
                    *_, answer = await snmp.bulk_cmd(
                        engine,
                        snmp.CommunityData("pdu", mpModel=1),  # noqa: S508
                        target,
                        snmp.ContextData(),
                        0,
                        25,
                        bound,
                        lookupMib=False,
                    )
                    last = tuple(answer[-1][0])
                    for name, value in answer:
                        if tuple(name)[: len(column)] == column:
                            plain = str(value) if column is _NAME else int(value)
                            table.setdefault(tuple(name)[-1], []).append(plain)
            watch.keep((index, *values) for index, values in table.items())
            readings += ROWS
        engine.close_dispatcher()
    return cost


PAIR = Pair(connector, bare)
