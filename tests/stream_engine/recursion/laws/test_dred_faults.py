"""Delete and rederive in the simulator: loss, repetition, death and return of sites."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.exchange import peered_fixpoint
from stream_engine.exchange.peered_fixpoint import PeeredFixpoint
from stream_engine.simulation.network import Faults
from stream_engine.testing.recursion_programs import cheapest_path, reachable
from stream_engine.testing.recursion_schedules import LINKS
from streamsql.algebra.choices import Strategy
from streamsql.algebra.operators import Fixpoint, RecursionChoice
from tests.stream_engine.link_networks import (
    SITES,
    Happening,
    LinkNetwork,
    ToggledLinks,
    disconnection,
    nothing,
    reinstallation,
)

ROWS = [row for _, row in LINKS]
PLANS = [
    msgspec.structs.replace(node, choice=RecursionChoice(strategy=Strategy.DRED))
    for node in (reachable(), cheapest_path(via=True))
]
EXAMPLES = settings(max_examples=max(settings().max_examples // 5, 1))
by_name = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)


def seen_death_and_return(links: LinkNetwork) -> None:
    """While a site is away the others compute the view of what they have, whoever led."""
    site = links.kill_one()
    links.run(links.random.randrange(30))
    links.check(without=site)
    links.come_back(site)
    links.run(20)


@by_name
@EXAMPLES
@pytest.mark.parametrize(
    ("faults", "happening", "rounds"),
    [
        pytest.param(Faults(loss=0.15, repetition=0.15), nothing, 2, id="loss and repetition"),
        pytest.param(Faults(loss=0.05, repetition=0.05), seen_death_and_return, 1, id="a death"),
        pytest.param(Faults(loss=0.05), disconnection, 2, id="a site held for dead"),
        pytest.param(Faults(loss=0.05, repetition=0.05), reinstallation, 1, id="a query lost"),
    ],
)
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_it_settles_to_the_reference(
    plan: Fixpoint, faults: Faults, happening: Happening, rounds: int, seed: int
) -> None:
    links = ToggledLinks(plan, seed, faults, ROWS)
    for _ in range(rounds):
        links.run(40)
        happening(links)
        links.check()


@by_name
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_remembered_for_replays_is_bounded_and_begins_anew(
    plan: Fixpoint, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site that has said too much forgets it in a new life, and the view stays right."""
    monkeypatch.setattr(peered_fixpoint, "REPLAY_ROWS", 60)
    made: list[PeeredFixpoint] = []
    begin = PeeredFixpoint.__init__

    def noted(self: PeeredFixpoint, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        made.append(self)

    monkeypatch.setattr(PeeredFixpoint, "__init__", noted)
    links = ToggledLinks(plan, seed, Faults(loss=0.05, repetition=0.05), ROWS)
    most = 0
    for _ in range(15):
        links.change()
        links.run(20)
        most = max(most, *(fixpoint._log_size for fixpoint in made))
        links.network.settle()
    links.check()
    assert len(made) == len(SITES)
    assert max(fixpoint.lives for fixpoint in made) > 1
    assert most < 400, "four times what is alive for each peer, and what one step adds"
