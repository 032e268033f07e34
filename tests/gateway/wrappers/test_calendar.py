"""Calendars: what holds now, whatever the rules, zones and mistakes in the file."""

import asyncio
import contextlib
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.connectors.reading import Reading
from gateway.intake.validation import event_of
from gateway.testing import SECOND, until
from gateway.wrappers.calendar.fetching import fetch
from gateway.wrappers.calendar.reservations import MAX_RESERVATIONS, agenda_of, parse
from gateway.wrappers.calendar.wrapper import CalendarWrapper
from gateway.wrappers.wrapper import WrapperContext
from streamsql.data.types import timestamp_of
from streamsql.errors import DeploymentError
from tests.gateway.wrappers.building import building_sources
from tests.loop_turns import calls

DAY = timedelta(days=1)
MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


def calendar(*events: str, head: str = "") -> bytes:
    """Return a calendar of events, each given as lines without BEGIN and END."""
    body = "".join(
        f"BEGIN:VEVENT\nUID:u{number}\nDTSTAMP:20260101T000000Z\n{event.strip()}\nEND:VEVENT\n"
        for number, event in enumerate(events)
    )
    text = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//t//t//EN\n{head}{body}END:VCALENDAR\n"
    return text.replace("\n", "\r\n").encode()


def event(start: str, end: str, *more: str, room: str = "L101", title: str = "Lecture") -> str:
    return "\n".join(
        [f"DTSTART{start}", f"DTEND{end}", f"LOCATION:{room}", f"SUMMARY:{title}", *more]
    )


def at(content: bytes, moment: datetime, zone: str = "") -> list[str]:
    """Return the titles that hold at a time."""
    now = timestamp_of(moment)
    agenda = agenda_of(parse(content, "c.ics"), now, DAY, zone)
    assert agenda.complaints == ()
    return sorted(reservation.title for reservation in agenda.at(now))


def hours(content: bytes, day: datetime, zone: str = "") -> list[int]:
    """Return the hours of a day (of its zone) at whose half something holds."""
    half = timedelta(minutes=30)
    return [hour for hour in range(24) if at(content, day + timedelta(hours=hour) + half, zone)]


def test_an_event_holds_from_its_start_until_before_its_end() -> None:
    content = calendar(event(":20260302T090000Z", ":20260302T100000Z"))
    start, end = MONDAY + timedelta(hours=9), MONDAY + timedelta(hours=10)
    second = timedelta(microseconds=1)
    assert at(content, start - second) == []
    assert at(content, start) == at(content, end - second) == ["Lecture"]
    assert at(content, end) == []


def test_a_rule_repeats_but_for_its_exceptions_and_moved_ones() -> None:
    weekly = event(
        ":20260302T090000Z", ":20260302T110000Z", "RRULE:FREQ=WEEKLY;COUNT=5",
        "EXDATE:20260309T090000Z",
    )  # fmt: skip
    moved = event(":20260316T140000Z", ":20260316T150000Z", "RECURRENCE-ID:20260316T090000Z")
    content = calendar(weekly, moved.replace("SUMMARY", "UID:u0\nSUMMARY"))
    content = content.replace(b"UID:u1\r\n", b"")
    found = [hours(content, MONDAY + timedelta(weeks=week)) for week in range(6)]
    assert found == [[9, 10], [], [14], [9, 10], [9, 10], []]


def test_a_rule_in_a_zone_keeps_its_local_hour_when_the_clocks_change() -> None:
    zone = "TZID=Europe/Zurich"
    content = calendar(
        event(f";{zone}:20260302T090000", f";{zone}:20260302T100000", "RRULE:FREQ=WEEKLY")
    )
    assert hours(content, datetime(2026, 3, 23, tzinfo=UTC)) == [8]
    assert hours(content, datetime(2026, 3, 30, tzinfo=UTC)) == [7]


def test_whole_days_are_days_of_the_buildings_zone() -> None:
    content = calendar(event(";VALUE=DATE:20260302", ";VALUE=DATE:20260303"))
    assert hours(content, MONDAY) == list(range(24))
    tokyo = MONDAY.replace(tzinfo=ZoneInfo("Asia/Tokyo"))
    assert hours(content, tokyo, "Asia/Tokyo") == list(range(24))
    assert at(content, MONDAY - timedelta(hours=1), "Asia/Tokyo") == ["Lecture"]
    assert at(content, MONDAY + timedelta(hours=16), "Asia/Tokyo") == []


def test_times_without_a_zone_are_of_the_zone_the_calendar_names() -> None:
    plain = event(":20260302T090000", ":20260302T100000")
    assert hours(calendar(plain), MONDAY) == [9]
    assert hours(calendar(plain), MONDAY, "America/New_York") == [14]
    named = calendar(plain, head="X-WR-TIMEZONE:America/New_York\n")
    assert hours(named, MONDAY) == [14]


