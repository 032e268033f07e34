"""A gateway whose readings are read at a base holds nobody back when it is gone."""

import pytest

from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    HopWindow,
    OnClose,
    Plan,
    Scan,
    ScanPart,
    SourceKind,
)
from streamsql.data.delta import Delta, accumulate
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

COLUMNS = Schema.of(("k", DataType.TEXT), ("ts", DataType.TIMESTAMP))
LATENESS, SIZE = 5, 10


def scan(part: ScanPart = ScanPart.ROWS, idle: int | None = None) -> Scan:
    return Scan("s", SourceKind.STREAM, COLUMNS, (), 1, idle, LATENESS, part)


def progress(idle: int | None = None) -> Plan:
    return scan(ScanPart.PROGRESS, idle)


def closing() -> Plan:
    windows = HopWindow(scan(), 1, SIZE, SIZE)
    count = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
    return OnClose(Aggregate(windows, (2, 3), (count,)), progress(), 1)


class Life:
    """A base site with a journal, and what its query has given."""

    def __init__(self, plan: Plan) -> None:
        self.records: list[bytes] = []
        self.site = RecordedSite("base", 1, self.records.append)
        self.views: dict[str, Delta] = {}
        self.install("q", plan)

    def install(self, name: str, plan: Plan) -> None:
        fragment = Fragment("f1", Engine.BASE, plan, ("base",))
        self.site.install(FragmentBundle(name, 1, (fragment,), plan.schema))

    def reads(self, origin: str, *times: int) -> None:
        self.site.ingest("s", [SourceEvent((origin, ts), ts) for ts in times], origin)

    def step(self, now: int, query: str = "q") -> Delta:
        for sent in self.site.step(now).outgoing:
            view = self.views.setdefault(sent.query, {})
            if sent.batch.reset:
                view.clear()
            accumulate(view, {row.row: row.weight for row in sent.batch.deltas})
        return self.views.setdefault(query, {})

    @property
    def view(self) -> Delta:
        return self.views["q"]

    def again(self, now: int, *, saved: bool) -> "Life":
        """Return the next life, from a snapshot of now or from the journal."""
        snapshot = self.site.snapshot(None) if saved else None
        life = Life.__new__(Life)
        life.records, life.views = [], {}
        life.site = RecordedSite("base", 2)
        life.site.restore(snapshot, () if saved else self.records, now)
        life.step(now)
        return life


def test_windows_do_not_wait_for_a_gateway_that_is_given_up() -> None:
    life = Life(closing())
    life.reads("g1", 3, 30)
    life.reads("g2", 4)
    life.step(100)
    life.step(10_000)
    assert life.view == {}, "without an idle time it would wait for ever"
    life.site.site_lost("g2")
    assert life.step(10_001) == {(0, 10, 2): 1}


def test_its_history_is_given_up_with_it() -> None:
    life = Life(closing())
    life.reads("g1", 3, 30)
    life.reads("g2/hist", 4)
    life.reads("g22", 16)
    life.step(100)
    life.site.site_lost("g2")
    assert life.step(101) == {(0, 10, 2): 1}, "g22 is another gateway"


@pytest.mark.parametrize("saved", [True, False])
def test_a_gateway_that_is_back_is_judged_as_if_it_had_not_been_away(saved: bool) -> None:
    life = Life(progress())
    life.reads("g1", 100)
    life.reads("g2", 50)
    life.step(1)
    life.site.site_lost("g2")
    assert life.step(2) == {("g1", 95): 1}
    life = life.again(3, saved=saved)
    life.install("rows", scan())
    life.step(4)
    life.views = {}
    life.reads("g2", 44, 46, 51)
    assert life.step(5, "rows") == {("g2", 46): 1, ("g2", 51): 1}, "its watermark was 45"


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("given_up", [True, False])
def test_a_gateway_that_was_removed_begins_anew(saved: bool, given_up: bool) -> None:
    life = Life(progress())
    life.reads("g1", 100)
    life.reads("g2", 50)
    life.step(1)
    assert life.site.origins() == {"g1", "g2"}
    if given_up:
        life.site.site_lost("g2")
    life.site.site_removed("g2")
    assert life.step(2) == {("g1", 95): 1}
    life = life.again(3, saved=saved)
    assert life.site.origins() == {"g1"}
    life.install("rows", scan())
    life.step(4)
    life.views = {}
    life.reads("g2", 44, 40, 38)
    assert life.step(5, "rows") == {("g2", 44): 1, ("g2", 40): 1}


@pytest.mark.parametrize("saved", [True, False])
def test_what_closed_without_it_stays_closed(saved: bool) -> None:
    life = Life(closing())
    life.reads("g1", 3, 18)
    life.reads("g2", 4)
    life.step(1)
    life.site.site_removed("g2")
    assert life.step(2) == {(0, 10, 2): 1}
    life = life.again(3, saved=saved)
    life.reads("g2", 5, 12)
    life.reads("g1", 40)
    life.step(4)
    life.reads("g2", 41)
    assert life.step(5).get((0, 10, 3)) is None
    assert life.view[10, 20, 2] == 1, "the window that was open has its reading"


def test_readings_after_it_was_given_up_bring_it_back_in_the_same_step() -> None:
    life = Life(progress())
    life.reads("g1", 100)
    life.reads("g2", 50)
    life.site.site_lost("g2")
    assert life.step(1) == {("g1", 95): 1}, "its only reading came before"
    life.site.site_lost("g1")
    life.reads("g1", 110)
    assert life.step(2) == {("g1", 105): 1}


def test_a_query_that_begins_does_not_wait_for_who_has_been_idle_for_long() -> None:
    life = Life(scan())
    life.reads("g1", 10)
    life.step(100)
    life.reads("g2", 20)
    life.step(150)
    life.install("p", progress(idle=60))
    assert life.step(170, "p") == {(None, 5): 1, ("g2", 15): 1}, "g1 was heard 70 ago"
    assert life.site.next_wakeup() == 210, "and g2 at 150"
    assert life.step(210, "p") == {(None, 5): 1, (None, 15): 1}
    life.reads("g1", 30)
    assert life.step(211, "p") == {("g1", 25): 1, (None, 15): 1}


@pytest.mark.parametrize("saved", [True, False])
def test_when_a_gateway_was_heard_is_known_after_a_restart(saved: bool) -> None:
    life = Life(scan())
    life.reads("g1", 10)
    life.step(100)
    life.reads("g2", 20)
    life.step(150)
    life = life.again(160, saved=saved)
    life.install("p", progress(idle=60))
    assert life.step(170, "p") == {(None, 5): 1, ("g2", 15): 1}


def test_a_loss_alone_is_recorded_with_the_step_that_shows_it() -> None:
    life = Life(progress())
    life.reads("g1", 100)
    life.step(1)
    life.site.site_lost("g1")
    assert not life.site.is_at_rest
    life.step(2)
    assert life.site.is_at_rest
    assert life.view == {}
