"""However operators are scheduled, in slices of whatever length, the answer is the same."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.simulation.network import Faults, Network
from stream_engine.site.site_engine import SiteEngine
from stream_engine.testing.histories import SECOND, SOURCES, Moment, histories
from stream_engine.testing.plans import plans
from stream_engine.testing.random_bundles import bundles, expected_result
from streamsql.algebra.operators import Plan, SourceKind
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference.evaluate import evaluate
from streamsql.reference.reference_database import Database
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

MOST_STEPS = 10_000
GATEWAYS = ("gw-1", "gw-2")
STREAMS = tuple(scan for scan in SOURCES if scan.kind != SourceKind.TABLE)


def ways() -> st.SearchStrategy[SiteSettings]:
    """Any scheduler, slice and width of queues, and synopses shared or not."""
    return st.builds(
        SiteSettings,
        scheduler=st.sampled_from(list(SchedulerKind)),
        slice_ms=st.sampled_from((None, 0.5, 1.0, 2.0, 5.0)),
        queue_rows=st.sampled_from((1, 10, 100_000)),
        share_synopses=st.booleans(),
    )


def drained(site: SiteEngine, now: int) -> Iterator[Delta]:
    """Step until nothing waits; yield what the query gives."""
    for _ in range(MOST_STEPS):
        done = site.step(now)
        assert not done.failures
        for outgoing in done.outgoing:
            yield {weighted.row: weighted.weight for weighted in outgoing.batch.deltas}
        if not site.queues.batches:
            return
        assert site.next_wakeup() == now
    raise AssertionError("changes wait for ever")


@dataclass
class Watched:
    """A site with queries, and the reader of their results."""

    site: SiteEngine
    queries: dict[str, Plan]

    def __post_init__(self) -> None:
        self.contents = {name: ReceivingChannel(version=1) for name in self.queries}
        for scan in SOURCES:
            self.site.declare(scan)
        for name, plan in self.queries.items():
            fragment = Fragment("f0", Engine.GATEWAY, plan, ("here",))
            self.site.install(FragmentBundle(name, 1, (fragment,), plan.schema))

    def step(self, now: int) -> None:
        done = self.site.step(now)
        assert not done.failures
        for outgoing in done.outgoing:
            self.contents[outgoing.query].accept(outgoing.batch)

    def drain(self, now: int) -> None:
        for _ in range(MOST_STEPS):
            if not self.site.queues.batches:
                return
            self.step(now)
        raise AssertionError("changes wait for ever")

    def answer(self, name: str) -> Delta:
        return self.contents[name].contents.get("f0", {})


@given(
    plans(),
    plans(depth=2),
    histories(max_moments=6),
    st.lists(st.none() | ways(), min_size=6, max_size=6),
)
def test_any_policy_and_slice(
    first: Plan, second: Plan, moments: list[Moment], switches: list[SiteSettings | None]
) -> None:
    watched = Watched(SiteEngine("here", 1), {"q": first, "p": second, "again": first})
    database = Database()
    for moment, switch in zip(moments, switches, strict=False):
        if switch is not None:
            watched.site.configure(switch)
        for source, event in moment.events:
            watched.site.ingest(source, [event])
            database.append(source, [event])
        watched.step(moment.now)
        measures = watched.site.queue_measures()
        assert sum(queue.rows for queue in measures) == watched.site.queues.rows
        assert sum(queue.batches for queue in measures) == watched.site.queues.batches
    now = moments[-1].now
    watched.drain(now)
    assert watched.site.queues.rows == 0
    for name, plan in watched.queries.items():
        assert watched.answer(name) == evaluate(plan, database, now)
        flow = watched.site.flow(name)
        assert flow is not None
        assert not flow.busy


@given(plans(), histories(max_moments=3), ways())
def test_a_query_that_starts_gives_all_it_begins_with_at_once(
    plan: Plan, moments: list[Moment], way: SiteSettings
) -> None:
    given_out = []
    for setting in (way, SiteSettings()):
        site = SiteEngine("here", 1)
        for scan in SOURCES:
            site.declare(scan)
        for moment in moments:
            for source, event in moment.events:
                site.ingest(source, [event])
            site.step(moment.now)
        site.configure(setting)
        fragment = Fragment("f0", Engine.GATEWAY, plan, ("here",))
        site.install(FragmentBundle("q", 1, (fragment,), plan.schema))
        given_out.append(list(drained(site, moments[-1].now)))
    assert given_out[0] == given_out[1]


class World:
    """A network of sites that schedule as they like, with the history of each."""

    def __init__(self, bundle: FragmentBundle, seed: int) -> None:
        self.random = random.Random(seed)
        self.network = Network((*GATEWAYS, "base"), seed=seed, faults=Faults())
        self.databases = {site: Database() for site in self.network.sites}
        for site in self.network.sites:
            for scan in STREAMS:
                self.network.declare(site, scan)
        self.network.install(bundle)

    def something_happens(self, choices: list[SiteSettings]) -> None:
        network, choice = self.network, self.random
        name = choice.choice(list(network.sites))
        match choice.randrange(10):
            case 0:
                network.advance(network.now + choice.choice((0, SECOND)))
            case 1:
                network.sites[name].configure(choice.choice(choices))
            case 2 | 3 | 4 | 5:
                self.read(name)
            case _:
                network.act()

    def read(self, name: str) -> None:
        choice, now = self.random, self.network.now
        row: Row = (choice.choice("ab"), choice.choice((1, 2, None)), choice.choice((0.1, 1e16)))
        scan = choice.choice(STREAMS)
        withdrawn = bool(scan.key) and choice.random() < 0.2
        event = SourceEvent(row, now, withdrawn)
        self.network.ingest(name, scan.source, [event])
        self.databases[name].append(scan.source, [event])


@settings(max_examples=settings().max_examples // 2)
@given(
    bundle=bundles(STREAMS, GATEWAYS),
    choices=st.lists(ways(), min_size=2, max_size=4),
    seed=st.integers(0, 2**32),
)
def test_several_sites(bundle: FragmentBundle, choices: list[SiteSettings], seed: int) -> None:
    world = World(bundle, seed)
    for _ in range(2):
        for _ in range(25):
            world.something_happens(choices)
        world.network.settle()
        assert world.network.failures == []
        expected = expected_result(bundle, world.databases, world.network.now)
        assert world.network.result(bundle.query) == expected