def test_what_reserves_nothing_is_left_out() -> None:
    times = (":20260302T090000Z", ":20260302T100000Z")
    content = calendar(
        event(*times, "STATUS:CANCELLED", title="cancelled"),
        event(*times, "STATUS:cancelled", title="also cancelled"),
        event(*times, "TRANSP:TRANSPARENT", title="free"),
        event(*times, room=" ", title="nowhere"),
        event(*times, "STATUS:TENTATIVE", title="tentative"),
        event(":20260302T090000Z", ":20260302T090000Z", title="no time at all"),
        event(*times, title="x" * 300),
    )
    assert at(content, MONDAY + timedelta(hours=9.5)) == ["tentative", "x" * 200]


def test_an_event_over_midnight_and_one_of_weeks_hold() -> None:
    content = calendar(
        event(":20260301T220000Z", ":20260302T020000Z", title="night"),
        event(":20260101T000000Z", ":20261231T000000Z", title="year"),
        "DTSTART:20260302T000000Z\nDURATION:PT90M\nLOCATION:L101\nSUMMARY:duration",
    )
    assert at(content, MONDAY + timedelta(hours=1)) == ["duration", "night", "year"]


def test_an_agenda_covers_a_day_and_no_more() -> None:
    content = calendar(event(":20260302T090000Z", ":20260302T100000Z", "RRULE:FREQ=HOURLY"))
    agenda = agenda_of(parse(content, "c"), timestamp_of(MONDAY), DAY)
    assert agenda.covers(timestamp_of(MONDAY))
    assert not agenda.covers(timestamp_of(MONDAY + DAY))
    assert not agenda.covers(timestamp_of(MONDAY) - 1)
    assert len(agenda.reservations) == 15


@pytest.mark.parametrize(
    "broken",
    [
        event(":20260302T090000Z", ":20260302T100000Z", "RRULE:FREQ=SOMETIMES"),
        event(":20260302T090000Z", ":20260302T080000Z", title="ends before it starts"),
        event(":20260302T090000Z", ":never"),
        event(":yesterday", ":20260302T100000Z"),
        event(";VALUE=DATE:20260302", ":20260302T100000Z"),
        "SUMMARY:no start\nLOCATION:L101",
        event(":20260302T090000Z", ":20260302T100000Z", "RRULE:FREQ=DAILY;UNTIL=x"),
        event(":20260302T090000Z", ":20260302T100000Z", "EXDATE:soon"),
        event(";TZID=Nowhere/At_All:20260302T090000", ";TZID=Nowhere/At_All:20260302T100000"),
        event(":20260302T090000Z", ":20260302T100000Z", "RECURRENCE-ID:x"),
        event(":20260302T090000Z", ":20260302T100000Z", "RRULE:FREQ=SECONDLY"),
        event(":00010101T000000Z", ":99991231T000000Z", "RRULE:FREQ=YEARLY", title="for ever"),
    ],
)
def test_a_broken_event_does_not_hide_the_others(broken: str) -> None:
    good = event(":20260302T090000Z", ":20260302T100000Z", title="good")
    content = calendar(broken, good)
    now = timestamp_of(MONDAY + timedelta(hours=9.5))
    began = time.monotonic()
    agenda = agenda_of(parse(content, "c.ics"), now, DAY)
    assert time.monotonic() - began < 60
    assert "good" in [reservation.title for reservation in agenda.at(now)], agenda.complaints


def test_a_rule_that_repeats_each_second_is_named() -> None:
    content = calendar(event(":20000101T090000Z", ":20000101T090001Z", "RRULE:FREQ=SECONDLY"))
    agenda = agenda_of(parse(content, "c.ics"), timestamp_of(MONDAY), DAY)
    assert agenda.complaints == ("event 'Lecture' repeats secondly; its RRULE is left out",)
    assert agenda.reservations == ()


def test_the_number_of_reservations_is_bounded() -> None:
    content = calendar(
        *(event(":20260302T090000Z", ":20260302T100000Z", room=f"r{n}") for n in range(300))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.wrappers.calendar.reservations.MAX_RESERVATIONS", 100)
        agenda = agenda_of(parse(content, "c.ics"), timestamp_of(MONDAY), DAY)
    assert len(agenda.reservations) == 100 < MAX_RESERVATIONS
    assert agenda.complaints == ("more than 100 reservations; the rest is ignored",)


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"\xff\xfe\x00", b"BEGIN:VEVENT\r\nEND:VEVENT\r\n", b"BEGIN:VCALENDAR"],
)
def test_what_is_no_calendar_is_refused(content: bytes) -> None:
    with pytest.raises(DeploymentError, match=r"c\.ics is not an iCalendar file"):
        parse(content, "c.ics")


