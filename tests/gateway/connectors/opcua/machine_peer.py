"""A node with a number, for the conformance kit: asyncua's server in this process."""

import contextlib
from collections.abc import Mapping

from tests.gateway.connectors.opcua.machines import Machine, machine
from tests.gateway.connectors.steady_peer import PortPeer


class MachinePeer(PortPeer):
    """Serves one variable, whose sensor may break."""

    statement = """
    CREATE SOURCE counted (number INTEGER FROM 'ns=2;s=Number')
    WITH (connector = 'opcua', endpoint = 'trial', interval = '0.1 s')
    """

    def __init__(self) -> None:
        super().__init__()
        self._machine: Machine | None = None

    @property
    def endpoint(self) -> Mapping[str, object]:
        return {"url": f"opc.tcp://127.0.0.1:{self.port}/machine", "timeout": 2}

    async def serve(self, running: contextlib.AsyncExitStack) -> None:
        self._machine = await running.enter_async_context(machine({"Number": 0}, port=self.port))

    async def send(self, number: int) -> None:
        assert self._machine is not None
        await self._machine.set("Number", number)

    async def send_bad(self) -> None:
        assert self._machine is not None
        await self._machine.fail("Number")
