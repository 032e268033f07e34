"""CoAP devices on loopback: aiocoap's server with resources that change."""

import contextlib
from collections.abc import AsyncIterator

from aiocoap import Context, Message
from aiocoap.resource import ObservableResource, Resource, Site

from broker.free_ports import free_port


class Changing(ObservableResource):  # type: ignore[misc]  # aiocoap is not typed
    """A resource with a payload that a test changes."""

    def __init__(self, payload: bytes, content_format: int) -> None:
        super().__init__()
        self._payload = payload
        self._format = content_format
        self.asked = 0

    async def render_get(self, _request: Message) -> Message:
        self.asked += 1
        return Message(payload=self._payload, content_format=self._format)

    def change(self, payload: bytes) -> None:
        """Notify the observers of another payload."""
        self._payload = payload
        self.updated_state()


class Plain(Resource):  # type: ignore[misc]  # aiocoap is not typed
    """A resource that cannot be observed and counts its requests."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def render_get(self, _request: Message) -> Message:
        self.asked += 1
        return Message(payload=str(self.asked).encode(), content_format=0)


@contextlib.asynccontextmanager
async def coap(resources: dict[str, Resource], *, port: int = 0) -> AsyncIterator[int]:
    """Serve resources by their paths; yields the port."""
    port = port or free_port()
    site = Site()
    for path, resource in resources.items():
        site.add_resource(path.split("/"), resource)
    server = await Context.create_server_context(site, bind=("127.0.0.1", port))
    try:
        yield port
    finally:
        await server.shutdown()
