"""Queries register over what runs while the network delays and reorders, and sites die.

Whenever all is settled each reader has the rows of DuckDB, of recursions those of networkx. While
no row and no site changes nobody is told anything because other queries come and go.
"""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from federated_optimizer.coordinator.queries.answers.run_answers import RunAnswer
from federated_optimizer.sharing.strategy import Materialize
from streamsql.wire.fragments import FragmentBundle
from tests.federated_optimizer.coordinator.simulated_registrations import (
    REACHES,
    SITES,
    SimulatedRegistrations,
)

EVENTS = 1_500
SETTLED_EVERY = 250
SEEDS = 3


@pytest.mark.parametrize("materialize", list(Materialize))
@pytest.mark.parametrize("dying", [False, True])
def test_no_timing_of_registrations_is_seen(
    materialize: Materialize, dying: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = SimulatedRegistrations(seed, monkeypatch)
        asyncio.run(live_through(world, folder, materialize, dying=dying))
        counts += world.counts
    assert counts["over results"] > 5, counts
    assert counts["kept for readers"] > 0, counts
    assert counts["compared"] > 30, counts
    if dying:
        assert counts["deaths amid orders"] > 0, counts
        assert counts["coordinators"] > 0, counts


@pytest.mark.parametrize("dying", [False, True])
def test_no_timing_of_moves_between_runs_and_nodes_is_seen(
    dying: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of recursions an older query moves onto the node of its part, and leaves what it received."""
    counts: Counter[str] = Counter()
    for seed in range(5 * SEEDS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = SimulatedRegistrations(seed, monkeypatch)
        world.some = REACHES
        asyncio.run(live_through(world, folder, Materialize.WANTED_TWICE, dying=dying))
        counts += world.counts
    assert counts["left to a node"] > 3, counts
    if dying:
        assert counts["deaths"] + counts["kills"] > 0, counts
        assert counts["coordinators"] > 0, counts


def test_a_view_that_is_not_held_while_a_run_is_filled_anew_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    redeploy = RunAnswer.redeploy

    def at_once(answer: RunAnswer, bundle: FragmentBundle) -> None:
        redeploy(answer, bundle)
        answer.release()

    def live() -> None:
        for seed in range(4 * SEEDS):
            folder = tmp_path / str(seed)
            folder.mkdir()
            world = SimulatedRegistrations(seed, monkeypatch)
            asyncio.run(live_through(world, folder, Materialize.WANTED_TWICE, dying=False))

    monkeypatch.setattr(RunAnswer, "redeploy", at_once)
    with pytest.raises(AssertionError, match="though nothing has changed"):
        live()


async def live_through(
    world: SimulatedRegistrations, folder: Path, materialize: Materialize, *, dying: bool
) -> None:
    chance = world._random
    await world.open(folder, materialize)
    quiet = False
    for event in range(EVENTS):
        if not quiet and chance.random() < 0.05:
            world.read()
        if chance.random() < 0.02:
            await world.start()
        if chance.random() < 0.01:
            await world.stop()
        dead = sorted(set(SITES) - world.sites.keys())
        if dead and chance.random() < 0.03:
            world.live(chance.choice(dead))
        elif dying and not quiet and not dead and chance.random() < 0.006:
            fate = chance.choice((world.die, world.die, world.killed))
            fate(chance.choice(SITES))
        if dying and not quiet and chance.random() < 0.002:
            await world.restart_coordinator(folder)
        if chance.random() < 0.1:
            await world.look()
        await world.something()
        if event % SETTLED_EVERY == SETTLED_EVERY - 1:
            for site in sorted(set(SITES) - world.sites.keys()):
                if site == "base" or chance.random() < 0.5:
                    world.live(site)
            await world.rest()
            world.check()
            # Every other time queries alone come and go.
            quiet = not quiet and len(world.sites) == len(SITES)
    for site in sorted(set(SITES) - world.sites.keys()):
        world.live(site)
    await world.rest()
    world.check()
    await world.end()
