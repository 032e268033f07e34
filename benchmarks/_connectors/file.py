"""The connector file beside reading lines and msgspec: a log of JSON lines, read to its end."""

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks._connectors.pair import Cost, Pair, Stopwatch, measure
from gateway.connectors.file.file_connector import FileConnector

LINES = 1_500_000
SOURCE = """
CREATE SOURCE meter (device TEXT, watts DOUBLE, KEY (device))
WITH (connector = 'file', files = '*.log')
"""


@contextlib.contextmanager
def _log(seconds: float) -> Iterator[Path]:
    """Write a log with more lines than can be read in the time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "meter.log"
        with path.open("w", encoding="utf-8") as file:
            for number in range(int(LINES * min(seconds / 5, 1))):
                file.write(f'{{"device": "d{number % 1_000}", "watts": {number / 8}}}\n')
        yield path


async def connector(seconds: float) -> Cost:
    """Read the log in batches."""
    with _log(seconds) as path:
        return await measure(FileConnector(), {"folder": str(path.parent)}, SOURCE, seconds)


async def bare(seconds: float) -> Cost:
    """Read and decode the same lines, and do no more."""
    with _log(seconds) as path, path.open("rb") as file:
        readings, watch = 0, Stopwatch()
        while (cost := watch.cost(readings)).seconds < seconds:
            lines = file.readlines(100_000)
            if not lines:
                break
            decoded = [msgspec.json.decode(line) for line in lines]
            watch.keep((each["device"], each["watts"]) for each in decoded)
            readings += len(lines)
            await asyncio.sleep(0)
    return cost


PAIR = Pair(connector, bare)
