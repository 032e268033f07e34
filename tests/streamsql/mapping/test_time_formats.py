"""Times: what a plain library says, zones and their gaps, bounds of years."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from dateutil import parser, tz  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from streamsql.data.types import EARLIEST, LATEST
from streamsql.mapping.time_formats import checked_time, is_time, time_reader, zone_named

BERLIN = ZoneInfo("Europe/Berlin")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


LOCAL = st.datetimes(
    min_value=datetime(1950, 1, 1),  # noqa: DTZ001 - a local time
    max_value=datetime(2037, 1, 1),  # noqa: DTZ001
)
MOMENTS = st.datetimes(
    min_value=datetime(1, 1, 3),  # noqa: DTZ001
    max_value=datetime(9999, 12, 29),  # noqa: DTZ001
    timezones=st.just(UTC),
)
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(MOMENTS, OFFSETS, st.sampled_from(["auto", "iso", ""]))
def test_iso_texts_with_an_offset(moment: datetime, offset: timezone, form: str) -> None:
    text = moment.astimezone(offset).isoformat()
    assert time_reader(form, BERLIN)(text) == micros(moment)
    assert micros(parser.isoparse(text)) == micros(moment)


@given(
    LOCAL,
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
)
def test_local_times_are_in_the_zone(local: datetime, name: str) -> None:
    # dateutil has its own reader of zones.
    zone = tz.gettz(name)
    assert zone is not None
    aware = local.replace(tzinfo=zone)
    if not tz.datetime_exists(aware):
        return
    assert time_reader("iso", zone_named(name))(local.isoformat()) == micros(aware)


def test_a_local_time_that_comes_twice_is_the_earlier_one() -> None:
    read = time_reader("iso", BERLIN)
    assert read("2024-10-27T02:30:00") == micros(datetime(2024, 10, 27, 0, 30, tzinfo=UTC))


def test_a_local_time_that_never_comes_has_the_offset_before() -> None:
    read = time_reader("%d.%m.%Y %H:%M", BERLIN)
    assert read("31.03.2024 02:30") == micros(datetime(2024, 3, 31, 1, 30, tzinfo=UTC))


@given(st.integers(946_684_800, 4_102_444_800), st.integers(0, 999_999))
def test_unix_times_are_told_by_their_size(seconds: int, fraction: int) -> None:
    read = time_reader("auto", UTC)
    total = seconds * 1_000_000 + fraction
    assert read(total) == total
    assert read(total * 1_000 + 999) == total
    assert read(total // 1_000) == total // 1_000 * 1_000
    assert read(seconds) == seconds * 1_000_000
    assert read(str(seconds)) == seconds * 1_000_000
    assert read(float(seconds)) == seconds * 1_000_000
    assert read(f"{seconds}.{fraction:06}") == total


@given(st.floats(0, 2_000_000_000))
def test_fractions_of_seconds_are_rounded_to_microseconds(seconds: float) -> None:
    exact = datetime.fromtimestamp(seconds, UTC)
    assert abs(time_reader("unix", UTC)(seconds) - micros(exact)) <= 1


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        ("unix", 1.1, 1_100_000),
        ("unix", "-1", -1_000_000),
        ("unix_ms", 1_500, 1_500_000),
        ("unix_us", 7, 7),
        ("unix_ns", 1_700_000_000_123_456_789, 1_700_000_000_123_456),
        ("unix_ns", -1, -1),
        ("", "2024-05-01T10:00:00", 1714557600000000),
        ("", "2024-05-01 10:00", 1714557600000000),
        ("", "20240501T100000Z", 1714557600000000),
        ("", "2024-05-01T10:00:00.123456789Z", 1714557600123456),
        ("", "2024-05-01", 1714521600000000),
        ("%d.%m.%Y %H:%M", "01.05.2024 10:00", 1714557600000000),
        ("%Y%m%d", 20240501, 1714521600000000),
        ("%Y-%m-%dT%H:%M:%S%z", "2024-05-01T12:00:00+0200", 1714557600000000),
        ("%y-%j", "24-122", 1714521600000000),
        ("", datetime(2024, 5, 1, 10, tzinfo=UTC), 1714557600000000),
    ],
)
def test_formats(form: str, value: object, expected: int) -> None:
    assert time_reader(form, UTC)(value) == expected


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("", "yesterday"), ("", True), ("", None), ("", []), ("", float("nan")), ("", 1e300),
        ("", 10**30), ("", "9" * 22), ("", "1e99999"), ("", "0001-01-01T00:00:00+14:00"),
        ("", "9999-12-31T23:59:59-14:00"), ("", "x" * 101), ("iso", 1_700_000_000),
        ("unix", "2024-05-01"), ("unix", 253402300800), ("%d.%m.%Y", "31.02.2024"),
        ("%d.%m.%Y", 1.5), ("%d.%m.%Y", "01.05.0000"), ("%d.%m.%Y", 10**50),
    ],
)  # fmt: skip
def test_what_is_no_time_is_refused(form: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        time_reader(form, UTC)(value)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", ""])
def test_the_first_and_the_last_year(zone: str) -> None:
    read = time_reader("iso", zone_named(zone))
    for text in ("0001-01-01T00:00:00", "9999-12-31T23:59:59.999999"):
        try:
            assert is_time(read(text))
        except ValueError as error:
            assert "years 1 to 9999" in str(error)  # noqa: PT017 - by the zone
    assert time_reader("unix", UTC)(-62135596800) == EARLIEST
    assert time_reader("iso", UTC)("9999-12-31T23:59:59.999999") == LATEST - 1


def test_bounds_of_times() -> None:
    assert checked_time(EARLIEST) == EARLIEST
    assert not is_time(LATEST)
    with pytest.raises(ValueError, match="years 1 to 9999"):
        checked_time(EARLIEST - 1)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("epoch", "no format of times"),
        ("%H:%M", "no complete date"),
        ("%d.%m.", "no complete date"),
        ("%Q", "%Q is no directive"),
        ("%d.%m.%Y %", "no directive|cannot be read"),
        ("%Y-%m-%d" * 20, "160 characters"),
        ("%Y%Y%m%d", "cannot be read"),
    ],
)
def test_wrong_formats_are_told(form: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        time_reader(form, UTC)


@pytest.mark.parametrize("name", ["Europe/Berln", "../../etc/passwd", "America", "x" * 300, "a\0b"])
def test_unknown_zones_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        zone_named(name)


def test_an_unknown_zone_names_a_similar_one() -> None:
    with pytest.raises(ValueError, match="did you mean Europe/Berlin"):
        zone_named("Europe/Berln")


def test_a_number_without_a_text_is_refused() -> None:
    with pytest.raises(ValueError, match="no time in the format"):
        time_reader("%d.%m.%Y", UTC)(10**5000)


@given(st.text(max_size=30) | st.integers() | st.floats() | st.binary(max_size=3),
       st.sampled_from(["", "iso", "unix", "unix_ns", "%d.%m.%Y", "%c"]))  # fmt: skip
def test_any_value_is_a_time_or_refused(value: object, form: str) -> None:
    try:
        assert is_time(time_reader(form, BERLIN)(value))
    except ValueError as error:
        assert len(str(error)) < 300  # noqa: PT017 - either is right