@given(st.lists(st.sampled_from([
    "BEGIN:VEVENT", "END:VEVENT", "DTSTART:20260302T090000Z", "DTEND:20260302T100000Z",
    "DTSTART;VALUE=DATE:20260302", "DURATION:PT1H", "DURATION:-PT1H", "LOCATION:L1", "SUMMARY:x",
    "RRULE:FREQ=DAILY", "RRULE:FREQ=DAILY;INTERVAL=0", "RRULE:FREQ=YEARLY;BYMONTH=13", "RRULE:",
    "EXDATE:20260303T090000Z", "RDATE:20260304T090000Z", "STATUS:CANCELLED", "UID:u", "SEQUENCE:x",
    "BEGIN:VTIMEZONE", "END:VTIMEZONE", "TZID:X", "GARBAGE", ":", "X-WR-TIMEZONE:UTC", "DTSTART:",
]), max_size=14))  # fmt: skip
def test_no_mixture_of_lines_does_worse_than_complain(lines: list[str]) -> None:
    text = "\r\n".join(["BEGIN:VCALENDAR", *lines, "END:VCALENDAR", ""])
    with contextlib.suppress(DeploymentError):
        agenda = agenda_of(parse(text.encode(), "c.ics"), timestamp_of(MONDAY), DAY)
        assert all(reservation.room == "L1" for reservation in agenda.reservations)


# Files and addresses --------------------------------------------------------------------------


class Answers(http.server.BaseHTTPRequestHandler):
    """Serves what the test has put into `answer`."""

    answer: Callable[["Answers"], None]

    def do_GET(self) -> None:
        type(self).answer(self)

    def log_message(self, *_arguments: object) -> None:
        return

    def say(self, content: bytes, status: int = 200, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serving(answer: Callable[[Answers], None]) -> Iterator[str]:
    handler = type("Handler", (Answers,), {"answer": answer})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/c.ics"
        server.shutdown()
        thread.join(5)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def test_a_file_and_an_address_give_the_same(tmp_path: Path) -> None:
    content = calendar(event(":20260302T090000Z", ":20260302T100000Z"))
    (tmp_path / "c.ics").write_bytes(content)
    assert fetch(str(tmp_path / "c.ics")) == content
    with serving(lambda answer: answer.say(content)) as address:
        assert fetch(address) == content


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda a: a.say(b"gone", 404), "404"),
        (lambda a: a.say(b"x" * 1_001), "larger than 1000 bytes"),
        (lambda a: a.say(b"short", length=900), "895 bytes are missing"),
        (lambda a: a.wfile.write(b"nonsense\r\n\r\n"), "cannot fetch"),
        (lambda a: a.connection.close(), "cannot fetch"),
    ],
)
def test_a_bad_answer_is_explained(answer: Callable[[Answers], None], complaint: str) -> None:
    with serving(answer) as address, pytest.raises(DeploymentError, match=complaint):
        fetch(address, limit=1_000, seconds=5)


def test_a_server_that_drips_is_left(tmp_path: Path) -> None:
    stop = threading.Event()

    def drip(answer: Answers) -> None:
        answer.say(b"", length=10_000)
        while not stop.wait(0.05):
            answer.wfile.write(b"x")
            answer.wfile.flush()

    with serving(drip) as address:
        with pytest.raises(DeploymentError, match=r"took longer than 0\.5 s"):
            fetch(address, seconds=0.5)  # all it would say takes 500 s
        stop.set()
    assert tmp_path.exists()


@pytest.mark.parametrize(
    ("location", "complaint"),
    [
        ("/no/such/file.ics", "cannot read calendar"),
        ("bad\0name", "cannot read calendar"),
        ("http://127.0.0.1:1/c.ics", "cannot fetch calendar"),
        ("http://[::1", "."),
        ("http://", "cannot fetch calendar"),
    ],
)
def test_a_location_that_is_none_is_explained(location: str, complaint: str) -> None:
    with pytest.raises(DeploymentError, match=complaint):
        fetch(location, seconds=2)


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.ics").write_bytes(bytes(2_000))
    with pytest.raises(DeploymentError, match="larger than 1000 bytes"):
        fetch(str(tmp_path / "c.ics"), limit=1_000)


# The wrapper ----------------------------------------------------------------------------------


class Room:
    """A wrapper on a file, the rows it has emitted, and its problems."""

    def __init__(self, file: str, **options: Any) -> None:
        self.now = timestamp_of(MONDAY + timedelta(hours=9))
        self.rows: dict[tuple[object, ...], dict[str, object]] = {}
        self.readings: list[Reading] = []
        self.problems: list[str] = []
        self.wrapper = CalendarWrapper()
        plain = {"location": file, "period": 0.02, "refresh": 0.05}
        self.context = WrapperContext(
            "gw-1", lambda: self.now, self._emit, self.problems.append, {**plain, **options}
        )

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
            task = asyncio.create_task(self.wrapper.run(self.context))
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
        await calls(room.wrapper, "_refresh")
        await calls(room.wrapper, "_look")
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


def test_rows_end_also_when_the_wrapper_was_started_again(tmp_path: Path) -> None:
    file = tmp_path / "c.ics"
    file.write_bytes(calendar(event(":20260302T090000Z", ":20260302T100000Z")))
    room = Room(str(file))

    async def scenario(task: asyncio.Task[None]) -> None:
        await until(lambda: room.titles() == ["Lecture"])
        task.cancel()
        await asyncio.wait({task}, timeout=60)
        room.now += 7_200 * SECOND
        again = asyncio.create_task(room.wrapper.run(room.context))
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
    with pytest.raises(DeploymentError, match=r"options of wrapper calendar|no time zone"):
        asyncio.run(room.wrapper.run(room.context))
