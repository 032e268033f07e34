"""Delete and rederive in the simulator: loss, repetition, death and return of sites."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.exchange import peered_fixpoint
from stream_engine.exchange.peered_fixpoint import PeeredFixpoint
from stream_engine.simulation.fragmentations import everywhere
from stream_engine.simulation.network import Faults, Network
from stream_engine.testing.recursion_programs import LINK, cheapest_path, reachable
from stream_engine.testing.recursion_schedules import LINKS, database
from streamsql.algebra.operators import Fixpoint, RecursionChoice
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import evaluate

SITES = ("gw-1", "gw-2", "base")
PLANS = [
    msgspec.structs.replace(node, choice=RecursionChoice(strategy="dred"))
    for node in (reachable(), cheapest_path(via=True))
]
EXAMPLES = settings(max_examples=max(settings().max_examples // 5, 1))
by_name = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)


class Links:
    """A network of sites; every link has one that tells of it."""

    def __init__(self, plan: Fixpoint, seed: int, faults: Faults) -> None:
        self.random = random.Random(seed)
        self.plan = plan
        self.network = Network(SITES, seed=seed, faults=faults)
        self.live: dict[str, set[Row]] = {site: set() for site in SITES}
        for site in SITES:
            self.network.declare(site, LINK)
        self.network.install(everywhere(plan, SITES))

    def change(self) -> None:
        _, row = self.random.choice(LINKS)
        site = SITES["abcde".index(str(row[0])) % len(SITES)]
        if site in self.network.sites:
            event = SourceEvent(row, 0, delete=row in self.live[site])
            self.network.ingest(site, "link", [event])
            self.live[site] ^= {row}

    def run(self, actions: int) -> None:
        for _ in range(actions):
            if self.random.random() < 0.3:
                self.change()
            else:
                self.network.act()

    def come_back(self, site: str) -> None:
        self.network.restart(site)
        events = [SourceEvent(row, 0) for row in sorted(self.live[site], key=repr)]
        self.network.ingest(site, "link", events)

    def expected(self, without: str = "") -> Delta:
        links = [rows for site, rows in self.live.items() if site != without]
        return evaluate(self.plan, database({"link": set().union(*links)}), 0)

    def check(self, without: str = "") -> None:
        self.network.settle()
        assert self.network.failures == []
        assert self.network.result("q") == self.expected(without)


@by_name
@EXAMPLES
@given(seed=st.integers(0, 2**32))
def test_loss_and_repetition(plan: Fixpoint, seed: int) -> None:
    links = Links(plan, seed, Faults(loss=0.15, repetition=0.15))
    for _ in range(2):
        links.run(40)
        links.check()


@by_name
@EXAMPLES
@given(seed=st.integers(0, 2**32))
def test_sites_die_and_come_back(plan: Fixpoint, seed: int) -> None:
    """While one is away the others compute the view of what they have, whoever led."""
    links = Links(plan, seed, Faults(loss=0.05, repetition=0.05))
    links.run(40)
    site = links.random.choice(SITES)
    links.network.kill(site, in_flight_survives=links.random.random() < 0.5)
    links.run(links.random.randrange(30))
    links.check(without=site)
    links.come_back(site)
    links.run(20)
    links.check()


@by_name
@EXAMPLES
@given(seed=st.integers(0, 2**32))
def test_a_site_held_for_dead_returns(plan: Fixpoint, seed: int) -> None:
    links = Links(plan, seed, Faults(loss=0.05))
    for _ in range(2):
        links.run(40)
        links.network.disconnect(links.random.choice(SITES))
        links.run(20)
        links.check()


@by_name
@EXAMPLES
@given(seed=st.integers(0, 2**32))
def test_a_site_loses_a_query_and_gets_it_again(plan: Fixpoint, seed: int) -> None:
    links = Links(plan, seed, Faults(loss=0.05, repetition=0.05))
    links.run(40)
    site = links.random.choice(SITES)
    links.network.sites[site].uninstall("q")
    links.run(links.random.randrange(30))
    links.network.install(everywhere(plan, SITES), at=[site])
    links.run(20)
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
    links = Links(plan, seed, Faults(loss=0.05, repetition=0.05))
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
