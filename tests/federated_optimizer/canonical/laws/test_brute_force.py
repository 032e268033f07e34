"""Implications, equality and look-ups against all rows of small worlds.

Whatever is found must be true there. What is true there and not found is counted: of pairs of sets
of which one lets through a part of what the other one does, unless it is written so. The benchmark
`subsumption` publishes the shares.
"""

from random import Random

import pytest

from benchmarks._subsumption.small_worlds import WORLDS
from benchmarks.subsumption import (
    Counted,
    contradictions,
    implications,
    needed_parts,
    random_filters,
)
from federated_optimizer.canonical.sets.predicate_index import PredicateIndex
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.data.types import DataType

MISSED = {"usual": 0.06, "unusual": 0.25}
"""Most of the implications that are true in a small world and not found.

Not found are, for example, `a < b OR a >= b` from `a IS NOT NULL AND b IS NOT NULL`: no condition
of it follows by itself. And of some that are counted only the world is too small to show a
counterexample.
"""

OF_UNITS = 0.13
"""As much more where units of times, DATE_TRUNC, are compared: their limits are none of times."""

MISSED_BY_INDEX = 0.005
"""Most of the implications found between two sets and not by a look-up."""


def filters(name: str, seed: int, count: int, kind: str = "unusual") -> list[list[Expression]]:
    """Return the parts of random filters over a world."""
    return random_filters(Random(seed), WORLDS[name](), count, plain=kind == "usual")


@pytest.mark.parametrize("kind", list(MISSED))
@pytest.mark.parametrize("name", list(WORLDS))
def test_implications(name: str, kind: str) -> None:
    counted = implications(WORLDS[name](), filters(name, 7, 120, kind))
    assert counted.there > 300
    assert counted.missed <= MISSED[kind] + OF_UNITS * (name == "timestamps")


def test_pairs_that_stand_in_each_other_do_not_count() -> None:
    world = WORLDS["integers"]()
    one, other, wider = (
        [Call("<", (world.columns[column], Literal(value, DataType.INTEGER)), DataType.BOOLEAN)]
        for column, value in ((0, 1), (1, 2), (0, 3))
    )
    written: list[list[Expression]] = [[*one], [*one], [*one, *other]]
    assert implications(world, written) == Counted(there=0, found=0)
    assert implications(world, [*written, [*wider]]) == Counted(there=3, found=3)


def test_an_implication_that_is_not_true_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PredicateSet, "implies", lambda _one, _other: True)
    with pytest.raises(AssertionError, match="wrong of"):
        implications(WORLDS["booleans"](), filters("booleans", 7, 10))


@pytest.mark.parametrize("name", list(WORLDS))
def test_contradictions(name: str) -> None:
    counted = contradictions(Random(8), WORLDS[name](), 600)
    assert counted.there > 50
    assert counted.missed <= 0.3 + 2 * OF_UNITS * (name == "timestamps")


@pytest.mark.parametrize("name", list(WORLDS))
def test_a_residual_has_nothing_too_much(name: str) -> None:
    counted = needed_parts(Random(9), WORLDS[name](), filters(name, 9, 150))
    assert counted.there > 50
    assert counted.missed <= 0.1


@pytest.mark.parametrize("name", list(WORLDS))
def test_the_index_finds_what_pairs_find(name: str) -> None:
    sets = [PredicateSet.of(parts) for parts in filters(name, 10, 160)]
    index: PredicateIndex[int] = PredicateIndex()
    for key, each in enumerate(sets):
        index.add(key, each)
    for key in range(0, len(sets), 4):
        index.remove(key)
    kept = {key: each for key, each in enumerate(sets) if key % 4}
    expected = missed = 0
    for each in sets:
        weaker = {key for key, other in kept.items() if each.implies(other)}
        stronger = {key for key, other in kept.items() if other.implies(each)}
        found = index.weaker_or_equal(each)
        assert found <= weaker
        assert found == weaker
        found_stronger = index.stronger_or_equal(each)
        assert found_stronger <= stronger
        expected += len(stronger)
        missed += len(stronger - found_stronger)
    assert missed <= MISSED_BY_INDEX * expected
    for key in kept:
        index.remove(key)
    assert len(index) == 0
    parts = ("_clauses", "_lists", "_terms", "_groups", "_sets")
    assert not any(vars(index)[part] for part in parts)
