"""Counts of columns at a site, against counts of all its readings."""

import random
import tracemalloc
from collections import Counter

import pytest

from stream_engine.site.column_counts import (
    AGAIN_MICROSECONDS,
    LEAST,
    LOOK_MICROSECONDS,
    MAX_SOURCES,
    RECENT,
    SAMPLE,
    ColumnCounts,
)
from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.operators import Scan, SourceKind
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType, Row
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.site_messages import HASH_BYTES, MOST_HASHES, SourceCount
from tests.streamsql.from_text import catalog_of

SECOND = 1_000_000
START = 1_000_000 * SECOND
CATALOG = catalog_of(
    """CREATE SOURCE log (room TEXT, level INTEGER, v DOUBLE);
    CREATE SOURCE seat (seat TEXT, taken BOOLEAN, kg DOUBLE, KEY (seat)) WITH (ttl = '60 s');"""
)


class Life:
    """A site that steps with each reading, and is asked each ten seconds."""

    def __init__(self) -> None:
        self.site = SiteEngine("gw-1", 1)
        for source in CATALOG.sources:
            self.site.declare(source.scan())
        self.now = START
        self.told: dict[str, SourceCount] = {}
        self.reports = 0

    def read(self, source: str, *rows: Row) -> None:
        self.site.ingest(source, [SourceEvent(row, self.now) for row in rows])
        self.site.step(self.now)

    def look(self, after: int = LOOK_MICROSECONDS) -> dict[str, SourceCount]:
        self.now += after
        self.site.step(self.now)
        found = self.site.column_counts(self.now)
        if any(self.told.get(name) is not count for name, count in found.items()):
            self.reports += 1
        self.told = {**self.told, **found}
        return found


def values(count: SourceCount, column: str) -> int:
    return len(count.columns[column].hashes) // HASH_BYTES


def test_columns_of_few_values_are_counted_exactly() -> None:
    life, chance = Life(), random.Random(1)
    rows: list[Row] = []
    for _ in range(40):
        some = [(f"r-{chance.randrange(7)}", chance.randrange(3), None) for _ in range(5)]
        rows += some
        life.read("log", *some)
        life.look()
    life.look(AGAIN_MICROSECONDS)
    count = life.told["log"]
    assert (count.rows, count.sampled, count.compared) == (200, 200, 0)
    assert (values(count, "room"), values(count, "level"), values(count, "v")) == (7, 3, 0)
    levels = Counter(row[1] for row in rows)
    assert count.columns["level"].often == max(levels.values())
    assert count.columns["v"].nulls == 200
    assert count.columns["v"].often == 0
    ordered = sorted(row[1] for row in rows if isinstance(row[1], int))
    assert count.columns["level"].deciles[0] == ordered[0]
    assert count.columns["level"].deciles[5] == ordered[100]
    assert count.columns["level"].deciles[10] == ordered[-1]
    assert count.columns["room"].deciles == ()


def test_many_values_are_a_few_hashes_and_a_sample() -> None:
    life = Life()
    for step in range(30):
        life.read("log", *((f"r-{n}", n, float(n)) for n in range(step * 100, step * 100 + 100)))
        life.look()
    life.look(AGAIN_MICROSECONDS)
    count = life.told["log"]
    assert (count.rows, count.sampled) == (3_000, SAMPLE)
    assert values(count, "room") == MOST_HASHES
    median = count.columns["v"].deciles[5]
    assert 1_000 < median < 2_000


