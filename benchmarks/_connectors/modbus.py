"""The connector modbus beside pymodbus and struct: 250 units of 60 numbers each."""

import asyncio
import contextlib
import struct
import sys
from collections.abc import AsyncIterator

from pymodbus.client import AsyncModbusTcpClient

from benchmarks._connectors.pair import Cost, Pair, Stopwatch, measure
from gateway.connectors.modbus.modbus_connector import ModbusConnector

UNITS = 250
SOURCES = 4
NUMBERS = 60
"""Of a unit; a row has as many columns, and a reading is a row."""
PEER = """
import asyncio, struct, sys
words = struct.pack(">60f", *(n / 8 for n in range(60)))
async def serve(reader, writer):
    try:
        while request := await reader.readexactly(12):
            number, _, _, unit = struct.unpack(">HHHB", request[:7])
            head = struct.pack(">HHHBBB", number, 0, 3 + len(words), unit, 3, len(words))
            writer.write(head + words)
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
async def _peer() -> AsyncIterator[int]:
    """Run a device in a process of its own; yield its port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PEER, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None  # noqa: S101
    try:
        yield int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()


async def connector(seconds: float) -> Cost:
    """Read all units four times every 0.1 s, which is more often than they can be read."""
    columns = ", ".join(
        f"c{n} DOUBLE FROM 'holding:{2 * n}' FORMAT 'float32'" for n in range(NUMBERS)
    )
    text = ";".join(
        f"CREATE SOURCE meter{number} (unit INTEGER FROM '@unit', {columns}, KEY (unit)) WITH ("
        f"connector = 'modbus', unit = '1..{UNITS}', interval = '0.1 s')"
        for number in range(SOURCES)
    )
    async with _peer() as port:
        endpoint = {"host": "127.0.0.1", "port": port}
        return await measure(ModbusConnector(), endpoint, text, seconds)


async def bare(seconds: float) -> Cost:
    """Read one unit after the other, decoded and no more."""
    readings = 0
    async with _peer() as port:
        client = AsyncModbusTcpClient("127.0.0.1", port=port)
        await client.connect()
        watch = Stopwatch()
        while (cost := watch.cost(readings)).seconds < seconds:
            unit = 1 + readings % UNITS
            answer = await client.read_holding_registers(0, count=2 * NUMBERS, device_id=unit)
            words = struct.pack(f">{2 * NUMBERS}H", *answer.registers)
            watch.keep([(unit, *struct.unpack(f">{NUMBERS}f", words))])
            readings += 1
        client.close()
    return cost


PAIR = Pair(connector, bare)
