"""Prices of the fragments of a run: what they send, and the work of their sites."""

from dataclasses import replace

import msgspec
import pytest

from federated_optimizer import plan as place_plan
from federated_optimizer.costs.fragment_estimates import fragment_estimates
from federated_optimizer.costs.run_costs import RunCosts
from federated_optimizer.network.topology import Topology
from federated_optimizer.statistics.planning_statistics import ColumnFacts, SourceFacts, Statistics
from federated_optimizer.statistics.speeds import Micros
from streamsql.algebra.operators import RemoteSource
from streamsql.wire.fragments import Feed, Fragment
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """CREATE SOURCE seat (mid TEXT, rid TEXT, PRIMARY KEY (mid));
    CREATE SOURCE room (rid TEXT, open BOOLEAN, PRIMARY KEY (rid));"""
)
TOPOLOGY = Topology(
    dict.fromkeys(("gw-1", "gw-2"), frozenset({"seat", "room"})),
    bases=("base",),
    coordinator="host",
)
JOIN = "SELECT s.mid, r.open FROM seat s JOIN room r ON s.rid = r.rid"
SEATS, ROOMS = 40.0, 10.0


def micros(factor: float) -> Micros:
    return Micros(
        step=1.0 * factor,
        filter=2.0 * factor,
        filter_row=0.25 * factor,
        lookup=0.125 * factor,
        window=3.0 * factor,
        join=5.0 * factor,
        join_row=0.5 * factor,
        group=7.0 * factor,
        group_row=0.75 * factor,
        recursion=11.0 * factor,
    )


def facts(changes: float = 4.0, factor: float = 1.0) -> Statistics:
    sources = {"seat": SourceFacts(SEATS, changes), "room": SourceFacts(ROOMS, changes)}
    found = Statistics(sources=sources)
    return replace(found, speeds=replace(found.speeds, base=micros(factor)))


def costs(text: str, statistics: Statistics) -> tuple[RunCosts, tuple[str, ...]]:
    """Return the prices of a bundle whose join is at the base, and its leaves."""
    bundle = place_plan(bound_query(text, CATALOG), TOPOLOGY, query="q", statistics=statistics)
    leaves = tuple(fragment.id for fragment in bundle.fragments if fragment.consumer)
    sent = fragment_estimates(bundle, statistics, "host")
    return RunCosts(bundle, statistics, sent), leaves


def base_join(statistics: Statistics) -> tuple[RunCosts, tuple[str, ...]]:
    for number in range(1, 10):
        found, leaves = costs(f"{JOIN} WITH (plan = {number})", statistics)
        if len(leaves) == 2:
            return found, leaves
    raise AssertionError("no plan joins at the base")


def work(statistics: Statistics) -> float:
    return base_join(statistics)[0].of("f0", with_result=False).cpu


def test_fragments_cost_what_they_send_and_the_work_of_their_sites() -> None:
    statistics = facts()
    found, leaves = base_join(statistics)
    for leaf in leaves:
        sent = found._sent[leaf].cost
        assert found.of(leaf).cpu > sent.cpu
        assert replace(found.of(leaf), cpu=sent.cpu) == sent, "it keeps nothing"
        assert found.of(leaf).bytes > 0
    assert found.of("f0").cpu > found._sent["f0"].cost.cpu


def test_the_result_counts_only_where_it_is_asked_for() -> None:
    found, _leaves = base_join(facts())
    whole, without = found.of("f0"), found.of("f0", with_result=False)
    sent = found._sent["f0"].cost
    assert without.bytes == 0 < whole.bytes == sent.bytes
    assert whole.cpu - without.cpu == pytest.approx(sent.cpu)


def test_work_is_in_proportion_to_the_time_that_a_row_takes() -> None:
    assert work(facts(factor=3.0)) == pytest.approx(3 * work(facts()))


def test_work_grows_with_changes_and_is_none_without() -> None:
    assert work(facts(changes=8.0)) > 1.5 * work(facts())
    assert work(facts(changes=0.0)) == 0


def test_filling_is_the_work_for_the_rows_that_are_read() -> None:
    found, leaves = base_join(facts())
    # Each row is read, and joined: a quarter of a microsecond, and 5.
    assert found.filling("f0") == pytest.approx((SEATS + ROOMS) * 5.25 / 1_000)
    assert {found.filling(leaf) for leaf in leaves} == {0.0}


def test_filling_groups_takes_the_time_of_groups_and_choosing_rows_takes_little() -> None:
    grouped, _leaves = costs("SELECT COUNT(*) AS n FROM seat", facts())
    assert grouped.filling("f0") > 7.25 / 1_000
    chosen, _leaves = costs("SELECT mid FROM seat WHERE rid = 'a'", facts())
    assert 0 < chosen.filling("f0") < SEATS * 5 / 1_000


def test_a_join_at_gateways_takes_their_time_and_memory() -> None:
    found, leaves = next(
        (found, leaves)
        for found, leaves in (costs(f"{JOIN} WITH (plan = {n})", facts()) for n in range(1, 10))
        if any(found.of(leaf).state for leaf in leaves)
    )
    (joined,) = (found.of(leaf) for leaf in leaves if found.of(leaf).state)
    assert joined.state == pytest.approx((SEATS + ROOMS) * facts().speeds.kept.join)
    assert found.of("f0").state == 0


def test_the_time_of_a_run_is_that_of_its_longest_path() -> None:
    found, leaves = base_join(facts())
    slowest = max(found._sent[leaf].cost.milliseconds for leaf in leaves)
    assert found.milliseconds == found._sent["f0"].cost.milliseconds > slowest > 0


def test_a_result_of_another_run_is_read_in_the_step_that_makes_it() -> None:
    statistics = facts()
    alone, _ = base_join(statistics)
    bundle = alone._bundle
    copy = msgspec.structs.replace(
        bundle.fragment("f0"), id="f9", consumer="f0", destinations=("base",)
    )
    reader = msgspec.structs.replace(bundle.fragment("f0"), plan=leaf_of(copy))
    fed = msgspec.structs.replace(
        bundle,
        fragments=(reader, copy, *(f for f in bundle.fragments if f.id != "f0")),
        feeds=(Feed("f9", "q0", 1, "f0"),),
    )
    own = msgspec.structs.replace(fed, feeds=())
    times = [
        RunCosts(each, statistics, fragment_estimates(each, statistics, "host")).milliseconds
        for each in (fed, own)
    ]
    assert times[0] == alone.milliseconds
    assert times[1] > times[0], "a step more"


def leaf_of(fragment: Fragment) -> RemoteSource:
    return RemoteSource(fragment.id, fragment.plan.schema)


def test_a_row_that_a_join_makes_costs_as_much_as_a_further_one_that_is_read() -> None:
    columns = {("seat", "rid"): ColumnFacts(ROOMS, ROOMS)}
    statistics = replace(facts(changes=0.0), columns=columns)
    sources = {"seat": SourceFacts(4_000.0, 0.0), "room": SourceFacts(ROOMS, 2.0)}
    wide = replace(statistics, sources=sources)
    narrow = replace(statistics, sources={**sources, "seat": SourceFacts(ROOMS, 0.0)})
    # A room that changes changes 400 rows of the join at once, or one.
    changes = work(wide) - work(narrow)
    assert changes == pytest.approx(0.25 * 399 * 2 / 1_000, rel=0.05)
