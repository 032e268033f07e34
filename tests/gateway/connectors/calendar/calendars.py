"""Calendars for tests."""

from datetime import UTC, datetime, timedelta

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
