"""Exact sums as texts: equal sums have equal texts, and nothing of them is lost."""

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.algebra.exact_totals import exact_of, exact_sum, exact_text
from streamsql.algebra.expressions import Call, Literal
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.data.types import DataType

NUMBERS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8)


@given(NUMBERS, st.randoms(use_true_random=False))
def test_the_order_does_not_show(numbers: list[float], random: Random) -> None:
    shuffled = sorted(numbers, key=lambda _number: random.random())
    text = exact_sum(shuffled)
    assert text == exact_sum(numbers)
    total, unit = exact_of(text)
    assert Fraction(total, 1 << unit) == sum(map(Fraction, numbers))
    assert exact_text(total << 3, unit + 3) == text


@given(NUMBERS, NUMBERS)
def test_sums_of_sums_are_sums(some: list[float], others: list[float]) -> None:
    whole = exact_sum([*some, *others])
    assert exact_sum([exact_sum(some), exact_sum(others)]) == whole
    assert exact_sum([whole, exact_sum([-number for number in others])]) == exact_sum(some)


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("SUM_OF_EXACT", (exact_sum([1e308, 1e308, -1e308]),), 1e308),
        ("SUM_OF_EXACT", (exact_sum([1e308, 1e308]),), None),
        ("SUM_OF_EXACT", ("no sum",), None),
        ("MEAN_OF_EXACT", (exact_sum([1e308, 1e308]), 2), 1e308),
        ("MEAN_OF_EXACT", (exact_sum([0.1, 0.2, 0.3]), 3), 0.2),
        ("VARIANCE_OF_EXACT", ("1/0", "1/0", 1, True), None),
        ("VARIANCE_OF_EXACT", (exact_sum([1, 3]), exact_sum([1, 3], squared=True), 2, True), 2.0),
        ("DEVIATION_OF_EXACT", (exact_sum([1, 5]), exact_sum([1, 5], squared=True), 2, False), 2.0),
        ("SUM_OF_EXACT", (None,), None),
    ],
)
def test_exact_sums_are_rounded_once(
    name: str, arguments: tuple[str | int | None, ...], value: float | None
) -> None:
    types = {str: DataType.TEXT, bool: DataType.BOOLEAN, int: DataType.INTEGER}
    literals = tuple(Literal(a, types.get(type(a), DataType.NULL)) for a in arguments)
    assert compile_expression(Call(name, literals, DataType.DOUBLE))(()) == value
