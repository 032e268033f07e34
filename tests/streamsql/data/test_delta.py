"""Z-sets form an abelian group under addition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.data.delta import (
    Delta,
    accumulate,
    difference,
    expand,
    from_rows,
    negated,
    sort_key,
)

rows = st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 2)))
deltas = st.dictionaries(rows, st.integers(-3, 3).filter(bool), max_size=6)


def plus(left: Delta, right: Delta) -> Delta:
    total = dict(left)
    accumulate(total, right)
    return total


@given(deltas, deltas, deltas)
def test_addition_is_associative_and_commutative(a: Delta, b: Delta, c: Delta) -> None:
    assert plus(plus(a, b), c) == plus(a, plus(b, c))
    assert plus(a, b) == plus(b, a)


@given(deltas)
def test_a_delta_and_its_inverse_vanish(a: Delta) -> None:
    assert plus(a, negated(a)) == {}


@given(deltas, deltas)
def test_the_difference_leads_from_old_to_new(new: Delta, old: Delta) -> None:
    assert plus(old, difference(new, old)) == new


@given(deltas, deltas)
def test_no_row_is_kept_with_weight_zero(a: Delta, b: Delta) -> None:
    assert 0 not in plus(a, b).values()


@given(st.lists(rows, max_size=8))
def test_rows_survive_the_way_to_a_z_set_and_back(bag: list[tuple[str, int | None]]) -> None:
    assert sorted(expand(from_rows(bag)), key=sort_key) == sorted(bag, key=sort_key)


def test_a_negative_weight_is_no_relation() -> None:
    with pytest.raises(ValueError, match="weight -1"):
        list(expand({("a",): -1}))


def test_order_puts_null_first_and_never_compares_unlike_things() -> None:
    mixed = [("b",), (None,), (2,), ("a",), (1.5,), (True,)]
    assert min(mixed, key=sort_key) == (None,)
    assert max(mixed, key=sort_key) == ("b",)
