"""A folder with a log, for the conformance kit."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from tests.gateway.connectors.steady_peer import SteadyPeer


class FolderPeer(SteadyPeer):
    """Writes a log; the folder is moved away while the peer is."""

    lasting = True
    statement = """
    CREATE SOURCE counted (number INTEGER)
    WITH (connector = 'file', endpoint = 'trial', files = 'counted.log', interval = '0.1 s')
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder / "logs"
        self._away = folder / "away"
        self._away.mkdir()

    @property
    def endpoint(self) -> Mapping[str, object]:
        return {"folder": str(self._folder)}

    async def serve(self, running: contextlib.AsyncExitStack) -> None:
        self._away.rename(self._folder)
        running.callback(self._folder.rename, self._away)

    async def send(self, number: int) -> None:
        self._append(f'{{"number": {number}}}\n')

    async def send_bad(self) -> None:
        self._append('{"number": \n')

    async def send_huge(self, number: int) -> None:
        self._append(f'{{"number": {number}, "padding": "{"x" * 1_500_000}"}}\n')

    async def flood(self, numbers: range) -> None:
        self._append("".join(f'{{"number": {number}}}\n' for number in numbers))

    def _append(self, text: str) -> None:
        with (self._folder / "counted.log").open("a") as log:
            log.write(text)
