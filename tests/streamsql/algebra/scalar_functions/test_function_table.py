"""Scalar functions at the corners: outside their domain, too large, negative, empty."""

import math
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.algebra.expressions import Call, Literal
from streamsql.algebra.scalar_functions.scalar import FUNCTIONS, cast, compile_expression
from streamsql.data.types import DataType, Value, conforms, timestamp_of

TYPES = {bool: DataType.BOOLEAN, int: DataType.INTEGER, float: DataType.DOUBLE, str: DataType.TEXT}
BIG = 2**63 - 1


def call(name: str, *arguments: Value) -> Value:
    parts = tuple(Literal(a, TYPES.get(type(a), DataType.NULL)) for a in arguments)
    found: Value = compile_expression(Call(name, parts, DataType.NULL))(())
    return found


def at(*parts: int) -> int:
    return timestamp_of(datetime(*parts, tzinfo=UTC))  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("LN", (0.0,), None),
        ("LN", (-1,), None),
        ("LOG", (0.0,), None),
        ("LOG", (1, 5.0), None),
        ("LOG", (2, 8), 3.0),
        ("LOG", (1000,), 3.0),
        ("LOG", (5, 125), 3.0),
        ("LOG", (3, 1 / 9), -2.0),
        ("LOG", (3, 1.7e308), 646.0212071300035),
        ("EXP", (1000.0,), None),
        ("CBRT", (27,), 3.0),
        ("CBRT", (-0.125,), -0.5),
        ("CBRT", (0,), 0.0),
        ("CBRT", (1.7976931348623157e308,), 5.643803094122362e102),
        ("ASIN", (1.5,), None),
        ("ACOSH", (0.0,), None),
        ("ATANH", (1.0,), None),
        ("COT", (0.0,), None),
        ("POWER", (-8.0, 1 / 3), None),
        ("POWER", (0.0, -1.0), None),
        ("ROUND", (1.7e308, -308), None),
        ("ABS", (-(2**63),), None),
        ("/", (-(2**63), -1), None),
        ("SIGN", (-0.0,), 0.0),
        ("SIGN", (-7,), -1),
        ("TRUNC", (-2.579, 2), -2.57),
        ("TRUNC", (0.3, 1), 0.3),
        ("TRUNC", (1299, -2), 1200.0),
        ("TRUNC", (1.5, BIG), 1.5),
        ("TRUNC", (1.5, -BIG), 0.0),
        ("LEFT", ("abc", -1), "ab"),
        ("LEFT", ("abc", 0), ""),
        ("RIGHT", ("abc", 2), "bc"),
        ("RIGHT", ("abc", 0), ""),
        ("RIGHT", ("abc", -1), "bc"),
        ("SPLIT_PART", ("a,b", ",", 0), None),
        ("SPLIT_PART", ("a,b", ",", 3), ""),
        ("SPLIT_PART", ("a,b", ",", -1), "b"),
        ("SPLIT_PART", ("a,b", "", 1), "a,b"),
        ("LPAD", ("abc", 2), "ab"),
        ("LPAD", ("abc", -1), ""),
        ("LPAD", ("a", 5, ""), "a"),
        ("LPAD", ("a", BIG), None),
        ("REPEAT", ("ab", BIG), None),
        ("REPEAT", ("ab", -1), ""),
        ("CHR", (0,), None),
        ("CHR", (0xD800,), None),
        ("CHR", (BIG,), None),
        ("ASCII", ("",), 0),
        ("INITCAP", ("hello-wORLD 2nd",), "Hello-World 2nd"),
        ("OCTET_LENGTH", ("ä€",), 5),
        ("LTRIM", (" \tx ",), "x "),
        ("BTRIM", ("xax", ""), "xax"),
        ("LIKE ESCAPE", ("10%", "10!%", "!"), True),
        ("LIKE ESCAPE", ("10x", "10!%", "!"), False),
        ("LIKE ESCAPE", ("a", "a!", "!"), None),
        ("LIKE ESCAPE", ("a", "a", "!!"), None),
        ("EXTRACT", ("DOW", at(2026, 1, 4)), 0),
        ("EXTRACT", ("ISODOW", at(2026, 1, 4)), 7),
        ("EXTRACT", ("SECOND", at(1969, 12, 31, 23, 59, 59)), 59.0),
        ("EXTRACT", ("YEAR", BIG), None),
        ("EXTRACT", ("CENTURY", at(2000, 1, 1)), 20),
        ("EXTRACT INTERVAL", ("MINUTE", -90_000_000), -1),
        ("EXTRACT INTERVAL", ("DAY", 90_000_000_000), 1),
        ("DATE_TRUNC", ("WEEK", at(2026, 1, 1)), at(2025, 12, 29)),
        ("DATE_TRUNC", ("QUARTER", at(2026, 6, 30)), at(2026, 4, 1)),
        ("DATE_TRUNC", ("CENTURY", at(2000, 6, 1)), at(1901, 1, 1)),
        ("DATE_TRUNC", ("YEAR", BIG), None),
        ("DATE_BIN", (0, 5), None),
        ("DATE_BIN", (-5, 5), None),
        ("DATE_BIN", (10, -1), -10),
        ("DATE_BIN", (10, 14, 5), 5),
        ("TO_TIMESTAMP", (1.5,), 1_500_000),
        ("TO_TIMESTAMP", (1e300,), None),
        ("MAKE_TIMESTAMP", (2026, 13, 1, 0, 0, 0.0), None),
        ("MAKE_TIMESTAMP", (2026, 1, 1, 0, 0, 60.0), None),
        ("TIMESTAMP TEXT", (1_500_000,), "1970-01-01T00:00:01.500000Z"),
        ("INTERVAL TEXT", (-90_000_000,), "-90 s"),
    ],
)
def test_corners(name: str, arguments: tuple[Value, ...], expected: Value) -> None:
    found = call(name, *arguments)
    assert found == expected
    assert type(found) is type(expected)


