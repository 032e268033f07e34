"""A step looks at the queries with news only, and at all of those."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.simulation.network import Faults, Network
from stream_engine.site.installed_query import InstalledQuery
from stream_engine.site.site_engine import SiteEngine
from stream_engine.state.source_relation import SourceChanges
from stream_engine.testing.histories import SECOND, SOURCES, Moment, histories
from stream_engine.testing.plans import plans
from stream_engine.testing.random_bundles import bundles
from streamsql.algebra.operators import Plan, Scan, SourceKind, Window, WindowKind
from streamsql.data.events import SourceEvent
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

GATEWAYS = ("gw-1", "gw-2")
STREAMS = tuple(scan for scan in SOURCES if scan.kind != SourceKind.TABLE)


def install(site: SiteEngine, name: str, plan: Plan) -> None:
    fragment = Fragment("f0", Engine.GATEWAY, plan, (site.site,))
    site.install(FragmentBundle(name, 1, (fragment,), plan.schema))


def renamed(number: int) -> Scan:
    scan = SOURCES[0]
    return Scan(f"s{number}", scan.kind, scan.columns, scan.key, ttl=10 * SECOND)


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the queries that were asked whether they have work, as the steps ask."""
    asked: list[str] = []
    has_work = InstalledQuery.has_work

    def note(query: InstalledQuery, sources: SourceChanges, now: int) -> bool:
        asked.append(query.bundle.query)
        return has_work(query, sources, now)

    monkeypatch.setattr(InstalledQuery, "has_work", note)
    return asked


SETTINGS = [SiteSettings(), SiteSettings(scheduler=SchedulerKind.ROUND_ROBIN, slice_ms=1.0)]


@pytest.mark.parametrize("how", SETTINGS)
def test_after_the_network_was_away_all_queries_send_snapshots(how: SiteSettings) -> None:
    site = SiteEngine("here", 1)
    site.configure(how)
    for number in range(3):
        site.declare(renamed(number))
        install(site, f"q{number}", renamed(number))
    site.step(0)
    assert site.step(1).outgoing == []
    site.resync_all()
    sent = site.step(2).outgoing
    assert [(outgoing.query, outgoing.batch.reset) for outgoing in sent] == [
        (f"q{number}", True) for number in range(3)
    ]


@pytest.mark.parametrize("how", SETTINGS)
def test_a_step_asks_the_queries_with_news(looked_at: list[str], how: SiteSettings) -> None:
    site = SiteEngine("here", 1)
    site.configure(how)
    for number in range(50):
        scan = renamed(number)
        site.declare(scan)
        install(site, f"q{number}", Window(scan, WindowKind.RANGE, 4 * SECOND))
    row = ("a", 1, 0.5)

    def step(now: int) -> set[str]:
        looked_at.clear()
        site.step(now)
        return set(looked_at)

    assert len(step(0)) == 50
    assert step(1) == set()
    site.ingest("s7", [SourceEvent(row, SECOND)])
    assert step(SECOND) == {"q7"}
    site.ingest("s9", [SourceEvent(row, 2 * SECOND)])
    assert step(2 * SECOND) == {"q9"}
    assert site.next_wakeup() == 5 * SECOND
    assert step(5 * SECOND) == {"q7"}, "its window has moved on"
    assert step(6 * SECOND) == {"q9"}
    assert site.next_wakeup() == 11 * SECOND, "a row's time is over"
    site.resync("q3", "")
    assert step(7 * SECOND) == {"q3"}
    site.uninstall("q7")
    site.site_lost("elsewhere", query="q4")
    assert step(11 * SECOND) == {"q4"}
    assert site.next_wakeup() == 12 * SECOND


def test_a_query_that_is_gone_wakes_nobody() -> None:
    site = SiteEngine("here", 1)
    scan = renamed(0)
    site.declare(scan)
    install(site, "q0", Window(scan, WindowKind.RANGE, 4 * SECOND))
    install(site, "q1", scan)
    site.ingest("s0", [SourceEvent(("a", 1, 0.5), SECOND)])
    site.step(SECOND)
    assert site.next_wakeup() == 5 * SECOND
    site.uninstall("q0")
    assert site.next_wakeup() == 11 * SECOND, "the row's time is over"
    assert site.step(6 * SECOND).failures == []
    _names, mark = site.changed_since(0)
    site.uninstall("q1")
    assert site.changed_since(0) == ([], mark)


