"""The connector coap beside aiocoap: twenty resources that notify every 2 ms."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

import msgspec
from aiocoap import GET, Context, Message

from benchmarks._connectors.pair import Cost, Pair, Stopwatch, Values, measure
from broker.free_ports import free_port
from gateway.connectors.coap.coap_connector import CoapConnector

RESOURCES = 20
PEER = """
import asyncio, sys
from aiocoap import Context, Message
from aiocoap.resource import ObservableResource, Site
class Sensor(ObservableResource):
    value = 0
    async def render_get(self, request):
        return Message(payload=b'{"t": %d}' % self.value, content_format=50)
async def main():
    sensors = [Sensor() for _ in range(20)]
    site = Site()
    for number, sensor in enumerate(sensors):
        site.add_resource([str(number)], sensor)
    await Context.create_server_context(site, bind=("127.0.0.1", int(sys.argv[1])))
    print("ready", flush=True)
    while True:
        for sensor in sensors:
            sensor.value += 1
            sensor.updated_state()
        await asyncio.sleep(0.002)
asyncio.run(main())
"""


@contextlib.asynccontextmanager
async def _peer() -> AsyncIterator[str]:
    """Run a device in a process of its own; yield its address."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PEER, str(port), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None  # noqa: S101
    try:
        await process.stdout.readline()
        yield f"coap://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


async def connector(seconds: float) -> Cost:
    """Receive the notifications as rows."""
    paths = ", ".join(map(str, range(RESOURCES)))
    text = (
        "CREATE SOURCE air (path TEXT FROM '@path', t DOUBLE, KEY (path)) WITH ("
        f"connector = 'coap', path = '{paths}', interval = '1 h')"
    )
    async with _peer() as url:
        return await measure(CoapConnector(), {"url": url}, text, seconds)


async def bare(seconds: float) -> Cost:
    """Receive the notifications, decoded and no more."""
    readings = 0

    async def observe(client: Context, uri: str) -> None:
        nonlocal readings
        request = client.request(Message(code=GET, uri=uri, observe=0))
        await request.response
        async for answer in request.observation:
            watch.keep([(uri.rpartition("/")[2], msgspec.json.decode(answer.payload)["t"])])
            readings += 1

    async with _peer() as url:
        client = await Context.create_client_context()
        watch = Stopwatch()
        tasks = [asyncio.create_task(observe(client, f"{url}/{n}")) for n in range(RESOURCES)]
        await asyncio.sleep(seconds)
        cost = watch.cost(readings)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await client.shutdown()
    return cost


PAIR = Pair(connector, bare, Values.RISE, limited_by_peer=True)
