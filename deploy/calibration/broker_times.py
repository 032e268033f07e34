"""A message over a broker: how long it takes, and what it costs the clients of both ends."""

import asyncio
import contextlib
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from broker.broker_launch import broker_command
from broker.free_ports import HOST, free_port
from deploy.calibration.rounds import Measurement, measurement
from host.mqtt import Message, MessageClient
from host.mqtt.opening import open_client
from streamsql.errors import DeploymentError

ROUNDS = 8
MESSAGES = 60
"""In a round, one after the other."""
PAYLOAD = bytes(60)
"""Of a small batch."""
START_SECONDS = 10.0
MESSAGE_SECONDS = 5.0
_TOPIC = "pando/calibration"


def broker_times(rounds: int = ROUNDS) -> Iterator[Measurement]:
    """Yield milliseconds of a hop, and microseconds of processor of a message at both ends.

    A broker of our own runs meanwhile, on loopback.

    Args:
        rounds: At least two.

    Raises:
        DeploymentError: It does not start, or a message does not arrive.
    """
    hops, micros = asyncio.run(_timed(rounds))
    yield measurement("message_microseconds", micros)
    yield measurement("hop_milliseconds", hops)


async def _timed(rounds: int) -> tuple[list[float], list[float]]:
    hops, micros = list[float](), list[float]()
    with tempfile.TemporaryDirectory(prefix="pando-calibrate-") as folder:
        async with _clients(Path(folder)) as (sender, receiver):
            arrived: asyncio.Queue[float] = asyncio.Queue()

            def heard(burst: list[Message]) -> None:
                for _message in burst:
                    arrived.put_nowait(time.perf_counter())

            receiver.on_messages(heard)
            await receiver.subscribe(_TOPIC)
            for number in range(rounds + 1):
                ways = list[float]()
                began = time.process_time()
                for _ in range(MESSAGES):
                    sent = time.perf_counter()
                    sender.publish(_TOPIC, PAYLOAD)
                    async with asyncio.timeout(MESSAGE_SECONDS):
                        ways.append(await arrived.get() - sent)
                used = time.process_time() - began
                if number:  # the first one warms up
                    hops.append(1e3 * sorted(ways)[MESSAGES // 2])
                    micros.append(1e6 * used / MESSAGES)
    return hops, micros


@contextlib.asynccontextmanager
async def _clients(folder: Path) -> AsyncIterator[tuple[MessageClient, MessageClient]]:
    port = free_port()
    command = broker_command(port, folder)
    log = folder / "broker.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)  # noqa: S603, ASYNC220
    try:
        await _until_open(port, process, log)
        async with contextlib.AsyncExitStack() as opened:
            found = []
            for name in ("sender", "receiver"):
                client = open_client(f"mqtt://{HOST}:{port}", f"calibrate-{name}")
                opened.push_async_callback(client.close)
                await client.connect()
                found.append(client)
            yield found[0], found[1]
    except TimeoutError:
        raise DeploymentError("a message over the broker did not arrive") from None
    finally:
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)


async def _until_open(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1):
            return
        await asyncio.sleep(0.05)
    said = await asyncio.to_thread(log.read_text, "utf-8", "replace")
    raise DeploymentError(f"a broker for the measurement did not start: {said[-300:].strip()}")
