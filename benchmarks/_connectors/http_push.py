"""The connector http_push beside h11 and msgspec: requests of 100 readings from eight senders."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import replace

import h11
import msgspec

from benchmarks._connectors.pair import Cost, Pair, Stopwatch, measure
from broker.free_ports import free_port
from gateway.connectors.http_push.push_connector import PushConnector

READINGS = 100
TOKEN = "a-token-for-all"  # noqa: S105  (it guards nothing)
SOURCE = """
CREATE SOURCE push (device TEXT, watts DOUBLE, KEY (device))
WITH (connector = 'http_push', rows = '[*]')
"""
SENDERS = """
import asyncio, json, sys
port, readings, token = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
body = json.dumps([{"device": f"d{n}", "watts": n / 8} for n in range(readings)])
head = f"POST /push HTTP/1.1\\r\\nHost: h\\r\\nAuthorization: Bearer {token}\\r\\n"
request = f"{head}Content-Length: {len(body)}\\r\\n\\r\\n{body}".encode()
async def send():
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while True:
                writer.write(request)
                answer = await reader.readuntil(b"\\r\\n\\r\\n")
                lengths = [x for x in answer.lower().split(b"\\r\\n") if b"content-length" in x]
                await reader.readexactly(int(lengths[0].split(b":")[1]))
        except OSError:
            await asyncio.sleep(0.05)
async def main():
    await asyncio.gather(*(send() for _ in range(8)))
asyncio.run(main())
"""


@contextlib.asynccontextmanager
async def _senders(port: int) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SENDERS, str(port), str(READINGS), TOKEN,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        process.kill()
        await process.wait()


async def connector(seconds: float) -> Cost:
    """Take what the senders send as fast as they are answered."""
    port = free_port()
    endpoint = {"port": port, "token": TOKEN}
    async with _senders(port):
        return await measure(PushConnector(), endpoint, SOURCE, seconds)


async def bare(seconds: float) -> Cost:
    """Take and decode the same bodies, and do no more."""
    taken, first, kept = 0, asyncio.Event(), Stopwatch()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        protocol = h11.Connection(h11.SERVER)
        body = b""
        with contextlib.suppress(OSError):
            while True:
                event = protocol.next_event()
                if event is h11.NEED_DATA:
                    protocol.receive_data(await reader.read(65_536))
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    first.set()
                    posted = msgspec.json.decode(body)
                    taken += len(posted)
                    kept.keep((each["device"], each["watts"]) for each in posted)
                    body = b""
                    answer = h11.Response(status_code=202, headers=[("Content-Length", "0")])
                    writer.write((protocol.send(answer) or b"") + (protocol.send(event) or b""))
                    protocol.start_next_cycle()
                elif isinstance(event, h11.ConnectionClosed):
                    break
        writer.close()

    port = free_port()
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    async with server, _senders(port):
        await first.wait()
        before, watch = taken, Stopwatch()
        await asyncio.sleep(seconds)
        return replace(watch.cost(taken - before), rows=tuple(kept.rows))


PAIR = Pair(connector, bare)
