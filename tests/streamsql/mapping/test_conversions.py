"""One column: types, arithmetic in decimal digits, enumerations, bounds."""

from datetime import timedelta
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.data.schema import Field
from streamsql.data.types import DataType, Value, conforms
from streamsql.mapping.conversions import checked_text, conversion_of, scalar_text
from streamsql.mapping.source_mapping import ColumnMapping


def convert(dtype: DataType, value: object, column: ColumnMapping | None = None) -> Value:
    return conversion_of(Field("v", dtype), column or ColumnMapping())(value)


@pytest.mark.parametrize(
    ("dtype", "value", "held"),
    [
        (DataType.DOUBLE, 21.5, 21.5), (DataType.DOUBLE, 7, 7.0), (DataType.DOUBLE, "7", 7.0),
        (DataType.DOUBLE, Decimal("0.1"), 0.1), (DataType.DOUBLE, 2**70, 2.0**70),
        (DataType.INTEGER, 7, 7), (DataType.INTEGER, 7.0, 7), (DataType.INTEGER, "7", 7),
        (DataType.INTEGER, 2**63 - 1, 2**63 - 1),
        (DataType.INTEGER, "-9223372036854775808", -(2**63)),
        (DataType.INTEGER, "1e3", 1000), (DataType.INTEGER, "9007199254740993", 9007199254740993),
        (DataType.BOOLEAN, True, True), (DataType.BOOLEAN, 0, False),
        (DataType.BOOLEAN, "TRUE", True), (DataType.BOOLEAN, 1.0, True),
        (DataType.BOOLEAN, "0", False),
        (DataType.TEXT, "on", "on"), (DataType.TEXT, 7, "7"), (DataType.TEXT, 1.0, "1"),
        (DataType.TEXT, True, "true"), (DataType.TEXT, 2.5, "2.5"),
        (DataType.INTERVAL, 90, 90_000_000), (DataType.INTERVAL, "1 h 30 min", 5_400_000_000),
        (DataType.INTERVAL, 0.5, 500_000), (DataType.INTERVAL, timedelta(seconds=1), 1_000_000),
        (DataType.TIMESTAMP, 1_700_000_000, 1_700_000_000_000_000),
    ],
)  # fmt: skip
def test_values(dtype: DataType, value: object, held: Value) -> None:
    result = convert(dtype, value)
    assert result == held
    assert type(result) is type(held)


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        (DataType.DOUBLE, float("nan"), "no finite number"),
        (DataType.DOUBLE, "1e999", "too large"),
        (DataType.DOUBLE, True, "is no number"), (DataType.DOUBLE, {"a": 1}, "an object with"),
        (DataType.DOUBLE, 10**400, "too large"), (DataType.DOUBLE, b"1", "value of type bytes"),
        (DataType.INTEGER, 7.5, "has a fraction"),
        (DataType.INTEGER, 2**63, "does not fit 64 bits"),
        (DataType.INTEGER, "1e400", "does not fit"), (DataType.INTEGER, 1e300, "does not fit"),
        (DataType.INTEGER, Decimal("1E-9"), "fraction"),
        (DataType.INTEGER, float("inf"), "finite"),
        (DataType.BOOLEAN, "ON", "VALUES"), (DataType.BOOLEAN, 2, "neither true nor false"),
        (DataType.BOOLEAN, 2**5000, "bits"), (DataType.TEXT, [1], "an array is no text"),
        (DataType.TEXT, "x" * 4_001, "4001 characters"), (DataType.TEXT, "a\ud800", "character 2"),
        (DataType.TEXT, 2**5000, "no text"), (DataType.INTERVAL, "soon", "is not a duration"),
        (DataType.INTERVAL, 1e300, "does not fit"), (DataType.INTERVAL, None, "null"),
        (DataType.INTERVAL, timedelta.max, "does not fit"),
        (DataType.TIMESTAMP, "soon", "no time"),
    ],
)  # fmt: skip
def test_what_is_no_value_is_refused_with_its_reason(
    dtype: DataType, value: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        convert(dtype, value)


@pytest.mark.parametrize(
    ("value", "column", "held"),
    [
        (217, ColumnMapping(scale=0.1), 21.7),
        (653, ColumnMapping(scale=0.1, offset=-40), 25.3),
        (653.2, ColumnMapping(scale=0.1, offset=-40), 25.32),
        ("1.234,5", ColumnMapping(format="comma", scale=2), 2469.0),
        (1234, ColumnMapping(unit_in="Wh", unit="kWh"), 1.234),
        (70.7, ColumnMapping(unit_in="degF", unit="Cel"), 21.5),
        (123, ColumnMapping(scale=0.1, unit_in="mA", unit="A"), 0.0123),
        (21.5, ColumnMapping(unit="Cel"), 21.5),
        (0, ColumnMapping(unit_in="Cel", unit="K"), 273.15),
    ],
)
def test_scale_then_offset_then_unit_in_decimal_digits(
    value: object, column: ColumnMapping, held: float
) -> None:
    assert convert(DataType.DOUBLE, value, column) == held


@given(
    st.integers(-(10**12), 10**12),
    st.decimals(-1000, 1000, places=3).filter(bool),
    st.decimals(-1000, 1000, places=3),
)
def test_arithmetic_rounds_once(value: int, scale: Decimal, offset: Decimal) -> None:
    column = ColumnMapping(scale=float(scale), offset=float(offset))
    exact = Fraction(value) * Fraction(scale) + Fraction(offset)
    assert convert(DataType.DOUBLE, value, column) == float(exact)
    held = convert(DataType.INTEGER, value, column)
    assert isinstance(held, int)
    assert abs(held - exact) <= Fraction(1, 2)


@given(st.floats(-1e9, 1e9), st.sampled_from([0.1, 0.01, 3.6, 1 / 3]))
def test_arithmetic_on_fractions_rounds_their_decimal_digits_once(
    value: float, scale: float
) -> None:
    with localcontext() as context:
        # The answer does not depend on the precision that a caller chose.
        context.prec = 3
        held = convert(DataType.DOUBLE, value, ColumnMapping(scale=scale))
    assert held == float(Fraction(repr(value)) * Fraction(repr(scale)))


def test_a_scale_of_integers_is_exact_beyond_doubles() -> None:
    big = 2**62 + 1
    assert convert(DataType.INTEGER, big, ColumnMapping(offset=1)) == big + 1


CONTACT = ColumnMapping(values=(("ON", True), ("OFF", False), ("1", True), ("true", True)))


@pytest.mark.parametrize(
    ("value", "held"), [("ON", True), ("OFF", False), (1, True), (1.0, True), (True, True)]
)
def test_an_enumeration_is_compared_as_text(value: object, held: bool) -> None:
    assert convert(DataType.BOOLEAN, value, CONTACT) is held


@pytest.mark.parametrize("value", ["on", "", False, 2, [1], 2**5000])
def test_what_an_enumeration_lacks_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is none of 'ON', 'OFF', '1', 'true'"):
        convert(DataType.BOOLEAN, value, CONTACT)


def test_an_enumerated_value_is_what_the_column_holds() -> None:
    column = ColumnMapping(scale=10, values=(("low", 1), ("high", 2)))
    assert convert(DataType.DOUBLE, "high", column) == 2.0


def test_values_that_stand_for_nothing_leave_the_others() -> None:
    column = ColumnMapping(values=(("--", None), ("-127", None)))
    assert convert(DataType.DOUBLE, "--", column) is None
    assert convert(DataType.DOUBLE, -127, column) is None
    assert convert(DataType.DOUBLE, "21.5", column) == 21.5
    with pytest.raises(ValueError, match="is no number"):
        convert(DataType.DOUBLE, "off", column)


@pytest.mark.parametrize(
    ("dtype", "column", "message"),
    [
        (DataType.TEXT, ColumnMapping(scale=2), "SCALE and OFFSET are for numbers"),
        (DataType.TEXT, ColumnMapping(unit="m"), "UNIT and IN are for numbers"),
        (DataType.BOOLEAN, ColumnMapping(format="hex"), "FORMAT is for numbers and times"),
        (DataType.DOUBLE, ColumnMapping(format="iso"), "no format of numbers"),
        (DataType.TIMESTAMP, ColumnMapping(format="hex"), "no format of times"),
        (DataType.TIMESTAMP, ColumnMapping(zone="Mars"), "no time zone"),
        (DataType.DOUBLE, ColumnMapping(zone="UTC"), "ZONE is for times"),
        (DataType.DOUBLE, ColumnMapping(scale=float("inf")), "finite"),
        (DataType.INTERVAL, ColumnMapping(unit_in="m"), "m does not convert to s"),
        (DataType.INTEGER, ColumnMapping(values=(("a", "b"),)), "VALUES: 'b' is no INTEGER"),
    ],
)
def test_clauses_that_do_not_fit_the_type_are_refused(
    dtype: DataType, column: ColumnMapping, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        conversion_of(Field("v", dtype), column)


def test_a_format_of_the_device_is_left_to_its_connector() -> None:
    field = Field("v", DataType.DOUBLE)
    column = ColumnMapping(format="float32 swap", scale=0.5)
    assert conversion_of(field, column, device_format=True)(3.0) == 1.5
    with pytest.raises(ValueError, match="no format of numbers"):
        conversion_of(field, column)
    assert conversion_of(field, ColumnMapping(format="hex"), device_format=True)("ff") == 255.0


def test_intervals_are_seconds_or_what_their_unit_says() -> None:
    assert convert(DataType.INTERVAL, 1_500, ColumnMapping(unit_in="ms")) == 1_500_000
    assert convert(DataType.INTERVAL, 2, ColumnMapping(unit_in="h")) == 7_200_000_000


@given(
    st.sampled_from([dtype for dtype in DataType if dtype != DataType.NULL]),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
    | st.decimals() | st.lists(st.integers(), max_size=2)
    | st.dictionaries(st.text(), st.none(), max_size=2),
)  # fmt: skip
def test_any_value_is_legal_or_refused(dtype: DataType, value: object) -> None:
    try:
        held = convert(dtype, value)
    except ValueError as error:
        assert len(str(error)) < 300  # noqa: PT017 - either is right
        return
    assert conforms(held, dtype)


def test_texts_of_scalars() -> None:
    assert scalar_text(Decimal("1.50")) == "1.50"
    assert scalar_text(1e22) == "1e+22"
    assert scalar_text(None) is None
    assert checked_text("ü" * 4_000) == "ü" * 4_000
