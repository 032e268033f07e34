"""Stores and stubs one by one: the thesis' example, progress, lag, limits, restarts."""

import pytest

from stream_engine.operators.windows.rows_window import RowsWindow
from stream_engine.operators.windows.stretches import stretch_of
from stream_engine.sharing import versions
from stream_engine.sharing.index_store import IndexStore, IndexStub
from stream_engine.sharing.rows_store import RowsStore
from stream_engine.sharing.time_store import TimeStore, TimeStub
from stream_engine.site.site_engine import SiteEngine
from stream_engine.snapshot.recorded_site import RecordedSite
from stream_engine.state.indexed_relation import IndexedRelation
from stream_engine.state.source_relation import TimedDelta
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Join,
    JoinKind,
    Plan,
    Scan,
    SourceKind,
    Window,
    WindowKind,
)
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_settings import SiteSettings

SECOND = 1_000_000
COLUMNS = Schema.of(("a", DataType.INTEGER), ("b", DataType.INTEGER))
S1, S2 = (Scan(name, SourceKind.STREAM, COLUMNS) for name in ("s1", "s2"))


def rows_of(scan: Scan, count: int) -> Window:
    return Window(scan, WindowKind.ROWS, count)


def joined(left: Plan, right: Plan) -> Join:
    return Join(left, right, JoinKind.INNER, ((0, 0),), None)


def bundle(query: str, plan: Plan) -> FragmentBundle:
    return FragmentBundle(query, 1, (Fragment("f", Engine.BASE, plan, ("here",)),), plan.schema)


def highest(window: Window) -> Aggregate:
    maximum = AggregateCall(AggregateFunction.MAX, (Column(0, "a", DataType.INTEGER),), "m")
    return Aggregate(window, (), (maximum,))


def feed(site: SiteEngine, source: str, first: int, count: int) -> None:
    events = [SourceEvent((n % 97, n), n * SECOND) for n in range(first, first + count)]
    site.ingest(source, events)


def stores(site: SiteEngine) -> list[tuple[str, int, int]]:
    return [(store.kind, store.rows, store.stubs) for store in site.synopses.stores()]


def test_the_plans_of_figure_2_3_keep_the_larger_window_once() -> None:
    """Babu's thesis, figure 2.3: S1 [Rows 1000] joins S2 [Rows 200]; MAX over S1 [Rows 200]."""
    site = SiteEngine("here", 1)
    site.install(bundle("q1", joined(rows_of(S1, 1000), rows_of(S2, 200))))
    site.install(bundle("q2", highest(rows_of(S1, 200))))
    for step in range(15):
        feed(site, "s1", step * 100, 100)
        feed(site, "s2", step * 100, 100)
        site.step(step * SECOND)
    assert stores(site) == [("rows", 1000, 2)]
    seen = {(s.query, s.entity): (s.rows, s.store) for s in site.synopses.synopses()}
    assert seen["q1", "f/0"] == (1000, 1)
    assert seen["q2", "f/0"] == (200, 1)
    assert seen["q1", "f/1"] == (200, None), "nobody else reads S2"
    site.install(bundle("q3", joined(rows_of(S1, 1000), rows_of(S2, 200))))
    site.uninstall("q1")  # what only the larger window had goes with it
    assert stores(site) == []
    assert {s.query: s.rows for s in site.synopses.synopses()} == {"q2": 200}


@pytest.mark.parametrize("kind", [WindowKind.RANGE, WindowKind.ROWS])
def test_a_query_that_starts_later_shares_once_its_window_is_full(kind: WindowKind) -> None:
    window = Window(S1, kind, 100 if kind == WindowKind.ROWS else 100 * SECOND)
    site = SiteEngine("here", 1)
    site.install(bundle("q1", highest(window)))
    for now in range(300):
        feed(site, "s1", now, 1)
        site.step(now * SECOND)
    site.install(bundle("q2", highest(window)))
    shared_from = None
    for now in range(300, 700):
        feed(site, "s1", now, 1)
        site.step(now * SECOND)
        if shared_from is None and stores(site):
            shared_from = now
    assert shared_from is not None
    assert 399 <= shared_from <= 600, "not before it is full, and not much later"
    assert [store[1:] for store in stores(site)] == [(100, 2)]


