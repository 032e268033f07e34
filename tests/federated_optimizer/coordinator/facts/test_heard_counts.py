"""Facts that are made of counts of running queries."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from federated_optimizer.coordinator.facts.heard_counts import HeardCounts, facts_of
from federated_optimizer.coordinator.sites.flows import FlowReports
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import plan
from federated_optimizer.statistics.default_facts import ENVELOPE_BYTES
from federated_optimizer.statistics.fact import DAY, Quantity, SubjectKind, sureness
from federated_optimizer.statistics.fact_store import Facts
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import FilterReport, FlowReport, RecursionReport, TrafficReport
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of("CREATE SOURCE Heat (room TEXT, celsius DOUBLE, note TEXT);")
SITES = Topology({f"gw-{n}": frozenset({"heat"}) for n in (1, 2)})
HOT = "SELECT celsius, room FROM heat WHERE celsius > 30.0"


@dataclass
class Query:
    """A running query."""

    bundle: FragmentBundle
    flows: FlowReports
    deployed: int = 0


def running(text: str, name: str = "q", version: int = 1) -> Query:
    bundle = plan(bound_query(text, CATALOG), SITES, query=name, version=version)
    return Query(bundle, FlowReports())


def report(
    query: Query, site: str, read: int = 0, passed: int = 0, traffic: TrafficReport | None = None
) -> None:
    (fragment,) = query.bundle.at(site)
    filters = (FilterReport(fragment.id, 0, read, passed),) if read else ()
    told = FlowReport(
        *(query.bundle.version, 1, {}, {}),
        filters=filters,
        traffic=traffic or TrafficReport(),
    )
    assert query.flows.hear(site, told, query.bundle)


def test_without_changes_nothing_is_known() -> None:
    assert facts_of([], 60.0) is None
    assert facts_of([RecursionReport("r")], 60.0) is None


def test_what_is_there_is_no_motion() -> None:
    # 100 base rows have come, and then 30 went and came back; the view moved 5 rows each time.
    one = RecursionReport("r", leaf_rows=60, leaf_changes=90, view_rows=400, view_changes=550)
    two = RecursionReport("r", leaf_rows=40, leaf_changes=70, view_rows=500, view_changes=650)
    facts = facts_of([one, two], 60.0)
    assert facts is not None
    assert (facts.base_rows, facts.view_rows) == (100.0, 900.0)
    assert facts.changes == pytest.approx(1.0)
    assert facts.view_changes == pytest.approx(5.0)


def test_a_few_changes_do_not_tell_how_far_they_reach() -> None:
    report = RecursionReport("r", leaf_rows=10, leaf_changes=12, view_rows=10, view_changes=500)
    facts = facts_of([report], 10.0)
    assert facts is not None
    assert facts.view_changes == 0.0


def test_filters_with_one_condition_are_one_fact() -> None:
    facts = Facts()
    counts = HeardCounts(facts)
    one, two = running(HOT), running("SELECT note FROM heat WHERE celsius > 30.0", "q2")
    report(one, "gw-1", 100, 10)
    report(one, "gw-2", 300, 90)
    report(two, "gw-1", 200, 50)
    counts.look((one, two), 5)
    (fact,) = facts
    assert fact.subject == (SubjectKind.PREDICATE, "heat", "celsius > 30.0")
    assert (fact.quantity, fact.value, fact.at) == (Quantity.SELECTIVITY, 150 / 600, 5)
    counts.look((one, two), 6)
    (fact,) = facts
    assert fact.at == 5  # nobody has counted anything since


def test_queries_that_read_one_run_count_once() -> None:
    facts = Facts()
    query = running(HOT)
    report(query, "gw-1", 100, 10)
    reader = Query(query.bundle, query.flows)
    HeardCounts(facts).look((query, reader), 5)
    (fact,) = facts
    assert fact.confidence == sureness(100)


def test_a_new_version_counts_anew_and_the_old_counts_hold_until_they_have_faded() -> None:
    facts = Facts()
    counts = HeardCounts(facts)
    old, new = running(HOT), running(HOT, version=2)
    report(old, "gw-1", 10_000, 1_000)
    counts.look((old,), 0)
    report(new, "gw-1", 100, 50)
    counts.look((new,), 1)
    (fact,) = facts
    assert fact.value == 0.1
    report(new, "gw-1", 200, 100)
    counts.look((new,), DAY)
    (fact,) = facts
    assert fact.value == 0.5


def test_rows_have_the_bytes_that_they_were_sent_with() -> None:
    facts = Facts()
    counts = HeardCounts(facts)
    query = running(HOT)
    report(query, "gw-1", traffic=TrafficReport(batches=10, bytes=1_000, rows=30))
    report(query, "gw-2", traffic=TrafficReport(batches=2, bytes=1_000, rows=20))
    computed = running("SELECT celsius * 2.0 AS twice FROM heat", "q2")
    report(computed, "gw-1", traffic=TrafficReport(batches=10, bytes=900, rows=90))
    few = running("SELECT note FROM heat", "q3")
    report(few, "gw-1", traffic=TrafficReport(batches=1, bytes=900, rows=19))
    counts.look((query, computed, few), 0)
    (fact,) = facts
    assert fact.subject == (SubjectKind.COLUMN, "heat", "celsius, room")
    assert (fact.quantity, fact.value, fact.high) == (Quantity.ROW_BYTES, 40.0, 40.0)
    assert fact.low == pytest.approx((2_000 - 12 * ENVELOPE_BYTES.value) / 50)


def test_batches_that_had_to_be_sent_again_lower_the_share_of_their_site() -> None:
    facts = Facts()
    counts = HeardCounts(facts)
    queries = running(HOT), running("SELECT note FROM heat", "q2")
    for query in queries:
        # The first rows of a query are a snapshot for whoever reads it.
        report(query, "gw-1", traffic=TrafficReport(batches=3, snapshots=3))
        report(query, "gw-2", traffic=TrafficReport(batches=1))
    counts.look(queries, 5)
    assert not list(facts)
    for query in queries:
        report(query, "gw-1", traffic=TrafficReport(batches=103, snapshots=13))
        report(query, "gw-2", traffic=TrafficReport(batches=40))
    counts.look(queries, 6)
    (fact,) = facts
    assert fact.subject == (SubjectKind.SITE, "gw-1", "")
    assert (fact.quantity, fact.value, fact.at) == (Quantity.DELIVERED, 180 / 200, 6)
    assert fact.low < 0.9 < fact.high


def test_recursions_are_asked_again_only_a_moment_later() -> None:
    asked = 0

    def queries() -> Iterator[Query]:
        nonlocal asked
        asked += 1
        yield running(HOT)

    counts = HeardCounts(Facts())
    for moment in (0, 1, 999_999, 1_000_000, 1_500_000, 2_000_000):
        counts.recursions(queries(), now=moment, moment=moment)
    assert asked == 3, "at 0, 1 and 2 s"
