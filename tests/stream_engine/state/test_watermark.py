"""Each gateway's readings are judged by its own watermark."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.snapshot.recorded_site import RecordedSite
from stream_engine.state.source_relation import SourceRelation
from stream_engine.state.watermark import Judged, Watermark
from streamsql.algebra.operators import Plan, Scan, ScanPart, SourceKind, Window, WindowKind
from streamsql.data.delta import Delta, accumulate
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

COLUMNS = Schema.of(("k", DataType.TEXT), ("ts", DataType.TIMESTAMP))
LATENESS = 5

ARRIVALS = st.lists(st.tuples(st.sampled_from(["", "g1", "g2"]), st.integers(0, 30)), max_size=40)


def event(origin: str, ts: int) -> SourceEvent:
    return SourceEvent((origin, ts), ts)


@given(ARRIVALS, st.data())
def test_it_is_as_if_each_gateway_were_alone(
    arrivals: list[tuple[str, int]], data: st.DataObject
) -> None:
    together = Watermark(LATENESS)
    accepted: list[SourceEvent] = []
    batch: list[tuple[str, list[SourceEvent]]] = []
    for origin, ts in arrivals:
        batch.append((origin, [event(origin, ts)]))
        if data.draw(st.booleans()):
            accepted.extend(together.judge(batch).accepted)
            batch = []
    accepted.extend(together.judge(batch).accepted)
    marks = {}
    late = 0
    for origin in ("", "g1", "g2"):
        alone = Watermark(LATENESS)
        own = [event(origin, ts) for by, ts in arrivals if by == origin]
        assert [e for e in accepted if e.row[0] == origin] == list(
            alone.judge([("", own)]).accepted
        )
        late += alone.late
        if own:
            marks[origin] = alone.reached
    assert together.so_far().reached == marks
    assert together.reached == min(marks.values(), default=None)  # type: ignore[type-var]
    assert together.late == late


def scan(part: ScanPart = ScanPart.ROWS, idle: int | None = None) -> Scan:
    return Scan("s", SourceKind.STREAM, COLUMNS, (), 1, idle, LATENESS, part)


def base(plan: Plan, epoch: int = 1) -> RecordedSite:
    site = RecordedSite("base", epoch)
    fragment = Fragment("f1", Engine.BASE, plan, ("base",))
    site.install(FragmentBundle("q", 1, (fragment,), plan.schema))
    return site


def stepped(site: RecordedSite, now: int, view: Delta) -> Delta:
    for sent in site.step(now).outgoing:
        accumulate(view, {row.row: row.weight for row in sent.batch.deltas})
    return view


def test_a_gateway_ahead_makes_no_other_gateways_readings_late() -> None:
    site = base(Window(scan(), WindowKind.ROWS, 3))
    view: Delta = {}
    site.ingest("s", [event("g1", 1_000)], "g1")
    site.ingest("s", [event("g2", 3), event("g2", 20), event("g2", 4)], "g2")
    assert stepped(site, 1, view) == {("g1", 1_000): 1, ("g2", 3): 1, ("g2", 20): 1}


def test_the_least_gateway_that_is_not_idle_is_the_progress() -> None:
    site = base(scan(ScanPart.PROGRESS, idle=100))
    view: Delta = {}
    site.ingest("s", [event("g1", 50)], "g1")
    assert stepped(site, 0, view) == {("g1", 45): 1}
    site.ingest("s", [event("g2", 20)], "g2")
    assert stepped(site, 40, view) == {("g1", 45): 1, ("g2", 15): 1}
    assert site.next_wakeup() == 100
    assert stepped(site, 100, view) == {(None, 45): 1, ("g2", 15): 1}
    assert site.next_wakeup() == 140
    saved = site.snapshot(None)
    again = RecordedSite("base", 2)
    again.restore(saved, [], 100)
    assert again.next_wakeup() == 140
    view = {}
    again.ingest("s", [event("g1", 44), event("g1", 46)], "g1")  # the first is late
    assert stepped(again, 120, view) == {("g1", 45): 1, ("g2", 15): 1}
    assert stepped(again, 140, view) == {("g1", 45): 1, (None, 15): 1}


@settings(max_examples=30)
@given(ARRIVALS)
def test_a_journal_knows_whose_readings_they_were(arrivals: list[tuple[str, int]]) -> None:
    records: list[bytes] = []
    site = RecordedSite("base", 1, records.append)
    site.declare(scan(idle=10_000))
    site.install(
        FragmentBundle(
            "q", 1, (Fragment("f1", Engine.BASE, scan(idle=10_000), ("base",)),), COLUMNS
        )
    )
    for number, (origin, ts) in enumerate(arrivals):
        site.ingest("s", [event(origin, ts)], origin)
        site.step(number)
    again = RecordedSite("base", 2)
    again.declare(scan(idle=10_000))
    again.restore(None, records, len(arrivals))
    assert sorted(again.source_rows("s")) == sorted(site.source_rows("s"))


def test_a_gateway_that_was_idle_when_a_query_began_holds_back_nobody_for_ever() -> None:
    site = RecordedSite("gw", 1)
    site.declare(scan())
    site.ingest("s", [event("", 10)])
    site.step(950)
    plan = scan(ScanPart.PROGRESS, idle=100)
    site.install(
        FragmentBundle("q", 1, (Fragment("f1", Engine.GATEWAY, plan, ("gw",)),), plan.schema)
    )
    assert stepped(site, 1_000, {}) == {("gw", 5): 1}
    assert site.next_wakeup() == 1_050
    assert stepped(site, 1_100, {("gw", 5): 1}) == {(None, 5): 1}


def test_gateways_that_are_idle_equally_far_are_two() -> None:
    relation = SourceRelation(scan(ScanPart.PROGRESS, idle=100))
    relation.begin({"g1": 15, "g2": 15}, {"g1": 0, "g2": 0}, "base", 200)
    assert relation.snapshot() == {(15, (None, 15)): 2}
    delta = relation.take(Judged((), (), {"g1": 20}), "base", 201)
    assert delta == {(15, (None, 15)): -1, (20, ("g1", 20)): 1}
    assert relation.snapshot() == {(15, (None, 15)): 1, (20, ("g1", 20)): 1}


@pytest.mark.parametrize("now", [99, 100, 101])
def test_a_query_that_begins_sees_who_is_idle_as_one_that_was_there(now: int) -> None:
    """Also at the very time at which one becomes idle."""
    there, begun = (SourceRelation(scan(ScanPart.PROGRESS, idle=100)) for _ in range(2))
    there.take(Judged((), (), {"g1": 15}), "base", 0)
    there.take(Judged((), (), {}), "base", now)
    begun.begin({"g1": 15}, {"g1": 0}, "base", now)
    assert begun.snapshot() == there.snapshot() == {(15, ("g1" if now < 100 else None, 15)): 1}
    assert begun.next_expiry() == there.next_expiry() == (100 if now < 100 else None)


READINGS = st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=6)


@given(READINGS)
def test_without_lateness_nothing_is_late_and_the_watermark_is_the_newest(
    batches: list[list[int]],
) -> None:
    mark, seen = Watermark(None), []
    for times in batches:
        events = [event("", ts) for ts in times]
        seen += times
        judged = mark.judge([("g1", events)])
        assert (list(judged.accepted), list(judged.late)) == (events, [])
        assert judged.reached == ({"g1": max(seen)} if times else {})
    assert mark.late == 0
