"""A table of numbers, for the conformance kit."""

import contextlib
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.gateway.connectors.steady_peer import SteadyPeer


class TablePeer(SteadyPeer):
    """Writes rows into a SQLite database, whose file is moved away while the peer is."""

    lasting = True
    statement = """
    CREATE SOURCE counted (number INTEGER)
    WITH (connector = 'sql', endpoint = 'trial', table = 'counted', watermark = 'id',
          interval = '0.1 s')
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._file = folder / "plant.db"
        self._away = folder / "away.db"
        with contextlib.closing(sqlite3.connect(self._away)) as base, base:
            base.execute("CREATE TABLE counted (id INTEGER PRIMARY KEY, number)")

    @property
    def endpoint(self) -> Mapping[str, object]:
        return {"url": f"sqlite:///{self._file}"}

    async def serve(self, running: contextlib.AsyncExitStack) -> None:
        self._away.rename(self._file)
        running.callback(self._file.rename, self._away)

    async def send(self, number: int) -> None:
        self._insert([number])

    async def send_bad(self) -> None:
        self._insert(["no number"])

    async def flood(self, numbers: range) -> None:
        self._insert(numbers)

    def _insert(self, numbers: Iterable[object]) -> None:
        with contextlib.closing(sqlite3.connect(self._file, timeout=30)) as base, base:
            base.executemany(
                "INSERT INTO counted (number) VALUES (?)", [(number,) for number in numbers]
            )
