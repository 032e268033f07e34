"""Readings from the broker into the lake: sustained rates, lag, and what the processes weigh.

    python -m benchmarks.into_lake [--quick] [--json] [--out FOLDER]

Packs of 100 readings come from 20 gateways at 1,000, 5,000 and 20,000 readings a second through a
broker on this machine (Mosquitto where it is installed). A lander writes segments, and a static
engine with its own Spark makes rows of the lake of them. Per rate:

* rows/s: rows that became visible a second, from the first pack sent to the last row seen;
* p50, p99, max s: age of a reading when its row becomes visible, by the clock of its sending;
* missing, twice: rows that are not there, or more than once;
* ratio: of the rate that was sent to that of the rows, the last batch included; 1 means that the
  pipeline keeps up;
* lander, engine µs: CPU time a reading; the engine's with its Java and its Python workers.

Beside them: MB of lander, static engine, its Java and its Python workers after the loads, what
several share divided among them.
Exits with 1 when rows are missing or there twice.
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
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles

import msgspec
import psutil

from benchmarks._figures import print_tables, write_results
from benchmarks.pipeline import (
    GATEWAYS,
    RATES,
    READINGS,
    ROOT,
    SCHEMA,
    TOPICS,
    cpu,
    send,
    until,
)
from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess
from host.mqtt import open_client
from static_engine.lake.lake import Lake
from static_engine.lake.lake_errors import NotKeptError
from static_engine.lake.lake_settings import LakeSettings
from static_engine.landing.lander_settings import LanderSettings
from static_engine.landing.segment_files import segments
from static_engine.static_settings import StaticSettings
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.wire.codec import encode_json
from streamsql.wire.site_messages import Birth
from streamsql.wire.source_shapes import shape_of

SOURCE = "climate"
SECONDS, QUICK_SECONDS = 60.0, 2.0
PATIENCE = 240.0
"""Seconds until what was sent is in the lake; the first time Spark starts meanwhile."""
LOOK_SECONDS = 0.25
POINTS = 50
"""Ages taken of each step of the number of rows."""

Figures = dict[str, float | None]


class Running:
    """A lander and a static engine with one lake."""

    def __init__(self, url: str, folder: Path) -> None:
        self._folder = folder
        self._lake = LakeSettings(f"sqlite:///{folder / 'catalog.db'}", str(folder / "lake"))
        self._segments = folder / "segments"
        landed = str(self._segments)
        lander = LanderSettings(url, str(folder / "lander"), landed, site="bench")
        engine = StaticSettings(
            url,
            str(folder / "static"),
            class_data_archive=False,  # it would go with the folder
            site="bench",
            lake=self._lake,
            segments=landed,
        )
        self._commands = {
            "lander": self._command("static_engine.landing", lander),
            "static engine": self._command("static_engine", engine),
        }
        self._processes: dict[str, psutil.Process] = {}

    @contextlib.contextmanager
    def started(self) -> Iterator[None]:
        """Run both until the block ends."""
        with contextlib.ExitStack() as stack:
            for name, command in self._commands.items():
                log = stack.enter_context((self._folder / f"{name}.log").open("wb"))
                child = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)  # noqa: S603
                stack.callback(child.wait, 60)
                stack.callback(child.terminate)
                self._processes[name] = psutil.Process(child.pid)
            yield

    def has_landed(self) -> bool:
        """True once the lander has written what the broker retained: it is subscribed."""
        return bool(segments(self._segments))

    def rows(self) -> int:
        """Return how many rows are visible."""
        try:
            return Lake(self._lake).plan(SOURCE, columns=["_seq"]).rows
        except NotKeptError:
            return 0

    def twice(self) -> int:
        """Return how many rows are there more than once."""
        scan = Lake(self._lake).plan(SOURCE, columns=["_gateway", "_epoch", "_seq", "_place"])
        seen: set[tuple[object, ...]] = set()
        count = 0
        for batch in scan.batches():
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                count += row in seen
                seen.add(row)
        return count

    def megabytes(self) -> dict[str, float]:
        """Return what the processes hold, a page of several in parts."""
        found = {name: _held(process) for name, process in self._processes.items()}
        for label, is_it in (("Java", "java"), ("Python workers", "python")):
            found[label] = 0.0
            for process in self._below():
                with contextlib.suppress(psutil.NoSuchProcess):  # a worker that was idle
                    if is_it in process.name():
                        found[label] += _held(process)
        return found

    def cpu_seconds(self) -> dict[str, float]:
        """Return the CPU time of the lander, and of the engine with all below it."""
        spent = 0.0
        for process in (self._processes["static engine"], *self._below()):
            with contextlib.suppress(psutil.NoSuchProcess):
                spent += cpu(process)
        return {"lander": cpu(self._processes["lander"]), "engine": spent}

    def _below(self) -> list[psutil.Process]:
        below = self._processes["static engine"].children(recursive=True)
        return [process for process in below if process.is_running()]

    def _command(self, module: str, settings: msgspec.Struct) -> list[str]:
        file = self._folder / f"{module}.json"
        file.write_bytes(msgspec.json.encode(settings))
        return [sys.executable, "-m", module, "--config", str(file)]


def _held(process: psutil.Process) -> float:
    return float(process.memory_full_info().pss) / 1e6


async def tell_births(url: str) -> None:
    """Let gateways say what the source looks like."""
    definition = SourceDefinition(SOURCE, SourceKind.STREAM, SCHEMA)
    client = open_client(url, "births")
    await client.connect()
    for number in range(GATEWAYS):
        gateway = f"gw-{number}"
        birth = Birth(gateway, 1, 0, 1, sources=(SOURCE,), shapes=(shape_of(definition.scan()),))
        await client.publish(TOPICS.birth(gateway), encode_json(birth), retain=True).wait(10)
    await client.close()


async def seen(running: Running, wanted: int) -> list[tuple[float, int]]:
    """Return the number of rows at each look, until there are so many or patience ends."""
    looks: list[tuple[float, int]] = []
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        rows = await asyncio.to_thread(running.rows)
        looks.append((time.monotonic(), rows))
        if rows >= wanted:
            break
        await asyncio.sleep(LOOK_SECONDS)  # time passes: between two looks at the lake
    return looks


def ages(looks: list[tuple[float, int]], before: int, start: float, rate: int) -> list[float]:
    """Return ages of readings when their rows were first seen; they are sent at a steady rate."""
    found: list[float] = []
    known = before
    for at, rows in looks:
        if rows <= known:
            continue
        step = (rows - known) / POINTS
        found += [at - start - (known - before + step * point) / rate for point in range(POINTS)]
        known = rows
    return found


async def measure(rates: tuple[int, ...], seconds: float) -> dict[str, dict[str, Figures]]:
    """Return the figures by rate, and the memory of the processes."""
    kind: Preference = "embedded" if find_mosquitto() is None else "mosquitto"
    found: dict[str, dict[str, float | None]] = {}
    with tempfile.TemporaryDirectory() as text, BrokerProcess(kind, Path(text)) as place:
        running = Running(place.url, Path(text))
        with running.started():
            await tell_births(place.url)
            # The broker keeps nothing for a lander that has never been there.
            await until(running.has_landed, "the lander has written nothing")
            first = await send(place.url, RATES[0], 1.0, 0)
            rows = first * GATEWAYS * READINGS
            if (await seen(running, rows))[-1][1] < rows:
                raise TimeoutError(f"the first packs are not in the lake after {PATIENCE:g} s")
            for rate in rates:
                start, before = time.monotonic(), running.cpu_seconds()
                each = max(int(rate * seconds / READINGS / GATEWAYS), 1)
                wanted = rows + each * GATEWAYS * READINGS
                looking = asyncio.create_task(seen(running, wanted))
                await send(place.url, rate, seconds, first)
                looks = await looking
                old = ages(looks, rows, start, rate)
                cuts = quantiles(old, n=100) if len(old) > 1 else [0.0] * 99
                taken = (looks[-1][1] - rows) / (looks[-1][0] - start)
                found[f"{rate:,} readings/s"] = {
                    "rows/s": taken,
                    "p50 s": cuts[49],
                    "p99 s": cuts[98],
                    "max s": max(old, default=None),
                    "missing": float(wanted - looks[-1][1]),
                    "ratio": rate / taken if taken else None,
                }
                after = running.cpu_seconds()
                for name in before:
                    spent = after[name] - before[name]
                    found[f"{rate:,} readings/s"][f"{name} µs"] = spent * 1e6 / (wanted - rows)
                rows, first = looks[-1][1], first + each
            weights: dict[str, Figures] = {"MB": {**await asyncio.to_thread(running.megabytes)}}
            found["all"] = {"twice": float(await asyncio.to_thread(running.twice))}
    return {"into the lake": found, "memory": weights}


def main() -> int:
    """Return 1 when rows are missing or there twice."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one rate, a short load")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, help="folder for into-lake.json")
    given = parser.parse_args()
    seconds = QUICK_SECONDS if given.quick else SECONDS
    found = asyncio.run(measure(RATES[:1] if given.quick else RATES, seconds))
    if given.json:
        print(json.dumps(found))
    else:
        print_tables(found, digits=2)
    write_results(given.out, "into_lake.json", found)
    return int(
        any(each.get("missing") or each.get("twice") for each in found["into the lake"].values())
    )


if __name__ == "__main__":
    sys.exit(main())
