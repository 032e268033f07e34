"""Joins of rows of different gateways answer as DuckDB does, by whatever way gateways help."""

import pytest

from federated_optimizer import Topology
from federated_optimizer.alternatives.method import IN_NETWORK, Method
from stream_engine.simulation.network import Faults
from tests.federated_optimizer.simulated_joins import (
    ONE_BASE,
    QUERIES,
    THREE_BASES,
    Federation,
    Plans,
)

CASES = [(text, ONE_BASE) for text in QUERIES] + [(text, THREE_BASES) for text in QUERIES[::6]]


@pytest.mark.parametrize(("text", "topology"), CASES)
def test_plans_answer_as_duckdb_while_rows_come_and_go(text: str, topology: Topology) -> None:
    plans = Plans(text, topology)
    for number in sorted(set(plans.in_network().values())):
        faults = Faults(loss=0.05, repetition=0.05) if number % 2 else None
        federation = Federation(topology, seed=number, faults=faults)
        federation.network.install(plans.bundle(number))
        for _ in range(2):
            federation.happen(7)
            assert federation.rest() == federation.expected(text), number


def test_joins_have_every_method() -> None:
    found = [plans.in_network().keys() for plans in (Plans(text, ONE_BASE) for text in QUERIES)]
    assert set().union(*found) == IN_NETWORK
    full = next(keys for text, keys in zip(QUERIES, found, strict=True) if "FULL JOIN m" in text)
    assert full == {Method.HASHED, Method.PAIRED}


MOVING = (Method.HASHED, Method.PAIRED)
"""A gateway has joined rows of others: they are missing as well while it is away."""


@pytest.mark.parametrize("method", sorted(IN_NETWORK))
@pytest.mark.parametrize("text", QUERIES[:8:7])
def test_gateways_that_die_and_come_back_and_other_plans_change_no_answer(
    text: str, method: Method
) -> None:
    plans = Plans(text, ONE_BASE)
    numbers = plans.in_network()
    federation = Federation(ONE_BASE, seed=len(text) + len(method))
    federation.network.install(plans.bundle(numbers[method]))
    for turn, lost in enumerate(ONE_BASE.gateways, start=1):
        federation.happen(6)
        federation.kill(lost)
        federation.happen(4)
        answer = federation.rest()
        if method not in MOVING:
            assert answer == federation.expected(text), f"without {lost}"
        federation.network.restart(lost)
        federation.happen(4)
        assert federation.rest() == federation.expected(text), f"with {lost} again"
        bundle = plans.bundle(sorted({1, *numbers.values()})[turn], version=2 * turn)
        for site in federation.random.sample(list(federation.network.sites), 4):
            federation.network.install(bundle, at=[site])
            federation.happen(1)
        assert federation.rest() == federation.expected(text), f"turn {turn}"
        federation.network.install(plans.bundle(numbers[method], version=2 * turn + 1))


def test_a_gateway_that_is_only_held_for_dead_changes_no_answer() -> None:
    text = QUERIES[0]
    plans = Plans(text, ONE_BASE)
    for number in sorted(plans.in_network().values()):
        federation = Federation(ONE_BASE, seed=number)
        federation.network.install(plans.bundle(number))
        for lost in ONE_BASE.gateways:
            federation.happen(6)
            federation.network.disconnect(lost)
            federation.happen(2)
            federation.rest()
            federation.network.sites[lost].resync_all()
            federation.happen(2)
            assert federation.rest() == federation.expected(text), (number, lost)
