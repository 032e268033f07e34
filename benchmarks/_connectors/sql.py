"""The connector sql beside sqlite3: a table of readings in SQLite, read to its end."""

import asyncio
import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks._connectors.pair import Cost, Pair, Stopwatch, measure
from gateway.connectors.sql.sql_connector import SqlConnector

READINGS = 2_000_000
PAGE = 1_000
SOURCE = """
CREATE SOURCE meter (device TEXT, watts DOUBLE, KEY (device))
WITH (connector = 'sql', table = 'readings', watermark = 'id')
"""


@contextlib.contextmanager
def _database(seconds: float) -> Iterator[Path]:
    """Make a database with more readings than can be read in the time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plant.db"
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE readings (id INTEGER PRIMARY KEY, device, watts)")
            rows = ((f"d{n % 1_000}", n / 8) for n in range(int(READINGS * min(seconds / 5, 1))))
            connection.executemany("INSERT INTO readings (device, watts) VALUES (?, ?)", rows)
        yield path


async def connector(seconds: float) -> Cost:
    """Read the table in pages."""
    with _database(seconds) as path:
        return await measure(SqlConnector(), {"url": f"sqlite:///{path}"}, SOURCE, seconds)


async def bare(seconds: float) -> Cost:
    """Read the same pages, and do no more."""
    query = "SELECT device, watts, id FROM readings WHERE id > ? ORDER BY id LIMIT ?"
    with _database(seconds) as path, contextlib.closing(sqlite3.connect(path)) as connection:
        readings, last, watch = 0, 0, Stopwatch()
        while (cost := watch.cost(readings)).seconds < seconds:
            rows = connection.execute(query, (last, PAGE)).fetchall()
            if not rows:
                break
            watch.keep((device, watts) for device, watts, _ in rows)
            readings, last = readings + len(rows), rows[-1][2]
            await asyncio.sleep(0)
    return cost


PAIR = Pair(connector, bare)
