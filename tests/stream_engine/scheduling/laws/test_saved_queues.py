"""A site that crashes while changes wait between its operators goes on with them."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.snapshot.recorded_site import RecordedSite
from stream_engine.testing.histories import SECOND, SOURCES, Moment, histories
from stream_engine.testing.plans import plans
from streamsql.algebra.operators import Aggregate, AggregateCall, AggregateFunction, Plan
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.reference.evaluate import evaluate
from streamsql.reference.reference_database import Database
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

STREAMS = SOURCES[:4]
LOG = SOURCES[0]
MOST_STEPS = 10_000
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")


@dataclass
class Life:
    """A site, its disk, and a reader of its query who outlives it."""

    plan: Plan
    way: SiteSettings
    epoch: int = 0
    snapshot: bytes | None = None
    records: list[bytes] = field(default_factory=list)
    result: ReceivingChannel = field(default_factory=lambda: ReceivingChannel(version=1))

    def __post_init__(self) -> None:
        self.site = self.fresh()
        fragment = Fragment("f0", Engine.GATEWAY, self.plan, ("here",))
        self.site.install(FragmentBundle("q", 1, (fragment,), self.plan.schema))

    def fresh(self) -> RecordedSite:
        self.epoch += 1
        site = RecordedSite("here", self.epoch, self.records.append)
        for scan in STREAMS:
            site.declare(scan)
        site.configure(self.way)
        return site

    def step(self, now: int) -> None:
        done = self.site.step(now)
        assert not done.failures
        for outgoing in done.outgoing:
            self.result.accept(outgoing.batch)

    def save(self) -> None:
        if self.site.is_at_rest:
            self.snapshot = self.site.snapshot()
            self.records.clear()

    def crash(self, now: int) -> None:
        self.site = self.fresh()
        assert not self.site.restore(self.snapshot, list(self.records), now).unsaved

    def drain(self, now: int) -> None:
        for _ in range(MOST_STEPS):
            self.step(now)
            if not self.site.queues.batches:
                return
        raise AssertionError("changes wait for ever")

    def answer(self) -> Delta:
        return self.result.contents.get("f0", {})


@settings(max_examples=80)
@given(
    plans(STREAMS),
    histories(STREAMS, max_moments=6),
    st.lists(st.sampled_from(("", "save", "crash", "both")), min_size=6, max_size=6),
    st.sampled_from(list(SchedulerKind)),
    st.sampled_from((1.0, 2.0)),
)
def test_a_crash_while_changes_wait(
    plan: Plan,
    moments: list[Moment],
    fates: list[str],
    scheduler: SchedulerKind,
    slice_ms: float,
) -> None:
    life = Life(plan, SiteSettings(scheduler=scheduler, slice_ms=slice_ms))
    database = Database()
    life.step(0)
    for moment, fate in zip(moments, fates, strict=False):
        for source, event in moment.events:
            life.site.ingest(source, [event])
            database.append(source, [event])
        life.step(moment.now)
        if fate in {"save", "both"}:
            life.save()
        if fate in {"crash", "both"}:
            life.crash(moment.now)
    now = moments[-1].now
    life.drain(now)
    assert life.answer() == evaluate(plan, database, now)


def test_what_waits_is_in_the_snapshot() -> None:
    """A log keeps no rows, so what waits behind it is nowhere else."""
    counted = Aggregate(LOG, (0,), (COUNT,))
    plan = Aggregate(counted, (1,), (COUNT,))
    life = Life(plan, SiteSettings(slice_ms=1.0))
    life.step(0)
    for number in range(3):
        life.site.ingest("log", [SourceEvent(("a", number, 0.5), SECOND)])
        life.step(SECOND)
    waiting = life.site.queues.rows
    assert waiting > 0
    life.save()
    life.crash(SECOND)
    assert life.site.queues.rows == waiting
    life.drain(SECOND)
    assert life.answer() == {(3, 1): 1}


def test_a_snapshot_is_taken_of_a_site_where_something_waits_but_not_of_events_that_do() -> None:
    life = Life(Aggregate(LOG, (0,), (COUNT,)), SiteSettings(slice_ms=1.0))
    life.step(0)
    life.site.ingest("log", [SourceEvent(("a", 1, 0.5), SECOND)])
    assert not life.site.is_at_rest
    life.step(SECOND)
    life.site.ingest("log", [SourceEvent(("a", 2, 0.5), SECOND)])
    life.step(SECOND)
    assert life.site.is_at_rest
