"""Cost of landing a reading, beside a bare writer from paho to Parquet.

    python -m benchmarks.pipeline [--quick] [--json] [--out FOLDER]

Packs of 100 readings come from 20 gateways at 1,000, 5,000 and 20,000 readings a second, through
a broker on this machine (Mosquitto where it is installed). A lander writes them, then, at the same
rate, a program of forty lines that acknowledges at once and syncs nothing. Per rate:

* µs, bare µs: CPU time of the process a reading; what it does at rest is taken off the lander's;
* ratio: of the two; the target is 1.5 at most;
* lost: packs that are in no segment;
* twice: packs that are in more than one;
* MB: the lander's resident set after the load.

Exits with 1 when packs are lost. The ratio counts; microseconds of different days do not compare.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import psutil

from benchmarks._figures import print_tables, write_results
from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import PATIENCE, BrokerProcess
from host.mqtt import open_client
from static_engine.landing.lander_settings import LanderSettings
from static_engine.landing.segment_files import read_segment, segments
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.codec import decode_json, encode_json
from streamsql.wire.messages import ObservationPack
from streamsql.wire.senml import records_of_rows
from streamsql.wire.topics import Topics

ROOT = Path(__file__).resolve().parent.parent
BARE = ROOT / "benchmarks" / "_pipeline" / "bare_writer.py"
TOPICS = Topics("bench")
GATEWAYS = 20
READINGS = 100
"""Of a pack."""
RATES = (1_000, 5_000, 20_000)
SECONDS, QUICK_SECONDS = 20.0, 3.0
REST_SECONDS = 3.0
SCHEMA = Schema.of(("sensor", DataType.TEXT), ("celsius", DataType.DOUBLE))

Figures = dict[str, float | None]


def pack_of(number: int) -> bytes:
    """Return a pack with values of its own."""
    seconds = 1_795_700_000 + number
    rows = [
        (
            f"s{place}",
            seconds * 1_000_000 + place,
            (f"s{place}", (number * 7919 + place) % 4000 / 100),
        )
        for place in range(READINGS)
    ]
    return encode_json(ObservationPack(1, number, tuple(records_of_rows(rows, SCHEMA)), n=number))


async def send(url: str, rate: int, seconds: float, first: int) -> int:
    """Publish packs at a steady rate of readings; return how many of each gateway."""
    client = open_client(url, "sender")
    await client.connect()
    each = max(int(rate * seconds / READINGS / GATEWAYS), 1)
    packs = [
        (TOPICS.observation(f"gw-{gateway}", "climate"), pack_of(first + number))
        for number in range(each)
        for gateway in range(GATEWAYS)
    ]
    start = time.monotonic()
    for count, (topic, payload) in enumerate(packs):
        ahead = count * READINGS / rate - (time.monotonic() - start)
        if ahead > 0.002:
            await asyncio.sleep(ahead)  # time passes: the rate is the load
        client.publish(topic, payload)
    await client.close()
    return each


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        await asyncio.sleep(0.1)  # time passes: between two looks at another process


def started(command: list[str]) -> subprocess.Popen[bytes]:
    """Start a process whose output is read."""
    return subprocess.Popen(  # noqa: S603
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def cpu(process: psutil.Process) -> float:
    """Return the CPU seconds of a process so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


class Landed:
    """Counts packs in segments, each file once."""

    def holds(self, number: int) -> bool:
        """Whether there are so many packs."""
        return self.look() >= number

    def __init__(self, folder: Path) -> None:
        self.packs: Counter[tuple[str, int]] = Counter()
        self._folder = folder
        self._seen: set[Path] = set()

    def look(self) -> int:
        """Read new segments; return how many packs there are."""
        for path in segments(self._folder):
            if path in self._seen:
                continue
            self._seen.add(path)
            table = read_segment(path)
            topics, payloads = table.column("topic"), table.column("payload")
            for topic, payload in zip(topics.to_pylist(), payloads.to_pylist(), strict=True):
                match TOPICS.parts(topic):
                    case ["gw", gateway, "obs", _]:
                        self.packs[gateway, decode_json(payload, ObservationPack).seq] += 1
                    case _:
                        pass
        return len(self.packs)


