"""The connector opcua beside asyncua: 50 nodes of a server that change every 50 ms."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import replace

from asyncua.client.client import Client
from asyncua.common.node import Node

from benchmarks._connectors.pair import SAMPLE, Cost, Pair, Stopwatch, Values, measure
from broker.free_ports import free_port
from gateway.connectors.opcua.opcua_connector import OpcuaConnector

NODES = 50
"""Of a row, which is a reading."""
INTERVAL_MS = 100
PEER = """
import asyncio, sys
from asyncua import Server, ua
async def main():
    server = Server()
    await server.init()
    server.set_endpoint(sys.argv[1])
    await server.register_namespace("urn:machine")
    nodes = [
        await server.nodes.objects.add_variable(ua.NodeId(f"n{n}", 2), f"n{n}", 0.0)
        for n in range(50)
    ]
    async with server:
        print("ready", flush=True)
        value = 0.0
        while True:
            value += 1
            for node in nodes:
                await node.write_value(value)
            await asyncio.sleep(0.05)
asyncio.run(main())
"""


@contextlib.asynccontextmanager
async def _peer() -> AsyncIterator[str]:
    """Run a server in a process of its own; yield its address."""
    url = f"opc.tcp://127.0.0.1:{free_port()}"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "ignore", "-c", PEER, url, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None  # noqa: S101
    try:
        assert (await process.stdout.readline()).strip() == b"ready"  # noqa: S101
        yield url
    finally:
        process.kill()
        await process.wait()


async def connector(seconds: float) -> Cost:
    """Receive the changes as rows of all nodes."""
    columns = ", ".join(f"n{n} DOUBLE FROM 'ns=2;s=n{n}'" for n in range(NODES))
    text = (
        f"CREATE SOURCE press ({columns}) WITH (connector = 'opcua', interval = '{INTERVAL_MS} ms')"
    )
    async with _peer() as url:
        return await measure(OpcuaConnector(), {"url": url}, text, seconds)


class _Handler:
    def __init__(self) -> None:
        self.changes = 0
        self._values: dict[str, object] = {}
        self.watch = Stopwatch()

    def datachange_notification(self, node: Node, value: object, _data: object) -> None:
        self.changes += 1
        if len(self.watch.rows) < SAMPLE:
            self._values[str(node.nodeid.Identifier)] = value
            if len(self._values) == NODES:
                self.watch.keep([tuple(self._values[f"n{n}"] for n in range(NODES))])


async def bare(seconds: float) -> Cost:
    """Receive the changes and count them; a row's worth is a reading."""
    async with _peer() as url, Client(url) as client:
        handler = _Handler()
        subscription = await client.create_subscription(INTERVAL_MS, handler)
        nodes = [client.get_node(f"ns=2;s=n{n}") for n in range(NODES)]
        await subscription.subscribe_data_change(nodes, queuesize=1, sampling_interval=INTERVAL_MS)
        watch = Stopwatch()
        await asyncio.sleep(seconds)
        cost = watch.cost(handler.changes // NODES)
        return replace(cost, rows=tuple(handler.watch.rows))


PAIR = Pair(connector, bare, Values.RISE, limited_by_peer=True)
