"""A CoAP device (aiocoap) with ten resources that count and notify their observers."""

import asyncio

from aiocoap import Context, Message
from aiocoap.resource import ObservableResource, Site

from benchmarks._device_faults.number_log import Event
from benchmarks._device_faults.peers.peer import LANES, NOTHING, PeerArguments, peer_arguments

JSON = 50


class Counting(ObservableResource):  # type: ignore[misc]  # aiocoap is not typed
    """A resource; its numbers are those of its lane: every tenth."""

    def __init__(self, arguments: PeerArguments, lane: int) -> None:
        super().__init__()
        self._arguments = arguments
        self._lane = lane
        known = arguments.log.next_number(Event.OFFERED, lane) - 1
        self._number: int | None = known if known >= 0 else None

    async def render_get(self, _request: Message) -> Message:
        """Return the newest number, and log that it is handed out."""
        number = self._number
        if number is None:
            return Message(payload=b'{"n": %d}' % NOTHING, content_format=JSON)
        self._arguments.log.add(Event.OFFERED, number, lane=self._lane)
        return Message(payload=b'{"n": %d}' % number, content_format=JSON)

    def count(self) -> None:
        """Go on to the next number, and notify."""
        number = self._lane if self._number is None else self._number + LANES
        if number < self._arguments.count:
            self._number = number
            self.updated_state()


async def serve() -> None:
    """Serve until killed."""
    arguments = peer_arguments()
    site = Site()
    resources = [Counting(arguments, lane) for lane in range(LANES)]
    for lane, resource in enumerate(resources):
        site.add_resource([f"n{lane}"], resource)
    await Context.create_server_context(site, bind=("127.0.0.1", arguments.port))
    while True:
        if arguments.may_go():
            for resource in resources:
                resource.count()
        await asyncio.sleep(LANES / arguments.rate)


if __name__ == "__main__":
    asyncio.run(serve())
