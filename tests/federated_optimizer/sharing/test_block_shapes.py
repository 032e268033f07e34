"""Of many offers that are no stronger a bounded number is looked at, and the best one is found."""

from collections import Counter
from collections.abc import Sequence

import pytest

from federated_optimizer.planning import plan
from federated_optimizer.sharing.computation_index import MAX_WEAKER, ComputationIndex
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.sharing.run_offers import offers_of
from tests.federated_optimizer.sharing.small_shop import CATALOG, TOPOLOGY, normalized
from tests.streamsql.from_text import bound_query

MANY = 4 * MAX_WEAKER


def joined(bound: int) -> str:
    return f"SELECT a.x AS ax, b.y AS bwhy FROM t a, u b WHERE a.x = b.x AND a.y > {bound}"


def index_of(bounds: range) -> ComputationIndex:
    return index_over([joined(b).replace("SELECT", "SELECT a.y AS ay,") for b in bounds])


def index_over(texts: Sequence[str]) -> ComputationIndex:
    index = ComputationIndex()
    for number, text in enumerate(texts, 1):
        bundle = plan(bound_query(text, CATALOG), TOPOLOGY, query=f"q{number}")
        for offer in offers_of(bundle, normalized(text)):
            if offer.is_readable and not offer.bundle.fragment(offer.fragment).consumer:
                index.add(offer)
    return index


@pytest.mark.parametrize("count", [MAX_WEAKER // 2, MANY])
def test_the_work_of_a_look_up_does_not_grow_with_the_number_of_offers(count: int) -> None:
    index, asked = index_of(range(count)), Counter[str]()

    def rows(offer: Offer) -> float:
        asked[offer.run] += 1
        return 10_000.0 - int(offer.run[1:])

    def allowed(_offer: Offer) -> bool:
        asked["allowed"] += 1
        return True

    for _ in range(2):
        found = index.find(normalized(joined(count + 5)), allowed, rows)
        assert found is not None
    looked = asked.pop("allowed")
    assert looked <= 2 * min(count, MAX_WEAKER)
    assert len(asked) <= 2 * MAX_WEAKER


def test_offers_whose_rows_are_few_are_tried_again() -> None:
    index = index_of(range(MANY))

    def rows(offer: Offer) -> float:
        return 10_000.0 - int(offer.run[1:])

    wanted = normalized(joined(MANY + 5))
    found = [index.find(wanted, lambda _offer: True, rows) for _ in range(6)]
    assert found[-1] is not None
    assert found[-1].offer.run == f"q{MANY}", "after some look-ups the rows of all are known"


def test_one_that_may_be_read_is_found_behind_many_that_may_not() -> None:
    index = index_of(range(MANY))
    found = index.find(normalized(joined(MANY + 5)), lambda offer: offer.run == "q1")
    assert found is not None
    assert found.offer.run == "q1"


def test_one_that_shows_the_columns_is_found_behind_many_that_do_not() -> None:
    narrow = [
        f"SELECT a.y AS ay FROM t a, u b WHERE a.x = b.x AND a.y > {bound}"
        for bound in range(1, MANY)
    ]
    index = index_over([joined(0).replace("SELECT", "SELECT a.y AS ay,"), *narrow])

    def rows(offer: Offer) -> float:
        return 10_000.0 - int(offer.run[1:])

    for _ in range(6):
        found = index.find(normalized(joined(MANY + 5)), lambda _offer: True, rows)
        assert found is not None
        assert found.offer.run == "q1"