def test_switching_off_gives_every_query_its_own_rows_and_on_merges_them() -> None:
    plan = joined(Window(S1, WindowKind.RANGE, 50 * SECOND), Window(S2, WindowKind.RANGE, SECOND))
    site = SiteEngine("here", 1)
    for number in range(4):
        site.install(bundle(f"q{number}", plan))
    for now in range(60):
        feed(site, "s1", now, 1)
        feed(site, "s2", now, 1)
        site.step(now * SECOND)
    shared = stores(site)
    assert [stubs for _, _, stubs in shared] == [4, 4, 4, 4]
    rows = [(s.query, s.entity, s.rows) for s in site.synopses.synopses()]
    site.configure(SiteSettings(share_synopses=False))
    assert stores(site) == []
    assert [(s.query, s.entity, s.rows) for s in site.synopses.synopses()] == rows
    site.configure(SiteSettings(share_synopses=True))
    assert stores(site) == shared
    assert [(s.query, s.entity, s.rows) for s in site.synopses.synopses()] == rows
    for number in range(4):
        site.uninstall(f"q{number}")
    assert stores(site) == []
    assert site.synopses.synopses() == []


def test_a_self_join_on_one_key_keeps_its_rows_once() -> None:
    window = Window(S1, WindowKind.RANGE, 50 * SECOND)
    site = SiteEngine("here", 1)
    site.install(bundle("q", joined(window, window)))
    feed(site, "s1", 0, 10)
    site.step(10 * SECOND)
    assert stores(site) == [("index", 10, 2)]


# --- progress -------------------------------------------------------------------------------------


def index_with(stubs: int) -> tuple[IndexStore, list[IndexStub]]:
    store = IndexStore(1, IndexedRelation((0,)))
    return store, [IndexStub(store) for _ in range(stubs)]


def view(stub: IndexStub) -> Delta:
    relation: Delta = {}
    for key in list(stub.content().buckets):
        relation.update(dict(stub.rows(key)))
    return relation


def test_a_stub_sees_only_the_changes_it_has_made() -> None:
    store, (first, second) = index_with(2)
    inserted: Delta = {(1, 1): 1, (1, 2): 1}
    deleted: Delta = {(1, 1): -1}
    first.apply(inserted)
    assert (view(first), view(second)) == ({(1, 1): 1, (1, 2): 1}, {})
    first.apply(deleted)
    assert store.rows() == 1
    second.apply(dict(inserted))
    assert view(second) == {(1, 1): 1, (1, 2): 1}
    assert store.rows() == 2, "a row leaves with the last delete"
    second.apply(dict(deleted))
    assert view(second) == view(first) == {(1, 2): 1}
    assert store.rows() == 1
    assert store.since(0) == []


def test_changes_in_other_pieces_become_a_lag_that_vanishes() -> None:
    store, (first, second) = index_with(2)
    first.apply({(1, 1): 1, (2, 2): 1})
    second.apply({(1, 1): 1})
    assert second.lag is not None
    assert view(second) == {(1, 1): 1}
    second.apply({(2, 2): 1})
    assert second.lag is None
    assert second.sees_head
    assert store.since(0) == []


def test_the_log_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "LONGEST_LOG", 10)
    store, (first, second) = index_with(2)
    for n in range(100):
        first.apply({(n, n): 1})
        first.apply({(n, n): -1})
    assert len(store.since(0)) <= 11
    assert view(second) == {}
    for n in range(100):
        second.apply({(n, n): 1})
        second.apply({(n, n): -1})
    assert view(second) == {}


def test_a_stub_that_differs_in_too_much_leaves() -> None:
    store, (first, second) = index_with(2)
    for n in range(2 * versions.FIRST_LIMIT):
        first.apply({(n, n): 1})
        second.apply({(n, -n): 1})
    assert second.wants_out
    assert not first.wants_out
    assert len(second) == 2 * versions.FIRST_LIMIT
    assert store.rows() == len(view(first) | view(second))


def test_when_the_stub_ahead_goes_the_others_see_what_they_saw() -> None:
    store, (first, second, third) = index_with(3)
    first.apply({(1, 1): 1, (2, 2): 1})
    second.apply({(1, 1): 1})
    before = view(second), view(third)
    store.remove(first)
    assert (view(second), view(third)) == before
    assert any(stub.sees_head for stub in store.stubs)
    assert store.rows() == 1


# --- windows by count -----------------------------------------------------------------------------


