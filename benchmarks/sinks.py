"""How many messages a second does a sink send, and how long after the change do they arrive?

    python -m benchmarks.sinks [--quick] [--json]

A coordinator's sink with its catalog on disk, from a change of the answer to a receiver in another
process: a subscriber behind a broker (Mosquitto where it is installed), or a web server on
loopback. New keys are written to the catalog before they are sent, changed keys are not, rows of a
stream are written behind.

* msg/s: 5,000 changes at once, until the receiver has the last of them;
* CPU us/msg: processor time of the sink's process;
* p50, p99 ms: from a change to its arrival, at 200 changes a second.

How to read it: receiver, broker and sink share this machine's cores. The delay of a webhook grows
with its batches: what changes while a request is on its way goes with the next one.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks._figures import print_tables
from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess
from broker.free_ports import free_port
from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.contract.sink_endpoints import WebhookEndpoint
from federated_optimizer.coordinator.queries.answers.results import QueryResult
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.sinks.mqtt_sender import BrokerTarget, MqttSender
from federated_optimizer.coordinator.sinks.outgoing import Sender
from federated_optimizer.coordinator.sinks.sink import Sink, SinkParts, make_sink
from federated_optimizer.coordinator.sinks.sink_memory import SinkMemory
from federated_optimizer.coordinator.sinks.webhook_sender import WebhookSender
from federated_optimizer.coordinator.sites.federation_membership import Membership
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from host.clocks import wall_clock
from host.mqtt import Message, open_client
from streamsql.algebra.operators import Plan, Scan, SourceKind, StreamKind, ToStream, Values
from streamsql.algebra.streams import Emit
from streamsql.catalog.sink_definitions import SinkConnector, SinkDefinition, SinkMode
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.wire.channel_protocol import SendingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

SCHEMA = Schema.of(("desk", DataType.TEXT), ("sent", DataType.INTEGER))
KEYS = 5_000
SECONDS = 120.0
CALM = 200
"""Changes a second at which delays are measured."""
SECRET = "a secret of the benchmark"  # noqa: S105 - it guards nothing


def listen(port: int, counts: Connection) -> None:
    """Subscribe, and tell delays of messages in milliseconds; runs in a process of its own."""

    async def scenario() -> None:
        client = open_client(f"mqtt://127.0.0.1:{port}", "receiver")

        def heard(burst: list[Message]) -> None:
            now = time.time_ns()
            rows = [json.loads(message.payload) for message in burst if message.payload]
            counts.send([(now - row["sent"]) / 1e6 for row in rows])

        client.on_messages(heard)
        await client.connect()
        await client.subscribe("bench/#")
        counts.send([])
        await asyncio.Event().wait()

    asyncio.run(scenario())


def serve(port: int, counts: Connection) -> None:
    """Serve webhooks, and tell delays of messages; runs in a process of its own."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().lower().split("\r\n")
                sizes = [line.partition(":")[2] for line in lines if "content-length" in line]
                said = json.loads(await reader.readexactly(int(sizes[0])))
                writer.write(b"HTTP/1.1 204 taken\r\n\r\n")
                now = time.time_ns()
                counts.send([(now - m["row"]["sent"]) / 1e6 for m in said["messages"]])
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", port) as server:
            counts.send([])
            await server.serve_forever()

    asyncio.run(scenario())


