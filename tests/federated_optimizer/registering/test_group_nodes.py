"""Groups become a node with the functions of two queries where gateways send less for it."""

from dataclasses import replace

import pytest

from federated_optimizer.sharing.strategy import Strategy
from streamsql.algebra.operators import Aggregate, AggregateFunction, walk_plan
from streamsql.wire.fragments import Engine, FragmentBundle
from tests.federated_optimizer.registering.test_rows_there import ROWS, Sites
from tests.federated_optimizer.registering.test_selection_nodes import OTHERS, nodes, told_by

COUNT, SOME, SUM = "COUNT(*)", "COUNT(n)", "SUM(n)"


def groups(call: str, more: str = "", keys: str = "who") -> str:
    return f"SELECT {keys}, {call} AS v FROM steps {more} GROUP BY {keys}"


def calls_at_gateways(bundle: FragmentBundle) -> list[set[AggregateFunction]]:
    return [
        {call.function for call in node.aggregates}
        for fragment in bundle.own
        if fragment.engine == Engine.GATEWAY
        for node in walk_plan(fragment.plan)
        if isinstance(node, Aggregate)
    ]


def test_a_further_function_makes_one_aggregate_of_which_gateways_send_parts() -> None:
    sites = Sites()
    sites.add(groups(COUNT))
    reader = sites.add(groups(SOME))
    ((name, node),) = nodes(sites).items()
    assert calls_at_gateways(node) == [{AggregateFunction.COUNT_ALL, AggregateFunction.COUNT}]
    assert node.schema.names == ("who", "v", "count_1")
    assert [feed.run for feed in reader.feeds] == [name]
    assert int(name[1:]) < int(reader.query[1:])
    assert sites.sent() == ["q1", name]


@pytest.mark.parametrize("ends", ["older", "newer"])
def test_the_older_query_goes_over_and_either_goes_on_when_the_other_ends(ends: str) -> None:
    sites = Sites()
    sites.add(groups(COUNT))
    reader = sites.add(groups(SOME))
    ((name, _node),) = nodes(sites).items()
    sites.network.deregister("q1")
    again = sites.add(groups(COUNT))
    assert [feed.run for feed in again.feeds] == [name]
    assert sites.sent() == [name]
    sites.network.deregister(again.query if ends == "older" else reader.query)
    sites.check()
    assert sites.sent() == [name]
    sites.network.deregister(reader.query if ends == "older" else again.query)
    assert not sites.network.runs


def test_a_third_function_is_given_to_the_node() -> None:
    """Not so the statistics that the node has inside for coarser groups: nobody asked for these."""
    sites = Sites()
    for call in (COUNT, SUM, "AVG(n)"):
        sites.add(groups(call))
    ((_name, node),) = nodes(sites).items()
    assert node.version == 2
    assert node.schema.names == ("who", "v", "sum_1", "avg_1")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        # With a condition above the groups, one that is written otherwise, and below others.
        (groups(COUNT), groups(SOME) + " HAVING COUNT(n) > 1"),
        (groups(COUNT, "WHERE n > 1"), groups(SOME, "WHERE NOT n <= 1")),
        (groups(COUNT), f"SELECT MAX(v) AS v FROM ({groups(SOME)}) g"),
    ],
)
def test_answers_over_the_node_are_right(older: str, newer: str) -> None:
    sites = Sites()
    sites.add(older)
    reader = sites.add(newer)
    (name,) = nodes(sites)
    assert {feed.run for feed in reader.feeds} == {name}
    sites.network.deregister("q1")
    sites.check()


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        # Parts of a count would send the greatest value with each reading.
        (groups(COUNT), groups("MAX(n)")),
        # Each is sent when it changes; both in one row would be sent when either does.
        (groups("MAX(n)"), groups("MIN(n)")),
        (groups(COUNT), groups(SOME, "WHERE n > 1")),
        (groups(COUNT, "WHERE n > 1"), groups(SOME)),
        (groups(COUNT), groups(SOME, keys="n")),
    ],
)
def test_groups_of_other_rows_and_dearer_ones_are_no_node(older: str, newer: str) -> None:
    sites = Sites()
    sites.add(older)
    sites.add(newer)
    assert not nodes(sites)


def test_a_node_tells_what_the_older_query_reads() -> None:
    assert OTHERS in told_by(groups(COUNT), groups(SOME))


def test_none_is_made_where_the_older_query_stays_where_it_is() -> None:
    sites = Sites()
    sites.network.sharing = replace(sites.sharing, moves=False)
    sites.add(groups(COUNT))
    sites.add(groups(SOME))
    assert not nodes(sites)
    sites = Sites()
    sites.add(groups(COUNT))
    sites.add(groups(COUNT, "WHERE who <> 'a'"))  # it reads the result of the older one
    sites.add(groups(SOME))
    assert not nodes(sites)


def test_none_is_made_of_what_may_not_be_read() -> None:
    sites = Sites()
    sites.add(groups(COUNT))
    sites.network.sharing = replace(sites.sharing, allowed=lambda _offer: False)
    sites.add(groups(SOME))
    assert not nodes(sites)


@pytest.mark.parametrize("strategy", [Strategy.OFF, Strategy.MATCH_PLAN])
def test_strategies_that_compare_no_prices_make_none(strategy: Strategy) -> None:
    sites = Sites(strategy=strategy)
    sites.add(groups(COUNT))
    sites.add(groups(SOME))
    assert not nodes(sites)


def test_rows_that_are_there_are_better_than_a_node() -> None:
    sites = Sites()
    for text in (groups(COUNT), ROWS, groups(SOME)):
        sites.add(text)
    assert not nodes(sites)
    assert sites.sent() == ["q1", "q2"]


def test_a_node_that_is_not_worth_it_leaves_no_trace() -> None:
    sites = Sites()
    sites.add(groups(COUNT))
    before = sites.sharing.index.of_run("q1")
    sites.add(groups("MAX(n)"))
    offers = sites.sharing.index._offers.values()
    assert {offer.run for offer in offers} == set(sites.network.runs)
    assert sites.sharing.index.of_run("q1") == before
