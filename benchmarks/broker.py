"""How fast is the embedded broker, compared with Mosquitto in the same run?

    python benchmarks/broker.py [--quick] [--json]

Throughput: publisher processes send messages of 200 bytes as fast as the broker takes them (QoS 1:
200 unacknowledged at most), one subscriber counts arrivals. Latency: one publisher, 1,000 messages
a second, QoS 1 both ways, from before `send` to after `recv`. The clients are bare sockets with
prepared packets, so that it is the broker that is measured; services go through paho, which is
several times slower than either broker.

How to read it: everything shares this machine's cores, and on a busy one the rates were seen to
differ by a factor of two to three between runs, ratios included. The broker's CPU time per message
is the steadier figure. Publishers send in batches, which suits a broker that writes in batches.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import struct
import sys
import tempfile
import threading
import time
from multiprocessing.synchronize import Event, Semaphore
from pathlib import Path
from statistics import median

import psutil

from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess, RawClient, text, varint

_TOPIC = "bench/stream"
_PAYLOAD = 200
_WINDOW = 200
_PUBLISHERS = 2
_TIMEOUT = 120.0


def _frame(qos: int, payload: bytes) -> bytes:
    body = text(_TOPIC) + (b"\x00\x01" if qos else b"") + payload
    return bytes([0x30 | qos << 1]) + varint(len(body)) + body


def _connect(port: int, client_id: str) -> socket.socket:
    client = RawClient(port, client_id)
    client.open()
    if client_id == "subscriber":
        client.subscribe((_TOPIC, 1))
    sock = client._socket  # noqa: SLF001 - the bare socket is the point
    sock.settimeout(_TIMEOUT)
    return sock


def _publish(  # noqa: PLR0913, PLR0917 - what one process needs
    port: int, number: int, count: int, qos: int, ready: Semaphore, go: Event
) -> None:
    """Publish `count` messages once told to go; runs in a process of its own."""
    sock = _connect(port, f"publisher{number}")
    frame = _frame(qos, bytes(_PAYLOAD))
    ready.release()
    go.wait(_TIMEOUT)
    sent = acknowledged = 0
    partial = 0
    while acknowledged < count:
        room = min(count - sent, _WINDOW - (sent - acknowledged)) if qos else min(50, count - sent)
        if room:
            sock.sendall(frame * room)
            sent += room
        if not qos:
            acknowledged = sent
            continue
        acknowledgements, partial = divmod(partial + len(sock.recv(1 << 16)), 4)
        acknowledged += acknowledgements
    sock.sendall(b"\xe0\x00")
    sock.close()


def _receive(sock: socket.socket, qos: int, count: int, arrivals: list[float] | None) -> int:
    """Take messages until `count` or a second of silence; note arrival minus payload's time."""
    expected = _frame(qos, bytes(_PAYLOAD))
    size = len(expected)
    offset = size - _PAYLOAD
    head = expected[: offset - 2 if qos else offset]
    buffer, received = b"", 0
    while received < count:
        try:
            data = sock.recv(1 << 18)
        except TimeoutError:
            break
        sock.settimeout(2.0)
        now = time.perf_counter()
        buffer += data
        whole = len(buffer) // size
        if qos:
            starts = range(0, whole * size, size)
            sock.sendall(
                b"".join(b"\x40\x02" + buffer[s + offset - 2 : s + offset] for s in starts)
            )
        # Counting by size alone would count garbage: every packet must begin as expected.
        if any(not buffer.startswith(head, start) for start in range(0, whole * size, size)):
            message = "the broker delivered something else than was published"
            raise RuntimeError(message)
        if arrivals is not None:
            for start in range(0, whole * size, size):
                (sent,) = struct.unpack_from(">d", buffer, start + offset)
                arrivals.append(now - sent)
        buffer = buffer[whole * size :]
        received += whole
    return received


