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