async def lander_figures(
    url: str, folder: Path, rates: tuple[int, ...], seconds: float
) -> dict[int, Figures]:
    """Return the lander's figures by rate."""
    settings = LanderSettings(url, str(folder / "data"), str(folder / "segments"), site="bench")
    file = folder / "lander.json"
    file.write_bytes(msgspec.json.encode(settings))
    command = [sys.executable, "-m", "static_engine.landing", "--config", str(file)]
    found: dict[int, Figures] = {}
    with started(command) as child:
        try:
            process, landed = psutil.Process(child.pid), Landed(folder / "segments")
            await until(lambda: bool(segments(folder / "segments")), "the lander lands its state")
            first = await send(url, RATES[0], 1.0, 0)
            await until(partial(landed.holds, first * GATEWAYS), "the first packs")
            before = cpu(process)
            await asyncio.sleep(REST_SECONDS)  # time passes: what it does at rest
            rest = (cpu(process) - before) / REST_SECONDS
            for rate in rates:
                before, began, known = cpu(process), time.monotonic(), len(landed.packs)
                each = await send(url, rate, seconds, first)
                first += each
                wanted = known + each * GATEWAYS
                with contextlib.suppress(TimeoutError):  # they are counted as lost
                    await until(partial(landed.holds, wanted), "landed")
                used = cpu(process) - before - rest * (time.monotonic() - began)
                found[rate] = {
                    "µs": used / (each * GATEWAYS * READINGS) * 1e6,
                    "lost": float(wanted - len(landed.packs)),
                    "twice": float(sum(count > 1 for count in landed.packs.values())),
                    "MB": process.memory_info().rss / 1e6,
                }
        finally:
            child.terminate()
    return found


async def bare_figures(
    url: str, port: int, folder: Path, rates: tuple[int, ...], seconds: float
) -> dict[int, float]:
    """Return the bare writer's µs a reading, by rate."""
    command = [sys.executable, str(BARE), str(port), TOPICS.observation(), str(folder)]
    found: dict[int, float] = {}
    with started(command) as child:
        try:
            assert child.stdout is not None  # noqa: S101
            await asyncio.to_thread(child.stdout.readline)
            process = psutil.Process(child.pid)
            first = await send(url, RATES[0], 1.0, 0)  # it loads what it needs
            await asyncio.sleep(2.5)  # time passes: it writes its first file
            for rate in rates:
                before = cpu(process)
                each = await send(url, rate, seconds, first)
                first += each
                await asyncio.sleep(2.5)  # time passes: it writes its last file
                found[rate] = (cpu(process) - before) / (each * GATEWAYS * READINGS) * 1e6
        finally:
            child.kill()
    return found


async def measure(rates: tuple[int, ...], seconds: float) -> dict[str, Figures]:
    """Return all figures by rate."""
    kind: Preference = "embedded" if find_mosquitto() is None else "mosquitto"
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "bare").mkdir()
        with BrokerProcess(kind, folder) as place:
            found = await lander_figures(place.url, folder, rates, seconds)
        with BrokerProcess(kind, folder) as place:
            bare = await bare_figures(place.url, place.port, folder / "bare", rates, seconds)
    return {
        f"{rate:,} readings/s": {
            **figures,
            "bare µs": bare[rate],
            "ratio": (figures["µs"] or 0.0) / bare[rate] if bare[rate] else None,
        }
        for rate, figures in found.items()
    }


def arguments() -> argparse.ArgumentParser:
    """Return the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="short loads")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, help="folder for pipeline.json")
    return parser


def main() -> int:
    """Return 1 when packs are lost."""
    given = arguments().parse_args()
    seconds = QUICK_SECONDS if given.quick else SECONDS
    found = asyncio.run(measure(RATES[:2] if given.quick else RATES, seconds))
    if given.json:
        print(json.dumps({"landing": found}))
    else:
        print_tables({"landing": found}, digits=2)
    write_results(given.out, "pipeline.json", {"landing": found})
    return int(any(figures["lost"] for figures in found.values()))


if __name__ == "__main__":
    sys.exit(main())
