"""Lists of regions find by look-up what comparing one by one finds."""

from fractions import Fraction
from random import Random

import pytest

from federated_optimizer.canonical.regions.region_lists import SPREAD, RegionList
from federated_optimizer.canonical.regions.regions import (
    Domain,
    Region,
    beginning_with,
    compared,
    empty,
)

VALUES: dict[Domain, list[int | Fraction | str]] = {
    Domain.WHOLE: [*range(-6, 20), 1000, 2**62],
    Domain.DENSE: [Fraction(n, 4) for n in range(-8, 30)],
    Domain.TEXT: ["", "a", "ab", "abc", "abd", "ac", "b", "ba", "c", "\U0010ffff"],
}
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


def random_region(random: Random, domain: Domain) -> Region:
    """Return intersections of comparisons, united."""
    found = empty(domain)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        part = compared(domain, random.choice(OPERATORS), random.choice(VALUES[domain]))
        for _ in range(random.choice((0, 1, 1))):
            other = compared(domain, random.choice(OPERATORS), random.choice(VALUES[domain]))
            part = part.intersection(other)
        if domain == Domain.TEXT and random.random() < 0.3:
            part = beginning_with(str(random.choice(VALUES[domain])))
        found = found.union(part)
    null = random.random() < 0.1
    return Region(domain, found.spans, found.nan and random.random() < 0.5, null=null)


@pytest.mark.parametrize("domain", list(VALUES))
@pytest.mark.parametrize("seed", range(3))
def test_look_ups(domain: Domain, seed: int) -> None:
    random = Random(seed)
    made: RegionList[Region] = RegionList()
    kept: set[Region] = set()
    for _ in range(400):
        region = random_region(random, domain)
        if region in kept and random.random() < 0.5:
            made.remove(region)
            kept.remove(region)
        elif region not in kept:
            made.add(region, region)
            kept.add(region)
    for region in random.sample(sorted(kept, key=repr), len(kept) // 3):
        made.remove(region)
        kept.remove(region)
    assert set(made) == kept
    assert all(made.owner(region) is not None for region in kept)
    for _ in range(150):
        wanted = random_region(random, domain)
        included = made.included(wanted)
        assert set(included) == {region for region in kept if wanted.includes(region)}
        assert len(included) == len(set(included)) <= made.most_included(wanted)
        assert set(made.including(wanted)) == {r for r in kept if r.includes(wanted)}


@pytest.mark.parametrize("operator", [">", ">=", "<", "<="])
def test_of_many_bounds_the_nearest_are_found(operator: str) -> None:
    made: RegionList[int] = RegionList()
    for bound in range(100):
        made.add(compared(Domain.WHOLE, operator, bound), bound)
    wanted = compared(Domain.WHOLE, operator, 50)
    near = range(46, 51) if operator in {">", ">="} else range(50, 55)
    found = made.including(wanted, 5)
    assert sorted(found) == list(near)
    assert len(made.including(wanted)) > len(found)


def between(low: int, high: int) -> Region:
    return compared(Domain.WHOLE, ">=", low).intersection(compared(Domain.WHOLE, "<=", high))


def test_of_many_spans_those_that_begin_nearest_are_looked_at() -> None:
    made: RegionList[int] = RegionList()
    for begin in range(2_000):
        made.add(between(begin, begin + 3_000), begin)
    wanted = between(2_500, 2_600)
    assert len(made.including(wanted)) == 2_000
    found = made.including(wanted, 5)
    assert sorted(found) == list(range(2_000 - SPREAD * 5, 2_000))
