"""Joins of rows of different gateways answer as DuckDB does, by whatever way gateways help."""

import pytest

from federated_optimizer import Topology
from federated_optimizer.alternatives.method import IN_NETWORK, Method
from federated_optimizer.search.joins.network_joins import IN_PARTS
from stream_engine.simulation.network import Faults
from streamsql.data.events import SourceEvent
from streamsql.wire.fragments import Engine
from tests.federated_optimizer.simulated_joins import (
    ONE_BASE,
    OWNERS,
    QUERIES,
    THREE_BASES,
    TWICE,
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


ONE_ROOM = "SELECT COUNT(*) AS n FROM seat s JOIN room r ON s.rid = r.rid"
"""Of one seat that is always in exactly one room: 1."""


def shown(plans: Plans, number: int) -> set[object]:
    """Return all numbers that a plan shows while the seat goes from room to room."""
    found: set[object] = set()
    for seed in range(4):
        federation = Federation(ONE_BASE, seed=seed)
        network, now = federation.network, federation.now
        network.install(plans.bundle(number))
        for room in range(4):
            event = SourceEvent((f"r{room}", "open", room), now, False)
            network.ingest(OWNERS["room"][room % 2], "room", [event])
        network.ingest("s0", "seat", [SourceEvent(("s0", "r0", 3), now, False)])
        federation.rest()
        for turn in range(1, 9):
            network.ingest("s0", "seat", [SourceEvent(("s0", f"r{turn % 4}", 3), now, False)])
            for _ in range(40):
                network.act()
                found.update(count for (count,) in network.result("q"))
            federation.rest()
    return found


def test_a_change_that_must_arrive_as_a_whole_shows_no_answer_that_never_held() -> None:
    plans = Plans(ONE_ROOM, ONE_BASE, whole_changes=True)
    assert not plans.in_network()
    assert plans.count > 1
    for number in range(1, plans.count + 1):
        assert shown(plans, number) == {1}, number
    (said,) = [each for each in plans.search.memo.refused if each.endswith(IN_PARTS)]
    assert all(method in said for method in IN_NETWORK - {Method.PAIRED})


def test_joins_in_the_network_show_one_part_of_a_change_first() -> None:
    plans = Plans(ONE_ROOM, ONE_BASE)
    assert shown(plans, plans.in_network()[Method.HASHED]) > {1}


def test_plans_without_joins_in_the_network_are_known_in_both_searches() -> None:
    for text in QUERIES:
        few, many = Plans(text, ONE_BASE, whole_changes=True), Plans(text, ONE_BASE)
        digests = {few.search.plan(number).digest for number in range(1, few.count + 1)}
        assert len(digests) == few.count
        others = (many.search.plan(number) for number in range(1, many.count + 1))
        alone = {o.digest for o in others if IN_NETWORK.isdisjoint(o.methods)}
        assert digests == alone


@pytest.mark.parametrize("text", [*QUERIES, *TWICE])
def test_what_a_plan_says_to_be_in_the_network_is_cut_so(text: str) -> None:
    plans = Plans(text, ONE_BASE)
    memo = plans.search.memo
    for number in range(1, plans.count + 1, max(plans.count // 100, 1)):
        methods = {each.method for each in memo.selection(number).values()}
        said = methods & {*IN_NETWORK, Method.TREE}
        bundle = plans.bundle(number)
        sites = {f.id: f.engine for f in bundle.fragments}
        exchanged = any(sites.get(f.consumer) == Engine.GATEWAY for f in bundle.fragments)
        assert exchanged == bool(said), (number, said)


MOVING = (Method.HASHED, Method.PAIRED)
"""A gateway has joined rows of others: they are missing as well while it is away."""


DYING = [
    *((QUERIES[0], method) for method in sorted(IN_NETWORK)),
    *((QUERIES[7], method) for method in sorted(IN_NETWORK)[::2]),
    (QUERIES[2], Method.BROADCAST_RIGHT),
    (QUERIES[2], Method.HASHED),
    (QUERIES[3], Method.KEYS_RIGHT),
    (QUERIES[4], Method.PAIRED),
    (QUERIES[6], Method.HASHED),
    (QUERIES[12], Method.HASHED),
]
"""Every method, and outer joins, EXISTS, NOT EXISTS and a join of a source with itself."""


@pytest.mark.parametrize(("text", "method"), DYING)
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
        others = sorted({1, *numbers.values()})
        bundle = plans.bundle(others[turn % len(others)], version=2 * turn)
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