def everything(site: SiteEngine, queries: Iterable[str]) -> None:
    """Let a site look at all its queries, as if it could not know."""
    for name in queries:
        site._pending.touch(name)


@settings(max_examples=settings().max_examples // 4)
@given(
    st.lists(plans(depth=2), min_size=2, max_size=3),
    histories(max_moments=6),
    st.sampled_from(SETTINGS),
    st.integers(0, 2**32),
)
def test_a_site_that_looks_at_all_queries_says_the_same(
    queries: list[Plan], moments: list[Moment], how: SiteSettings, seed: int
) -> None:
    """The same batches in the same steps, and the same times at which it wants to be woken."""
    choice = random.Random(seed)
    sites = (SiteEngine("here", 1), SiteEngine("here", 1))
    names = [f"q{number}" for number in range(len(queries))]
    for site in sites:
        site.configure(how)
        for scan in SOURCES:
            site.declare(scan)
        for name, plan in zip(names, queries, strict=True):
            install(site, name, plan)
    now = 0
    for moment in moments:
        for source, event in moment.events:
            for site in sites:
                site.ingest(source, [event])
        if choice.random() < 0.3:
            again = choice.choice(names)
            for site in sites:
                site.resync(again, "")
        if choice.random() < 0.2 and len(names) > 1:
            gone = names.pop(choice.randrange(len(names)))
            for site in sites:
                site.uninstall(gone)
        now = moment.now
        for _ in range(50):
            everything(sites[1], names)
            first, second = (site.step(now) for site in sites)
            assert first == second
            wakeups = [site.next_wakeup() for site in sites]
            assert wakeups[0] == wakeups[1]
            if wakeups[0] is None or wakeups[0] > moments[-1].now:
                break
            now = max(now, wakeups[0])


def test_who_has_changed_is_told_once() -> None:
    site = SiteEngine("here", 1)
    for number in range(4):
        site.declare(renamed(number))
        install(site, f"q{number}", renamed(number))
    names, mark = site.changed_since(0)
    assert sorted(names) == ["q0", "q1", "q2", "q3"]
    site.step(0)
    names, mark = site.changed_since(mark)
    assert sorted(names) == ["q0", "q1", "q2", "q3"]
    assert site.changed_since(mark) == ([], mark)
    site.ingest("s2", [SourceEvent(("a", 1, 0.5), SECOND)])
    site.step(SECOND)
    site.uninstall("q1")
    names, mark = site.changed_since(mark)
    assert names == ["q2"]
    assert site.changed_since(mark) == ([], mark)


@settings(max_examples=settings().max_examples // 4)
@given(bundles(STREAMS, GATEWAYS), st.integers(0, 2**32))
def test_who_is_waited_for_is_known_without_asking_everybody(
    bundle: FragmentBundle, seed: int
) -> None:
    """And the site of every query says that it has work whenever one of them has."""
    choice = random.Random(seed)
    network = Network((*GATEWAYS, "base"), seed=seed, faults=Faults())
    for site in network.sites:
        for scan in STREAMS:
            network.declare(site, scan)
    network.install(bundle)
    for _ in range(40):
        if choice.random() < 0.3:
            site, scan = choice.choice(list(network.sites)), choice.choice(STREAMS)
            row = (choice.choice("ab"), choice.choice((1, 2, None)), 0.5)
            network.ingest(site, scan.source, [SourceEvent(row, network.now)])
        network.act()
        for engine in network.sites.values():
            queries = engine._queries.items()
            waited_for = {(name, by) for name, query in queries for by in query.unsynchronised()}
            assert engine.unsynchronised() == waited_for
            assert {name for name, query in queries if query.is_busy} <= engine._pending._touched