def test_a_reading_is_compared_with_the_one_of_the_same_key_before_it() -> None:
    life, chance = Life(), random.Random(2)
    last: dict[str, Row] = {}
    same = [0, 0]
    for _ in range(60):
        for seat in ("a", "b", "c"):
            row = (seat, chance.random() < 0.2, float(chance.randrange(4)))
            if seat in last:
                same[0] += row[1] == last[seat][1]
                same[1] += row[2] == last[seat][2]
            last[seat] = row
            life.read("seat", row)
        life.look()
    life.look(AGAIN_MICROSECONDS // 10)  # all rows go
    life.read("seat", ("a", False, 0.0))
    life.look(AGAIN_MICROSECONDS)
    count = life.told["seat"]
    assert count.compared == 3 * 59
    assert [count.columns[name].same for name in ("taken", "kg")] == same
    assert count.columns["seat"].same == count.compared


def test_a_row_that_comes_and_ends_is_not_compared_with_itself() -> None:
    life = Life()
    life.read("seat", *((f"s-{n}", True, 1.0) for n in range(LEAST)))
    life.now += 61 * SECOND
    life.look(0)
    assert life.told["seat"].compared == 0
    assert life.told["seat"].rows == LEAST


def test_reports_are_made_when_the_readings_have_doubled_and_now_and_then() -> None:
    life = Life()
    life.read("log", *((None, 1, 1.0) for _ in range(LEAST - 1)))
    assert not life.look()
    for _ in range(1_000):
        life.read("log", (None, 1, 1.0))
        life.look(SECOND)
    assert life.reports == 6  # of 25, 55, 115, 235, 475 and 955 readings
    for _ in range(1_000):
        life.look(SECOND)
    assert life.reports == 7, "what came since is told after ten minutes"
    for _ in range(1_000):
        life.look(SECOND)
    assert life.reports == 7, "nothing is new"


def test_a_report_is_told_once() -> None:
    life = Life()
    life.read("log", *((None, 1, 1.0) for _ in range(LEAST)))
    assert set(life.look()) == {"log"}
    assert not life.look(SECOND)
    assert not life.look()


def test_a_burst_costs_no_more_than_the_last_changes() -> None:
    life = Life()
    life.read("log", *((None, n, 1.0) for n in range(20_000)))
    life.look()
    assert life.told["log"].rows == RECENT


@pytest.mark.parametrize("gone", [True, False])
def test_a_source_that_is_defined_anew_is_counted_anew(*, gone: bool) -> None:
    life = Life()
    life.read("log", *((None, n, 1.0) for n in range(50)))
    life.look()
    assert "log" in life.told
    if gone:
        life.site.undeclare("log")
        assert not life.look(SECOND)
        return
    life.site.declare(catalog_of("CREATE SOURCE log (other TEXT);").sources[0].scan())
    life.read("log", *(("x",) for _ in range(LEAST)))
    life.look()
    assert set(life.told["log"].columns) == {"other"}
    assert life.told["log"].rows == LEAST


def wide(name: str, columns: int, dtype: DataType, key: tuple[int, ...] = ()) -> Scan:
    fields = tuple(Field(f"c{place}", dtype) for place in range(columns))
    return Scan(name, SourceKind.STREAM, Schema(fields), key)


@pytest.mark.parametrize("columns", [6, 200])
def test_a_source_takes_as_little_memory_with_long_texts_and_many_columns(columns: int) -> None:
    scan = wide("log", columns, DataType.TEXT)
    counts, told = ColumnCounts(), dict[str, SourceCount]()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for look in range(4):
        for step in range(RECENT):
            text = "\u0142" * 4_000 + f"{look} {step} "
            row = tuple([text + str(place) for place in range(min(columns, 6))])
            counts.note(scan, {(step, row + (text,) * (columns - len(row))): 1})
        told = counts.report(look * LOOK_MICROSECONDS)
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert held < 400_000
    assert told["log"].columns.keys() == {f"c{place}" for place in range(min(columns, 50))}
    payload = encode_packed(told["log"])
    assert len(payload) < 25_000
    assert decode_packed(payload, SourceCount) == told["log"]


def test_of_texts_their_values_are_counted() -> None:
    counts = ColumnCounts()
    scan = wide("log", 1, DataType.TEXT)
    counts.note(scan, {(n, (f"{'x' * 100}{n % 9}",)): 1 for n in range(100)})
    column = counts.report(0)["log"].columns["c0"]
    assert len(column.hashes) == 9 * HASH_BYTES
    assert column.often == 12


def test_of_texts_the_bytes_of_the_sample_are_counted() -> None:
    counts = ColumnCounts()
    scan = Scan("log", SourceKind.STREAM, Schema.of(("t", DataType.TEXT), ("n", DataType.INTEGER)))
    texts = ("\u0142" * 10, "", None, "x" * 70_000)
    counts.note(scan, {(n, (texts[n % 4], n)): 1 for n in range(100)})
    count = counts.report(0)["log"]
    assert count.columns["t"].size == 25 * (20 + 70_000)
    assert count.columns["n"].size is None


def test_keys_beyond_the_counted_columns_tell_readings_apart() -> None:
    counts = ColumnCounts()
    scan = wide("log", 60, DataType.INTEGER, key=(55,))
    for step in range(40):
        for device in range(2):
            new, old = ((step - back,) * 55 + (device,) * 5 for back in (0, 1))
            counts.note(scan, {(step, new): 1, (step - 1, old): -1} if step else {(0, new): 1})
    count = counts.report(0)["log"]
    assert count.compared > 16
    assert count.columns["c0"].same == 0


def test_a_look_sees_a_few_sources_and_each_has_its_turn() -> None:
    counts = ColumnCounts()
    scans = [wide(f"s{number}", 50, DataType.DOUBLE) for number in range(MAX_SOURCES + 1)]
    for scan in scans:
        counts.note(scan, {(n, (float(n),) * 50): 10**6 for n in range(1_000)})
    told = [tuple(counts.report(n)) for n in range(MAX_SOURCES + 1)]
    assert max(map(len, told)) == 1
    assert {name for names in told for name in names} == {f"s{n}" for n in range(MAX_SOURCES)}
    assert not counts.report(MAX_SOURCES + 1)
