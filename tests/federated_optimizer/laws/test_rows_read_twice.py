"""Rows that parts of a query read at the same sites are sent there once, and answers stay right."""

from collections.abc import Iterator

import pytest

from federated_optimizer import Topology
from federated_optimizer.alternatives.method import IN_NETWORK, Method
from federated_optimizer.cutting.taken_plans import Taken
from stream_engine.simulation.network import Faults
from streamsql.algebra.operators import Plan, RemoteSource, transform_up
from streamsql.wire.fragments import Fragment, FragmentBundle
from tests.federated_optimizer.simulated_joins import (
    ONE_BASE,
    QUERIES,
    SITES,
    THREE_BASES,
    TWICE,
    Federation,
    Plans,
)

CASES = [(text, sites) for text in TWICE for sites in (ONE_BASE, THREE_BASES)]


def computed(bundle: FragmentBundle) -> list[object]:
    """Return what fragments compute where, and where they send it, without their names."""
    known: dict[str, tuple[object, ...]] = {}

    def opened(node: Plan) -> Plan:
        if isinstance(node, RemoteSource):
            return RemoteSource(str(of(bundle.fragment(node.fragment))), node.columns)
        return node

    def of(f: Fragment) -> tuple[object, ...]:
        if f.id not in known:
            plan = transform_up(f.plan, opened)
            known[f.id] = (plan, f.engine, f.sites, f.destinations, f.partition, f.homes)
        return known[f.id]

    return list(map(of, bundle.fragments))


@pytest.mark.parametrize(("text", "topology"), CASES)
def test_no_fragment_is_there_twice(text: str, topology: Topology) -> None:
    plans = Plans(text, topology)
    for number in range(1, plans.count + 1, max(plans.count // 50, 1)):
        bundle = plans.bundle(number)
        found = computed(bundle)
        assert all(found.count(each) == 1 for each in found), number
        for fragment in bundle.fragments:
            readers = bundle.readers(fragment.id)
            assert fragment.consumer in readers if readers else not fragment.consumer
            for reader in map(bundle.fragment, readers):
                assert set(reader.sites) <= set(fragment.destinations), (number, reader.id)


def test_some_rows_are_read_by_two_fragments() -> None:
    """Else the other tests here say nothing."""
    for text in (TWICE[4], TWICE[6], QUERIES[9]):
        plans = Plans(text, THREE_BASES)
        bundles = map(plans.bundle, range(1, plans.count + 1))
        assert any(len(set(b.readers(f.id))) > 1 for b in bundles for f in b.fragments), text


@pytest.mark.parametrize(("text", "topology"), CASES)
def test_plans_answer_as_duckdb_while_rows_come_and_go(text: str, topology: Topology) -> None:
    plans = Plans(text, topology)
    some = range(1, plans.count + 1, max(plans.count // 4, 1))
    met = plans.in_network().values()
    for number in sorted({plans.search.taken().number, *met, *some}):
        faults = Faults(loss=0.05, repetition=0.05) if number % 2 else None
        federation = Federation(topology, seed=number, faults=faults)
        federation.network.install(plans.bundle(number))
        for _ in range(2):
            federation.happen(7)
            assert federation.rest() == federation.expected(text), number


def occurrences(taken: Taken) -> Iterator[Taken]:
    yield taken
    for each in taken.inputs:
        yield from occurrences(each)


@pytest.mark.parametrize("text", TWICE[:2])
def test_rows_that_are_read_twice_may_be_computed_in_two_ways(text: str) -> None:
    """At the base for one reader, and for another one at gateways that join them there."""
    plans = Plans(text, ONE_BASE)
    ways: set[bool] = set()
    for number in range(1, plans.count + 1):
        found: dict[Plan, set[Method | None]] = {}
        for each in occurrences(plans.search.plan(number).taken):
            found.setdefault(each.plan, set()).add(each.method)
        ways.update(len(methods) > 1 for methods in found.values())
    assert ways == {False, True}


DYING = [
    (text, method)
    for text in (TWICE[0], *TWICE[5:7])
    for method in sorted(IN_NETWORK - {Method.PAIRED})
]


@pytest.mark.parametrize(("text", "method"), DYING)
def test_gateways_that_join_such_rows_may_die(text: str, method: Method) -> None:
    plans = Plans(text, ONE_BASE)
    numbers = plans.in_network()
    federation = Federation(ONE_BASE, seed=len(text) + len(method))
    federation.network.install(plans.bundle(numbers[method]))
    for turn, lost in enumerate((*ONE_BASE.gateways, *ONE_BASE.bases), start=1):
        federation.happen(6)
        federation.kill(lost)
        federation.happen(4)
        federation.rest()
        federation.network.restart(lost)
        federation.happen(4)
        assert federation.rest() == federation.expected(text), f"with {lost} again"
        other = sorted({1, *numbers.values()})[turn % (len(numbers) + 1) - 1]
        federation.network.install(plans.bundle(other, version=2 * turn))
        federation.happen(2)
        assert federation.rest() == federation.expected(text), f"turn {turn}"
        federation.network.install(plans.bundle(numbers[method], version=2 * turn + 1))


@pytest.mark.parametrize("text", TWICE)
def test_sites_that_die_and_come_back_change_no_answer(text: str) -> None:
    """Each of them is a gateway and a base: it has rows, and reads those of the others twice."""
    plans = Plans(text, THREE_BASES)
    number = plans.search.taken().number
    federation = Federation(THREE_BASES, seed=len(text))
    federation.network.install(plans.bundle(number))
    for turn, lost in enumerate(SITES, start=1):
        federation.happen(6)
        federation.kill(lost)
        federation.happen(4)
        federation.rest()
        federation.network.restart(lost)
        federation.happen(4)
        assert federation.rest() == federation.expected(text), f"with {lost} again"
        federation.network.install(plans.bundle(turn % plans.count + 1, version=2 * turn))
        federation.happen(2)
        assert federation.rest() == federation.expected(text), f"turn {turn}"
        federation.network.install(plans.bundle(number, version=2 * turn + 1))
