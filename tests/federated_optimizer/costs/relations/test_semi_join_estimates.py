"""Semi-joins before a join at the base rest on counted distinct values."""

import pytest

from federated_optimizer.alternatives.method import Method
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import normalize
from federated_optimizer.search.choosing import Search
from federated_optimizer.statistics.planning_statistics import (
    NOTHING_KNOWN,
    ColumnFacts,
    SourceFacts,
    Statistics,
)
from tests.federated_optimizer.simulated_joins import CATALOG
from tests.streamsql.from_text import bound_query

JOIN = "SELECT s.mid, r.status FROM seat s JOIN room r ON s.rid = r.rid"
KEYS = {Method.KEYS_LEFT, Method.KEYS_RIGHT}
COUNTED = {"seat": SourceFacts(24.0, 0.1), "room": SourceFacts(2_000.0, 400.0)}


def chosen(text: str, statistics: Statistics, bases: tuple[str, ...], gateways: int) -> set[Method]:
    names = frozenset({"seat", "room"})
    topology = Topology({f"g{i:02}": names for i in range(gateways)}, bases=bases)
    plan = normalize(bound_query(text, CATALOG).plan, topology)
    return set(Search(plan, topology, statistics).taken().methods)


@pytest.mark.parametrize("bases", [("base",), ("b1", "b2")])
@pytest.mark.parametrize("gateways", [2, 12])
@pytest.mark.parametrize("facts", [{}, COUNTED])
@pytest.mark.parametrize("text", [JOIN, JOIN.replace("s.mid, r.status", "COUNT(*) AS n")])
def test_no_keys_travel_that_nobody_has_counted(
    text: str, facts: dict[str, SourceFacts], gateways: int, bases: tuple[str, ...]
) -> None:
    assert not KEYS & chosen(text, Statistics(sources=facts), bases, gateways)


def test_few_keys_that_were_counted_travel() -> None:
    few = ColumnFacts(distinct=4.0, local=2.0)
    statistics = Statistics(sources=COUNTED, columns={("seat", "rid"): few})
    assert Method.KEYS_LEFT in chosen(JOIN, statistics, ("base",), 2)
    assert not KEYS & chosen(JOIN, NOTHING_KNOWN, ("base",), 2)
