"""Joins of rows of different gateways answer as DuckDB does, by whatever way gateways help."""

import pytest

from federated_optimizer import Topology
from stream_engine.simulation.network import Faults
from tests.federated_optimizer.simulated_joins import (
    ONE_BASE,
    QUERIES,
    THREE_BASES,
    Federation,
    Plans,
)

FULL = "SELECT s.mid, r.rid FROM seat s FULL JOIN room r ON s.rid = r.rid"
CASES = [(text, ONE_BASE) for text in QUERIES] + [(text, THREE_BASES) for text in QUERIES[::3]]


@pytest.mark.parametrize(("text", "topology"), CASES)
def test_plans_answer_as_duckdb_while_rows_come_and_go(text: str, topology: Topology) -> None:
    plans = Plans(text, topology)
    numbers = plans.in_network(3)
    assert numbers or text == FULL
    for number in numbers:
        faults = Faults(loss=0.05, repetition=0.05) if number % 2 else None
        federation = Federation(topology, seed=number, faults=faults)
        federation.network.install(plans.bundle(number))
        for _ in range(3):
            federation.happen(8)
            assert federation.rest() == federation.expected(text), number


@pytest.mark.parametrize("text", QUERIES[::2])
def test_gateways_that_die_and_come_back_and_other_plans_change_no_answer(text: str) -> None:
    plans = Plans(text, ONE_BASE)
    numbers = [*plans.in_network(2), 1]
    federation = Federation(ONE_BASE, seed=len(text))
    federation.network.install(plans.bundle(numbers[0]))
    for version in range(1, 5):
        federation.happen(6)
        lost = federation.random.choice(tuple(ONE_BASE.gateways))
        if version % 2:
            federation.kill(lost)
            federation.happen(4)
            assert federation.rest() == federation.expected(text), f"without {lost}"
            federation.network.restart(lost)
        else:
            federation.network.disconnect(lost)
            bundle = plans.bundle(numbers[version % len(numbers)], version)
            for site in federation.random.sample(list(federation.network.sites), 4):
                federation.network.install(bundle, at=[site])
                federation.happen(1)
            federation.rest()
            federation.network.sites[lost].resync_all()
        federation.happen(6)
        assert federation.rest() == federation.expected(text), version