def test_a_withdrawal_from_a_log_makes_its_windows_go_on_alone() -> None:
    store = RowsStore(1, (), bounded=True)
    stubs = [store.admit(RowsWindow(size, (), bounded=True)) for size in (1, 3)]
    alone = [RowsWindow(size, (), bounded=True) for size in (1, 3)]
    deltas: list[TimedDelta] = [
        {(1, (1, 1)): 1, (2, (2, 2)): 1, (3, (3, 3)): 1},
        {(3, (3, 3)): -1},
        {(0, (0, 0)): 1},
        {(4, (4, 4)): 2},
    ]
    for delta in deltas:
        for stub, window in zip(stubs, alone, strict=True):
            assert stub is not None
            assert stub.apply_timed(dict(delta)) == window.apply_timed(dict(delta))
    assert all(stub is not None and stub.wants_out for stub in stubs)
    assert store.stubs == []


def test_a_window_too_far_behind_goes_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "LONGEST_LOG", 5)
    store = RowsStore(1, (), bounded=True)
    fast, slow = (store.admit(RowsWindow(2, (), bounded=True)) for _ in range(2))
    assert fast is not None
    assert slow is not None
    alone = RowsWindow(2, (), bounded=True)
    deltas: list[TimedDelta] = [{(n, (n, n)): 1} for n in range(20)]
    for delta in deltas:
        fast.apply_timed(delta)
    assert slow.wants_out
    for delta in deltas:
        assert slow.apply_timed(delta) == alone.apply_timed(delta)


def test_a_window_takes_several_changes_that_came_to_it_as_one() -> None:
    store = RowsStore(1, (), bounded=False)
    first, second = (store.admit(RowsWindow(2, (), bounded=False)) for _ in range(2))
    assert first is not None
    assert second is not None
    first.apply_timed({(1, (1, 1)): 1, (2, (2, 2)): 1})
    first.apply_timed({(3, (3, 3)): 1, (1, (1, 1)): -1})
    assert second.apply_timed({(2, (2, 2)): 1, (3, (3, 3)): 1}) == {(2, 2): 1, (3, 3): 1}
    assert not second.wants_out


# --- windows by time ------------------------------------------------------------------------------

X, Y = (1, 1), (2, 2)
TEN = 10 * SECOND


def admitted(store: TimeStore, seconds: int, **held: tuple[int, int]) -> TimeStub | None:
    """Hand a store a window of so many seconds at 10 s, with x or y at some (second, weight)."""
    stretch = stretch_of(Window(S1, WindowKind.RANGE, seconds * SECOND))
    window = stretch.alone()
    rows = {"x": X, "y": Y}
    window.fill(TEN, [((ts * SECOND, rows[n]), weight) for n, (ts, weight) in held.items()])
    return store.admit(window, stretch)


def test_rows_that_are_too_old_for_all_are_not_kept_and_come_with_who_wants_them() -> None:
    store = TimeStore(1)
    short = admitted(store, 5)
    assert short is not None
    delta: TimedDelta = {(5 * SECOND, X): 1, (6 * SECOND, Y): 1}
    assert short.apply_timed(delta) == {Y: 1}
    assert store.head_rows() == 1
    long = admitted(store, 20, x=(5, 1), y=(6, 1))
    assert long is not None
    assert dict(long.contents()) == delta
    assert dict(short.contents()) == {(6 * SECOND, Y): 1}


def test_a_window_that_holds_something_else_is_not_admitted() -> None:
    store = TimeStore(1)
    first = admitted(store, 5)
    assert first is not None
    first.apply_timed({(6 * SECOND, X): 1})
    assert admitted(store, 5, x=(6, 2)) is None, "more often"
    assert admitted(store, 5, y=(6, 1)) is None, "another row of that time"
    assert admitted(store, 5, x=(7, 1)) is None, "at another time"
    assert admitted(store, 5) is None, "nothing"
    assert store.stubs == [first]
    assert admitted(store, 5, x=(6, 1)) is not None


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize("first_moves", [True, False])
def test_windows_that_see_different_rows_move_each_by_its_own(
    *, first_moves: bool, removed: bool
) -> None:
    """What one move takes out is remembered for others, but only for those that see the same."""
    store = TimeStore(1)
    first, second = admitted(store, 5), admitted(store, 5)
    assert first is not None
    assert second is not None
    first.apply_timed({(6 * SECOND, X): 1, (6 * SECOND, Y): 1})
    second.apply_timed({(6 * SECOND, X): 1})
    later = TEN + SECOND
    if first_moves:
        assert first.advance(later) == {X: -1, Y: -1}
        if removed:
            store.remove(first)
            assert second.sees_head
        assert second.advance(later) == {X: -1}
    else:
        assert second.advance(later) == {X: -1}
        if removed:
            store.remove(second)
        assert first.advance(later) == {X: -1, Y: -1}


