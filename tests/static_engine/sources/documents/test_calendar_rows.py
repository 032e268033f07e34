"""iCalendar: events and occurrences as rows, and calendars that are hostile."""

from pathlib import Path

import pytest

from static_engine.sources.documents import calendar_rows
from streamsql.data.types import timestamp_text
from tests.static_engine.sources.documents.document_tables import refused, rows


def write(folder: Path, *events: str, head: str = "") -> None:
    body = "".join(f"BEGIN:VEVENT\r\n{event}\r\nEND:VEVENT\r\n" for event in events)
    text = f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{head}{body}END:VCALENDAR\r\n"
    (folder / "t.ics").write_bytes(text.encode())


WEEKLY = (
    "UID:a\r\nSUMMARY:Lecture\r\nLOCATION:L101\r\nDTSTART;TZID=Europe/Paris:20260325T100000\r\n"
    "DTEND;TZID=Europe/Paris:20260325T120000\r\nRRULE:FREQ=WEEKLY;COUNT=3\r\n"
    "EXDATE;TZID=Europe/Paris:20260408T100000"
)
DAY = "UID:b\r\nSUMMARY:Open day\r\nDTSTART;VALUE=DATE:20260401\r\nTRANSP:TRANSPARENT"
COLUMNS = "uid TEXT, summary TEXT, starts TIMESTAMP, ends TIMESTAMP, all_day BOOLEAN, rrule TEXT"


def test_an_event_is_a_row(tmp_path: Path) -> None:
    write(tmp_path, WEEKLY, DAY)
    (lecture, day) = rows(tmp_path, COLUMNS, source="ics", path="t.ics")
    assert lecture[:2] == ("a", "Lecture")
    assert lecture[4:] == (False, "FREQ=WEEKLY;COUNT=3")
    assert timestamp_text(int(lecture[2] or 0)) == "2026-03-25T09:00:00Z"
    assert (day[0], day[4], day[5]) == ("b", True, None)
    assert [timestamp_text(int(v or 0)) for v in day[2:4]] == [
        "2026-04-01T00:00:00Z", "2026-04-02T00:00:00Z",
    ]  # fmt: skip


def test_occurrences_of_an_interval_are_rows(tmp_path: Path) -> None:
    write(tmp_path, WEEKLY, DAY)
    interval = {"since": "2026-03-26", "until": "2026-05-01"}
    found = rows(tmp_path, "uid TEXT, starts TIMESTAMP", source="ics", path="t.ics", **interval)
    assert sorted((uid, timestamp_text(int(at or 0))) for uid, at in found) == [
        ("a", "2026-04-01T08:00:00Z"),  # summer time since the first one
        ("b", "2026-04-01T00:00:00Z"),
    ]


def test_times_without_a_zone_are_of_the_calendar(tmp_path: Path) -> None:
    event = "UID:a\r\nDTSTART:20260101T100000\r\nDURATION:PT30M"
    write(tmp_path, event, head="X-WR-TIMEZONE:America/New_York\r\n")
    ((starts, ends),) = rows(
        tmp_path, "starts TIMESTAMP, ends TIMESTAMP", source="ics", path="t.ics"
    )
    assert timestamp_text(int(starts or 0)) == "2026-01-01T15:00:00Z"
    assert timestamp_text(int(ends or 0)) == "2026-01-01T15:30:00Z"


@pytest.mark.parametrize(
    ("events", "head", "said"),
    [
        (["UID:a\r\nSUMMARY:none"], "", "event 'none'"),
        (["UID:a\r\nDTSTART:yesterday"], "", "t.ics"),
        (
            ["UID:a\r\nDTSTART:20260101T100000"],
            "X-WR-TIMEZONE:../../x\r\n",
            "no time zone",
        ),
        (["UID:a\r\nDTSTART:19000101T000000\r\nRRULE:FREQ=SECONDLY"], "", "too often"),
    ],
)
def test_a_hostile_event_is_an_error(
    events: list[str], head: str, said: str, tmp_path: Path
) -> None:
    write(tmp_path, *events, head=head)
    interval = {"since": "2026-01-01", "until": "2026-01-02"} if said == "too often" else {}
    assert said in refused(tmp_path, "uid TEXT", source="ics", path="t.ics", **interval)


@pytest.mark.parametrize(
    "content",
    [b"", b"BEGIN:VEVENT", b"\xff\xfe\x00", b"BEGIN:VCALENDAR\r\n" * 3_000, b"hello: world\r\n"],
)
def test_what_is_no_calendar_is_an_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.ics").write_bytes(content)
    assert "is not an iCalendar file" in refused(tmp_path, "uid TEXT", source="ics", path="t.ics")


def test_bounds_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, WEEKLY, DAY)
    options = {"source": "ics", "path": "t.ics"}
    monkeypatch.setattr(calendar_rows, "MAX_EVENTS", 1)
    assert "more than 1 events" in refused(tmp_path, "uid TEXT", **options)
    monkeypatch.setattr(calendar_rows, "MAX_BYTES", 10)
    assert "is larger than" in refused(tmp_path, "uid TEXT", **options)
    text = refused(tmp_path, "uid TEXT", **options, since="2026-02-01", until="2026-01-01")
    assert "until must be later" in text
