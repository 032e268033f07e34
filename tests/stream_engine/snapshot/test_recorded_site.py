"""A site that crashes and is restored gives the answer of one that never did."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.site.site_engine import SiteEngine
from stream_engine.snapshot.recorded_site import RecordedSite
from stream_engine.snapshot.saved_site import SnapshotError
from stream_engine.testing.histories import COLUMNS, SECOND, SOURCES, Moment, histories
from stream_engine.testing.plans import plans
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Join,
    JoinKind,
    OnClose,
    Plan,
    RemoteSource,
    Scan,
    ScanPart,
    SessionWindow,
    SourceKind,
    Window,
    WindowKind,
)
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import InternalError
from streamsql.wire.channel_protocol import ReceivingChannel, SendingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

LOG = SOURCES[0]
KEYED = next(source for source in SOURCES if source.source == "keyed")
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")


DATED = Scan(
    "late",
    SourceKind.STREAM,
    Schema.of(("k", DataType.TEXT), ("ts", DataType.TIMESTAMP), ("v", DataType.INTEGER)),
    time_column=1,
    lateness=SECOND,
)


def dated(key: str, second: int) -> SourceEvent:
    return SourceEvent((key, second * SECOND, 0), second * SECOND)


def bundle_of(plan: Plan, query: str = "q", version: int = 1) -> FragmentBundle:
    fragment = Fragment("f0", Engine.GATEWAY, plan, ("here",))
    return FragmentBundle(query, version, (fragment,), plan.schema)


def counted(plan: Plan, *group: int) -> Aggregate:
    return Aggregate(plan, group, (COUNT,))


@dataclass
class Disk:
    """What is left of a site that crashes."""

    snapshot: bytes | None = None
    records: list[bytes] = field(default_factory=list)


class Life:
    """A site, its disk, and a reader of one query's result who outlives it."""

    def __init__(self, sources: tuple[Scan, ...] = SOURCES) -> None:
        self.disk = Disk()
        self.epoch = 0
        self.now = 0
        self.sources = sources
        self.result = ReceivingChannel(version=1)
        self.seen: list[tuple[Delta, bool]] = []
        self.site = self.fresh()

    def fresh(self) -> RecordedSite:
        self.epoch += 1
        site = RecordedSite("here", self.epoch)
        for scan in self.sources:
            if scan.kind != SourceKind.TABLE:
                site.declare(scan)
        site.record = self.disk.records.append
        return site

    def step(self, now: int) -> None:
        self.now = now
        done = self.site.step(now)
        assert not done.failures
        for outgoing in done.outgoing:
            if outgoing.destination == "" and outgoing.query == "q":
                _reception, delta = self.result.accept(outgoing.batch)
                if delta:
                    self.seen.append((delta, outgoing.snapshot))

    def save(self) -> None:
        self.disk.snapshot = self.site.snapshot({"saved": self.now})
        self.disk.records.clear()

    def crash(self) -> Any:
        self.site = self.fresh()
        return self.site.restore(self.disk.snapshot, list(self.disk.records), self.now)

    def answer(self) -> Delta:
        return self.result.contents.get("f0", {})


def live(site: SiteEngine, moment: Moment) -> None:
    for source, event in moment.events:
        site.ingest(source, [event])


@settings(max_examples=80)
@given(
    plans(SOURCES[:4]),
    histories(SOURCES[:4], max_moments=7),
    st.lists(st.sampled_from(("", "", "save", "crash", "half")), min_size=7, max_size=7),
)
def test_a_crash_at_any_point_changes_no_answer(
    plan: Plan, moments: list[Moment], fates: list[str]
) -> None:
    crashing, steady = Life(), Life()
    for life in (crashing, steady):
        life.site.install(bundle_of(plan))
        life.step(0)
    for moment, fate in zip(moments, fates, strict=False):
        for life in (crashing, steady):
            live(life.site, moment)
        if fate == "half":
            crashing.crash()  # events are known, the step was never made
        for life in (crashing, steady):
            life.step(moment.now)
        if fate == "save":
            crashing.save()
        if fate == "crash":
            crashing.crash()
            crashing.step(moment.now)
        assert crashing.answer() == steady.answer()
    assert crashing.site.source_rows("keyed_fading") == steady.site.source_rows("keyed_fading")


