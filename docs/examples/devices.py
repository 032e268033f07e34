"""Simulated devices for the section "First devices, from nothing" of docs/devices.md.

    .venv/bin/python docs/examples/devices.py

A broker with what Zigbee2MQTT and two receivers of badges publish, a Modbus meter, and a power
strip with a web page; all on loopback, until Ctrl-C. Zigbee2MQTT answers requests for its network
map.
"""

import argparse
import asyncio
import contextlib
import json
import struct
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import SimData, SimDevice
from pymodbus.simulator.simutils import DataType

from broker.embedded.embedded_broker import Broker
from broker.embedded.server import Server
from deploy.local.probes import require_free
from host.mqtt import Message, MessageClient, open_client
from host.service_process import on_stop_signals
from streamsql.errors import DeploymentError

HOST = "127.0.0.1"
MAP_REQUEST = "zigbee2mqtt/bridge/request/networkmap"
MAP_RESPONSE = "zigbee2mqtt/bridge/response/networkmap"
LINK = {
    "linkquality": 120,
    "source": {"ieeeAddr": "0x00158d0001dc1268", "networkAddress": 6538},
    "target": {"ieeeAddr": "0x00124b0018ed2c5b", "networkAddress": 0},
}
POWER = 12  # register of the meter, a float32 in watts
TURN = 10  # beats between changes of the window of L102, and of the badge's room


@dataclass
class House:
    """What the devices measure; everything follows from the number of beats so far."""

    beat: int = 0

    @property
    def watts(self) -> float:
        """Power at the main meter."""
        return 1500.0 + 10 * (self.beat % 10)

    @property
    def amps(self) -> dict[str, float]:
        """Current of each heater, by room."""
        return {"L101": 1.0 + (self.beat % 5) / 10, "L102": 0.6}

    @property
    def closed(self) -> dict[str, bool]:
        """Whether each window is closed, by room."""
        return {"L101": False, "L102": self.beat // TURN % 2 == 0}

    @property
    def levels(self) -> dict[str, float]:
        """Signal strength of the badge at each receiver, in dBm."""
        in_102 = self.beat // TURN % 2 == 1
        return (
            {"omg-101": -80.0, "omg-102": -50.0} if in_102 else {"omg-101": -50.0, "omg-102": -80.0}
        )


def publish(house: House, client: MessageClient) -> None:
    """Publish what Zigbee2MQTT and the receivers (OpenMQTTGateway) publish at a beat."""
    for room, closed in house.closed.items():
        window = {"contact": closed, "battery": 88, "linkquality": 120, "voltage": 3005}
        client.publish(f"zigbee2mqtt/{room}", json.dumps(window).encode())
    for receiver, rssi in house.levels.items():
        badge = {"id": "ann", "mac_type": 0, "adv_type": 0, "name": "badge", "rssi": rssi}
        client.publish(f"home/{receiver}/BTtoMQTT/4C65A8DF3A31", json.dumps(badge).encode())


def answer_requests(client: MessageClient) -> None:
    """Answer each request for the network map, as Zigbee2MQTT does."""
    body = {"data": {"type": "raw", "routes": False, "value": {"links": [LINK], "nodes": []}}}

    def answer(messages: list[Message]) -> None:
        for message in messages:
            if message.topic == MAP_REQUEST:
                client.publish(MAP_RESPONSE, json.dumps({**body, "status": "ok"}).encode())

    client.on_messages(answer)


def meter(house: House) -> SimDevice:
    """Return a meter with unit id 1: its input registers."""

    async def action(
        _function: int,
        start: int,
        _address: int,
        _count: int,
        registers: list[int],
        _values: list[int] | list[bool] | None,
    ) -> None:
        if start == POWER:
            registers[:2] = struct.unpack(">HH", struct.pack(">f", house.watts))

    def words(first: int) -> list[SimData]:
        return [SimData(first, values=[0, 0], datatype=DataType.REGISTERS)]

    bits = [SimData(0, values=[False], datatype=DataType.BITS)]
    return SimDevice(1, simdata=(bits, bits, words(0), words(POWER)), action=action)


@contextlib.contextmanager
def strip(house: House, port: int) -> Iterator[None]:
    """Serve the web page of a power strip: a table with an outlet for each room's heater."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cells = [
                f"<tr><td>{number}</td><td>{room}</td><td>ON</td><td>{amps:.1f} A</td></tr>"
                for number, (room, amps) in enumerate(house.amps.items(), start=1)
            ]
            page = f"<html><h1>Heaters</h1><table id=outlets>{''.join(cells)}</table></html>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing: a page is read every second."""

    with ThreadingHTTPServer((HOST, port), Page) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


async def run(options: argparse.Namespace) -> None:
    """Run all devices until a signal to stop."""
    house, stop = House(), asyncio.Event()
    on_stop_signals(stop.set)
    broker = Server(Broker())
    await broker.start(HOST, options.mqtt)
    registers = ModbusTcpServer([meter(house)], address=(HOST, options.modbus))
    client = open_client(f"mqtt://{HOST}:{options.mqtt}", "simulated-devices")
    try:
        with strip(house, options.http):
            await registers.listen()
            await client.connect()
            answer_requests(client)
            await client.subscribe(MAP_REQUEST)
            print(
                f"MQTT broker   mqtt://{HOST}:{options.mqtt}   windows (Zigbee2MQTT), badge ann\n"
                f"Modbus meter  {HOST}:{options.modbus}, unit 1\n"
                f"power strip   http://{HOST}:{options.http}/outlets.htm\n"
                "Ctrl-C ends them.",
                flush=True,
            )
            while not stop.is_set():
                publish(house, client)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), options.every)
                house.beat += 1
    finally:
        await client.close()
        await registers.shutdown()  # type: ignore[no-untyped-call]  # pymodbus types it in part
        await broker.stop()


def main() -> int:
    """Read the ports from the command line; return the exit status."""
    parser = argparse.ArgumentParser(description="Simulated devices for docs/devices.md.")
    parser.add_argument("--mqtt", type=int, default=1884, metavar="PORT")
    parser.add_argument("--modbus", type=int, default=5020, metavar="PORT")
    parser.add_argument("--http", type=int, default=8095, metavar="PORT")
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="of a beat")
    options = parser.parse_args()
    try:
        for name in ("mqtt", "modbus", "http"):
            require_free(getattr(options, name), f"--{name}")
        asyncio.run(run(options))
    except (DeploymentError, OSError) as error:
        print(f"devices: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
