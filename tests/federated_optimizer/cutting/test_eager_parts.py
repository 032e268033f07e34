"""Selections over rows of others are nodes where few rows pass: as counted, else as estimated."""

from dataclasses import replace

import pytest

from federated_optimizer.cutting import eager_parts
from federated_optimizer.cutting.eager_parts import SELECTIVE
from federated_optimizer.network.topology import Topology
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.strategy import Materialize
from federated_optimizer.statistics.planning_statistics import Passing, Statistics
from federated_optimizer.statistics.predicate_text import predicate_text
from federated_optimizer.testing_network import Network
from streamsql.algebra.operators import Filter, walk_plan
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """
CREATE SOURCE seat (mid TEXT, room TEXT, weight INTEGER, KEY (mid)) WITH (ttl = '1 h');
CREATE SOURCE room (room TEXT, floor INTEGER, KEY (room)) WITH (ttl = '1 h');
"""
)
TOPOLOGY = Topology({"gw-1": frozenset({"seat", "room"}), "gw-2": frozenset({"seat", "room"})})
JOIN = "SELECT s.mid, s.weight, r.floor FROM seat s JOIN room r ON s.room = r.room"
BOUND, VALUE = "weight > 3", "weight = 3"
"""Conditions of which more and less than the threshold are estimated to pass."""


def is_node(condition: str, share: float | None, materialize: Materialize) -> bool:
    """Return whether the rows of a join that pass a condition become a node of their own.

    Args:
        condition: On seats.
        share: Of the seats that pass it, as counted; None: nobody has counted.
        materialize: When parts become nodes.
    """
    statistics = Statistics()
    if share is not None:
        plan = bound_query(f"SELECT * FROM seat WHERE {condition}", CATALOG).plan
        (kept,) = (node for node in walk_plan(plan) if isinstance(node, Filter))
        text = predicate_text(kept.predicate, ("mid", "room", "weight"))
        counted = Passing(share, share, share)
        statistics = replace(statistics, passing={("seat", text): counted})
    planning = Planning(TOPOLOGY, statistics=statistics)
    network = Network(planning, Sharing(ComputationIndex(), materialize=materialize))
    network.register(bound_query(JOIN, CATALOG))
    counts = f"SELECT p.floor, COUNT(*) AS n FROM ({JOIN} WHERE s.{condition}) p GROUP BY p.floor"
    network.register(bound_query(counts, CATALOG))
    nodes = [run.logical for run in network.runs.values() if run.is_node]
    assert all(any(isinstance(n, Filter) for n in walk_plan(plan)) for plan in nodes)
    return bool(nodes)


@pytest.mark.parametrize(
    ("condition", "share", "expected"),
    [
        (BOUND, None, False),
        (VALUE, None, True),
        *((condition, SELECTIVE - 0.01, True) for condition in (BOUND, VALUE)),
        *((condition, SELECTIVE, True) for condition in (BOUND, VALUE)),
        *((condition, SELECTIVE + 0.01, False) for condition in (BOUND, VALUE)),
    ],
)
def test_what_was_counted_decides_else_what_is_estimated(
    condition: str, share: float | None, expected: bool
) -> None:
    assert is_node(condition, share, Materialize.EAGER) == expected


def test_the_threshold_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager_parts, "SELECTIVE", -1.0)
    assert not is_node(VALUE, 0.01, Materialize.EAGER)
    monkeypatch.setattr(eager_parts, "SELECTIVE", 1.0)
    assert is_node(BOUND, 0.99, Materialize.EAGER)


def test_a_selection_that_one_query_wants_is_no_node_otherwise() -> None:
    assert not is_node(VALUE, 0.01, Materialize.WANTED_TWICE)
