"""DISTINCT over a join reads it where it runs and that costs less than a semi join of its own."""

import pytest

from federated_optimizer.registering.computed_anew import Prices
from federated_optimizer.sharing.strategy import Strategy
from streamsql.algebra.operators import Join, JoinKind, walk_plan
from streamsql.wire.fragments import FragmentBundle
from tests.federated_optimizer.registering.test_rows_there import Sites
from tests.federated_optimizer.registering.test_selection_nodes import nodes

ON = "FROM steps s JOIN rooms r ON r.rid = s.who"
WHOLE = f"SELECT s.who, s.n, r.floor {ON}"
GROUPS = f"SELECT r.floor, COUNT(*) AS c {ON} GROUP BY r.floor"


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
