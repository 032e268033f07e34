"""Every MQTT socket sends small packets at once (TCP_NODELAY): the client's and our broker's.

Without it a small packet behind another waits for the delayed acknowledgement, 40 ms and more.
"""

import asyncio
import os
import socket

import psutil

from broker.embedded.embedded_broker import Broker
from broker.embedded.server import Server
from gateway.testing import until
from host.mqtt import open_client


def nodelay(port: int) -> list[bool]:
    """Return of every established socket of this process at a port whether it has TCP_NODELAY."""
    found = []
    for connection in psutil.Process().net_connections("tcp"):
        ends = (connection.laddr, connection.raddr)
        if connection.status == psutil.CONN_ESTABLISHED and any(e.port == port for e in ends):
            with socket.socket(fileno=os.dup(connection.fd)) as copy:
                found.append(bool(copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
    return found


def test_both_ends_send_at_once_also_after_a_reconnect() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(30):
            server = Server(Broker())
            port = await server.start("127.0.0.1", 0)
            clients = [open_client(f"mqtt://127.0.0.1:{port}", f"c{i}") for i in range(2)]
            await asyncio.gather(*(client.connect() for client in clients))
            assert nodelay(port) == [True] * 4

            await server.stop()
            await until(lambda: not any(client.connected for client in clients))
            server = Server(Broker())
            await server.start("127.0.0.1", port)
            await until(lambda: all(client.connected for client in clients))
            assert nodelay(port) == [True] * 4
            await asyncio.gather(*(client.close() for client in clients))
            await until(lambda: not nodelay(port))
            await server.stop()

    asyncio.run(scenario())


def test_the_check_sees_a_socket_without_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = listener.accept()
            with accepted:
                assert nodelay(port) == [False, False]
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                assert sorted(nodelay(port)) == [False, True]
