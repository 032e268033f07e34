"""Queries that come and go over the same windows and joins: every answer stays right."""

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_engine.sharing.index_store import IndexStore, IndexStub
from stream_engine.sharing.rows_store import RowsStore, RowsStub
from stream_engine.sharing.time_store import TimeStore, TimeStub
from stream_engine.site.site_engine import SiteEngine
from stream_engine.testing.histories import SECOND, SOURCES, Moment, histories
from stream_engine.testing.plans import joins, plans, windows
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Join,
    JoinKind,
    Plan,
    Project,
    Window,
    WindowKind,
)
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.reference.evaluate import evaluate
from streamsql.reference.reference_database import Database
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

Action = tuple[int, int, int]
LOGS = {scan.source for scan in SOURCES if scan.is_log}
SETTINGS = (
    SiteSettings(),
    SiteSettings(share_synopses=False),
    SiteSettings(slice_ms=1),
    SiteSettings(slice_ms=2, scheduler=SchedulerKind.CHAIN),
    SiteSettings(slice_ms=1, scheduler=SchedulerKind.ROUND_ROBIN, share_synopses=False),
    SiteSettings(slice_ms=3, scheduler=SchedulerKind.GREEDY),
)


def _all_columns(plan: Plan, *, backwards: bool) -> Project:
    fields = plan.schema.fields
    columns = tuple(Column(p, f.name, f.dtype) for p, f in enumerate(fields))
    columns = columns[::-1] if backwards else columns[:-1]
    return Project(plan, columns, tuple(f"c{n}" for n in range(len(columns))))


@st.composite
def overlapping(draw: st.DrawFn) -> list[Plan]:
    """Return plans over few windows of few sources, so that much of them is equal."""
    scans = draw(st.lists(st.sampled_from(SOURCES), min_size=1, max_size=2))
    pool: list[Plan] = [draw(windows(draw(st.sampled_from(scans)))) for _ in range(3)]
    pool.append(Window(scans[0], WindowKind.RANGE, draw(st.sampled_from((1, 2, 5))) * SECOND))
    pool.append(Window(scans[0], WindowKind.ROWS, draw(st.integers(1, 4))))
    leaf = st.sampled_from(pool)
    found: list[Plan] = []
    for _ in range(draw(st.integers(2, 5))):
        match draw(st.integers(0, 6)):
            case 0:
                found.append(draw(leaf))
            case 1:
                count = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
                found.append(Aggregate(draw(leaf), (0,), (count,)))
            case 2:
                found.append(draw(joins(draw(leaf), draw(leaf))))
            case 3:
                kind = draw(st.sampled_from(tuple(JoinKind)))
                found.append(Join(draw(leaf), draw(leaf), kind, ((0, 0),), None))
            case 4:
                inner = Join(draw(leaf), draw(leaf), JoinKind.INNER, ((1, 1),), None)
                found.append(_all_columns(inner, backwards=draw(st.booleans())))
            case 5:
                inner = Join(draw(leaf), draw(leaf), JoinKind.INNER, ((0, 0),), None)
                found.append(Join(inner, draw(leaf), JoinKind.INNER, ((4, 1),), None))
            case _:
                found.append(draw(plans(scans, depth=2)))
    return found


@dataclass
class Running:
    """A query, what it has been told, and what it has said."""

    plan: Plan
    database: Database
    channel: ReceivingChannel = field(default_factory=lambda: ReceivingChannel(version=1))

    def answer(self) -> Delta:
        return self.channel.contents.get("f", {})


