"""A scan of the past is the same as the present was then, and as plain algebra over the lake."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.algebra.operators import Plan, Scan, ScanPart, SourceKind, Window, WindowKind
from streamsql.algebra.past_times import History, HistoryKind, Moment
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.history.past_plans import fixed, kept_scans, with_kept_rows
from streamsql.reference import Database, evaluate

SECOND = 1_000_000
COLUMNS = Schema.of(("k", DataType.TEXT), ("n", DataType.INTEGER), ("ts", DataType.TIMESTAMP))
SOURCES = (
    Scan("log", SourceKind.STREAM, COLUMNS, time_column=2),
    Scan("fading", SourceKind.STREAM, COLUMNS, time_column=2, ttl=3 * SECOND),
    Scan("keyed", SourceKind.STREAM, COLUMNS, key=(0,), time_column=2),
    Scan("keyed_fading", SourceKind.STREAM, COLUMNS, key=(0, 1), time_column=2, ttl=4 * SECOND),
    Scan("linked", SourceKind.LINK, COLUMNS, key=(0, 1), time_column=2),
)
WINDOWS = (
    None,
    (WindowKind.RANGE, 2 * SECOND, None, (), None),
    (WindowKind.RANGE, 3 * SECOND, 2 * SECOND, (), None),
    (WindowKind.ROWS, 2, None, (), None),
    (WindowKind.ROWS, 1, None, (0,), 5 * SECOND),
    (WindowKind.NOW, None, None, (), None),
    (WindowKind.UNBOUNDED, None, None, (), None),
)
LAST = 12


@st.composite
def events(draw: st.DrawFn, scan: Scan) -> list[SourceEvent]:
    """Return readings, some late, and withdrawals of what is there, none of them late."""
    made: list[SourceEvent] = []
    alive: list[SourceEvent] = []
    newest = 0
    for _ in range(draw(st.integers(0, 12))):
        if alive and draw(st.integers(0, 3)) == 0:
            gone = draw(st.sampled_from(alive))
            ts = newest if scan.key else gone.ts
            made.append(SourceEvent(gone.row, ts, delete=True))
            keys = [gone.row[p] for p in scan.key]
            alive = [e for e in alive if scan.key and [e.row[p] for p in scan.key] != keys]
            continue
        ts = draw(st.integers(0, LAST)) * SECOND // 2
        newest = max(newest, ts)
        row = (draw(st.sampled_from("ab")), draw(st.sampled_from((0, 1))), ts)
        made.append(SourceEvent(row, ts))
        alive.append(made[-1])
    return made


def past(scan: Scan, history: History) -> Scan:
    """Return the scan of a source's past, as the binder makes it."""
    return msgspec.structs.replace(scan, kind=SourceKind.TABLE, history=history)


def as_of(micros: int) -> History:
    return History(HistoryKind.AS_OF, until=Moment(micros))


def windowed(scan: Scan, window: tuple[object, ...] | None) -> Plan:
    return scan if window is None else Window(scan, *window)  # type: ignore[arg-type]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("scan", SOURCES, ids=lambda scan: scan.source)
@given(data=st.data())
def test_as_of_a_time_is_what_the_source_showed_then(
    scan: Scan, window: tuple[object, ...] | None, data: st.DataObject
) -> None:
    instant = data.draw(st.integers(0, LAST)) * SECOND // 2
    happened = data.draw(events(scan))
    live = Database()
    live.append(scan.source, [event for event in happened if event.ts <= instant])
    whole = Database()
    whole.append(scan.source, happened)
    then = evaluate(windowed(scan, window), live, instant)
    plan = windowed(past(scan, as_of(instant)), window)
    assert evaluate(plan, whole, 0) == then
    assert evaluate(with_kept_rows(plan), whole, 0) == then


@pytest.mark.parametrize("scan", SOURCES, ids=lambda scan: scan.source)
@given(data=st.data())
def test_rows_of_several_gateways_are_withdrawn_by_their_own(
    scan: Scan, data: st.DataObject
) -> None:
    instant = data.draw(st.integers(0, LAST)) * SECOND // 2
    database = Database()
    for gateway in ("gw-1", "gw-2", "gw-1"):
        database.append(scan.source, data.draw(events(scan)), gateway)
    plan = past(scan, as_of(instant))
    assert evaluate(with_kept_rows(plan), database, 0) == evaluate(plan, database, 0)


@given(data=st.data(), closed=st.booleans())
def test_between_is_every_reading_of_the_interval(data: st.DataObject, *, closed: bool) -> None:
    scan = data.draw(st.sampled_from(SOURCES))
    first, last = sorted(data.draw(st.integers(0, LAST)) * SECOND // 2 for _ in range(2))
    happened = data.draw(events(scan))
    database = Database()
    database.append(scan.source, happened)
    history = History(HistoryKind.BETWEEN, Moment(first), Moment(last), is_closed=closed)
    plan = past(scan, history)
    wanted = [
        event.row
        for event in happened
        if not event.delete
        and first <= event.ts
        and (event.ts < last or (closed and event.ts == last))
    ]
    assert sorted(evaluate(plan, database, 0)) == sorted(set(wanted))
    assert evaluate(with_kept_rows(plan), database, 0) == evaluate(plan, database, 0)


def test_a_lifetime_and_a_window_bound_what_is_read_of_the_lake() -> None:
    scan = past(SOURCES[3], as_of(10 * SECOND))
    (kept,) = kept_scans(with_kept_rows(scan))
    assert kept.part == ScanPart.KEPT
    assert kept.history is not None
    assert kept.history.interval(0) == (6 * SECOND, 10 * SECOND + 1)
    window = Window(scan, WindowKind.RANGE, SECOND)
    (kept,) = kept_scans(with_kept_rows(window))
    assert kept.history is not None
    assert kept.history.interval(0) == (9 * SECOND, 10 * SECOND + 1)
    (kept,) = kept_scans(with_kept_rows(past(SOURCES[0], as_of(SECOND))))
    assert kept.history is not None
    assert kept.history.interval(0) == (None, SECOND + 1)


def test_times_that_move_with_the_start_stand_still_once_it_is_known() -> None:
    day = 86_400 * SECOND
    history = History(
        HistoryKind.BETWEEN, Moment(-day, from_start=True), Moment(0, from_start=True)
    )
    scan = fixed(past(SOURCES[0], history), 5 * day)
    assert isinstance(scan, Scan)
    assert scan.history is not None
    assert scan.history.interval(99) == (4 * day, 5 * day + 1)
    assert str(history) == "BETWEEN NOW - 24 h AND NOW"
