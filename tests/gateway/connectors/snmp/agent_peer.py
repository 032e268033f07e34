"""An object with a number, for the conformance kit: pysnmp's agent in this process."""

import contextlib
from collections.abc import Mapping

from pysnmp.carrier.asyncio.dgram import udp
from pysnmp.entity import config, engine
from pysnmp.entity.rfc3413 import cmdrsp, context
from pysnmp.proto.rfc1902 import Integer32, OctetString
from pysnmp.smi.instrum import AbstractMibInstrumController

from tests.gateway.connectors.steady_peer import PortPeer


class _OneValue(AbstractMibInstrumController):  # type: ignore[misc]  # pysnmp is not typed
    """Answers each question with one value."""

    value: Integer32 | OctetString = Integer32(0)

    def read_variables(
        self, *asked: tuple[object, object], **_context: object
    ) -> list[tuple[object, object]]:
        return [(name, self.value) for name, _ in asked]


class AgentPeer(PortPeer):
    """Serves one object."""

    transport = "udp"
    statement = """
    CREATE SOURCE counted (number INTEGER FROM '1.3.6.1.2.1.99.1.0')
    WITH (connector = 'snmp', endpoint = 'trial', interval = '0.1 s')
    """

    def __init__(self) -> None:
        super().__init__()
        self._object = _OneValue()

    @property
    def endpoint(self) -> Mapping[str, object]:
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "community": "pdu",
            "timeout": 0.5,
            "retries": 1,
        }

    async def serve(self, running: contextlib.AsyncExitStack) -> None:
        agent = engine.SnmpEngine()
        transport = udp.UdpTransport().open_server_mode(("127.0.0.1", self.port))
        config.add_transport(agent, udp.DOMAIN_NAME, transport)
        config.add_v1_system(agent, "area", "pdu")
        config.add_vacm_user(agent, 2, "area", "noAuthNoPriv", (1, 3, 6), (1, 3, 6))
        contexts = context.SnmpContext(agent)
        contexts.unregister_context_name(b"")
        contexts.register_context_name(b"", self._object)
        cmdrsp.GetCommandResponder(agent, contexts)
        running.callback(agent.close_dispatcher)

    async def send(self, number: int) -> None:
        self._object.value = Integer32(number)

    async def send_bad(self) -> None:
        self._object.value = OctetString("no number")