@contextlib.contextmanager
def receiver(work: Callable[[int, Connection], None], port: int) -> Iterator[Connection]:
    """Run a receiver that is ready."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(port, theirs), daemon=True)
    process.start()
    try:
        ours.recv()
        yield ours
    finally:
        process.terminate()
        process.join()


class Answer:
    """The answer of a query, which the benchmark changes."""

    def __init__(self, mode: SinkMode) -> None:
        stream = mode == SinkMode.APPEND
        plan: Plan = Scan("s", SourceKind.STREAM, SCHEMA)
        if stream:
            plan = ToStream(StreamKind.ISTREAM, Values((), Schema.of()), (), (), (), "sent")
        fragment = Fragment("f0", Engine.BASE, plan, ("base",))
        emit = Emit.STREAM if stream else Emit.RELATION
        bundle = FragmentBundle("q1", 1, (fragment,), SCHEMA, emit=emit)
        result = QueryResult(bundle, clock=wall_clock, max_behind=1)
        self.query = RunningQuery(
            *("q1", "sink bench", "", Origin.SINK, 0, bundle, result), Membership()
        )
        ports = ("f0",)
        self._channel = SendingChannel(
            version=1, epoch=1, ports=ports, streams=ports if stream else ()
        )
        self._is_stream = stream
        self._rows: dict[str, Row] = {}
        self.query.started = True

    def begin(self) -> None:
        """Send the first snapshot, which is empty."""
        for batch in self._channel.snapshot(now=0):
            self.query.result.accept("base", batch)

    def change(self, keys: list[str]) -> None:
        """Give keys new rows, which say when that was."""
        now, delta = time.time_ns(), {}
        for number, key in enumerate(keys):
            row = (key, now + number if self._is_stream else now)
            if not self._is_stream:
                if key in self._rows:
                    delta[self._rows[key]] = -1
                self._rows[key] = row
            delta[row] = 1
        for batch in self._channel.push("f0", delta, now=0):
            self.query.result.accept("base", batch)


@contextlib.asynccontextmanager
async def sending(
    definition: SinkDefinition, place: str, folder: Path
) -> AsyncIterator[tuple[Answer, Sink]]:
    """Run a sink whose catalog is looked after as a coordinator does."""
    store = CatalogStore(f"sqlite:///{folder}/catalog.db")
    store.claim(wall_clock())
    memory = SinkMemory(store, {})
    answer = Answer(definition.mode)
    sender: Sender
    if definition.connector == SinkConnector.MQTT:
        client = open_client(place, "sinks")
        await client.connect()
        target = BrokerTarget("the broker", client, lambda _topic: None, owns_client=True)
        sender = MqttSender(definition, SCHEMA, target)
    else:
        endpoint = WebhookEndpoint(url=place, secret=SECRET)
        sender = WebhookSender(definition, SCHEMA, endpoint, wall_clock)
    sink = make_sink(
        SinkParts(
            definition, answer.query, sender, memory, memory.of("bench"), wall_clock, lambda: True
        )
    )
    sink.is_met = True
    answer.begin()
    sink.start()
    writing = asyncio.create_task(_keep(memory))
    yield answer, sink
    writing.cancel()
    await sink.stop()
    if isinstance(sender, MqttSender):
        await target.close()
    store.close()


async def _keep(memory: SinkMemory) -> None:
    while True:
        await asyncio.sleep(0.25)
        await memory.write()


async def received(counts: Connection, number: int) -> list[float]:
    """Return the delays of so many messages."""
    delays: list[float] = []
    async with asyncio.timeout(SECONDS):
        while len(delays) < number:
            while counts.poll():
                delays += counts.recv()
            await asyncio.sleep(0.001)
    return delays


async def burst(answer: Answer, counts: Connection, keys: list[str]) -> tuple[float, float]:
    """Return messages a second and microseconds of processor time a message."""
    began, cpu = time.perf_counter(), time.process_time()
    answer.change(keys)
    await received(counts, len(keys))
    seconds, used = time.perf_counter() - began, time.process_time() - cpu
    return len(keys) / seconds, used / len(keys) * 1e6


async def calm(answer: Answer, counts: Connection, number: int) -> tuple[float, float]:
    """Return median and 99th percentile of the delays of changes that come one by one."""
    # Read while they come: a receiver whose pipe is full waits, and is late.
    reading = asyncio.create_task(received(counts, number))
    began = time.perf_counter()
    for each in range(number):
        answer.change([f"k{each % KEYS}"])
        await asyncio.sleep(max(0.0, began + (each + 1) / CALM - time.perf_counter()))
    delays = await reading
    return median(delays), quantiles(delays, n=100)[98]


async def measure(definition: SinkDefinition, place: str, counts: Connection, scale: int) -> Any:
    """Return the figures of one kind of sink."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with sending(definition, place, Path(folder)) as (answer, _sink):
            keys = [f"k{number}" for number in range(KEYS // scale)]
            names = ("rows",)
            if definition.mode == SinkMode.UPSERT:
                names = ("new keys", "changed keys")
            for name in names:
                runs = [await burst(answer, counts, keys)]
                if name != "new keys":
                    runs += [await burst(answer, counts, keys) for _ in range(3)]
                figures[f"{name}: msg/s"] = median(rate for rate, _ in runs)
                figures[f"{name}: CPU us/msg"] = median(cpu for _, cpu in runs)
            p50, p99 = await calm(answer, counts, 1_000 // scale)
            figures |= {f"p50 ms at {CALM}/s": p50, f"p99 ms at {CALM}/s": p99}
    return figures


def definition_of(connector: SinkConnector, mode: SinkMode) -> SinkDefinition:
    """Return a sink of a kind."""
    key = ("desk",) if mode == SinkMode.UPSERT else ()
    topic = "bench/{desk}" if connector == SinkConnector.MQTT else ""
    return SinkDefinition("bench", "", connector, mode, key=key, topic=topic)


def run(*, quick: bool) -> dict[str, dict[str, float]]:
    """Measure all kinds."""
    scale = 10 if quick else 1
    kind: Preference = "mosquitto" if find_mosquitto() is not None else "embedded"
    results: dict[str, dict[str, float]] = {}
    for mode in SinkMode:
        definition = definition_of(SinkConnector.MQTT, mode)
        with (
            tempfile.TemporaryDirectory() as folder,
            BrokerProcess(kind, Path(folder)) as broker,
            receiver(listen, broker.port) as counts,
        ):
            name = f"mqtt {mode} ({kind})"
            results[name] = asyncio.run(measure(definition, broker.url, counts, scale))
    for mode in SinkMode:
        definition = definition_of(SinkConnector.WEBHOOK, mode)
        port = free_port()
        with receiver(serve, port) as counts:
            place = f"http://127.0.0.1:{port}/"
            results[f"webhook {mode}"] = asyncio.run(measure(definition, place, counts, scale))
    return results


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Messages of sinks a second, and their delay.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    results = run(quick=options.quick)
    if options.json:
        print(json.dumps({"benchmark": "sinks", **results}))
    else:
        print_tables({"sinks": results}, digits=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
