"""Numbers as devices write them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.mapping.number_formats import NumberFormat, number_reader

FORMS = st.sampled_from(list(NumberFormat))


@pytest.mark.parametrize(
    ("form", "value", "number"),
    [
        ("plain", "21.5", Decimal("21.5")),
        ("plain", " 7 ", 7),
        ("plain", "-.5", Decimal("-0.5")),
        ("plain", "+1e3", Decimal(1000)),
        ("plain", 2.5, 2.5),
        ("plain", Decimal("0.1"), Decimal("0.1")),
        ("comma", "1.234,5", Decimal("1234.5")),
        ("comma", "1 234 567", 1234567),
        ("comma", "1\u202f234,50", Decimal("1234.50")),
        ("comma", "1'234", 1234),
        ("comma", "-0,5", Decimal("-0.5")),
        ("comma", "1234", 1234),
        ("comma", 1.5, 1.5),
        ("hex", "0x1F", 31),
        ("hex", "ff", 255),
        ("hex", "F" * 16, 2**64 - 1),
        ("leading", "21.5 °C", Decimal("21.5")),
        ("leading", "-3dBm", -3),
        ("leading", "12 W (max 20)", 12),
        ("leading", 3, 3),
    ],
)
def test_numbers(form: str, value: object, number: object) -> None:
    assert number_reader(NumberFormat(form))(value) == number


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("plain", "1_000"), ("plain", "nan"), ("plain", "inf"), ("plain", ""), ("plain", "1,5"),
        ("plain", "٣"), ("plain", "0x1F"), ("plain", True), ("plain", None), ("plain", []),
        ("plain", float("nan")), ("plain", float("inf")), ("plain", "9" * 101),
        ("plain", "1e99999"),
        ("plain", Decimal("1e500")), ("plain", Decimal("nan")), ("plain", b"1"),
        ("comma", "1.5"), ("comma", "1,234,5"), ("comma", "12.34,5"),
        ("hex", "0xG"), ("hex", "-1"), ("hex", "1" * 17), ("hex", 10), ("hex", ""),
        ("leading", "about 3"), ("leading", ""), ("leading", {}),
    ],
)  # fmt: skip
def test_what_is_no_number_is_refused(form: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"number|hexadecimal|characters"):
        number_reader(NumberFormat(form))(value)


@given(st.integers(), st.integers(0, 99))
def test_a_decimal_comma_reads_as_a_point(whole: int, cents: int) -> None:
    if abs(whole) < 10**80:
        text = f"{whole:,}".replace(",", ".") + f",{cents:02}"
        assert number_reader(NumberFormat.COMMA)(text) == Decimal(f"{whole}.{cents:02}")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_python_writes_is_read_exactly(number: float) -> None:
    assert float(number_reader(NumberFormat.PLAIN)(repr(number))) == number


@given(FORMS, st.text(max_size=20) | st.floats() | st.integers() | st.decimals() | st.none())
def test_any_value_is_a_number_or_refused(form: NumberFormat, value: object) -> None:
    try:
        number = number_reader(form)(value)
    except ValueError as error:
        assert len(str(error)) < 200  # noqa: PT017 - either is right
        return
    assert number == number  # noqa: PLR0124 - it is no NaN
