"""The recipes of the connectors replay, calendar, soft_sensors and motes."""

import asyncio
from pathlib import Path
from typing import Any

from gateway.connectors.calendar.calendar_connector import CalendarConnector
from gateway.connectors.connector import Connector
from gateway.connectors.motes import sensing
from gateway.connectors.motes.motes_connector import MotesConnector
from gateway.connectors.reading import Reading
from gateway.connectors.replay.replay_connector import ReplayConnector
from gateway.connectors.soft_sensors.soft_sensors_connector import SoftSensorsConnector
from gateway.connectors.testing.source_statements import definitions_of
from tests.docs.markdown import ROOT
from tests.docs.recipes import as_csv, recipe, statement
from tests.gateway.connectors.building import context_for
from tests.gateway.connectors.serving import until

PAGE = ROOT / "docs" / "devices.md"
NOON = 1_780_308_060_000_000
"""Of 2026-06-01 in Zurich, and a minute."""


def emitted(
    connector: Connector, endpoint: dict[str, Any], text: str, count: int, now: int = NOON
) -> list[Reading]:
    """Return the first readings of a connector at a time."""
    found: list[Reading] = []
    problems: list[str] = []

    async def run() -> None:
        context = context_for(
            definitions_of(text),
            endpoint,
            clock=lambda: now,
            emit=found.extend,
            problem=problems.append,
        )
        task = asyncio.create_task(connector.run(context))
        await until(lambda: len(found) >= count)
        task.cancel()

    asyncio.run(run())
    assert problems == []
    return found


def test_a_recorded_water_meter(tmp_path: Path) -> None:
    told = recipe("A recorded water meter")
    file = tmp_path / "water.csv"
    file.write_text(
        "When,No,Level\n2026-06-01T10:00:00Z,t1,1.5\n1780308060,t2,\n2026-06-01T10:02:00Z,t1,1.6\n"
    )
    found = emitted(ReplayConnector(), {**told.endpoint, "file": str(file)}, told.statement, 2)
    assert as_csv(reading.values for reading in found) == told.rows, "the third is yet to come"


def test_reservations_of_rooms(tmp_path: Path) -> None:
    told = recipe("Reservations of rooms")
    file = tmp_path / "rooms.ics"
    file.write_bytes(
        b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//t//t//EN\r\nBEGIN:VEVENT\r\nUID:u1\r\n"
        b"DTSTAMP:20260101T000000Z\r\nDTSTART:20260525T080000\r\nDTEND:20260525T090000\r\n"
        b"RRULE:FREQ=WEEKLY\r\nLOCATION:L101\r\nSUMMARY:Lecture\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
    endpoint = {**told.endpoint, "location": str(file)}
    half_past_eight = NOON - 3 * 3_600_000_000 - 30 * 60_000_000
    found = emitted(CalendarConnector(), endpoint, told.statement, 1, half_past_eight)
    assert as_csv(reading.values for reading in found) == told.rows


def test_a_machine_by_another_name() -> None:
    endpoint = {"mid": "rack-1", "period": 0.05}
    (reading, *_) = emitted(SoftSensorsConnector(), endpoint, statement("rack"), 1)
    assert (reading.source, reading.values["mid"]) == ("rack", "rack-1")
    assert set(reading.values) == {"mid", "cpu", "memory", "hottest"}


def test_thermometers_by_another_name(tmp_path: Path) -> None:
    field = tmp_path / "gw-1.json"
    field.write_text(
        '{"gateway": "gw-1", "motes": [{"sensor": "t1", "kind": "temperature", "rid": "L101"}]}'
    )
    endpoint = {"file": str(field), "period": 0.25}
    (reading, *_) = emitted(MotesConnector(), endpoint, statement("warm"), 1)
    assert reading.values["mote"] == "t1"


def test_the_page_names_all_readings_of_motes() -> None:
    _, _, section = PAGE.read_text(encoding="utf-8").partition("## A simulated building")
    assert all(f"| `{topic}` | " in section for topic in sensing.TOPICS)
