"""Prices of complete plans by the memo, and of what they are cut into."""

from math import isclose

import pytest

from federated_optimizer.alternatives.method import Method
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import normalize
from federated_optimizer.search.choosing import Search
from federated_optimizer.search.cut_prices import CutPrices
from federated_optimizer.statistics.planning_statistics import Devices, SourceFacts, Statistics
from tests.federated_optimizer.simulated_joins import (
    CATALOG,
    ONE_BASE,
    QUERIES,
    STATISTICS,
    TWICE,
    Plans,
)
from tests.streamsql.from_text import bound_query

MOST = 60
"""Plans of a query that are compared, spread over all."""


@pytest.mark.parametrize("text", [*QUERIES, *TWICE])
def test_a_plan_is_priced_as_what_it_is_cut_into(text: str) -> None:
    search = Plans(text, ONE_BASE).search
    count = search.memo.count()
    for number in range(1, count + 1, max(count // MOST, 1)):
        choice = search.plan(number)
        cut = CutPrices.of(choice.taken, ONE_BASE, STATISTICS)
        assert isclose(choice.cost.bytes, cut.bytes, rel_tol=0.02), (number, choice.methods)


def test_devices_that_stay_send_nothing_with_several_bases_either() -> None:
    sites = tuple(f"g{i}" for i in range(6))
    devices = Devices({"room": {f"r{i}": sites[i % 6] for i in range(60)}})
    facts = {"seat": SourceFacts(60, 1.0), "room": SourceFacts(60, 50.0)}
    statistics = Statistics(sources=facts, devices=devices)
    gateways = dict.fromkeys(sites, frozenset(facts))
    query = bound_query(
        "SELECT s.mid, r.status FROM seat s LEFT JOIN room r ON s.rid = r.rid", CATALOG
    )
    topology = Topology(gateways, bases=("b0", "b1"))
    search = Search(normalize(query.plan, topology), topology, statistics)
    plans = [search.plan(number) for number in range(1, search.memo.count() + 1)]
    paired, hashed = (
        min(p.cost.bytes for p in plans if method in p.methods)
        for method in (Method.PAIRED, Method.HASHED)
    )
    assert paired < 0.8 * hashed
