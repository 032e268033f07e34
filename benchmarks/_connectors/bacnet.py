"""The connector bacnet beside bacpypes3: a thermostat whose four properties are read in turns."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from bacpypes3.app import Application
from bacpypes3.local.device import DeviceObject
from bacpypes3.local.networkport import NetworkPortObject
from bacpypes3.pdu import Address

from benchmarks._connectors.pair import Cost, Pair, Stopwatch, measure
from broker.free_ports import free_port
from gateway.connectors.bacnet.bacnet_connector import BacnetConnector
from gateway.connectors.bacnet.device import close_application, plain_value

ROOT = Path(__file__).resolve().parents[2]
SOURCES = 20
PEER = """
import asyncio, sys
from tests.gateway.connectors.bacnet.devices import Thermostat, bacnet
async def main():
    with bacnet(Thermostat(), int(sys.argv[1])):
        print("ready", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


@contextlib.asynccontextmanager
async def _peer() -> AsyncIterator[str]:
    """Run a device in a process of its own; yield its address."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PEER, str(port), stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None  # noqa: S101
    try:
        await process.stdout.readline()
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


async def connector(seconds: float) -> Cost:
    """Read the device twenty times every 0.1 s, which is more often than it can be read."""
    text = ";".join(
        f"CREATE SOURCE room{number} (celsius DOUBLE FROM 'analog-input:3', "
        "unit TEXT FROM 'analog-input:3 units', target DOUBLE FROM 'analog-value:1', "
        "heating BOOLEAN FROM 'binary-value:7') "
        "WITH (connector = 'bacnet', interval = '0.1 s', cov = 'no')"
        for number in range(SOURCES)
    )
    async with _peer() as address:
        endpoint = {"address": address, "local": f"127.0.0.1/24:{free_port()}"}
        return await measure(BacnetConnector(), endpoint, text, seconds)


async def bare(seconds: float) -> Cost:
    """Read the four properties again and again; all four are a reading."""
    readings = 0
    async with _peer() as address:
        device = DeviceObject(
            objectIdentifier=("device", 4_000), objectName="bare", vendorIdentifier=999
        )
        network = NetworkPortObject(
            f"127.0.0.1/24:{free_port()}", objectIdentifier=("network-port", 1), objectName="port"
        )
        app = Application.from_object_list([device, network])
        there = Address(address)
        watch = Stopwatch()
        while (cost := watch.cost(readings)).seconds < seconds:
            values = []
            for of, name in (
                ("analog-input,3", "present-value"),
                ("analog-input,3", "units"),
                ("analog-value,1", "present-value"),
                ("binary-value,7", "present-value"),
            ):
                values.append(plain_value(await app.read_property(there, of, name)))
            watch.keep([tuple(values)])
            readings += 1
        close_application(app)
    return cost


PAIR = Pair(connector, bare)
