"""Derived rows, copies and witnesses through loss, repetition, death and return of sites."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stream_engine.recursion.absorption.deaths import Deaths
from stream_engine.simulation.network import Faults
from stream_engine.testing.recursion_programs import doubling, odd_and_even, reachable
from streamsql.algebra.choices import Annotations, Strategy, Way
from streamsql.algebra.operators import Fixpoint, RecursionChoice
from streamsql.data.types import Row
from streamsql.errors import WireError
from tests.stream_engine.link_networks import SITES, ToggledLinks

LINKS: list[Row] = [(src, dst, cost) for src, dst in permutations("abcd", 2) for cost in (1, 3)]
CHOICES = [
    RecursionChoice(strategy=Strategy.ABSORPTION, way=Way.WITNESS),
    RecursionChoice(strategy=Strategy.ABSORPTION, way=Way.ANNOTATIONS, ship="lazy"),
    RecursionChoice(
        strategy=Strategy.ABSORPTION, way=Way.ANNOTATIONS, ship="eager", annotations=Annotations.BDD
    ),
    RecursionChoice(way=Way.FLOOD),
    RecursionChoice(way=Way.CENTRE),
]
PROGRAMS = [reachable(), doubling(), odd_and_even()]
FEW = settings(max_examples=max(settings().max_examples // 8, 2))


def chosen(node: Fixpoint, choice: RecursionChoice) -> Fixpoint:
    return replace(node, choice=choice)


@pytest.mark.parametrize("choice", CHOICES, ids=lambda c: f"{c.way}-{c.ship}")
@pytest.mark.parametrize("node", PROGRAMS, ids=lambda n: n.name)
@FEW
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_it_settles_to_the_reference(
    node: Fixpoint, choice: RecursionChoice, seed: int
) -> None:
    links = ToggledLinks(chosen(node, choice), seed, Faults(loss=0.1, repetition=0.1), LINKS)
    links.run(30)
    links.check()
    site = links.kill_one()
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
    links = ToggledLinks(chosen(reachable(), choice), 1, Faults(), LINKS)
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
