"""A calendar in a file, for the conformance kit."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from tests.gateway.connectors.calendar.calendars import calendar, event
from tests.gateway.connectors.steady_peer import SteadyPeer


class CalendarPeer(SteadyPeer):
    """Writes a calendar with one reservation of a century; its folder is moved away while it is."""

    statement = """
    CREATE SOURCE counted (number INTEGER FROM 'title', rid TEXT, KEY (number))
    WITH (connector = 'calendar', endpoint = 'trial')
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder / "calendars"
        self._away = folder / "away"
        self._away.mkdir()
        self._write(0)

    @property
    def endpoint(self) -> Mapping[str, object]:
        return {"location": str(self._folder / "c.ics"), "period": 0.05, "refresh": 0.1}

    async def serve(self, running: contextlib.AsyncExitStack) -> None:
        self._away.rename(self._folder)
        running.callback(self._folder.rename, self._away)

    async def send(self, number: int) -> None:
        self._write(number)

    async def send_bad(self) -> None:
        (self._folder / "c.ics").write_bytes(b"no calendar")

    def _write(self, number: int) -> None:
        century = event(":20000101T000000Z", ":21000101T000000Z", title=str(number))
        folder = self._folder if self._folder.exists() else self._away
        (folder / "c.ics").write_bytes(calendar(century))