def test_a_cast_that_does_not_fit_is_null() -> None:
    assert cast(1e300, DataType.INTEGER) is None


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_null_in_null_out(name: str) -> None:
    assert call(name, None) is None
    assert call(name, None, 1) is None


_NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), BIG)
_ONE = ["SIGN", "LN", "LOG", "EXP", "CBRT", "SIN", "COS", "TAN", "COT", "ASIN", "ACOS", "ATAN"]
_ONE += ["SINH", "COSH", "TANH", "ASINH", "ACOSH", "ATANH", "DEGREES", "RADIANS", "ROUND", "TRUNC"]
_ONE += ["ABS", "FLOOR", "CEIL", "SQRT", "TO_TIMESTAMP", "NEGATE"]
_TWO = ["LOG", "ATAN2", "POWER", "/", "%", "*", "+", "-"]


@given(name=st.sampled_from(_ONE), a=_NUMBERS)
def test_no_number_makes_a_function_fail(name: str, a: float) -> None:
    found = call(name, a)
    assert conforms(found, DataType.DOUBLE) or conforms(found, DataType.INTEGER)


@given(st.integers(-(2**17), 2**17))
def test_the_root_of_a_cube_is_whole(root: int) -> None:
    assert call("CBRT", root**3) == root


@given(st.floats(1e-290, 1e290))
def test_no_double_is_nearer_to_a_cube_root(value: float) -> None:
    root = call("CBRT", value)
    assert isinstance(root, float)
    beside = (math.nextafter(root, 0.0), root, math.nextafter(root, math.inf))
    assert min(beside, key=lambda r: abs(Fraction(r) ** 3 - Fraction(value))) == root


@given(st.integers(2, 100), st.integers(-7, 7))
def test_the_logarithm_of_a_power_is_whole(base: int, exponent: int) -> None:
    assert call("LOG", base, float(base) ** exponent) == exponent


@given(name=st.sampled_from(_TWO), a=_NUMBERS, b=_NUMBERS)
def test_no_two_numbers_make_a_function_fail(name: str, a: float, b: float) -> None:
    found = call(name, a, b)
    assert conforms(found, DataType.DOUBLE) or conforms(found, DataType.INTEGER)


@given(name=st.sampled_from(["ROUND", "TRUNC"]), a=_NUMBERS, n=st.integers(-(2**63), BIG))
def test_no_place_makes_rounding_fail(name: str, a: float, n: int) -> None:
    assert conforms(call(name, a, n), DataType.DOUBLE)


@given(micros=st.integers(-(2**63), BIG), part=st.sampled_from(["HOUR", "DOY", "WEEK", "YEAR"]))
def test_no_time_makes_a_part_fail(micros: int, part: str) -> None:
    assert conforms(call("EXTRACT", part, micros), DataType.INTEGER)
    assert conforms(call("DATE_TRUNC", part if part != "DOY" else "DAY", micros), DataType.INTEGER)


def test_what_doubles_its_text_ends() -> None:
    half = "a" * 500_000
    assert call("||", half, half) == "a" * 1_000_000
    assert call("||", half, half + "a") is None
    assert call("REPLACE", half, "a", "bb") == "b" * 1_000_000
    assert call("REPLACE", half + "a", "a", "bb") is None
    assert call("REPLACE", "ab", "", "-") == "-a-b-"
