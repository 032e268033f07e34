"""Complete plans have numbers."""

from federated_optimizer.alternatives.method import Method
from federated_optimizer.costs.cost import Cost
from federated_optimizer.memo.groups import Alternative, Wanted
from federated_optimizer.memo.memo import Memo
from federated_optimizer.memo.properties import AT_BASE, AT_SITES
from federated_optimizer.testing_bundles import HEAT, NOISE
from streamsql.algebra.operators import Distinct, UnionAll


def small() -> tuple[Memo, Wanted, Wanted, Wanted]:
    """Return a memo of a union over two groups with two and three alternatives."""
    memo = Memo()
    root, left, right = (
        Wanted(memo.group(plan), AT_BASE)
        for plan in (UnionAll((HEAT, HEAT)), Distinct(HEAT), NOISE)
    )
    memo.alternatives = {
        root: (Alternative(Method.SHIP), Alternative(Method.BASE, (left, right), Cost(1.0))),
        left: tuple(Alternative(Method.BASE, cost=Cost(10.0 * n)) for n in range(2)),
        right: tuple(Alternative(Method.BASE, cost=Cost(100.0 * n)) for n in range(3)),
    }
    memo.root = root
    return memo, root, left, right


def test_numbers_follow_the_order_of_alternatives() -> None:
    memo, _, _, _ = small()
    prices = [memo.cost(memo.selection(n)).bytes for n in range(1, memo.count() + 1)]
    assert prices == [0, 1, 101, 201, 11, 111, 211]


def test_a_group_read_twice_is_chosen_and_paid_once() -> None:
    memo, root, _, right = small()
    memo.alternatives[root] = (Alternative(Method.BASE, (right, right)),)
    found = [memo.selection(n) for n in range(1, memo.count() + 1)]
    assert [memo.cost(each).bytes for each in found] == [0, 0, 0, 100, 100, 100, 200, 200, 200]


def test_equal_plans_are_one_group() -> None:
    memo = Memo()
    assert [memo.group(plan) for plan in (HEAT, NOISE, HEAT)] == [0, 1, 0]
    assert Wanted(0, AT_BASE) != Wanted(0, AT_SITES)
