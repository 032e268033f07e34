"""Calendars: what holds at a time, whatever the rules, zones and mistakes in the file."""

import contextlib
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.connectors.calendar.reservations import MAX_RESERVATIONS, agenda_of, parse
from streamsql.data.types import timestamp_of
from streamsql.errors import DeploymentError
from tests.gateway.connectors.calendar.calendars import DAY, MONDAY, calendar, event


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
        patch.setattr("gateway.connectors.calendar.reservations.MAX_RESERVATIONS", 100)
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
