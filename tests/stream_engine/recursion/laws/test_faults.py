"""Derived rows, copies and witnesses through loss, repetition, death and return of sites."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stream_engine.recursion.absorption.deaths import Deaths
from stream_engine.simulation.fragmentations import everywhere
from stream_engine.simulation.network import Faults, Network
from stream_engine.testing.recursion_programs import LINK, doubling, odd_and_even, reachable
from streamsql.algebra.operators import Fixpoint, RecursionChoice
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.errors import WireError
from streamsql.reference import Database, evaluate

SITES = ("gw-1", "gw-2", "base")
NODES = "abcd"
CHOICES = [
    RecursionChoice(strategy="absorption", way="witness"),
    RecursionChoice(strategy="absorption", way="annotations", ship="lazy"),
    RecursionChoice(strategy="absorption", way="annotations", ship="eager", annotations="bdd"),
    RecursionChoice(way="flood"),
    RecursionChoice(way="centre"),
]
PROGRAMS = [reachable(), doubling(), odd_and_even()]
FEW = settings(max_examples=max(settings().max_examples // 8, 2))


class Links:
    """A network of sites that own the links leaving some nodes each."""

    def __init__(self, node: Fixpoint, seed: int, faults: Faults) -> None:
        self.random = random.Random(seed)
        self.node = node
        self.network = Network(SITES, seed=seed, faults=faults)
        self.live: dict[str, dict[Row, None]] = {site: {} for site in SITES}
        for site in SITES:
            self.network.declare(site, LINK)
        self.network.install(everywhere(node, SITES))

    def change(self) -> None:
        source, target = self.random.sample(NODES, 2)
        row: Row = (source, target, self.random.choice((1, 3)))
        site = SITES[NODES.index(source) % len(SITES)]
        if site in self.network.sites:
            known = row in self.live[site]
            self.network.ingest(site, "link", [SourceEvent(row, 0, delete=known)])
            if known:
                del self.live[site][row]
            else:
                self.live[site][row] = None

    def run(self, actions: int) -> None:
        for _ in range(actions):
            if self.random.random() < 0.3:
                self.change()
            else:
                self.network.act()

    def come_back(self, site: str) -> None:
        self.network.restart(site)
        self.network.ingest(site, "link", [SourceEvent(row, 0) for row in self.live[site]])

    def check(self) -> None:
        self.network.settle()
        assert self.network.failures == []
        database = Database()
        rows = [row for live in self.live.values() for row in live]
        database.append("link", [SourceEvent(row, 0) for row in rows])
        assert self.network.result("q") == evaluate(self.node, database, 0)


def chosen(node: Fixpoint, choice: RecursionChoice) -> Fixpoint:
    return replace(node, choice=choice)


@pytest.mark.parametrize("choice", CHOICES, ids=lambda c: f"{c.way}-{c.ship}")
@pytest.mark.parametrize("node", PROGRAMS, ids=lambda n: n.name)
@FEW
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_it_settles_to_the_reference(
    node: Fixpoint, choice: RecursionChoice, seed: int
) -> None:
    links = Links(chosen(node, choice), seed, Faults(loss=0.1, repetition=0.1))
    links.run(30)
    links.check()
    site = links.random.choice(SITES)
    links.network.kill(site, in_flight_survives=links.random.random() < 0.5)
    links.run(links.random.randrange(20))
    links.come_back(site)
    links.run(15)
    links.check()
    links.network.disconnect(links.random.choice(SITES))
    links.run(15)
    links.check()


@pytest.mark.parametrize("choice", [CHOICES[0], *CHOICES[3:]], ids=lambda c: c.way)
def test_a_site_is_told_from_state_and_lives_on(choice: RecursionChoice) -> None:
    """However much was sent, resynchronisation needs no log and no new life."""
    links = Links(chosen(reachable(), choice), 1, Faults())
    for _ in range(60):
        links.change()
        links.network.settle()
    engine = links.network.sites["gw-1"]
    (recursion,) = engine._queries["q"]._recursions.values()
    assert recursion.lives == 1
    assert recursion._log == {}
    replayed = recursion.replay("base")
    rows = sum(len(message.annotated) for message in replayed)
    assert rows <= (1 + len(links.live["gw-1"]) if choice.way == "flood" else 4)
    links.network.disconnect("gw-2")
    links.change()
    links.check()


def test_all_deaths_of_a_life_fit_between_live_tokens() -> None:
    here, there = Deaths(), Deaths()
    origin = 3 << 8 | 1
    tokens = [origin << 32 | sequence for sequence in range(1000)]
    alive = {tokens[7], tokens[500]}
    here.take([token for token in tokens if token not in alive], lambda: ())
    told = here.told(origin)
    assert len(told) < 16
    there.note_told(told)
    assert there.has_news
    assert there.take((), lambda: [*tokens[5:9], 42]) == {tokens[5], tokens[6], tokens[8]}
    assert [token for token in tokens if token not in there.tombstones] == sorted(alive)


@pytest.mark.parametrize("payload", [b"", b"\1\2\3", b"\1\1\5\0", b"\1\0\0", b"\xff" * 12])
def test_malformed_deaths_are_refused(payload: bytes) -> None:
    deaths = Deaths()
    with pytest.raises(WireError):
        deaths.note_told(payload)
    assert not deaths.has_news
