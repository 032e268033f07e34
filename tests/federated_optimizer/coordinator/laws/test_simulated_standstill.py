"""Moves end: while no fact changes no plan is left, and what happens causes few moves.

Facts are those of the sources' rows, the queries that run, and the sites.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from federated_optimizer.coordinator.adaptation import adaptation, bundle_choice
from federated_optimizer.coordinator.adaptation.chosen_plans import Candidate, Chosen
from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.effort import ALIKE
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.sharing.strategy import Materialize
from federated_optimizer.statistics.speeds import Speeds
from tests.federated_optimizer.coordinator.simulated_registrations import (
    MOST,
    REACHES,
    TEXTS,
    SimulatedRegistrations,
)
from tests.federated_optimizer.coordinator.simulated_standstill import Standstill

EVENTS = 16
"""Queries that begin or end, and facts that change, one at a time."""
MOST_CAUSED = 3
"""Moves that one of them causes."""
ROWS = 12
FACTS = 6


async def lived(
    world: SimulatedRegistrations,
    folder: Path,
    materialize: Materialize,
    patch: pytest.MonkeyPatch,
) -> Counter[str]:
    """Let queries come and go one at a time; return how many moves each has caused."""
    await world.open(folder, materialize)
    standstill, counts = Standstill(world, patch), Counter[str]()
    for _ in range(ROWS):
        world.read()
    for _ in range(FACTS):
        standstill.tell()
    await world.rest()
    world.check()
    for _ in range(EVENTS):
        happens = await something(world, standstill)
        await world.rest()
        caused = await standstill.settle()
        counts[f"caused by {happens}"] += caused
        assert caused <= MOST_CAUSED, (happens, caused, world.texts)
        # Whatever had a reason to be looked at has been: no look at all finds a better plan.
        assert await standstill.settle(asked=True) == 0, world.shared.decisions.all()[-3:]
        world.check()
    await world.end()
    return counts


async def something(world: SimulatedRegistrations, standstill: Standstill) -> str:
    """Let a query begin or end, or a fact change; return which."""
    match world._random.choices(("begin", "end", "fact"), (5, 3, 2))[0]:
        case "fact":
            standstill.tell()
            return "a fact"
        case "begin" if len(world.texts) < MOST:
            await world.start()
            return "one that begins"
        case _:
            await world.stop()
            return "one that ends"


def lives(
    folder: Path,
    patch: pytest.MonkeyPatch,
    seeds: Iterable[int],
    some: tuple[str, ...],
    materialize: Materialize = Materialize.WANTED_TWICE,
) -> Counter[str]:
    """Return the moves that queries of some texts have caused."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        own = folder / f"{seed} of {len(some)}"
        own.mkdir()
        with patch.context() as patched:
            world = SimulatedRegistrations(seed, patched)
            world.some = some
            counts += asyncio.run(lived(world, own, materialize, patched))
    return counts


@pytest.mark.parametrize("materialize", list(Materialize))
def test_what_happens_causes_few_moves_and_then_none(
    materialize: Materialize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = lives(tmp_path, monkeypatch, (1,), (*TEXTS, *REACHES), materialize)
    counts += lives(tmp_path, monkeypatch, (1, 3), REACHES, materialize)
    if materialize == Materialize.WANTED_TWICE:  # eager nodes are there before who wants them
        assert counts["caused by one that begins"] > 0, counts


def test_plans_that_take_turns_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: of plans of one price the last one is taken, and a switch has no price."""

    def last(
        now: Cost, candidates: Sequence[Candidate], weighing: Weighing, _speeds: Speeds
    ) -> Chosen | None:
        most = ALIKE * weighing.value(now)
        alike = [n for n, each in enumerate(candidates) if weighing.value(each.cost) <= most]
        return Chosen(alike[-1], is_much=True) if alike else None

    monkeypatch.setattr(bundle_choice, "chosen", last)
    monkeypatch.setattr(adaptation, "why_not_worth", lambda *_: "")
    with pytest.raises(AssertionError, match="queries move though nothing has changed"):
        lives(tmp_path, monkeypatch, (1, 3), REACHES)
