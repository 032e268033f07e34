"""A resource with a number, for the conformance kit."""

import contextlib
from collections.abc import Mapping

from tests.gateway.connectors.coap.sensors import Changing, coap
from tests.gateway.connectors.steady_peer import PortPeer

JSON = 50


class SensorPeer(PortPeer):
    """Serves one resource that is observed."""

    transport = "udp"
    statement = """
    CREATE SOURCE counted (number INTEGER)
    WITH (connector = 'coap', endpoint = 'trial', path = 'count', interval = '1 s')
    """

    def __init__(self) -> None:
        super().__init__()
        self._resource: Changing | None = None

    @property
    def endpoint(self) -> Mapping[str, object]:
        return {"url": f"coap://127.0.0.1:{self.port}", "timeout": 1}

    async def serve(self, running: contextlib.AsyncExitStack) -> None:
        self._resource = Changing(b'{"number": 0}', JSON)
        await running.enter_async_context(coap({"count": self._resource}, port=self.port))

    async def send(self, number: int) -> None:
        self._change(b'{"number": %d}' % number)

    async def send_bad(self) -> None:
        self._change(b'{"number": ')

    async def send_huge(self, number: int) -> None:
        self._change(b'{"number": %d, "padding": "%s"}' % (number, b"x" * 1_500_000))

    def _change(self, payload: bytes) -> None:
        assert self._resource is not None
        self._resource.change(payload)
