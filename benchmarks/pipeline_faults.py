"""Kills everything between gateways and the lake, and counts what is missing or there twice.

    python -m benchmarks.pipeline_faults [--faults 200] [--seed 7] [--quick] [--json] [--out FOLDER]

Three gateways take 600 readings a second, with lanes, buffers and answers of real ones. A broker
(Mosquitto where it is installed; killed, it has forgotten everything), a lander and a static engine
with Spark are processes of their own. At random moments, some in the midst of a batch, one of these
happens:

* lander, broker, engine, Java, worker: kill -9; the first three are started again after up to two
  seconds, the other two by the engine and by Spark;
* landed disk, lake disk: there is no room for some seconds (root only: a file system in memory).

Per kind: how often, and seconds until the next rows were visible (median, longest). At the end,
read by pyiceberg and DuckDB: readings that were sent, are missing, are there twice, or differ.
Exits with 1 unless the last three are 0.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

import psutil

from benchmarks._figures import print_tables, write_results
from benchmarks._pipeline_faults.house import Disk, House
from benchmarks._pipeline_faults.lake_counts import Kept
from benchmarks._pipeline_faults.senders import CLIMATE, ROWS, Sender

GATEWAYS = 3
FAULTS, QUICK_FAULTS = 200, 4
START_SECONDS = 180.0
CALM_SECONDS = 240.0
"""Until all rows are there, or nothing has come for so long."""
COMMIT_SECONDS = 120.0
LOOK_SECONDS = 0.25
WAITING = 0.4
"""Share of the faults before which rows are waited for, so that work is under way."""

Figures = dict[str, float | None]


class Watch:
    """Notes when rows became visible."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._snapshot: int | None = None
        self.times: list[float] = []

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            found = await asyncio.to_thread(self._kept.snapshot)
            if found != self._snapshot:
                self._snapshot = found
                self.times.append(time.monotonic())
            await asyncio.sleep(LOOK_SECONDS)  # time passes: between two looks at the lake

    async def next(self, seconds: float) -> bool:
        """Wait for rows; return whether some came."""
        known, end = len(self.times), time.monotonic() + seconds
        while len(self.times) == known and time.monotonic() < end:  # noqa: ASYNC110 - bounded
            await asyncio.sleep(LOOK_SECONDS)  # time passes: between two looks at the lake
        return len(self.times) > known

    def pause(self, since: float) -> float | None:
        """Return the seconds from a moment until rows came."""
        return next((at - since for at in self.times if at > since), None)


class Faults:
    """The faults by kind, for one house."""

    def __init__(self, house: House, seed: int) -> None:
        self._house = house
        self._random = random.Random(seed)
        self.kinds: dict[str, Callable[[], Awaitable[bool]]] = {
            "lander": self._lander,
            "broker": self._broker,
            "engine": self._engine,
            "Java": lambda: self._child("java"),
            "worker": lambda: self._child("pyspark"),
        }
        if house.landed.is_own and house.warehouse.is_own:
            self.kinds |= {"landed disk": self._landed_disk, "lake disk": self._lake_disk}

    async def _away(self) -> None:
        await asyncio.sleep(self._random.uniform(0, 2))  # time passes: nobody starts it at once

    async def _lander(self) -> bool:
        await asyncio.to_thread(self._house.lander.end)
        await self._away()
        self._house.lander.start()
        return True

    async def _broker(self) -> bool:
        await asyncio.to_thread(self._house.broker.stop, 9)
        await self._away()
        await asyncio.to_thread(self._house.broker.start)
        return True

    async def _engine(self) -> bool:
        await asyncio.to_thread(self._house.static.end)
        await self._away()
        self._house.static.start()
        return True

    async def _child(self, word: str) -> bool:
        found = await asyncio.to_thread(self._house.static.below, word)
        if word == "pyspark":
            found = [each for each in found if "java" not in each.name()]
        if not found:
            return False
        with contextlib.suppress(psutil.Error):
            self._random.choice(found).kill()
        return True

    async def _landed_disk(self) -> bool:
        return await self._full(self._house.landed)

    async def _lake_disk(self) -> bool:
        return await self._full(self._house.warehouse)

    async def _full(self, disk: Disk) -> bool:
        await asyncio.to_thread(disk.fill)
        await asyncio.sleep(self._random.uniform(1, 4))  # time passes: nothing can be written
        await asyncio.to_thread(disk.clear)
        return True


