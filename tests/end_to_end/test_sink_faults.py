"""The console is killed while its sinks send: what others read stays right, in order, complete.

The receivers are not ours: Mosquitto with another client, and a plain web server. What comes twice
is counted: `--log-cli-level=INFO` shows it. The long run by command:
`PANDO_FAULT_READINGS=100000 PANDO_FAULT_KILLS=20`.
"""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from broker.broker_launch import find_mosquitto
from broker.free_ports import free_port
from tests.end_to_end.federation import ROOT, Federation, federation, wait

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(1_800)]

log = logging.getLogger(__name__)

READINGS = int(os.environ.get("PANDO_FAULT_READINGS", "2000"))
KILLS = int(os.environ.get("PANDO_FAULT_KILLS", "2"))
DEVICES = 8
STATEMENTS = """
CREATE SOURCE newest (device TEXT, n INTEGER, KEY (device))
  WITH (connector = 'mqtt', endpoint = 'home', topic = 'numbers/{device}');
CREATE SOURCE every (device TEXT, n INTEGER)
  WITH (connector = 'mqtt', endpoint = 'home', topic = 'numbers/{device}', ttl = '1 h');
CREATE SINK kept FROM SELECT device, n FROM newest
  WITH (connector = 'mqtt', endpoint = 'home', topic = 'out/{device}');
CREATE SINK posted FROM SELECT device, n FROM newest
  WITH (connector = 'webhook', endpoint = 'hook', key = 'device');
CREATE SINK journal FROM ISTREAM(SELECT device, n FROM every [RANGE 1 HOUR])
  WITH (connector = 'webhook', endpoint = 'hook');
"""
DEVICE = """
import sys, time
import paho.mqtt.client as mqtt
port, first, last, devices, a_second = map(int, sys.argv[1:])
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "device")
client.max_inflight_messages_set(200)
client.connect("127.0.0.1", port)
client.loop_start()
sent = []
began = time.monotonic()
for n in range(first, last):
    sent.append(client.publish("numbers/d%d" % (n % devices), '{"n": %d}' % n, qos=1))
    ahead = (n - first) / a_second - (time.monotonic() - began)
    if ahead > 0.01:
        time.sleep(ahead)
for each in sent:
    each.wait_for_publish(60)
client.disconnect()
"""


@contextlib.contextmanager
def keeping_broker(folder: Path) -> Iterator[int]:
    """Run Mosquitto that queues without a bound for who is away; yields its port."""
    found = find_mosquitto()
    if found is None:
        pytest.skip("mosquitto is not installed")
    port = free_port()
    config = folder / "mosquitto.conf"
    config.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n"
        "max_queued_messages 0\nmax_inflight_messages 0\n"
    )
    process = subprocess.Popen([str(found), "-c", str(config)])
    try:
        yield port
    finally:
        process.terminate()
        process.wait(30)


class Receiver:
    """A web server that takes everything.

    Attributes:
        taken: Messages by sink, in the order of arrival.
    """

    def __init__(self) -> None:
        self.taken: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers["content-length"])))
                receiver.taken[said["sink"]] += said["messages"]
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def numbers(self, sink: str) -> list[tuple[str, int]]:
        """Device and number of each row of a sink that has come."""
        rows = [message["row"] for message in self.taken[sink]]
        assert None not in rows, "no key ever went"
        return [(row["device"], row["n"]) for row in rows]


@contextlib.contextmanager
def web_receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        thread.join(30)
        receiver.server.server_close()


class Listener:
    """A client that reads a sink's topics.

    Attributes:
        heard: Number or None (emptied), by topic, in the order of arrival.
    """

    def __init__(self, port: int, name: str) -> None:
        self.heard: defaultdict[str, list[int | None]] = defaultdict(list)
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, name)
        self.is_subscribed = threading.Event()
        self.client.on_message = self._take
        self.client.on_subscribe = lambda *_: self.is_subscribed.set()
        self.client.connect("127.0.0.1", port)
        self.client.subscribe("out/#", qos=1)
        self.client.loop_start()
        assert self.is_subscribed.wait(30)

    def _take(self, _client: object, _userdata: object, message: mqtt.MQTTMessage) -> None:
        number = json.loads(message.payload)["n"] if message.payload else None
        self.heard[message.topic].append(number)

    def close(self) -> None:
        """Hear no more."""
        self.client.disconnect()
        self.client.loop_stop()


