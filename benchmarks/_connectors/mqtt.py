"""The connector mqtt beside paho-mqtt and msgspec: a message for each reading, QoS 1.

Both acknowledge each message. paho reads with its own thread, as most programs have it do.
"""

import asyncio
import contextlib
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import msgspec
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from benchmarks._connectors.pair import Cost, Pair, Stopwatch, measure
from broker.broker_launch import find_mosquitto
from broker.broker_testing import BrokerProcess
from gateway.connectors.mqtt.mqtt_connector import MqttConnector

SOURCE = """
CREATE SOURCE climate (
  device TEXT,
  temperature DOUBLE FROM 'AM2301.Temperature',
  humidity DOUBLE FROM 'AM2301.Humidity',
  KEY (device)
) WITH (connector = 'mqtt', topic = 'tele/{device}/SENSOR')
"""
PUBLISHER = """
import sys
from broker.broker_testing import RawClient, text, varint
client = RawClient(int(sys.argv[1]), "devices")
client.open()
sock = client._socket
sock.settimeout(None)
def frame(n):
    payload = ('{"Time":"2026-06-01T12:00:00","AM2301":{"Temperature":%d.5,"Humidity":40.2,'
               '"DewPoint":7.5},"TempUnit":"C"}' % (n % 40)).encode()
    body = text(f"tele/d{n}/SENSOR") + b"\\x00\\x01" + payload
    return bytes([0x32]) + varint(len(body)) + body
frames = [frame(n) for n in range(200)]
burst = b"".join(frames)
left = 0
while True:
    sock.sendall(burst)
    got = left
    while got < 4 * len(frames):
        got += len(sock.recv(1 << 16))
    left = got - 4 * len(frames)
"""


@contextlib.asynccontextmanager
async def _peer() -> AsyncIterator[BrokerProcess]:
    """Run a broker, and a process that publishes as fast as the broker acknowledges."""
    kind = "mosquitto" if find_mosquitto() else "embedded"
    with tempfile.TemporaryDirectory() as folder, BrokerProcess(kind, Path(folder)) as broker:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PUBLISHER, str(broker.port)
        )
        try:
            yield broker
        finally:
            process.kill()
            await process.wait()


async def connector(seconds: float) -> Cost:
    """Read, map and acknowledge what comes."""
    async with _peer() as broker:
        endpoint = {"address": broker.url, "session_hours": 0}
        return await measure(MqttConnector(), endpoint, SOURCE, seconds)


async def bare(seconds: float) -> Cost:
    """Read, decode and acknowledge what comes."""
    counted, first, kept = 0, threading.Event(), Stopwatch()

    def on_message(_client: Client, _userdata: object, message: MQTTMessage) -> None:
        nonlocal counted
        climate = msgspec.json.decode(message.payload)["AM2301"]
        counted += 1
        device = message.topic.split("/")[1]
        kept.keep([(device, climate["Temperature"], climate["Humidity"])])
        first.set()

    async with _peer() as broker:
        client = Client(CallbackAPIVersion.VERSION2, "bare")
        client.on_message = on_message
        client.connect("127.0.0.1", broker.port)
        client.subscribe("tele/+/SENSOR", 1)
        client.loop_start()
        try:
            await asyncio.to_thread(first.wait, 60)
            before, watch = counted, Stopwatch()
            await asyncio.sleep(seconds)
            return replace(watch.cost(counted - before), rows=tuple(kept.rows))
        finally:
            client.disconnect()
            client.loop_stop()


PAIR = Pair(connector, bare)
