"""Modbus devices on loopback: pymodbus' server with registers, and peers that misbehave."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable

from pymodbus.constants import ExcCodes
from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import SimData, SimDevice
from pymodbus.simulator.simutils import DataType

from broker.free_ports import free_port

Asked = list[tuple[int, int, int, int]]
"""Function, address and count of each request, with the unit in front."""


def registers(first: int, *words: int) -> SimData:
    return SimData(first, values=list(words), datatype=DataType.REGISTERS)


def float32(value: float) -> tuple[int, int]:
    """Return the words of a number, the high one first."""
    high, low = struct.unpack(">HH", struct.pack(">f", value))
    return high, low


def device(
    unit: int,
    *,
    holding: list[SimData] | None = None,
    inputs: list[SimData] | None = None,
    coils: list[SimData] | None = None,
    asked: Asked | None = None,
) -> SimDevice:
    """Return a device with four tables; what is not given does not exist there."""

    async def action(
        function: int,
        _start: int,
        address: int,
        count: int,
        _registers: list[int],
        _values: list[int] | list[bool] | None,
    ) -> ExcCodes | None:
        if asked is not None:
            asked.append((unit, function, address, count))
        return None

    nothing = [registers(60_000, 0)]
    bits = coils or [SimData(60_000, values=[False], datatype=DataType.BITS)]
    return SimDevice(
        unit,
        simdata=(bits, bits, holding or nothing, inputs or nothing),
        action=action,
    )


@contextlib.asynccontextmanager
async def modbus(*devices: SimDevice, port: int = 0) -> AsyncIterator[int]:
    """Serve devices; yields the port."""
    port = port or free_port()
    server = ModbusTcpServer(list(devices), address=("127.0.0.1", port))
    await server.listen()
    try:
        yield port
    finally:
        await server.shutdown()  # type: ignore[no-untyped-call]  # pymodbus types it in part


@contextlib.asynccontextmanager
async def answering(answer: Callable[[bytes], bytes]) -> AsyncIterator[int]:
    """Serve bytes that a test makes of each request; yields the port."""
    busy: set[asyncio.Task[None] | None] = set()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        busy.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError):
            while request := await reader.read(300):
                writer.write(answer(request))
                await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*(task for task in busy if task is not None))
