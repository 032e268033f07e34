"""The share of looking rows up that a query pays: who else is found by the same column."""

import pytest

from federated_optimizer.registering.lookup_shares import LookupShares, lookups
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex, Found
from federated_optimizer.testing_network import Network
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.data.types import DataType
from streamsql.wire.bundles.reader_conditions import AnyOf, OneOf, RowCondition, Within, term_of
from tests.federated_optimizer.registering.test_computed_anew import CATALOG, TOPOLOGY, WIDE
from tests.streamsql.from_text import bound_query

NUMBER = term_of(Column(2, "k", DataType.INTEGER))
BY_NUMBER = OneOf(NUMBER, frozenset((3,)))
BY_TEXT = OneOf(term_of(Column(0, "mid", DataType.TEXT)), frozenset(("m",)))


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
    assert found == ("q1", "f0", (OneOf, NUMBER))
    assert made.share("s.k = 3", BY_NUMBER) == 0.0
    made.network.deregister(reader)
    assert made.share("s.k = 3", BY_NUMBER) == 1.0


@pytest.mark.parametrize(
    ("where", "condition"),
    [("s.mid = 'm'", BY_TEXT), ("s.k < 3", Within(NUMBER, high=(3, 0))), ("s.k < r.j", None)],
)
def test_other_columns_and_other_ways_of_looking_up_are_paid(
    where: str, condition: RowCondition | None
) -> None:
    made = Readers()
    made.register(f"{WIDE} WHERE s.k = 4")
    assert made.share(where, condition) == 1.0


def test_expressions_and_branches_are_shared_like_columns() -> None:
    made = Readers()
    made.register(f"{WIDE} WHERE s.k % 7 = 4")
    reader = made.register(f"{WIDE} WHERE s.k = 4 OR s.mid = 'a'")
    rest = Call("%", (NUMBER.expression, Literal(7, DataType.INTEGER)), DataType.INTEGER)
    by_rest = OneOf(term_of(rest), frozenset((3,)))
    assert made.share("s.k % 7 = 3", by_rest) == 0.0
    either = AnyOf((BY_NUMBER, BY_TEXT))
    assert made.share("s.k = 3 OR s.mid = 'm'", either) == 0.0
    assert made.share("s.mid = 'm'", BY_TEXT) == 0.0, "it is looked up for a branch"
    made.network.deregister(reader)
    made.register(f"{WIDE} WHERE s.k = 4")
    assert made.share("s.k = 3 OR s.mid = 'm'", either) == 1.0, "one branch has no other reader"


def test_who_computes_the_same_for_another_constant_is_expected_to_read() -> None:
    made = Readers()
    made.network = Network(Planning(TOPOLOGY), Sharing(made.index, allowed=lambda _offer: False))
    made.network.next_run = iter(["q2", "q3"]).__next__  # type: ignore[method-assign]
    for number in (4, 5):
        made.register(f"{WIDE} WHERE s.k = {number}")
    assert made.share("s.k = 3", BY_NUMBER) == pytest.approx(1 / 3)
    assert made.share("s.mid = 'm'", BY_TEXT) == 1.0
