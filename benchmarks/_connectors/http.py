"""The connector http beside httpx and msgspec: a page of 1,000 readings, ten times in a row."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

import httpx
import msgspec

from benchmarks._connectors.pair import Cost, Pair, Stopwatch, measure
from gateway.connectors.http.http_connector import HttpConnector

READINGS = 1_000
SOURCES = 10
PEER = """
import asyncio, json, sys
body = json.dumps([{"device": f"d{n}", "watts": n / 8} for n in range(int(sys.argv[1]))]).encode()
head = f"HTTP/1.1 200 OK\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
async def serve(reader, writer):
    try:
        while await reader.readuntil(b"\\r\\n\\r\\n"):
            writer.write(head.encode() + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@contextlib.asynccontextmanager
async def _peer() -> AsyncIterator[str]:
    """Run a server in a process of its own; yield its address."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PEER, str(READINGS), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None  # noqa: S101
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.kill()
        await process.wait()


async def connector(seconds: float) -> Cost:
    """Read ten pages, each every 0.1 s, which is more often than they can be read."""
    text = ";".join(
        f"CREATE SOURCE plug{number} (device TEXT, watts DOUBLE, KEY (device)) WITH ("
        f"connector = 'http', path = '/{number}', rows = '[*]', interval = '0.1 s')"
        for number in range(SOURCES)
    )
    async with _peer() as url:
        return await measure(HttpConnector(), {"url": url}, text, seconds)


async def bare(seconds: float) -> Cost:
    """Read a page again and again, decoded and no more."""
    readings = 0
    async with _peer() as url, httpx.AsyncClient() as client:
        watch = Stopwatch()
        while (cost := watch.cost(readings)).seconds < seconds:
            page = msgspec.json.decode((await client.get(url)).content)
            readings += len(page)
            watch.keep((each["device"], each["watts"]) for each in page)
    return cost


PAIR = Pair(connector, bare)
