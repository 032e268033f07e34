"""A register with a number, for the conformance kit."""

import contextlib
from collections.abc import Mapping

from pymodbus.constants import ExcCodes
from pymodbus.simulator import SimData, SimDevice
from pymodbus.simulator.simutils import DataType

from tests.gateway.connectors.modbus.meters import modbus, registers
from tests.gateway.connectors.steady_peer import PortPeer


class MeterPeer(PortPeer):
    """Serves one holding register, or refuses to."""

    statement = """
    CREATE SOURCE counted (number INTEGER FROM 'holding:0')
    WITH (connector = 'modbus', endpoint = 'trial', interval = '0.1 s')
    """

    def __init__(self) -> None:
        super().__init__()
        self._number: int | None = 0

    @property
    def endpoint(self) -> Mapping[str, object]:
        return {"host": "127.0.0.1", "port": self.port, "timeout": 0.5}

    async def serve(self, running: contextlib.AsyncExitStack) -> None:
        nothing = [registers(60_000, 0)]
        bits = [SimData(60_000, values=[False], datatype=DataType.BITS)]
        tables = (bits, bits, [registers(0, 0)], nothing)
        device = SimDevice(1, simdata=tables, action=self._answer)
        await running.enter_async_context(modbus(device, port=self.port))

    async def send(self, number: int) -> None:
        self._number = number

    async def send_bad(self) -> None:
        self._number = None

    async def _answer(
        self,
        _function: int,
        start: int,
        address: int,
        _count: int,
        found: list[int],
        _values: list[int] | list[bool] | None,
    ) -> ExcCodes | None:
        if self._number is None:
            return ExcCodes.DEVICE_FAILURE
        found[address - start] = self._number
        return None
