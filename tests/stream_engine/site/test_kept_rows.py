"""Counts of filters in reports: what they have read, told again when it has doubled."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Filter,
    Plan,
    Scan,
    SourceKind,
    UnionAll,
    Window,
    WindowKind,
)
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import (
    Engine,
    Fragment,
    FragmentBundle,
    filtered_scan,
    source_filters,
)
from streamsql.wire.messages import FilterReport

SCHEMA = Schema.of(("desk", DataType.TEXT), ("weight", DataType.DOUBLE))
SEAT = Scan("Seat", SourceKind.STREAM, SCHEMA)
WEIGHT = Column(1, "weight", DataType.DOUBLE)


def above(bound: float, below: Plan = SEAT) -> Filter:
    limit = Literal(bound, DataType.DOUBLE)
    return Filter(below, Call(">", (WEIGHT, limit), DataType.BOOLEAN))


def site_with(plan: Plan) -> SiteEngine:
    site = SiteEngine("base", 1)
    site.declare(SEAT)
    fragment = Fragment("f1", Engine.BASE, plan, ("base",))
    site.install(FragmentBundle("q", 1, (fragment,), plan.schema))
    return site


def told(site: SiteEngine) -> tuple[FilterReport, ...]:
    report = site.flow("q")
    assert report is not None
    return report.filters


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_counts_are_those_of_the_rows(seed: int) -> None:
    rng = random.Random(seed)
    site = site_with(UnionAll((above(0.5), above(0.9))))
    read, reports = [], 0
    before: tuple[FilterReport, ...] = ()
    for moment in range(1, 60):
        weights = [rng.random() for _ in range(rng.randrange(30))]
        site.ingest(
            "Seat", [SourceEvent((f"{moment}/{n}", w), moment) for n, w in enumerate(weights)]
        )
        site.step(moment)
        read += weights
        now = told(site)
        reports += now != before
        before = now
        for report in now:
            bound = (0.5, 0.9)[report.number]
            assert report.rows_out == sum(w > bound for w in read[: report.rows_in])
            assert report.rows_in <= len(read) < 2 * report.rows_in
        assert bool(now) == (len(read) >= 64)
    assert reports <= 8


def test_only_filters_right_over_devices_are_counted() -> None:
    window = Window(SEAT, WindowKind.RANGE, size=5)
    table = Scan("t", SourceKind.TABLE, SCHEMA)
    twice = above(1.0, above(2.0))
    plan = UnionAll((above(0.5, window), above(0.5, table), twice, above(0.5, window)))
    assert source_filters(plan) == (above(0.5, window), above(2.0))
    assert [filtered_scan(f) for f in source_filters(plan)] == [SEAT, SEAT]