def throughput(port: int, pid: int, qos: int, count: int) -> tuple[float, float]:
    """Return messages per second through the broker, and its CPU microseconds per message."""
    sock = _connect(port, "subscriber")
    broker = psutil.Process(pid)
    context = multiprocessing.get_context("spawn")
    ready, go = context.Semaphore(0), context.Event()
    workers = [
        context.Process(target=_publish, args=(port, n, count // _PUBLISHERS, qos, ready, go))
        for n in range(_PUBLISHERS)
    ]
    for worker in workers:
        worker.start()
    for _ in workers:
        ready.acquire(timeout=_TIMEOUT)
    # The clock starts before anybody may send: a reader that wakes up late must not look fast.
    cpu, before = sum(broker.cpu_times()[:2]), time.perf_counter()
    go.set()
    received = _receive(sock, qos, count, None)
    elapsed = time.perf_counter() - before
    cpu = sum(broker.cpu_times()[:2]) - cpu
    for worker in workers:
        worker.join(_TIMEOUT)
    sock.close()
    if received < count:
        message = f"only {received} of {count} messages arrived"
        raise RuntimeError(message)
    return received / elapsed, cpu / received * 1e6


def latency(port: int, count: int, rate: int = 1_000) -> tuple[float, float]:
    """Return p50 and p99 in milliseconds at a steady rate, QoS 1 both ways."""
    reader, writer = _connect(port, "subscriber"), _connect(port, "publisher")

    def publish() -> None:
        begin = time.perf_counter()
        for number in range(count):
            pause = begin + number / rate - time.perf_counter()
            if pause > 0:
                time.sleep(pause)
            now = struct.pack(">d", time.perf_counter())
            writer.sendall(_frame(1, now + bytes(_PAYLOAD - 8)))

    def discard_acknowledgements() -> None:
        left = 4 * count
        while left > 0:
            left -= len(writer.recv(4_096)) or left

    threads = [threading.Thread(target=t) for t in (publish, discard_acknowledgements)]
    for thread in threads:
        thread.start()
    times: list[float] = []
    _receive(reader, 1, count, times)
    for thread in threads:
        thread.join(_TIMEOUT)
    reader.close()
    writer.close()
    times = sorted(times[len(times) // 10 :])  # the first tenth warms up
    return times[len(times) // 2] * 1e3, times[int(len(times) * 0.99)] * 1e3


def measure(kind: Preference, *, quick: bool) -> dict[str, float]:
    """Measure one broker in a process of its own."""
    count, rounds = (4_000, 1) if quick else (40_000, 3)
    with tempfile.TemporaryDirectory() as folder, BrokerProcess(kind, Path(folder)) as broker:
        p50, p99 = latency(broker.port, 1_000 if quick else 10_000)
        figures: dict[str, float] = {}
        for qos in (0, 1):
            runs = [throughput(broker.port, broker.pid, qos, count) for _ in range(rounds)]
            figures[f"QoS {qos} msg/s"] = median(rate for rate, _ in runs)
            figures[f"QoS {qos} CPU us/msg"] = median(cpu for _, cpu in runs)
        return {**figures, "p50 ms at 1000/s": p50, "p99 ms at 1000/s": p99}


def main(argv: list[str] | None = None) -> int:
    """Run the comparison; return the exit status."""
    parser = argparse.ArgumentParser(description="Embedded broker against Mosquitto.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages, one round")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    kinds: list[Preference] = ["embedded"]
    if find_mosquitto() is not None:
        kinds.append("mosquitto")
    else:
        print("mosquitto is not installed: nothing to compare with", file=sys.stderr)
    results = {kind: measure(kind, quick=options.quick) for kind in kinds}
    # A broker that needs less than one step of the processor's clock has no ratio there.
    ratios = {
        name: value / other
        for name, value in results["embedded"].items()
        if (other := results.get("mosquitto", {}).get(name))
    }
    if options.json:
        print(json.dumps({"benchmark": "broker", **results, "embedded/mosquitto": ratios}))
        return 0
    print(f"{'':18} {'embedded':>10} {'mosquitto':>10} {'ratio':>7}")
    for name, value in results["embedded"].items():
        other = results.get("mosquitto", {}).get(name)
        ratio = f"{ratios[name]:7.2f}" if name in ratios else f"{'-':>7}"
        compared = "" if other is None else f" {other:10.2f} {ratio}"
        print(f"{name:18} {value:10.2f}{compared}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
