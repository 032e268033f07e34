"""A Modbus device (pymodbus' server): 20 units that show another number when they are read."""

import asyncio
from functools import partial

from pymodbus.constants import ExcCodes
from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import SimData, SimDevice
from pymodbus.simulator.simutils import DataType

from benchmarks._device_faults.peers.peer import Served, peer_arguments

UNITS = 20


async def _show(
    served: Served,
    unit: int,
    _function: int,
    _start: int,
    _address: int,
    _count: int,
    registers: list[int],
    _values: list[int] | list[bool] | None,
) -> ExcCodes | None:
    number = served.one(unit)
    registers[0], registers[1] = number >> 16, number & 0xFFFF
    return None


async def serve() -> None:
    """Serve until killed."""
    arguments = peer_arguments()
    served = Served(arguments)
    numbers = SimData(0, values=[0, 0], datatype=DataType.REGISTERS)
    bits = SimData(0, values=[False], datatype=DataType.BITS)
    devices = [
        SimDevice(
            unit,
            simdata=([bits], [bits], [numbers], [numbers]),
            action=partial(_show, served, unit),
        )
        for unit in range(1, UNITS + 1)
    ]
    server = ModbusTcpServer(devices, address=("127.0.0.1", arguments.port))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
