"""An index of predicate sets finds what comparing one by one finds."""

from random import Random

from federated_optimizer.canonical.sets.predicate_index import PredicateIndex
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from tests.federated_optimizer.canonical.random_predicates import RandomPredicates


def test_look_ups_find_what_pairs_find() -> None:
    random = Random(1)
    author = RandomPredicates(random)
    pool = [author.literal(0) for _ in range(12)]
    sets = [PredicateSet.of(random.sample(pool, random.randrange(1, 4))) for _ in range(60)]
    index: PredicateIndex[int] = PredicateIndex()
    for key, each in enumerate(sets):
        index.add(key, each)
    for key in range(0, 60, 3):
        index.remove(key)
    kept = {key: each for key, each in enumerate(sets) if key % 3}
    for each in sets:
        assert index.weaker_or_equal(each) == {k for k, s in kept.items() if each.implies(s)}
        assert index.stronger_or_equal(each) == {k for k, s in kept.items() if s.implies(each)}


def test_stronger_sets_are_found_whenever_they_are_asked_for_first() -> None:
    """Facts are gathered then; what comes and goes afterwards is followed."""
    random = Random(2)
    author = RandomPredicates(random)
    pool = [author.literal(0) for _ in range(10)]
    sets = [PredicateSet.of(random.sample(pool, random.randrange(1, 4))) for _ in range(60)]
    early: PredicateIndex[int] = PredicateIndex()
    late: PredicateIndex[int] = PredicateIndex()
    assert early.stronger_or_equal(sets[0]) == set()
    for key, each in enumerate(sets):
        early.add(key, each)
        late.add(key, each)
        if key % 3 == 2:
            early.remove(key - 1)
            late.remove(key - 1)
    for each in sets:
        assert early.stronger_or_equal(each) == late.stronger_or_equal(each)
    assert early.stronger_or_equal(sets[0])
