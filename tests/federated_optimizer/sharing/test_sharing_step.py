"""Parts of queries are found in any order of joins; rows are those of evaluating from scratch."""

from itertools import permutations

import pytest

from federated_optimizer.planning import plan
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.run_offers import offers_of, widest
from federated_optimizer.sharing.sharing_step import SharedPlan, share
from federated_optimizer.sharing.strategy import Strategy
from streamsql.algebra.operators import Join, walk_plan
from tests.federated_optimizer.sharing.small_shop import (
    CATALOG,
    TEXTS,
    TOPOLOGY,
    bag,
    normalized,
    rows_of,
)
from tests.streamsql.from_text import bound_query

CHAIN = "a.x = b.x AND b.y = c.y AND c.s = d.s"
ALL = "a.x AS ax, a.y AS ay, a.s AS sa, b.x AS bx, b.y AS bwhy, b.s AS bs"


def index_of(*texts: str) -> ComputationIndex:
    index = ComputationIndex()
    for number, text in enumerate(texts, 1):
        bundle = plan(bound_query(text, CATALOG), TOPOLOGY, query=f"q{number}")
        for offer in offers_of(bundle, normalized(text)):
            index.add(offer)
    return index


def shared(
    text: str, index: ComputationIndex, strategy: Strategy = Strategy.ALL, *, inner: bool = False
) -> SharedPlan:
    wanted = normalized(text)
    found = share(wanted, index, strategy, lambda offer: inner or offer.is_readable)
    remote = {each.offer.name: rows_of(each.offer.plan) for each in found.used}
    assert found.plan.schema == wanted.schema
    assert bag(found.plan, remote) == bag(wanted)
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_an_equal_query_is_there(text: str) -> None:
    found = shared(text, index_of(text))
    assert found.is_there == (text != TEXTS[0]), "selections of one source are placed by the plan"


@pytest.mark.parametrize("order", list(permutations("abcd")))
def test_a_part_is_found_in_any_order_of_joins(order: tuple[str, ...]) -> None:
    tables = ", ".join(f"{'tutu'['abcd'.index(name)]} {name}" for name in order)
    index = index_of(f"SELECT {ALL} FROM t a, u b WHERE a.x = b.x")
    found = shared(f"SELECT a.s, d.y FROM {tables} WHERE {CHAIN} AND a.y > 1", index)
    assert [each.offer.run for each in found.used] == ["q1"]
    joins = [node for node in walk_plan(found.plan) if isinstance(node, Join)]
    assert len(joins) == 2


def test_the_largest_part_is_taken() -> None:
    index = index_of(
        f"SELECT {ALL} FROM t a, u b WHERE a.x = b.x",
        f"SELECT {ALL}, c.s FROM t a, u b, t c WHERE a.x = b.x AND b.y = c.y",
    )
    found = shared(f"SELECT a.s, d.y FROM t a, u b, t c, u d WHERE {CHAIN}", index)
    assert [each.offer.run for each in found.used] == ["q2"]


def test_parts_that_do_not_overlap_are_taken_together() -> None:
    index = index_of(
        f"SELECT {ALL} FROM t a, u b WHERE a.x = b.x",
        f"SELECT {ALL} FROM u b, t a WHERE a.s = b.s",
    )
    found = shared(f"SELECT a.s, d.y FROM t a, u b, t c, u d WHERE {CHAIN}", index)
    assert {each.offer.run for each in found.used} == {"q1", "q2"}
    assert found.is_there


def test_of_weaker_parts_the_one_with_fewer_rows_is_taken() -> None:
    index = index_of(
        f"SELECT {ALL} FROM t a, u b WHERE a.x = b.x",
        f"SELECT {ALL} FROM t a, u b WHERE a.x = b.x AND a.y > 1",
    )
    text = "SELECT a.s FROM t a, u b WHERE a.x = b.x AND a.y > 2"
    rows = {"q1": 10.0, "q2": 3.0}
    found = share(
        normalized(text),
        index,
        allowed=lambda offer: offer.is_readable,
        rows=lambda offer: rows[offer.run],
    )
    assert [each.offer.run for each in found.used] == ["q2"]


def test_what_a_run_computes_inside_is_told_of() -> None:
    index = index_of("SELECT a.x, COUNT(*) AS n FROM t a, u b WHERE a.x = b.x GROUP BY a.x")
    text = "SELECT a.s, b.s FROM t a, u b WHERE a.x = b.x"
    assert not shared(text, index).used
    (found,) = shared(text, index, inner=True).unread
    assert (found.offer.run, found.offer.fragment) == ("q1", "")


def test_further_columns_of_an_offer_keep_their_names() -> None:
    plain = widest(normalized("SELECT a.s FROM t a, u b WHERE a.x = b.x"))
    assert plain.schema.names == ("s", "x", "y", "d", "x_2", "y_2", "d_2", "s_2")
    renamed = widest(normalized("SELECT y AS x, d AS x_2 FROM t WHERE x > 1"))
    assert renamed.schema.names == ("x", "x_2", "x_3", "s")


def test_configurations_share_less_each_in_its_way() -> None:
    index = index_of(f"SELECT {ALL} FROM t a, u b WHERE a.x = b.x AND a.y > 1")
    weaker = "SELECT a.s FROM t a, u b WHERE a.x = b.x AND a.y > 2"
    alike = "SELECT a.s FROM t a, u b WHERE a.x = b.x AND a.y > 1 AND b.y > 0"
    for strategy, counts in {
        Strategy.ALL: (1, 1),
        Strategy.MATCH_PLAN: (1, 1),
        Strategy.NO_CANONICAL_FORMS: (0, 1),
        Strategy.MATCH_PLAN_WITHOUT_CANONICAL_FORMS: (0, 1),
        Strategy.NO_JOINS: (0, 0),
        Strategy.OFF: (0, 0),
    }.items():
        found = tuple(len(shared(text, index, strategy).used) for text in (weaker, alike))
        assert found == counts, strategy


def test_a_run_that_is_gone_is_not_found() -> None:
    index = index_of(TEXTS[1], TEXTS[2])
    index.remove("q1")
    assert not shared(TEXTS[1], index).used
    assert shared(TEXTS[2], index).used
    index.remove("q2")
    assert not len(index)


def test_who_may_not_read_an_offer_does_not_get_it() -> None:
    index = index_of(TEXTS[1])
    assert not share(normalized(TEXTS[1]), index, allowed=lambda _offer: False).used
