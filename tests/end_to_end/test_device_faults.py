"""A gateway is killed again and again while devices publish: no reading is lost.

Devices publish at QoS 1 and are acknowledged by their broker, which keeps what the gateway has not
acknowledged. What comes twice is counted: `--log-cli-level=INFO` shows it. The long run by
command: `PANDO_FAULT_READINGS=100000 PANDO_FAULT_KILLS=20`.
"""

import logging
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from broker.broker_launch import find_mosquitto
from broker.free_ports import free_port
from tests.end_to_end.federation import ROOT, Federation, federation, wait

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(1_800)]

log = logging.getLogger(__name__)

READINGS = int(os.environ.get("PANDO_FAULT_READINGS", "6000"))
KILLS = int(os.environ.get("PANDO_FAULT_KILLS", "3"))
SOURCE = """
CREATE SOURCE numbered (device TEXT, n INTEGER)
WITH (connector = 'mqtt', endpoint = 'home', topic = 'numbers/{device}')
"""
COUNTS = "SELECT COUNT(*) AS all_of_them, COUNT(DISTINCT n) AS different FROM numbered"
DEVICE = """
import sys, time
import paho.mqtt.client as mqtt
port, first, last, a_second = map(int, sys.argv[1:])
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "device")
client.max_inflight_messages_set(200)
client.connect("127.0.0.1", port)
client.loop_start()
sent = []
began = time.monotonic()
for n in range(first, last):
    sent.append(client.publish("numbers/a", '{"n": %d}' % n, qos=1))
    ahead = (n - first) / a_second - (time.monotonic() - began)
    if ahead > 0.01:
        time.sleep(ahead)
for each in sent:
    each.wait_for_publish(60)
client.disconnect()
"""


@contextmanager
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


def counts(running: Federation, query: str) -> tuple[int, int]:
    """Return how many readings have come, and how many different ones."""
    rows = running.rows(query)
    return next(iter(rows)) if rows else (0, 0)


def kill(running: Federation, service: str) -> None:
    """End a service without warning, and start it again."""
    pid = running.pid(service)
    os.kill(pid, signal.SIGKILL)
    wait(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie")
    done = running.pando("gateway", "restart", service, "--data", str(running.data))
    assert done.returncode == 0, done.stderr
    wait(lambda: running.pid(service) != pid)


def test_no_acknowledged_reading_is_lost(tmp_path: Path) -> None:
    seed = random.Random(7)
    with (
        keeping_broker(tmp_path) as port,
        federation(tmp_path / "data", "--no-spark", "--gateways", "1") as running,
    ):
        address = f"address=mqtt://127.0.0.1:{port}"
        words = ("gw-1", "home", "mqtt", address, "--data", str(running.data))
        assert running.pando("endpoint", "add", *words).returncode == 0
        answered = running.http.post("/api/statements", json={"text": SOURCE})
        assert answered.is_success, answered.text
        query = running.start_query(COUNTS)
        running.until(lambda: "subscribed" in running.sites()["gw-1"].get("detail", ""))
        device = subprocess.Popen(
            [sys.executable, "-c", DEVICE, str(port), "0", str(READINGS), "1500"], cwd=ROOT
        )
        try:
            for turn in range(KILLS):
                due = READINGS * (turn + seed.random()) / KILLS / 2
                wait(lambda due=due: counts(running, query)[1] >= due)  # type: ignore[misc]
                kill(running, "gw-1")
            assert device.wait(600) == 0
            running.until(lambda: counts(running, query)[1] == READINGS)
        finally:
            device.kill()
            device.wait(30)
        everything, different = counts(running, query)
    doubled = everything - different
    log.info("%d readings, %d kills: none lost, %d came twice", READINGS, KILLS, doubled)
    # What was not acknowledged when the gateway fell comes again: at most a window for each fall.
    assert doubled <= KILLS * 5_000