def test_a_window_wakes_for_rows_that_the_store_has_already_lost() -> None:
    store = TimeStore(1)
    first, second = admitted(store, 5), admitted(store, 5)
    assert first is not None
    assert second is not None
    for stub in (first, second):
        stub.apply_timed({(6 * SECOND, X): 1, (8 * SECOND, Y): 1})
    assert first.apply_timed({(6 * SECOND, X): -1}) == {X: -1}
    assert (first.next_wakeup(), second.next_wakeup()) == (13 * SECOND, 11 * SECOND)
    second.fall_behind()
    assert second.lag is not None
    assert second.next_wakeup() == 11 * SECOND
    assert second.advance(11 * SECOND) == {X: -1}
    assert second.next_wakeup() == 13 * SECOND


# --- restarts -------------------------------------------------------------------------------------


def _recorded(epoch: int, records: list[bytes]) -> RecordedSite:
    site = RecordedSite("here", epoch, records.append)
    for scan in (S1, S2):
        site.declare(scan)
    return site


def _answers(site: SiteEngine, now: int) -> dict[str, Delta]:
    site.resync_all()
    channels: dict[str, ReceivingChannel] = {}
    for outgoing in site.step(now).outgoing:
        channel = channels.setdefault(outgoing.query, ReceivingChannel(version=1))
        channel.accept(outgoing.batch)
    return {name: channel.contents.get("f", {}) for name, channel in channels.items()}


@pytest.mark.parametrize("sharing", [True, False])
def test_a_killed_site_comes_back_with_what_each_query_had_and_shares_again(sharing: bool) -> None:
    plans: list[Plan] = [
        joined(Window(S1, WindowKind.RANGE, 30 * SECOND), rows_of(S2, 5)),
        joined(Window(S1, WindowKind.RANGE, 10 * SECOND), rows_of(S2, 3)),
        highest(Window(S1, WindowKind.RANGE, 20 * SECOND, 5 * SECOND)),
    ]
    records: list[bytes] = []
    saved = b""
    site = _recorded(1, records)
    for number, plan in enumerate(plans):
        site.install(bundle(f"q{number}", plan))
    for now in range(40):
        if now == 20:
            site.install(bundle("late", plans[0]))
        if now == 33:
            saved = site.snapshot()
            del records[:]
        feed(site, "s1", now, 1)
        feed(site, "s2", now, 2)
        site.step(now * SECOND)
    assert stores(site)
    back = _recorded(2, [])
    back.configure(SiteSettings(share_synopses=sharing))
    restored = back.restore(saved, records, 40 * SECOND)
    assert restored.unsaved == {}
    assert _answers(back, 41 * SECOND) == _answers(site, 41 * SECOND)
    assert bool(stores(back)) == sharing
    for now in range(42, 60):
        for each in (site, back):
            feed(each, "s1", now, 1)
            feed(each, "s2", now, 1)
            each.step(now * SECOND)
    assert _answers(back, 60 * SECOND) == _answers(site, 60 * SECOND)


@pytest.mark.parametrize(
    "window",
    [Window(S1, WindowKind.NOW), Window(S1, WindowKind.RANGE, SECOND, slide=SECOND)],
    ids=["now", "slide"],
)
def test_a_jump_over_a_whole_stay_shows_a_shared_row_never(window: Window) -> None:
    """It has not entered when time jumps, and has left behind the jump."""
    store = TimeStore(0)
    stub = TimeStub(store, stretch_of(window), 0)
    assert stub.apply_timed({(2_500_000, (1, 1)): 1, (9_500_000, (2, 2)): 1}) == {}
    later = stub.advance(10 * SECOND)
    assert later == ({} if window.kind == WindowKind.NOW else {(2, 2): 1})
    assert stub.advance(20 * SECOND) == dict.fromkeys(later, -1)
