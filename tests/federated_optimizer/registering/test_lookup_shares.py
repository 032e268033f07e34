"""The share of looking rows up that a query pays: who else is found by the same column."""

import pytest

from federated_optimizer.registering.lookup_shares import LookupShares, lookups
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex, Found
from federated_optimizer.testing_network import Network
from streamsql.wire.bundles.needed_rows import OneOf, RowCondition, Within
from tests.federated_optimizer.registering.test_computed_anew import CATALOG, TOPOLOGY, WIDE
from tests.streamsql.from_text import bound_query

BY_NUMBER, BY_TEXT = OneOf(2, frozenset((3,))), OneOf(0, frozenset(("m",)))


class Readers:
    """A network without facts, in which all queries read."""

    def __init__(self) -> None:
        self.index = ComputationIndex()
        self.network = Network(Planning(TOPOLOGY), Sharing(self.index))
        self.register(WIDE)

    def register(self, text: str) -> str:
        return self.network.register(bound_query(text, CATALOG)).query

    def share(self, where: str, condition: RowCondition | None) -> float:
        """Return the share that a query of some rows of the node pays."""
        wanted = bound_query(f"{WIDE} WHERE {where}", CATALOG).plan
        (offer,) = (each for each in self.index.of_run("q1") if each.fragment == "f0")
        return LookupShares(self.index).of(Found(wanted, offer, offer.leaf, 1, 1.0), condition)


def test_the_first_pays_all_and_the_next_one_nothing() -> None:
    made = Readers()
    assert made.share("s.k = 3", BY_NUMBER) == 1.0
    reader = made.register(f"{WIDE} WHERE s.k = 4")
    (found,) = lookups(made.network.result(reader))
    assert found == ("q1", "f0", OneOf, 2)
    assert made.share("s.k = 3", BY_NUMBER) == 0.0
    made.network.deregister(reader)
    assert made.share("s.k = 3", BY_NUMBER) == 1.0


@pytest.mark.parametrize(
    ("where", "condition"),
    [("s.mid = 'm'", BY_TEXT), ("s.k < 3", Within(2, high=(3, 0))), ("s.k < r.j", None)],
)
def test_other_columns_and_other_ways_of_looking_up_are_paid(
    where: str, condition: RowCondition | None
) -> None:
    made = Readers()
    made.register(f"{WIDE} WHERE s.k = 4")
    assert made.share(where, condition) == 1.0


def test_who_computes_the_same_for_another_constant_is_expected_to_read() -> None:
    made = Readers()
    made.network = Network(Planning(TOPOLOGY), Sharing(made.index, allowed=lambda _offer: False))
    made.network._next_run = iter(["q2", "q3"]).__next__  # type: ignore[method-assign]
    for number in (4, 5):
        made.register(f"{WIDE} WHERE s.k = {number}")
    assert made.share("s.k = 3", BY_NUMBER) == pytest.approx(1 / 3)
    assert made.share("s.mid = 'm'", BY_TEXT) == 1.0
