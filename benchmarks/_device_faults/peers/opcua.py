"""An OPC UA server (asyncua) with ten nodes that count."""

import asyncio

from asyncua import ua
from asyncua.server.server import Server

from benchmarks._device_faults.number_log import Event
from benchmarks._device_faults.peers.peer import LANES, NOTHING, peer_arguments


async def serve() -> None:
    """Serve until killed; the numbers of a node are those of its lane: every tenth."""
    arguments = peer_arguments()
    log = arguments.log
    server = Server()
    await server.init()
    server.set_endpoint(f"opc.tcp://127.0.0.1:{arguments.port}/counter")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    await server.register_namespace("urn:counter")
    numbers = [log.next_number(Event.OFFERED, lane) - 1 for lane in range(LANES)]
    nodes = [
        await server.nodes.objects.add_variable(
            ua.NodeId(f"n{lane}", 2), f"n{lane}", number if number >= 0 else NOTHING
        )
        for lane, number in enumerate(numbers)
    ]
    async with server:
        while True:
            if arguments.may_go():
                for lane, node in enumerate(nodes):
                    number = numbers[lane] + LANES if numbers[lane] >= 0 else lane
                    if number < arguments.count:
                        log.add(Event.OFFERED, number, lane=lane)
                        await node.write_value(number)
                        numbers[lane] = number
            await asyncio.sleep(LANES / arguments.rate)


if __name__ == "__main__":
    asyncio.run(serve())