@given(
    histories(SOURCES[:2], max_moments=6),
    st.lists(st.sampled_from(("", "save", "crash")), min_size=6, max_size=6),
)
@settings(max_examples=80)
def test_a_closed_window_is_given_once_whatever_happens(
    moments: list[Moment], fates: list[str]
) -> None:
    """Closed windows stay in the result, and none comes a second time."""
    scan = Scan("late", SourceKind.STREAM, COLUMNS, ttl=3 * SECOND, lateness=SECOND)
    progress = Scan(
        "late", SourceKind.STREAM, COLUMNS, ttl=3 * SECOND, lateness=SECOND, part=ScanPart.PROGRESS
    )
    plan = OnClose(counted(scan, 1), progress, 0)
    crashing, steady = (Life((scan,)) for _ in range(2))
    for life in (crashing, steady):
        life.site.install(bundle_of(plan))
        life.step(0)
    for number, (moment, fate) in enumerate(zip(moments, fates, strict=False)):
        rows = [
            SourceEvent((e.row[0], number * SECOND, e.row[2]), number * SECOND)
            for _, e in moment.events
        ]
        for life in (crashing, steady):
            life.site.ingest("late", rows)
            life.step(number * SECOND)
        if fate == "save":
            crashing.save()
        if fate == "crash":
            crashing.crash()
            crashing.step(number * SECOND)
        assert crashing.answer() == steady.answer()
    closed = [row for delta, _ in crashing.seen for row in delta]
    assert len(closed) == len(set(closed))


def test_sessions_go_on_after_a_restart() -> None:
    life = Life((DATED,))
    progress = msgspec.structs.replace(DATED, part=ScanPart.PROGRESS)
    sessions = SessionWindow(DATED, 1, gap=3 * SECOND, partition=(0,))
    life.site.install(bundle_of(OnClose(counted(sessions, 0, 4), progress, 1)))
    for second in (1, 2, 4):
        life.site.ingest("late", [dated("a", second)])
        life.step(second)
    life.save()
    assert not life.crash().unsaved
    life.site.ingest("late", [dated("a", 5), dated("b", 12)])
    life.step(12)
    assert life.answer() == {("a", 8 * SECOND, 4): 1}


def test_a_ttl_ends_at_its_time_after_a_restart() -> None:
    life = Life()
    life.site.install(bundle_of(SOURCES[1]))
    life.site.ingest("fading", [SourceEvent(("a", 1, 0.5), SECOND)])
    life.step(SECOND)
    life.save()
    life.crash()
    life.step(2 * SECOND)
    assert life.answer() == {("a", 1, 0.5): 1}
    assert life.site.next_wakeup() == 4 * SECOND
    life.step(4 * SECOND)
    assert life.answer() == {}


def test_when_time_changes_something_next_is_known_after_a_restart() -> None:
    site = RecordedSite("here", 1)
    site.install(bundle_of(counted(Window(LOG, WindowKind.RANGE, 3 * SECOND), 0)))
    site.ingest("log", [SourceEvent(("a", 1, 0.5), 10 * SECOND)])
    site.step(10 * SECOND)
    assert site.next_change() == 13 * SECOND
    again = RecordedSite("here", 2)
    again.restore(site.snapshot(), [], 11 * SECOND)
    assert again.next_change() == 13 * SECOND


def test_a_row_whose_ttl_ended_while_the_site_was_away_is_gone() -> None:
    life = Life()
    life.site.install(bundle_of(SOURCES[1]))
    life.site.ingest("fading", [SourceEvent(("a", 1, 0.5), SECOND)])
    life.step(SECOND)
    life.crash()
    life.step(60 * SECOND)
    assert life.answer() == {}


def test_a_count_over_a_log_goes_on_and_a_running_query_is_the_same_bundle_again() -> None:
    life = Life()
    bundle = bundle_of(counted(Window(LOG, WindowKind.ROWS, 3)))
    life.site.install(bundle)
    for number in range(5):
        life.site.ingest("log", [SourceEvent(("a", number, 0.5), number)])
        life.step(number)
    life.save()
    restored = life.crash()
    assert (restored.now, restored.host, restored.unsaved) == (4, {"saved": 4}, {})
    life.site.install(bundle)  # the broker has retained it
    life.step(5)
    assert life.answer() == {(3,): 1}
    assert life.site.with_history() == ["q"]


def test_links_come_back_exactly_once_to_a_site_that_had_given_them_up() -> None:
    link = Scan("link", SourceKind.LINK, COLUMNS, key=(0,), ttl=90 * SECOND)
    life = Life((link,))
    life.site.install(bundle_of(link))
    life.site.ingest("link", [SourceEvent((key, 1, 0.5), 0) for key in "ab"])
    life.step(0)
    assert len(life.answer()) == 2
    life.result.lose_sender()  # its will came, the grace time is over
    life.crash()
    life.step(SECOND)
    assert life.answer() == {("a", 1, 0.5): 1, ("b", 1, 0.5): 1}
    life.seen.clear()
    life.site.resync("q", "")
    life.step(2 * SECOND)
    assert life.seen == []


