"""No order of events, steps, snapshots and crashes loses a row or counts it twice."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.snapshot.recorded_site import RecordedSite
from stream_engine.testing.histories import COLUMNS, SECOND
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Join,
    JoinKind,
    Plan,
    Scan,
    ScanPart,
    SourceKind,
    Window,
    WindowKind,
)
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

LOG = Scan("log", SourceKind.STREAM, COLUMNS)
FADING = Scan("fading", SourceKind.STREAM, COLUMNS, ttl=3 * SECOND)
KEYED = Scan("keyed", SourceKind.STREAM, COLUMNS, key=(0, 1), ttl=4 * SECOND)
DATED = Scan("dated", SourceKind.STREAM, COLUMNS, lateness=SECOND)
SOURCES = (LOG, FADING, KEYED, DATED)


def part(scan: Scan, which: ScanPart) -> Scan:
    return Scan(scan.source, scan.kind, scan.columns, lateness=scan.lateness, part=which)


COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
# Without a watermark the instant of an event depends on the site's clock when it came back.
QUERIES: tuple[Plan, ...] = (
    Join(
        Window(LOG, WindowKind.RANGE, 3 * SECOND),
        Window(KEYED, WindowKind.ROWS, 3),
        JoinKind.LEFT,
        ((0, 0),),
    ),
    Join(
        Window(LOG, WindowKind.RANGE, 3 * SECOND),
        Window(FADING, WindowKind.ROWS, 2),
        JoinKind.FULL,
        ((0, 0),),
    ),
    Aggregate(Window(LOG, WindowKind.ROWS, 2, partition=(0,)), (0,), (COUNT,)),
    Aggregate(Window(LOG, WindowKind.RANGE, 2 * SECOND, SECOND), (0,), (COUNT,)),
    Aggregate(LOG, (0,), (COUNT,)),
    Aggregate(KEYED, (1,), (COUNT,)),
    Aggregate(Window(DATED, WindowKind.RANGE, 2 * SECOND), (0,), (COUNT,)),
    Aggregate(Window(DATED, WindowKind.ROWS, 3), (0,), (COUNT,)),
    Aggregate(part(DATED, ScanPart.LATE), (0,), (COUNT,)),
    part(DATED, ScanPart.PROGRESS),
    Aggregate(part(LOG, ScanPart.EVENTS), (2, 3, 4), (COUNT,)),
    part(DATED, ScanPart.EVENTS),
    Aggregate(part(KEYED, ScanPart.EVENTS), (2, 4), (COUNT,)),
)
WAYS = (
    SiteSettings(),
    SiteSettings(share_synopses=False),
    SiteSettings(scheduler=SchedulerKind.ROUND_ROBIN, slice_ms=1.0),
    SiteSettings(scheduler=SchedulerKind.CHAIN, slice_ms=2.0, share_synopses=False),
)

EVENTS = st.tuples(
    st.sampled_from(SOURCES),
    st.tuples(st.sampled_from(("a", "b", None)), st.sampled_from((0, 1)), st.just(0.5)),
    st.sampled_from((-4, -3, -2, -1, 0, 0, 0, 1)),
    st.booleans(),
    st.sampled_from(("", "p1", "p2")),
)
ACTIONS = st.one_of(
    EVENTS,
    EVENTS,
    EVENTS,
    st.sampled_from(
        (
            "step",
            "step",
            "step",
            "save",
            "back",
            "back",
            "crash",
            "crash",
            "time",
            "second",
            "install",
            "stop",
            "configure",
            "check",
        )
    ),
)


class Life:
    """A site with a disk, and the readers of its queries' results, who outlive it."""

    def __init__(self) -> None:
        self.snapshot: bytes | None = None
        self.records: list[bytes] = []
        self.epoch = 0
        self.now = 10 * SECOND
        self.results: dict[str, ReceivingChannel] = {}
        self.way = SiteSettings()
        self.fresh()

    def fresh(self) -> None:
        self.epoch += 1
        self.site = RecordedSite("here", self.epoch, self.records.append)
        for scan in SOURCES:
            self.site.declare(scan)

    def crash(self) -> None:
        records = list(self.records)
        self.fresh()
        restored = self.site.restore(self.snapshot, records, self.now)
        assert not restored.unsaved, restored.unsaved
        assert not restored.complaints
        self.site.configure(self.way)

    def save(self) -> None:
        if self.site.is_at_rest:
            self.snapshot = self.site.snapshot()
            self.records.clear()

    def step(self) -> None:
        done = self.site.step(self.now)
        assert not done.failures, done.failures
        for out in done.outgoing:
            if out.query in self.results:
                self.results[out.query].accept(out.batch)

    def drain(self) -> None:
        self.step()
        for _ in range(1000):
            if not self.site.queues.batches:
                return
            self.step()
        raise AssertionError

    def answers(self) -> dict[str, Delta]:
        return {name: channel.contents.get("f0", {}) for name, channel in self.results.items()}


def bundle_of(plan: Plan, query: str) -> FragmentBundle:
    return FragmentBundle(query, 1, (Fragment("f0", Engine.GATEWAY, plan, ("here",)),), plan.schema)


@settings(deadline=None)
@given(st.lists(ACTIONS, min_size=15, max_size=40), st.randoms(use_true_random=False))
def test_no_order_of_events_steps_and_crashes_loses_or_doubles_a_row(  # noqa: C901
    actions: list[Any], dice: Any
) -> None:
    crashing, steady = both = Life(), Life()
    number = 0
    for action in ["configure", *["install"] * 4, *actions, "check", "crash", "check"]:
        if isinstance(action, tuple):
            scan, row, offset, delete, origin = action
            if scan is not KEYED:
                delete = False
            for life in both:
                ts = life.now + offset * (SECOND // 2)
                life.site.ingest(scan.source, [SourceEvent(row, ts, delete)], origin)
            continue
        if action == "install" and number < 6:
            plan = dice.choice(QUERIES)
            for life in both:
                life.results[f"q{number}"] = ReceivingChannel(version=1)
                life.site.install(bundle_of(plan, f"q{number}"))
            number += 1
        elif action == "stop" and crashing.results:
            name = dice.choice(sorted(crashing.results))
            for life in both:
                del life.results[name]
                life.site.uninstall(name)
        elif action in ("time", "second"):
            for life in both:
                life.now += SECOND // 2 if action == "time" else SECOND * 2
        elif action == "configure":
            way = dice.choice(WAYS)
            for life in both:
                life.way = way
                life.site.configure(way)
        elif action == "step":
            for life in both:
                life.step()
        elif action == "save":
            crashing.save()
        elif action in {"crash", "back"}:
            if action == "back":
                for life in both:
                    life.step()
                crashing.save()
            crashing.crash()
        elif action == "check":
            for life in both:
                life.drain()
            assert crashing.answers() == steady.answers()
    for scan in SOURCES:
        rows, wanted = (life.site.source_rows(scan.source) for life in both)
        assert sorted(map(repr, rows)) == sorted(map(repr, wanted))
