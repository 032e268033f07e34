"""The OPC UA connector: changes of nodes to readings, a row of all nodes at each change."""

import asyncio
import contextlib

from asyncua.client.client import Client
from asyncua.ua.uaerrors import UaError

from gateway.connectors.browsing import BrowseContext
from gateway.connectors.connector import ConnectorContext
from gateway.connectors.lost_cancellation import raise_if_cancelled
from gateway.connectors.opcua.node_browsing import OpcuaBrowse, offer_variables
from gateway.connectors.opcua.observed_nodes import ObservedNodes
from gateway.connectors.opcua.opcua_options import OpcuaEndpoint, OpcuaSource

CLOSE_SECONDS = 0.4
_LOST = (OSError, TimeoutError, UaError)


class OpcuaConnector:
    """Serves one server with one session, and one subscription for each source."""

    kind = "opcua"
    endpoint_options = OpcuaEndpoint
    source_options = OpcuaSource
    browse_options = OpcuaBrowse

    async def run(self, context: ConnectorContext) -> None:
        """Receive changes until the connection is lost.

        Raises:
            ConnectionError: It was lost, or could not be made.
        """
        endpoint = context.endpoint_as(OpcuaEndpoint)
        observed = []
        for source in context.sources:
            try:
                observed.append(ObservedNodes(source))
            except ValueError as error:
                source.problem(str(error))
        lost = asyncio.Event()
        client, reason = _client_of(endpoint, lost), ""
        try:
            await client.connect(auto_reconnect=False)
            raise_if_cancelled()
            async with asyncio.TaskGroup() as group:
                for nodes in observed:
                    await nodes.subscribe(client)
                    raise_if_cancelled()
                    group.create_task(nodes.emit_changes(context))
                group.create_task(_raise_when(lost))
        except* _LOST as errors:
            reason = f"opcua {endpoint.url}: {_reason(errors)}"
        finally:
            with contextlib.suppress(*_LOST):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await client.disconnect()
        if reason:
            raise ConnectionError(reason)

    async def browse(self, context: BrowseContext) -> None:
        """Offer the variables of the server.

        Raises:
            ConnectionError: It does not answer, or refuses.
        """
        endpoint = context.endpoint_as(OpcuaEndpoint)
        client, reason = _client_of(endpoint, asyncio.Event()), ""
        try:
            await client.connect(auto_reconnect=False)
            await offer_variables(client, context)
        except* _LOST as errors:
            reason = f"opcua {endpoint.url}: {_reason(errors)}"
        finally:
            with contextlib.suppress(*_LOST):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await client.disconnect()
        if reason:
            raise ConnectionError(reason)


def _client_of(endpoint: OpcuaEndpoint, lost: asyncio.Event) -> Client:
    client = Client(endpoint.url, timeout=float(endpoint.timeout))
    if endpoint.username:
        client.set_user(endpoint.username)
        client.set_password(endpoint.password)

    async def report(_error: Exception) -> None:
        lost.set()

    client.connection_lost_callback = report
    return client


async def _raise_when(lost: asyncio.Event) -> None:
    await lost.wait()
    raise ConnectionError("the connection was lost")


def _reason(errors: BaseExceptionGroup[BaseException]) -> str:
    """Return why the connection ended, from the first error of a group."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    return f"{str(error) or type(error).__name__:.200}"