def test_a_snapshot_in_the_middle_of_anything_is_refused() -> None:
    life = Life()
    life.site.install(bundle_of(LOG))
    assert not life.site.is_at_rest
    with pytest.raises(InternalError, match="between two steps"):
        life.site.snapshot()
    life.step(0)
    life.site.ingest("log", [SourceEvent(("a", 1, 0.5), 0)])
    with pytest.raises(InternalError, match="between two steps"):
        life.site.snapshot()
    life.step(1)
    assert life.site.snapshot()


def test_events_of_several_sources_are_one_record_with_their_note() -> None:
    life = Life()
    life.site.take_in(
        {
            "log": [SourceEvent(("a", 1, 0.5), 0)],
            "keyed": [SourceEvent(("k", 1, 0.5), 0)],
        },
        ("replay", 17),
    )
    assert len(life.disk.records) == 1
    restored = life.crash()
    assert restored.notes == [("replay", 17)]
    life.step(1)
    assert life.site.source_rows("keyed") == [("k", 1, 0.5)]


@pytest.mark.parametrize("damage", ["cut", "other site", "other format", "future", "empty"])
def test_a_snapshot_that_cannot_be_used_is_refused_and_leaves_the_site_as_it_was(
    damage: str,
) -> None:
    life = Life()
    life.site.install(bundle_of(counted(LOG)))
    life.step(1000 * SECOND)
    content = life.site.snapshot()
    now, name = 1000 * SECOND, "here"
    match damage:
        case "cut":
            content = content[: len(content) // 2]
        case "empty":
            content = b""
        case "other site":
            name = "there"
        case "other format":
            content = content[:1] + bytes([content[1] + 1]) + content[2:]
        case _:
            now = 0
    site = RecordedSite(name, 2)
    with pytest.raises(SnapshotError):
        site.restore(content, [], now)
    assert site.queries == {}
    assert site.step(0).outgoing == []


def joined_at_base() -> FragmentBundle:
    """A count over a log, joined with what another site sends."""
    remote = RemoteSource("f0", SOURCES[2].columns)
    counts = counted(LOG, 0)
    join = Join(counts, remote, JoinKind.LEFT, ((0, 0),), None)
    return FragmentBundle(
        "q",
        1,
        (
            Fragment("f0", Engine.GATEWAY, SOURCES[2], ("there",), "f1", ("here",)),
            Fragment("f1", Engine.BASE, join, ("here",)),
        ),
        join.schema,
    )


def test_what_other_sites_had_sent_becomes_exactly_what_they_have_now() -> None:
    life = Life()
    life.site.install(joined_at_base())
    sender = SendingChannel(version=1, epoch=7, ports=("f0",))
    first, second, third = (("a", n, 0.5) for n in (1, 2, 3))
    for batch in sender.snapshot(now=0):
        life.site.receive("q", "there", batch)
    for batch in sender.push("f0", {first: 1, second: 1}, now=0):
        life.site.receive("q", "there", batch)
    life.site.ingest("log", [SourceEvent(("a", 0, 0.5), 0)] * 2)
    life.step(1)
    life.save()
    before = {("a", 2, *first): 1, ("a", 2, *second): 1}
    assert life.result.contents["f1"] == before
    list(sender.push("f0", {first: -1, third: 1}, now=0))  # nobody hears it
    life.crash()
    assert life.site.unsynchronised() == {("q", "there")}
    life.step(2)
    assert life.result.contents["f1"] == before
    for batch in sender.snapshot(now=0):
        life.site.receive("q", "there", batch)
    life.step(3)
    assert life.result.contents["f1"] == {("a", 2, *second): 1, ("a", 2, *third): 1}


def test_a_site_that_was_lost_after_the_snapshot_stays_lost() -> None:
    life = Life()
    life.site.install(joined_at_base())
    sender = SendingChannel(version=1, epoch=7, ports=("f0",))
    for batch in [*sender.snapshot(now=0), *sender.push("f0", {("a", 1, 0.5): 1}, now=0)]:
        life.site.receive("q", "there", batch)
    life.site.ingest("log", [SourceEvent(("a", 0, 0.5), 0)])
    life.step(1)
    life.save()
    life.site.site_lost("there", 7)
    life.step(2)
    lone = {("a", 1, None, None, None): 1}
    assert life.result.contents["f1"] == lone
    life.crash()
    life.step(3)
    assert life.result.contents["f1"] == lone


def test_a_query_that_was_stopped_or_replaced_since_the_snapshot_stays_so() -> None:
    life = Life()
    life.site.install(bundle_of(counted(LOG)))
    life.site.install(bundle_of(counted(LOG), "other"))
    life.step(1)
    life.save()
    life.site.uninstall("q")
    life.site.install(bundle_of(counted(LOG), "other", version=2))
    life.step(2)
    life.crash()
    assert life.site.queries == {"other": 2}


def test_state_that_cannot_be_saved_is_named_with_the_time_it_is_lost_since() -> None:
    life = Life()
    life.site.install(bundle_of(counted(LOG)))
    life.step(5)
    life.site._queries["q"].parts[0]["f0"].nodes[1].operator.strange = iter(())  # type: ignore[attr-defined]
    life.save()
    unsaved = life.crash().unsaved
    assert unsaved["q"][0] == 5
    assert "strange" not in life.site.queries
    life.step(6)
    assert life.answer() == {(0,): 1}


def test_exact_sums_and_double_columns_survive() -> None:
    life = Life()
    x = Column(2, "x", DataType.DOUBLE)
    calls = (
        AggregateCall(AggregateFunction.SUM, (x,), "s"),
        AggregateCall(AggregateFunction.STDDEV_POP, (x,), "d"),
        AggregateCall(AggregateFunction.PERCENTILE_CONT, (x,), "m"),
        AggregateCall(AggregateFunction.MAX, (x,), "h"),
    )
    life.site.install(bundle_of(Aggregate(LOG, (0,), calls)))
    rows = [SourceEvent(("a", 0, value), 0) for value in (1e16, 0.1, -1e16, 2.5e-300)]
    life.site.ingest("log", rows)
    life.step(1)
    life.save()
    life.crash()
    life.site.ingest("log", [SourceEvent(("a", 0, -0.1), 0)])
    life.step(2)
    ((row, weight),) = life.answer().items()
    assert weight == 1
    assert row[1] == 2.5e-300
    assert row[4] == 1e16


WIDER = Scan(
    "keyed",
    SourceKind.STREAM,
    Schema.of(("n", DataType.INTEGER), ("k", DataType.TEXT), ("v", DataType.INTEGER)),
    (1,),
)


@pytest.mark.parametrize("saved_at", [None, "before", "after"])
def test_a_definition_that_changed_before_a_crash_stays_changed(
    saved_at: str | None,
) -> None:
    life = Life()
    for scan in life.sources:
        if scan.kind != SourceKind.TABLE:
            life.site.declare(scan)  # as a host does when it begins
    life.site.ingest("keyed", [SourceEvent(("a", 1, 0.5), 1)])
    life.step(SECOND)
    if saved_at == "before":
        life.save()
    life.site.declare(WIDER)
    life.site.ingest("keyed", [SourceEvent((7, "b", 2), 2)])
    life.step(2 * SECOND)
    if saved_at == "after":
        life.save()
    restored = life.crash()
    assert restored.complaints == []
    assert set(life.site.source_rows("keyed")) == {(1, "a", None), (7, "b", 2)}
    assert life.site.declare(WIDER) == []
    assert set(life.site.source_rows("keyed")) == {(1, "a", None), (7, "b", 2)}


def test_a_source_that_was_dropped_before_a_crash_is_not_there_after_it() -> None:
    life = Life()
    life.site.ingest("keyed", [SourceEvent(("a", 1, 0.5), 1)])
    life.step(SECOND)
    life.save()
    life.site.undeclare("keyed")
    life.crash()
    assert "keyed" not in life.site.declared


@pytest.mark.parametrize("was_told", [False, True])
def test_rows_saved_before_units_were_known_keep_their_values(was_told: bool) -> None:
    kelvin = msgspec.structs.replace(KEYED, units=("", "", "K"))
    life = Life((KEYED,))
    life.site.ingest("keyed", [SourceEvent(("a", 1, 280.5), 1)])
    life.step(SECOND)
    life.save()
    if not was_told:  # as an earlier version has saved it
        assert life.disk.snapshot is not None
        life.disk.snapshot = msgspec.msgpack.encode(msgspec.msgpack.decode(life.disk.snapshot)[:-1])
    life.site.ingest("keyed", [SourceEvent(("b", 2, 290.5), 2)])
    life.step(2 * SECOND)
    life.sources = (kelvin,)
    for _ in range(2):  # also if it crashes before the next snapshot
        assert life.crash().complaints == []
        life.site.declare(kelvin)
        found = set(life.site.source_rows("keyed"))
        known = {("a", 1, 280.5), ("b", 2, 290.5)}
        assert found == ({("a", 1, None), ("b", 2, None)} if was_told else known)
    # Another unit is another matter.
    life.site.declare(msgspec.structs.replace(KEYED, units=("", "", "Cel")))
    assert {row[2] for row in life.site.source_rows("keyed")} == {None}
