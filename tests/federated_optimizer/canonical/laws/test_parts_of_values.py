"""Comparisons with parts of values, against all rows of small worlds.

Values are NULL, negative, zero of both signs, so large that a multiple overflows, so small that a
part is rounded to zero, infinite, and NaN.
"""

import math
from collections.abc import Callable
from random import Random

import pytest

from benchmarks._subsumption.small_worlds import MOST, B, D, N, SmallWorld
from federated_optimizer.canonical.sets.predicate_index import PredicateIndex
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from streamsql.algebra.expressions import Call, Expression, Literal

Author = Callable[[Random, SmallWorld], Expression]


def integers() -> SmallWorld:
    values = (None, -MOST - 1, -MOST, *range(-11, 23), MOST - 1, MOST)
    return SmallWorld([(N, values), (N, values), (N, (None, -3, 0, 1, 2, 4, MOST))])


def doubles() -> SmallWorld:
    edges = (-0.0, math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324, 1e-323, -5e-324)
    values = (None, *(n / 2 for n in range(-9, 21)), *edges)
    return SmallWorld([(D, values), (D, values), (D, (None, -1.0, 0.0, 0.5, 3.0, math.nan))])


def mixed() -> SmallWorld:
    whole = (None, -MOST - 1, *range(-6, 13), 2**53 - 1, 2**53 + 1, MOST)
    values = (None, *(n / 4 for n in range(-8, 17)), -0.0, math.nan, 9e15, 1.8e18)
    return SmallWorld([(N, whole), (D, values), (N, whole)])


WORLDS = {"integers": integers, "doubles": doubles, "mixed": mixed}


def part(random: Random, world: SmallWorld, number: int) -> Expression:
    """Return a part of a column, or the column."""
    column = world.columns[number]
    if random.random() < 0.15:
        return column
    if column.dtype == N and random.random() < 0.6:
        return Call("/", (column, Literal(random.choice((1, 2, 3, 5, 10)), N)), N)
    factor = Literal(random.choice((0.1, 0.2, 0.5, 2.0, 10.0)), D)
    match random.randrange(5):
        case 0 | 1:
            return Call("/", (column, factor), D)
        case 2:
            return Call("*", (factor, column), D)
        case 3 if column.dtype == D:
            return Call("/", (column, Literal(random.choice((2, 3, 10)), N)), D)
        case _:
            return Call("*", (column, factor), D)


def limit(random: Random, world: SmallWorld) -> Expression:
    """Return a comparison of a column with a constant; it often says the sign."""
    column = random.choice(world.columns)
    constant = Literal(random.choice((0, 0, 0, 1, 2, 4)), N)
    return Call(random.choice((">=", ">=", ">", "<=", "=")), (column, constant), B)


def comparison(random: Random, world: SmallWorld) -> Expression:
    """Return a comparison with a part of the first column, or a sign."""
    if random.random() < 0.3:
        return limit(random, world)
    mine = part(random, world, 0)
    other: Expression = world.columns[1 + (random.random() < 0.3)]
    if random.random() < 0.2:
        other = part(random, world, 1)
    name = random.choice((">=", ">=", ">", "<=", "<", "=", "<>"))
    return Call(name, random.choice(((mine, other), (other, mine))), B)


def ratio(random: Random, world: SmallWorld) -> Expression:
    """Return a comparison as queries have it: another column has at least a part."""
    if random.random() < 0.4:
        column = world.columns[0]
        return Call(random.choice((">=", ">")), (column, Literal(random.choice((0, 1)), N)), B)
    other = world.columns[1]
    if world.columns[0].dtype == N:
        mine = Call("/", (world.columns[0], Literal(random.choice((1, 2, 5, 10)), N)), N)
    else:
        factor = Literal(random.choice((0.1, 0.2, 0.5, 1.0)), D)
        mine = Call("*", (factor, world.columns[0]), D)
    return Call(random.choice((">=", ">")), (other, mine), B)


AUTHORS: dict[str, tuple[Author, float]] = {"any": (comparison, 0.6), "ratios": (ratio, 0.15)}
"""By name: what predicates are drawn from, and the most true implications that are not found.

Not found are, for example, `b >= a / 2` from `b >= a` and `b >= a / 5`, whatever sign a has, strict
orders from those that are not and `a > 0`, and sums of multiples; and much is true only because
these worlds are small.
"""


@pytest.mark.parametrize("kind", AUTHORS)
@pytest.mark.parametrize("name", WORLDS)
def test_what_follows_is_true_and_most_is_found(name: str, kind: str) -> None:
    random, world = Random(5), WORLDS[name]()
    author, most = AUTHORS[kind]
    pool = [author(random, world) for _ in range(60)]
    written: list[list[Expression]] = []
    while len(written) < 150:
        parts = random.sample(pool, random.choice((1, 2, 2, 3)))
        if world.passing(parts):
            written.append(parts)
    sets = [PredicateSet.of(parts) for parts in written]
    masks = [world.passing(parts) for parts in written]
    index: PredicateIndex[int] = PredicateIndex()
    for key, each in enumerate(sets):
        index.add(key, each)
    true = found = 0
    for one, mask in zip(sets, masks, strict=True):
        assert not one.is_never
        weaker = set()
        for key, (other, other_mask) in enumerate(zip(sets, masks, strict=True)):
            holds, implied = not mask & ~other_mask, one.implies(other)
            assert holds or not implied, (one.sources, other.sources)
            true, found = true + holds, found + implied
            if implied:
                weaker.add(key)
                rest = list(one.residual(other))
                assert world.passing([*other.sources, *rest]) == mask
        assert index.weaker_or_equal(one) == weaker
    print(f"{name}, {kind}: of {true} implications {1 - found / true:.2%} not found")  # noqa: T201
    assert true > 300
    assert 1 - found / true <= most


@pytest.mark.parametrize("name", WORLDS)
def test_contradictions_are_true(name: str) -> None:
    random, world = Random(6), WORLDS[name]()
    pool = [comparison(random, world) for _ in range(80)]
    never = 0
    for _ in range(1_500):
        parts = random.sample(pool, 3)
        if PredicateSet.of(parts).is_never:
            never += 1
            assert not world.passing(parts), parts
    assert never > 50