async def let_happen(house: House, watch: Watch, count: int, seed: int) -> dict[str, list[float]]:
    """Let faults happen; return by kind the moments when each was over."""
    rng, faults = random.Random(seed), Faults(house, seed)
    happened: dict[str, list[float]] = defaultdict(list)
    began = time.monotonic()
    for number in range(count):
        if rng.random() < WAITING:
            await watch.next(COMMIT_SECONDS)
        await asyncio.sleep(rng.uniform(0.2, 3))  # time passes: a moment by chance
        kinds = list(faults.kinds)
        # Every kind once, then by chance.
        kind = kinds[number] if number < len(kinds) else rng.choice(kinds)
        while not await faults.kinds[kind]():  # nothing of that kind runs just now
            kind = rng.choice(kinds)
        happened[kind].append(time.monotonic())
        passed = time.monotonic() - began
        print(
            f"\r{number + 1}/{count} faults, {passed:.0f} s, {len(watch.times)} commits: {kind:12}",
            end="",
            file=sys.stderr,
            flush=True,
        )
    print(file=sys.stderr)
    return happened


async def measure(folder: Path, count: int, seed: int, cores: int) -> dict[str, dict[str, Figures]]:
    """Return figures by kind, and the counts."""
    house = House(folder, cores)
    with house.running():
        kept = Kept(house.catalog, house.warehouse.folder / "lake", CLIMATE.name)
        watch = Watch(kept)
        senders = [Sender(house.broker.url, f"gw-{n}", folder) for n in range(1, GATEWAYS + 1)]
        ended = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for sender in senders:
                await sender.start()
            tasks = [group.create_task(sender.run(ended)) for sender in senders]
            tasks.append(group.create_task(watch.run()))
            if not await watch.next(START_SECONDS):
                raise TimeoutError(f"no row is in the lake after {START_SECONDS:g} s")
            happened = await let_happen(house, watch, count, seed)
            ended.set()
            sent = {sender.name: sender.packs for sender in senders}
            wanted = sum(sent.values()) * ROWS
            last = time.monotonic()
            while await asyncio.to_thread(kept.rows) < wanted:
                if not await watch.next(CALM_SECONDS):
                    break
            late = time.monotonic() - last
            for task in tasks:
                task.cancel()
        for sender in senders:
            await sender.close()
        counts = await asyncio.to_thread(kept.counts, sent, ROWS)
    pauses: dict[str, Figures] = {}
    for kind, moments in happened.items():
        found = [pause for at in moments if (pause := watch.pause(at)) is not None]
        pauses[kind] = {
            "faults": float(len(moments)),
            "median s until rows": median(found) if found else None,
            "longest s until rows": max(found, default=None),
        }
    all_of: Figures = {name: float(number) for name, number in counts.items()}
    all_of |= {"faults": float(count), "commits": float(len(watch.times)), "s to the end": late}
    return {"faults": pauses, "readings": {"all": all_of}}


def main() -> int:
    """Return 1 when readings are missing, twice or wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--faults", type=int, help=f"how many; {FAULTS}")
    parser.add_argument("--seed", type=int, default=7, help="of the moments and kinds")
    parser.add_argument("--cores", type=int, default=2, help="of Spark")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_FAULTS} faults")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, help="folder for pipeline-faults.json")
    parser.add_argument("--keep", type=Path, help="folder that is kept, with the logs")
    given = parser.parse_args()
    count = given.faults or (QUICK_FAULTS if given.quick else FAULTS)
    with contextlib.ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        found = asyncio.run(measure(folder, count, given.seed, given.cores))
    if given.json:
        print(json.dumps(found))
    else:
        print_tables(found, digits=1)
    write_results(given.out, "pipeline-faults.json", found)
    counts = found["readings"]["all"]
    return int(any(counts.get(name) != 0 for name in ("missing", "twice", "wrong")))


if __name__ == "__main__":
    sys.exit(main())
