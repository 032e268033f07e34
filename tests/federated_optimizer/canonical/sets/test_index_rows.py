"""Rows of an index say all that it holds: an index made of them finds the same."""

from random import Random

import pytest

from federated_optimizer.canonical.regions.regions import Domain, Region, before, behind, compared
from federated_optimizer.canonical.sets.index_rows import (
    NEVER,
    IndexRows,
    index_of_rows,
    index_rows,
    read_form,
    values_text,
    written_form,
)
from federated_optimizer.canonical.sets.predicate_index import PredicateIndex
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from tests.federated_optimizer.canonical.random_predicates import RandomPredicates
from tests.federated_optimizer.canonical.sets.test_predicate_sets import predicate_set


@pytest.mark.parametrize("seed", range(2))
def test_rows_make_the_index_again(seed: int) -> None:
    random = Random(seed)
    author = RandomPredicates(random)
    pool = [author.predicate(1) for _ in range(40)]
    index: PredicateIndex[str] = PredicateIndex()
    for number in range(80):
        parts = random.sample(pool, random.randrange(0, 4))
        index.add(f"q{number}", PredicateSet.of(parts))
    rows = index_rows(index)
    again = index_of_rows(rows)
    assert index_rows(again) == rows
    assert set(again) == set(index)
    for key in index:
        assert again[key] == index[key]
        assert again.weaker_or_equal(index[key]) == index.weaker_or_equal(again[key])
        assert again.stronger_or_equal(index[key]) == index.stronger_or_equal(again[key])
        for clause in index[key].clauses:
            for each in clause:
                assert read_form(written_form(each)) == each


def test_rows_of_equal_conditions_are_the_same_at_any_time() -> None:
    one: PredicateIndex[str] = PredicateIndex()
    other: PredicateIndex[str] = PredicateIndex()
    one.add("n1", predicate_set("a > 3 AND (b = 1 OR c > 2)"))
    other.add("n0", predicate_set("s = 'x'"))
    other.add("n1", predicate_set("(2 < c OR 1 = b) AND a >= 4"))
    other.remove("n0")
    assert index_rows(one) == index_rows(other)
    rows = index_rows(one)
    assert [(term, values) for _, term, values, _ in rows.literals] == sorted(
        [("#0", ">= 4"), ("#1", "= 1"), ("#2", ">= 3")],
        key=lambda row: [name for name, term, _, _ in rows.literals if term == row[0]],
    )
    assert len(rows.disjunctions) == 3
    assert len(rows.predicate_sets) == 2


def test_sets_of_everything_and_of_nothing() -> None:
    index: PredicateIndex[str] = PredicateIndex()
    index.add("all", predicate_set(""))
    index.add("none", predicate_set("a > 3 AND a < 3"))
    rows = index_rows(index)
    assert rows == IndexRows([], [], [("all", ""), ("none", NEVER)])
    again = index_of_rows(rows)
    assert again["none"].is_never
    assert again.weaker_or_equal(predicate_set("b = 1")) == {"all"}
    assert again.stronger_or_equal(predicate_set("b = 1")) == {"none"}


def test_a_row_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="no disjunction d"):
        index_of_rows(IndexRows([], [], [("q", "d")]))
    with pytest.raises(ValueError, match="no literal x"):
        index_of_rows(IndexRows([], [("d", "x")], [("q", "d")]))


def test_values_in_words() -> None:
    text = Region(Domain.TEXT, ((before("ab"), before("ac")),), null=True)
    assert values_text(text) == ">= 'ab' and < 'ac' or NULL"
    assert values_text(compared(Domain.DENSE, "<>", 1)) == "< 1 or > 1 or NaN"
    assert values_text(Region(Domain.WHOLE, ((before(1), behind(3)),))) == ">= 1 and <= 3"
