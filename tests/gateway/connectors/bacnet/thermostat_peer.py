"""An object with a number, for the conformance kit: bacpypes3's application in this process."""

import contextlib
from collections.abc import Mapping

from bacpypes3.app import Application
from bacpypes3.local.analog import AnalogInputObject

from broker.free_ports import free_port
from tests.gateway.connectors.bacnet.devices import Thermostat, bacnet
from tests.gateway.connectors.steady_peer import PortPeer


class ThermostatPeer(PortPeer):
    """Serves one analog input, which it may take away."""

    transport = "udp"
    statement = """
    CREATE SOURCE counted (number INTEGER FROM 'analog-input:3')
    WITH (connector = 'bacnet', endpoint = 'trial', interval = '0.1 s')
    """

    def __init__(self) -> None:
        super().__init__()
        self._local = f"127.0.0.1/24:{free_port()}"
        self._thermostat: Thermostat | None = None  # bacpypes3 makes objects in a running loop

    @property
    def endpoint(self) -> Mapping[str, object]:
        return {"address": f"127.0.0.1:{self.port}", "local": self._local, "timeout": 0.5}

    async def serve(self, running: contextlib.AsyncExitStack) -> None:
        self._thermostat = Thermostat()
        running.enter_context(bacnet(self._thermostat, self.port))
        await self.send(0)

    async def send(self, number: int) -> None:
        celsius, app = self._served()
        if celsius.objectIdentifier not in app.objectIdentifier:
            app.add_object(celsius)
        celsius.presentValue = float(number)

    async def send_bad(self) -> None:
        celsius, app = self._served()
        app.delete_object(celsius)

    def clients(self) -> int:
        """Return the subscriptions to changes: each lasts five minutes unless it is cancelled."""
        _, app = self._served()
        return sum(len(each.cov_subscriptions) for each in app._cov_detections.values())

    def _served(self) -> tuple[AnalogInputObject, Application]:
        assert self._thermostat is not None
        assert self._thermostat.app is not None
        return self._thermostat.celsius, self._thermostat.app
