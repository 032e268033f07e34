"""Queries that compute anew what they could read have their rows: whatever prices say, it is right.

Parts are computed anew wherever that can be planned, or where a coin says so; rows are compared
with the plan from scratch and with DuckDB's, and at sites that lose messages and die.
"""

from collections.abc import Iterator
from contextlib import closing
from random import Random

import pytest

from federated_optimizer.registering import computed_anew
from federated_optimizer.sharing.strategy import Materialize, Strategy
from tests.federated_optimizer.laws.test_shared_queries import (
    CATALOG,
    ONE_BASE,
    SEVERAL_BASES,
    Author,
    Peer,
    check,
    contents,
    network_of,
    readings_of,
)
from tests.federated_optimizer.laws.test_shared_queries_at_sites import World
from tests.streamsql.from_text import bound_query


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with closing(Peer()) as made:
        yield made


def compares_all(patch: pytest.MonkeyPatch, coin: Random | None) -> dict[str, int]:
    """Compare every node that is read, and return counts of what was chosen."""
    counts = {"compared": 0, "anew": 0}

    def takes(*_: object) -> bool:
        counts["compared"] += 1
        return coin is None or coin.random() < 0.5

    told = computed_anew._told

    def anew(*args: object) -> object:
        counts["anew"] += 1
        return told(*args)  # type: ignore[arg-type]

    patch.setattr(computed_anew, "takes_less_effort", takes)
    patch.setattr(computed_anew, "_told", anew)
    patch.setattr(computed_anew, "MANY_ROWS", 0)
    patch.setattr(computed_anew, "MUCH_HANDED", 0.0)
    patch.setattr(computed_anew, "FEW", 10.0)
    for gate in ("_may_hand_much", "_is_counted"):
        patch.setattr(computed_anew.Prices, gate, lambda *_: True)
    return counts


@pytest.mark.parametrize("materialize", list(Materialize))
def test_parts_that_are_computed_anew_have_their_rows(
    peer: Peer, materialize: Materialize, monkeypatch: pytest.MonkeyPatch
) -> None:
    anew = 0
    for seed in (1, 2, 3):
        random = Random(500 + seed)
        counts = compares_all(monkeypatch, random if seed % 2 else None)
        topology = SEVERAL_BASES if seed == 3 else ONE_BASE
        network, texts = network_of(topology, Strategy.ALL, materialize), {}
        for _ in range(7):
            text = Author(random).query()
            change = network.register(bound_query(text, CATALOG))
            texts[change.query] = text
        for turn in range(3):
            for query in random.sample(list(network.reads), 2) if turn == 2 else ():
                network.deregister(query)
            tables = contents(random)
            peer.fill(tables)
            check(network, texts, readings_of(tables, topology), peer)
        for query in list(network.reads):
            network.deregister(query)
        assert not network.runs
        assert not len(network.sharing.index)
        anew += counts["anew"]
    assert anew > 2


@pytest.mark.parametrize("materialize", list(Materialize))
def test_sites_have_the_rows_of_parts_that_are_computed_anew(
    peer: Peer, materialize: Materialize, monkeypatch: pytest.MonkeyPatch
) -> None:
    anew = 0
    for seed in (702, 703):
        counts = compares_all(monkeypatch, Random(seed))
        world = World(seed, ONE_BASE, materialize)
        often = (*(world.read,) * 12, world.write, *(world.act,) * 4, world.pass_time)
        rare = (world.start, world.start, world.stop, world.die)
        for _ in range(4):
            world.start()
            world.start()
            for _ in range(20):
                world.random.choice((*often, *rare))()
            world.check(peer)
        anew += counts["anew"]
    assert anew > 1