class Site:
    """An engine with queries whose answers are compared with the reference."""

    def __init__(self) -> None:
        self.engine = SiteEngine("here", 1)
        for scan in SOURCES:
            self.engine.declare(scan)
        self.queries: dict[str, Running] = {}
        self.history: list[tuple[str, SourceEvent]] = []
        self._names = 0
        self.now = 0

    def install(self, plan: Plan) -> None:
        self._names += 1
        name = f"q{self._names}"
        fragment = Fragment("f", Engine.BASE, plan, ("here",))
        self.engine.install(FragmentBundle(name, 1, (fragment,), plan.schema))
        database = Database()
        for source, event in self.history:
            if source not in LOGS:  # what went through a log before is not known any more
                database.append(source, [event])
        self.queries[name] = Running(plan, database)

    def uninstall(self, name: str) -> None:
        self.engine.uninstall(name)
        del self.queries[name]

    def happens(self, moment: Moment) -> None:
        self.now = moment.now
        for source, event in moment.events:
            self.engine.ingest(source, [event])
            self.history.append((source, event))
            for query in self.queries.values():
                query.database.append(source, [event])

    def step(self) -> None:
        result = self.engine.step(self.now)
        assert result.failures == []
        for outgoing in result.outgoing:
            self.queries[outgoing.query].channel.accept(outgoing.batch)

    def settle(self) -> None:
        for _ in range(2_000):
            self.step()
            flows = [self.engine.flow(name) for name in self.queries]
            if not any(flow.busy for flow in flows if flow is not None):
                return
        raise AssertionError("does not come to rest")

    def check(self) -> None:
        for query in self.queries.values():
            assert query.answer() == evaluate(query.plan, query.database, self.now)
        stores = {
            id(slot.stub.store): slot.stub.store
            for slot in self.engine.synopses._all()
            if slot.stub is not None
        }
        for store in stores.values():
            assert len(store.stubs) > 1
            assert store.rows() == len(seen_by_stubs(store))


def seen_by_stubs(store: IndexStore | TimeStore | RowsStore) -> set[object]:
    """Return the union of what the stubs of a store see; copies in windows by count one by one."""
    union: set[object] = set()
    for stub in store.stubs:
        if isinstance(stub, IndexStub):
            for key, bucket in stub.content().buckets.items():
                rows = bucket if isinstance(bucket, dict) else (bucket,)
                union.update((key, row) for row in rows)
        elif isinstance(stub, TimeStub):
            union.update(timed for timed, _ in stub.contents())
        elif isinstance(stub, RowsStub):
            contents = stub.store.contents(stub.position, stub.size)
            copies = Counter(
                entry for parts in contents.values() for part in parts for entry in part
            )
            union.update((entry, n) for entry, count in copies.items() for n in range(count))
    return union


@st.composite
def scenarios(draw: st.DrawFn) -> tuple[list[Plan], list[Action], list[Moment]]:
    found = draw(overlapping())
    moments = draw(histories(max_moments=6))
    actions = draw(
        st.lists(
            st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 3)),
            min_size=len(moments),
            max_size=len(moments),
        )
    )
    return found, actions, moments


def _act(site: Site, plan: Plan, action: int, number: int) -> None:
    match action:
        case 0 | 1:
            site.install(plan)
        case 2 if site.queries:
            site.uninstall(list(site.queries)[number % len(site.queries)])
        case 3:
            site.engine.configure(SETTINGS[number % len(SETTINGS)])
        case _:
            pass


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_every_answer_is_right_whatever_is_shared(
    scenario: tuple[list[Plan], list[Action], list[Moment]],
) -> None:
    found, actions, moments = scenario
    site = Site()
    for plan in found:
        site.install(plan)
    site.settle()
    site.check()
    for moment, (action, number, steps) in zip(moments, actions, strict=True):
        _act(site, found[number % len(found)], action, number)
        site.happens(moment)
        if steps:
            site.settle()
            site.check()
        else:
            site.step()  # what is left of it comes together with the next moment's
    site.settle()
    site.check()
    for name in list(site.queries):
        site.uninstall(name)
    assert site.engine.synopses.stores() == []
    assert site.engine.synopses.synopses() == []
    assert not site.engine.synopses._groups, "nothing is held for queries that are gone"
