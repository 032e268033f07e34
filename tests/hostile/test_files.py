"""Files of strangers: readers end in bounded time, with rows or with an error that says where.

`files/` holds the samples that copies are broken from. `PANDO_HOSTILE_FILES` is how many copies
each reader gets.
"""

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import FrameType

import pytest

from building.osm.osm_indoor import read_osm_indoor
from building.sample.k7_trace import read_k7 as read_k7_site
from gateway.connectors.calendar.fetching import fetch
from gateway.connectors.calendar.reservations import agenda_of, parse
from gateway.connectors.replay.readers import read_csv, read_k7, read_senml
from static_engine.sources.table_locations import Locations
from static_engine.sources.table_reader import read_table
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import DeploymentError
from tests.hostile.mutations import broken_copies

COUNT = int(os.environ.get("PANDO_HOSTILE_FILES", "400"))
SECONDS = 10.0
"""For one small file; what is right takes milliseconds."""
MEMORY = 600_000
"""Kilobytes by which reading thousands of broken files may let the process grow."""
FILES = Path(__file__).with_name("files")
BEGINS = 1_767_225_600_000_000
TABLE = Schema.of(("id", DataType.INTEGER), ("name", DataType.TEXT), ("at", DataType.TIMESTAMP))

Read = Callable[[Path], object]


def calendar(path: Path) -> object:
    """Read reservations of a day."""
    content = fetch(str(path))
    return agenda_of(parse(content, path.name), BEGINS, timedelta(days=1))


def table(source: str) -> Read:
    """Return a reader of a stored table."""

    def read(path: Path) -> object:
        options = (("source", source), ("path", path.name))
        definition = SourceDefinition("t", SourceKind.TABLE, TABLE, options=options)
        return list(read_table(definition, Locations(path.parent)))

    return read


def ignore(_problem: str) -> None:
    """Go on after a bad line."""


READERS: dict[str, tuple[str, Read]] = {
    "building": ("building.geojson", read_osm_indoor),
    "calendar": ("rooms.ics", calendar),
    "trace of a site": ("trace.k7", lambda p: read_k7_site(p, gateways=1)),
    "trace": ("trace.k7", lambda p: list(read_k7(p, None, 0.5))),
    "trace, going on": ("trace.k7", lambda p: list(read_k7(p, None, 0.5, ignore))),
    "SenML": ("readings.senml", lambda p: list(read_senml(p, "device"))),
    "SenML, going on": ("readings.senml", lambda p: list(read_senml(p, "", ignore))),
    "CSV recording": ("readings.csv", lambda p: list(read_csv(p, "at"))),
    "CSV recording, going on": ("readings.csv", lambda p: list(read_csv(p, "at", ignore))),
    "CSV table": ("table.csv", table("csv")),
    "JSON table": ("readings.jsonl", table("json")),
}


class OverdueError(BaseException):
    """A reader takes too long; no reader may mistake it for an error of its file."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail where a reader is after so long.

    Raises:
        OverdueError: It is not done.
    """

    def over(_number: int, _frame: FrameType | None) -> None:
        raise OverdueError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", READERS)
def test_the_samples_are_read(name: str) -> None:
    sample, read = READERS[name]
    assert read(FILES / sample)


@pytest.mark.parametrize("name", READERS)
def test_a_broken_file_gives_rows_or_an_error_that_names_it(name: str, tmp_path: Path) -> None:
    sample, read = READERS[name]
    path = tmp_path / sample
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = 0
    for number, content in enumerate(broken_copies([(FILES / sample).read_bytes()], 7, COUNT)):
        path.write_bytes(content)
        began = time.monotonic()
        try:
            with at_most(SECONDS):
                read(path)
        except DeploymentError as error:
            refused += 1
            complaint = error.message
        except (Exception, OverdueError) as error:  # noqa: BLE001  (nothing else may come out)
            pytest.fail(f"copy {number} after {time.monotonic() - began:.1f} s: {error!r:.500}")
        else:
            continue
        assert len(complaint) < 2_000, f"copy {number}"
        places = (sample, "feature ", "X-WR-TIMEZONE")
        assert any(place in complaint for place in places), f"copy {number}: {complaint}"
    assert 0 < refused < COUNT
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < MEMORY


FEATURE = '{{"type":"FeatureCollection","features":[{}]}}'
OUTLINE = '{{"type":"Feature","id":7,"properties":{{"indoor":"room"}},"geometry":{}}}'
TRACE = '{"location":"t"}\ndatetime,src,dst,channel,mean_rssi,pdr,tx_count\n'
ICS = "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\nBEGIN:VEVENT\nUID:1\n{}\nEND:VEVENT\nEND:VCALENDAR\n"

