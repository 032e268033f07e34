"""OPC UA servers on loopback: asyncua's, with a machine's nodes."""

import contextlib
from collections.abc import AsyncIterator, Mapping

from asyncua import ua
from asyncua.common.node import Node
from asyncua.crypto.permission_rules import User, UserRole
from asyncua.server.server import Server
from asyncua.server.user_managers import UserManager

from broker.free_ports import free_port


class OneUser(UserManager):
    """Lets one user in."""

    def get_user(
        self,
        iserver: object,  # noqa: ARG002  (asyncua names them)
        username: str | None = None,
        password: str | None = None,
        certificate: object = None,  # noqa: ARG002
    ) -> User | None:
        """Return the user, if it is that one."""
        return User(role=UserRole.User) if (username, password) == ("pando", "secret") else None


BAD_SENSOR_FAILURE = 0x808C0000


class Machine:
    """A server's nodes by their names; `set` changes one."""

    def __init__(self, url: str, nodes: Mapping[str, Node]) -> None:
        self.url = url
        self._nodes = nodes

    async def set(self, name: str, value: object) -> None:
        """Change a value, as of now or as of the time of a DataValue."""
        await self._nodes[name].write_value(value)

    async def fail(self, name: str) -> None:
        """Say that a sensor is broken."""
        bad = ua.DataValue(StatusCode=ua.StatusCode(ua.UInt32(BAD_SENSOR_FAILURE)))
        await self._nodes[name].write_value(bad)


@contextlib.asynccontextmanager
async def machine(
    values: Mapping[str, object], *, users: UserManager | None = None, port: int = 0
) -> AsyncIterator[Machine]:
    """Serve nodes `ns=2;s=NAME` with values."""
    server = Server(user_manager=users)
    await server.init()
    url = f"opc.tcp://127.0.0.1:{port or free_port()}/machine"
    server.set_endpoint(url)
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    await server.register_namespace("urn:machine")
    nodes = {
        name: await server.nodes.objects.add_variable(
            ua.NodeId.from_string(f"ns=2;s={name}"), name, value
        )
        for name, value in values.items()
    }
    async with server:
        yield Machine(url, nodes)
