"""A query that moves over a network that delays, repeats, reorders and loses, while sites die.

No row is there twice, no status is told again, and whenever all is settled the rows are DuckDB's.
"""

import asyncio

import pytest

from federated_optimizer.coordinator.adaptation import moves
from tests.federated_optimizer.coordinator.simulated_moves import SITES, SimulatedFederation

EVENTS = 3_000
SETTLED_EVERY = 500
SEEDS = 6


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("dying", [False, True])
def test_no_timing_makes_a_move_seen(
    seed: int, dying: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = SimulatedFederation(seed, monkeypatch, meeting=not dying)
    asyncio.run(live_through(world, dying=dying))
    assert world.outcomes["at rest"] + world.outcomes["busy"] >= 2, world.outcomes


def test_a_query_that_reads_rows_of_another_one_moves_amid_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = 0
    for seed in range(SEEDS):
        world = SimulatedFederation(seed, monkeypatch, meeting=False, fed=True)
        asyncio.run(live_through(world, dying=seed % 2 > 0))
        found += world.outcomes["busy and fed"]
    assert found >= SEEDS


def test_without_the_proof_by_counts_a_status_is_told_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(moves, "is_not_behind", lambda *_: True)

    def again() -> None:
        for seed in range(5 * SEEDS):
            asyncio.run(live_through(SimulatedFederation(seed, monkeypatch, meeting=False)))

    with pytest.raises(AssertionError, match="is told again"):
        again()


async def live_through(world: SimulatedFederation, *, dying: bool = False) -> None:
    chance = world._random
    for event in range(EVENTS):
        if chance.random() < 0.05:
            world.read()
        dead = sorted(set(SITES) - world.sites.keys())
        if dead and chance.random() < 0.02:
            world.live(chance.choice(dead))
        elif dying and not dead and chance.random() < 0.003:
            world.die(chance.choice(SITES))
        elif dying and not dead and chance.random() < 0.004:
            world.killed(chance.choice(SITES))
        if world.move is None and chance.random() < 0.02:
            await world.begin()
        await world.something()
        if chance.random() < 0.1:
            await world.look()
        if event % SETTLED_EVERY == SETTLED_EVERY - 1:
            for site in sorted(set(SITES) - world.sites.keys()):
                world.live(site)
            await world.rest()
            world.check()
