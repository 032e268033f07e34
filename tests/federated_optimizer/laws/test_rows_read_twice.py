"""Rows that parts of a query read at the same sites are sent there once, and answers stay right."""

import pytest

from federated_optimizer import Topology
from stream_engine.simulation.network import Faults
from streamsql.algebra.operators import Plan, RemoteSource, transform_up
from streamsql.wire.fragments import Fragment, FragmentBundle
from tests.federated_optimizer.simulated_joins import (
    ONE_BASE,
    QUERIES,
    SITES,
    THREE_BASES,
    Federation,
    Plans,
)

HEAVY = "WITH x AS (SELECT mid, rid, weight FROM seat WHERE weight > 0) "
TWICE = tuple(
    HEAVY + text
    for text in (
        "SELECT a.mid, b.mid AS o FROM x a JOIN x b ON a.rid = b.rid AND a.weight < b.weight",
        "SELECT mid FROM x WHERE weight = 2"
        " UNION ALL SELECT a.mid FROM x a JOIN room r ON a.rid = r.rid",
        "SELECT a.mid, a.weight, g.n FROM x a"
        " JOIN (SELECT rid, COUNT(*) AS n FROM x GROUP BY rid) g ON a.rid = g.rid",
        "SELECT a.mid, r.status FROM x a JOIN room r ON a.rid = r.rid"
        " UNION ALL SELECT a.mid, r.status FROM x a JOIN room r ON a.rid = r.rid",
        "SELECT a.mid, r.light FROM x a JOIN room r ON a.rid = r.rid"
        " UNION ALL SELECT a.mid, m.watt FROM x a JOIN meter m ON a.mid = m.mid",
        "SELECT DISTINCT weight FROM x WHERE NOT EXISTS"
        " (SELECT 1 FROM x y JOIN room r ON y.rid = r.rid WHERE y.weight = x.weight)",
    )
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
    for text in (TWICE[2], TWICE[4], QUERIES[9]):
        plans = Plans(text, THREE_BASES)
        bundles = map(plans.bundle, range(1, plans.count + 1))
        assert any(len(set(b.readers(f.id))) > 1 for b in bundles for f in b.fragments), text


@pytest.mark.parametrize(("text", "topology"), CASES)
def test_plans_answer_as_duckdb_while_rows_come_and_go(text: str, topology: Topology) -> None:
    plans = Plans(text, topology)
    taken = plans.search.taken().number
    for number in sorted({taken, *range(1, plans.count + 1, max(plans.count // 4, 1))}):
        faults = Faults(loss=0.05, repetition=0.05) if number % 2 else None
        federation = Federation(topology, seed=number, faults=faults)
        federation.network.install(plans.bundle(number))
        for _ in range(2):
            federation.happen(7)
            assert federation.rest() == federation.expected(text), number


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