def retained(port: int, topics: int) -> dict[str, int | None]:
    """What a new client is told of topics; waits until it has heard of so many."""
    listener = Listener(port, "newcomer")
    wait(lambda: len(listener.heard) >= topics)
    found = {topic: numbers[0] for topic, numbers in listener.heard.items()}
    listener.close()
    return found


def declare(running: Federation) -> None:
    """Create sources and sinks, whose endpoints the console and the gateway have."""
    for statement in filter(None, map(str.strip, STATEMENTS.split(";"))):
        answered = running.http.post("/api/statements", json={"text": statement})
        assert answered.is_success, answered.text
    running.until(lambda: "subscribed" in running.sites()["gw-1"].get("detail", ""))


def publish(port: int, first: int, last: int) -> "subprocess.Popen[bytes]":
    """Let devices publish numbers, each the next."""
    numbers = map(str, (port, first, last, DEVICES, 250))
    return subprocess.Popen([sys.executable, "-c", DEVICE, *numbers], cwd=ROOT)


def newest_of(receiver: Receiver) -> int:
    """The greatest number that has come."""
    return max((number for _, number in receiver.numbers("posted")), default=-1)


def arrive(running: Federation, port: int, receiver: Receiver, begun: int, last: int) -> None:
    """Wait until everything has arrived everywhere."""
    newest = {f"d{n % DEVICES}": n for n in range(last - DEVICES, last)}
    expected = {f"out/{device}": n for device, n in newest.items()}
    running.until(lambda: retained(port, DEVICES) == expected)
    running.until(lambda: dict(receiver.numbers("posted")) == newest)
    made = set(range(begun, last))
    running.until(lambda: {n for _, n in receiver.numbers("journal")} >= made)


def test_a_killed_console_leaves_right_topics_and_goes_on(tmp_path: Path) -> None:
    data = tmp_path / "data"
    up = ("--no-spark", "--gateways", "1")
    with keeping_broker(tmp_path) as port, web_receiver() as receiver:
        with federation(data, *up) as running:
            address = f"address=mqtt://127.0.0.1:{port}"
            url = f"url=http://127.0.0.1:{receiver.server.server_port}/"
            hook = ("console", "hook", "webhook", url, "secret=a secret of many bytes")
            for words in (
                ("gw-1", "home", "mqtt", address),
                ("console", "home", "mqtt", address),
                hook,
            ):
                done = running.pando("endpoint", "add", *words, "--data", str(data))
                assert done.returncode == 0, done.stderr
        listener = Listener(port, "listener")
        first = begun = 0
        for turn in range(KILLS + 1):
            with federation(data, *up) as running:
                if turn == 0:
                    declare(running)
                    # A stream begins with the first readings that its base hears.
                    while not receiver.taken["journal"]:
                        assert publish(port, first, first + DEVICES).wait(60) == 0
                        first += DEVICES
                    begun = min(n for _, n in receiver.numbers("journal"))
                last = first + READINGS // (KILLS + 1)
                device = publish(port, first, last)
                if turn < KILLS:
                    due = first + (last - first) // 2
                    running.until(lambda due=due: newest_of(receiver) > due)  # type: ignore[misc]
                    os.kill(running.pid("console"), signal.SIGKILL)
                    running.process.kill()  # before it starts another one
                    running.process.wait(90)
                    told = retained(port, DEVICES)
                    assert None not in told.values()
                    for topic, number in told.items():  # nothing has come after it
                        wait(lambda t=topic, n=number: listener.heard[t][-1] == n)  # type: ignore[misc]
                assert device.wait(120) == 0
                first = last
                if turn == KILLS:
                    arrive(running, port, receiver, begun, last)
        listener.close()
    by_key: defaultdict[str, list[int]] = defaultdict(list)
    for topic, heard in listener.heard.items():
        by_key[topic] = [number for number in heard if number is not None]
        assert len(by_key[topic]) == len(heard), "nothing was emptied"
    for name, number in receiver.numbers("posted"):
        by_key[name].append(number)
    for key, numbers in by_key.items():
        assert numbers == sorted(numbers), f"{key} in order"
    counts = Counter(n for _, n in receiver.numbers("journal"))
    doubled = sum(count - 1 for count in counts.values())
    log.info("%d readings, %d kills: none lost, %d rows came twice", first, KILLS, doubled)
    # What was sent in the last look before a kill, and acknowledged to nobody, comes again.
    assert doubled <= KILLS * 1_000
