"""Queries that ask a join for partners only read it where that costs less than a semi join."""

from dataclasses import replace

import pytest

from federated_optimizer.registering.computed_anew import Prices
from federated_optimizer.sharing.strategy import Strategy
from streamsql.algebra.operators import Join, JoinKind, walk_plan
from streamsql.wire.fragments import FragmentBundle
from tests.federated_optimizer.registering.test_rows_there import Sites
from tests.federated_optimizer.registering.test_selection_nodes import OTHERS, nodes, told_by

ON = "FROM steps s JOIN rooms r ON r.rid = s.who"
WHOLE = f"SELECT s.who, s.n, r.floor {ON}"
GROUPS = f"SELECT r.floor, COUNT(*) AS c {ON} GROUP BY r.floor"
MORE = "s.n > r.floor"
REST = f"SELECT s.who {ON} WHERE {MORE} EXCEPT SELECT s.who {ON} WHERE {MORE} AND s.n < r.floor + "


def joins(bundle: FragmentBundle) -> set[JoinKind]:
    plans = (node for fragment in bundle.own for node in walk_plan(fragment.plan))
    return {node.kind for node in plans if isinstance(node, Join)}


@pytest.mark.parametrize(
    ("runs", "wanted"),
    [
        (WHOLE, f"SELECT DISTINCT s.who {ON}"),
        (WHOLE, f"SELECT DISTINCT r.floor {ON} WHERE s.n > 2"),
        (WHOLE, "SELECT DISTINCT r.floor FROM rooms r JOIN steps s ON s.who = r.rid"),
        (GROUPS, f"SELECT DISTINCT r.floor {ON}"),
    ],
)
def test_it_is_a_choice_of_rows_of_what_runs(runs: str, wanted: str) -> None:
    sites = Sites()
    sites.add(runs)
    before = sites.sent()
    reader = sites.add(wanted)
    assert [feed.run for feed in reader.feeds] == ["q1"]
    assert not joins(reader)
    assert not nodes(sites)
    assert sites.sent() == before
    again, *_ = sites.network._replanned_from(reader.query)
    assert [feed.run for feed in again.feeds] == ["q1"]
    sites.network.deregister("q1")
    sites.check()
    sites.network.deregister(reader.query)
    assert not sites.network.runs


@pytest.mark.parametrize("runs", [f"{WHOLE} WHERE s.n > 1", "SELECT rid, floor FROM rooms"])
def test_it_keeps_its_semi_join_where_no_join_has_its_rows(runs: str) -> None:
    sites = Sites()
    sites.add(runs)
    assert joins(sites.add(f"SELECT DISTINCT s.who {ON}")) == {JoinKind.SEMI}


def test_prices_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prices, "is_less", lambda *_: False)
    sites = Sites()
    sites.add(GROUPS)
    sites.add(f"SELECT DISTINCT s.who {ON}")
    assert not nodes(sites)
    monkeypatch.setattr(Prices, "is_less", lambda *_: True)
    sites.add(f"SELECT DISTINCT s.n {ON}")
    (name,) = nodes(sites)
    assert name in {feed.run for run in sites.network.runs.values() for feed in run.bundle.feeds}


@pytest.mark.parametrize("strategy", [Strategy.OFF, Strategy.MATCH_PLAN, Strategy.NO_JOINS])
def test_other_strategies_read_no_join(strategy: Strategy) -> None:
    sites = Sites(strategy=strategy)
    sites.add(WHOLE)
    assert joins(sites.add(f"SELECT DISTINCT s.who {ON}")) == {JoinKind.SEMI}


def joined(sites: Sites) -> list[str]:
    """Return the nodes that are joins."""
    return [name for name, bundle in nodes(sites).items() if JoinKind.INNER in joins(bundle)]


WHO = f"SELECT DISTINCT s.who {ON} WHERE {MORE}"
FEW = (
    "SELECT DISTINCT who FROM steps s WHERE EXISTS (SELECT 1 FROM rooms r WHERE r.rid = s.who "
    f"AND {MORE} AND s.n < r.floor + 3)"
)


@pytest.mark.parametrize(
    ("runs", "wanted", "last"),
    [
        (f"{REST}9", f"{REST}5", f"{REST}7"),
        (f"{REST}9", f"{WHO} AND s.n < r.floor + 2", f"{REST}7"),
        (WHO, f"{WHO} AND s.n < r.floor + 3", f"{REST}9"),
        (WHO, FEW, f"{REST}9"),
    ],
)
def test_a_join_that_two_queries_ask_for_partners_becomes_a_node(
    runs: str, wanted: str, last: str
) -> None:
    sites = Sites()
    assert joins(sites.add(runs)) == {JoinKind.SEMI}
    reader = sites.add(wanted)
    (node,) = joined(sites)
    assert nodes(sites).keys() == {node}
    assert {feed.run for feed in reader.feeds} == {node}
    assert not joins(reader)
    third = sites.add(last)
    assert {feed.run for feed in third.feeds} == {node}, "its bound is checked there, too"
    sites.network.deregister("q1")
    sites.check()
    for query in list(sites.network.reads):
        sites.network.deregister(query)
    assert not sites.network.runs


def test_the_node_tells_what_the_older_query_reads() -> None:
    assert OTHERS in told_by(f"{REST}9", f"{REST}5")


@pytest.mark.parametrize("wanted", [f"{REST}5", f"{WHO} AND s.n < r.floor + 3"])
def test_none_becomes_a_node_where_the_older_query_could_not_move(wanted: str) -> None:
    sites = Sites()
    sites.network.sharing = replace(sites.sharing, moves=False)
    sites.add(f"{REST}9")
    assert JoinKind.INNER not in joins(sites.add(wanted))
    assert not joined(sites)


@pytest.mark.parametrize(
    ("runs", "wanted"),
    [
        # A query for the join itself would send columns for the other one, which may stay.
        (f"{REST}9", f"SELECT s.who, r.floor {ON} WHERE {MORE}"),
        # Nobody can check the weaker bound.
        (WHO, f"SELECT DISTINCT s.who {ON}"),
        # It counts how often a row is there.
        ("SELECT who FROM steps WHERE who IN (SELECT rid FROM rooms WHERE floor > 0)", f"{REST}5"),
    ],
)
def test_other_joins_become_no_node(runs: str, wanted: str) -> None:
    sites = Sites()
    sites.add(runs)
    sites.add(wanted)
    assert not joined(sites)


def test_prices_decide_whether_it_becomes_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prices, "is_less", lambda *_: False)
    sites = Sites()
    sites.add(f"{REST}9")
    assert JoinKind.INNER not in joins(sites.add(f"{REST}5"))
    assert not joined(sites)
    offers = (o for run in sites.network.runs for o in sites.network.sharing.index.of_run(run))
    assert not any(JoinKind.INNER in joins(o.bundle) for o in offers)


@pytest.mark.parametrize("strategy", [Strategy.MATCH_PLAN, Strategy.NO_JOINS])
def test_other_strategies_make_no_node_of_it(strategy: Strategy) -> None:
    sites = Sites(strategy=strategy)
    sites.add(f"{REST}9")
    sites.add(f"{REST}5")
    assert not joined(sites)