NASTY = [
    pytest.param("building", b"", "line 1", id="an empty building"),
    pytest.param("building", b"\x00" * 1_000, "line 1", id="a building of NULs"),
    pytest.param("building", b"[" * 1_000_000, "JSON", id="a deep building"),
    pytest.param(
        "building",
        FEATURE.format(OUTLINE.format('{"type":"Point","coordinates":[1e400,2]}')).encode(),
        "feature 7 (#0)",
        id="a place at infinity",
    ),
    pytest.param(
        "building",
        FEATURE.format(OUTLINE.format('{"type":"Point","coordinates":[' + "9" * 5_000 + ",2]}")),
        "building.geojson",
        id="a place of 5,000 digits",
    ),
    pytest.param("trace", TRACE + "x,1,2,3,4,5,6\n", "line 3", id="no time"),
    pytest.param("trace", TRACE + "2026-01-01 00:00:00,1,2,0,0,nan,1\n", "line 3", id="no ratio"),
    pytest.param("trace", TRACE + "9" * 2_000_000, "line 3", id="a long line"),
    pytest.param("trace", TRACE + "0000-01-01 00:00:00,1,2,0,0,1,1\n", "line 3", id="year 0"),
    pytest.param("trace", TRACE + "2026-01-01,1,2,0,0,-1,1\n", "line 3", id="a ratio below 0"),
    pytest.param("trace", TRACE + "2026-01-01,1,2,0,0,inf,1\n", "line 3", id="no end of a ratio"),
    pytest.param("trace", TRACE + "2026-01-01,1,2\n", "line 3", id="too few columns"),
    pytest.param("trace", "{}\na,b\n1,2\n", "line 2", id="other columns"),
    pytest.param("trace", b"\x1f\x8b\x08\x00" + bytes(range(256)) * 40, "trace.k7", id="no gzip"),
    pytest.param("trace", bytes(range(128, 256)) * 100, "trace.k7", id="binary junk"),
    pytest.param(
        "trace of a site",
        TRACE + "2026-01-01,1,2,0,0,1,1\n" * 200_000 + "2025-01-01,2,1,0,0,2,1\n",
        "line 200003",
        id="a bad line after many",
    ),
    pytest.param("trace of a site", TRACE.replace("src", "dst"), "line 2", id="a column twice"),
    pytest.param(
        "trace of a site",
        TRACE + "".join(f"2026-01-01,n{n},m{n},0,0,1,1\n" for n in range(1_500)),
        "more than 2000 nodes",
        id="too many nodes",
    ),
    pytest.param("trace of a site", TRACE + '"' + "x\n" * 100_000, "line", id="an open quote"),
    pytest.param("trace of a site", "[" * 90_000, "line 1", id="a deep header"),
    pytest.param("SenML", b"[" * 100_000, "line 1", id="a deep pack"),
    pytest.param("SenML", '[{"n":"a","t":1e300,"v":1}]', "line 1", id="a time out of reach"),
    pytest.param("SenML", '[{"n":"a","v":1e999}]', "line 1", id="a value at infinity"),
    pytest.param("SenML", '\n\n[{"n":"\\ud800","v":1}]', "line 3", id="half a character"),
    pytest.param("CSV recording", 'at,x\n"2026', "line", id="a quote that does not end"),
    pytest.param("CSV recording", "at,x\n1e300,2\n", "line 2", id="a CSV time out of reach"),
    pytest.param("CSV recording", "at,x\n" + "9" * 5_000 + ",2\n", "line 2", id="long digits"),
    pytest.param("CSV recording", "x\n1\n", "no column 'at'", id="no time column"),
    pytest.param("CSV table", "id,name,at\n1,a,yesterday\n", "row 1", id="a time in words"),
    pytest.param("CSV table", "id,name,at\n" + "9" * 30 + ",a,\n", "row 1", id="a huge id"),
    pytest.param("CSV table", b"id,name,at\n1,\xff,\n", "UTF-8", id="no text"),
    pytest.param("JSON table", "[" * 100_000, "readings.jsonl", id="deep JSON lines"),
    pytest.param("calendar", "BEGIN:VCALENDAR\n" * 5_000, "rooms.ics", id="a deep calendar"),
    pytest.param("calendar", b"\xff" * 10_000, "rooms.ics", id="a calendar of no text"),
]


@pytest.mark.parametrize(("name", "content", "where"), NASTY)
def test_a_nasty_file_is_refused_at_its_place(
    name: str, content: bytes | str, where: str, tmp_path: Path
) -> None:
    sample, read = READERS[name]
    path = tmp_path / sample
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with at_most(SECONDS), pytest.raises(DeploymentError) as caught:
        read(path)
    assert where in caught.value.message
    assert len(caught.value.message) < 2_000


RULES = [
    "DTSTART:20200101T000000Z\nDTEND:20200101T000001Z\nRRULE:FREQ=SECONDLY",
    "DTSTART:00010101T000000Z\nDTEND:99991231T235959Z\nRRULE:FREQ=DAILY;INTERVAL=1",
    "DTSTART:20260101T000000Z\nDTEND:20250101T000000Z",
    "DTSTART:20260101T000000Z\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
    "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;INTERVAL=0",
    "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;INTERVAL=-1",
    "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY\nEXRULE:FREQ=DAILY;INTERVAL=0",
    "DTSTART:20260101T000000Z\nRRULE:FREQ=MINUTELY;COUNT=999999999999",
    "DTSTART;TZID=Nowhere/Land:20260101T000000\nDURATION:P99999999D",
    "DTSTART:20260101\nRDATE:" + ",".join(["20260101"] * 20_000),
    "DTSTART;TZID=Odd:20260101T000000\nEND:VEVENT\nBEGIN:VTIMEZONE\nTZID:Odd\nBEGIN:STANDARD\n"
    "DTSTART:20200101T000000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200\n"
    "RRULE:FREQ=DAILY;INTERVAL=0\n"
    "END:STANDARD\nEND:VTIMEZONE\nBEGIN:VEVENT\nUID:2\nDTSTART:20260101T000000Z",
    "DTSTART:20260101T000000Z\nEXRULE:FREQ=SECONDLY\nRRULE:FREQ=DAILY",
]


@pytest.mark.parametrize("rule", RULES)
def test_a_calendar_of_rules_without_end_is_read_in_bounded_time(rule: str, tmp_path: Path) -> None:
    path = tmp_path / "rooms.ics"
    path.write_text(ICS.format(rule))
    with at_most(SECONDS):
        calendar(path)
