"""A row is there while a reservation holds, whatever happens to file and process."""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.connectors.calendar.calendar_connector import CalendarConnector
from gateway.connectors.connector import ConnectorContext
from gateway.connectors.reading import Memory, Reading
from gateway.intake.validation import event_of
from gateway.testing import SECOND, until
from streamsql.data.types import timestamp_of
from streamsql.errors import DeploymentError
from tests.gateway.connectors.building import building_sources, context_for
from tests.gateway.connectors.calendar.answers import Answers, serving
from tests.gateway.connectors.calendar.calendars import MONDAY, calendar, event
from tests.loop_turns import calls


class Room:
    """A connector on a file, the rows it has emitted, and its problems."""

    def __init__(self, file: str, **options: Any) -> None:
        self.now = timestamp_of(MONDAY + timedelta(hours=9))
        self.rows: dict[tuple[object, ...], dict[str, object]] = {}
        self.readings: list[Reading] = []
        self.problems: list[str] = []
        self.connector = CalendarConnector()
        self.memory: Memory | None = None
        plain = {"location": file, "period": 0.02, "refresh": 0.05}
        self.endpoint = {**plain, **options}
        self.context = self.make_context()

    def make_context(self, version: int = 1) -> ConnectorContext:
        definition = building_sources()["roomreservation"]
        return context_for(
            [msgspec.structs.replace(definition, version=version)],
            self.endpoint,
            clock=lambda: self.now,
            emit=self._emit,
            problem=self.problems.append,
            memory=self.memory,
            remember=self._remember,
        )

    def _remember(self, memory: Memory) -> None:
        self.memory = memory

    def _emit(self, readings: Any) -> None:
        source = building_sources()["roomreservation"]
        for reading in readings:
            self.readings.append(reading)
            row = event_of(reading, source, self.now).row
            key = tuple(row[position] for position in source.key)
            if reading.delete:
                del self.rows[key]
            else:
                self.rows[key] = dict(reading.values)

    def titles(self) -> list[str]:
        return sorted(str(row["title"]) for row in self.rows.values())

    def run(self, scenario: Callable[[asyncio.Task[None]], Any]) -> None:
        async def whole() -> None:
            task = asyncio.create_task(self.connector.run(self.context))
            await scenario(task)
            task.cancel()

        asyncio.run(whole())


def test_rows_come_change_and_go_with_time_and_file(tmp_path: Path) -> None:
    file = tmp_path / "c.ics"
    first = event(":20260302T090000Z", ":20260302T100000Z", title="first")
    second = event(":20260302T093000Z", ":20260302T110000Z", room="L102", title="second")
    file.write_bytes(calendar(first, second))
    room = Room(str(file))

    async def scenario(_task: asyncio.Task[None]) -> None:
        await until(lambda: room.titles() == ["first"])
        room.now += 1_800 * SECOND
        await until(lambda: room.titles() == ["first", "second"])
        room.now += 1_800 * SECOND
        await until(lambda: room.titles() == ["second"])
        file.write_bytes(calendar(second.replace("T110000Z", "T120000Z")))
        longer = timestamp_of(MONDAY + timedelta(hours=12))
        await until(lambda: [row["ends"] for row in room.rows.values()] == [longer])
        file.write_bytes(calendar(second + "\nSTATUS:CANCELLED"))
        await until(lambda: room.titles() == [])
        count = len(room.readings)
        await calls(room.connector, "_refresh")
        await calls(room.connector, "_look")
        assert len(room.readings) == count, "nothing is said while nothing changes"
        assert room.problems == []

    room.run(scenario)


@pytest.mark.parametrize("content", [b"BEGIN:VCALENDAR\r\nX", b"", None])
def test_a_file_that_breaks_keeps_the_old_rows_and_is_reported(
    tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "c.ics"
    good = calendar(event(":20260302T090000Z", ":20260302T100000Z", "RRULE:FREQ=DAILY"))
    file.write_bytes(good)
    room = Room(str(file))

    async def scenario(task: asyncio.Task[None]) -> None:
        await until(lambda: room.titles() == ["Lecture"])
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        await until(lambda: len(room.problems) >= 3, "reported at every reading")
        assert str(file) in room.problems[0]
        assert room.titles() == ["Lecture"]
        room.now += 86_400 * SECOND  # the next day is known too
        (before,) = room.rows
        await until(lambda: list(room.rows) != [before] and room.titles() == ["Lecture"])
        file.write_bytes(good)
        assert not task.done()

    room.run(scenario)


def test_rows_end_also_when_the_connector_was_started_again(tmp_path: Path) -> None:
    file = tmp_path / "c.ics"
    file.write_bytes(calendar(event(":20260302T090000Z", ":20260302T100000Z")))
    room = Room(str(file))

    async def scenario(task: asyncio.Task[None]) -> None:
        await until(lambda: room.titles() == ["Lecture"])
        task.cancel()
        await asyncio.wait({task}, timeout=60)
        room.now += 7_200 * SECOND
        again = asyncio.create_task(CalendarConnector().run(room.make_context()))
        await until(lambda: room.titles() == [])
        again.cancel()

    room.run(scenario)


def test_stopping_does_not_wait_for_a_server_that_never_answers() -> None:
    release = threading.Event()
    asked = threading.Event()

    def hang(_answer: Answers) -> None:
        asked.set()
        release.wait(100)

    with serving(hang) as address:
        room = Room(address)

        async def scenario(_task: asyncio.Task[None]) -> None:
            await until(asked.is_set)

        began = time.monotonic()
        room.run(scenario)
        assert time.monotonic() - began < 60
        release.set()


@pytest.mark.parametrize(
    "options",
    [{"location": ""}, {"period": 0}, {"refresh": -1}, {"time_zone": "Nowhere/At_All"}, {"x": 1}],
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    file = tmp_path / "c.ics"
    file.write_bytes(calendar())
    room = Room(str(file), **options)
    with pytest.raises(DeploymentError, match=r"endpoint here|no time zone"):
        asyncio.run(room.connector.run(room.context))


def test_a_source_of_another_definition_gets_all_rows_again(tmp_path: Path) -> None:
    """It may be a new source of that name, which has none."""
    file = tmp_path / "c.ics"
    file.write_bytes(calendar(event(":20260302T090000Z", ":20260302T100000Z")))
    room = Room(str(file))

    async def scenario(task: asyncio.Task[None]) -> None:
        await until(lambda: room.titles() == ["Lecture"])
        task.cancel()
        await asyncio.wait({task}, timeout=60)
        same = CalendarConnector()
        going_on = asyncio.create_task(same.run(room.make_context()))
        await calls(same, "_look")
        await calls(same, "_look")
        assert len(room.readings) == 1, "the row is there"
        going_on.cancel()
        anew = asyncio.create_task(CalendarConnector().run(room.make_context(version=2)))
        await until(lambda: len(room.readings) == 2)
        anew.cancel()

    room.run(scenario)
