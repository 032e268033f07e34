"""Scalar functions: three-valued logic and the corners where engines usually differ."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.scalar import cast, compile_expression, compile_predicate, compile_row
from streamsql.data.types import DataType, Value
from streamsql.errors import InternalError

BOOLEAN = DataType.BOOLEAN
TRUTH: list[bool | None] = [True, False, None]


def literal(value: Value) -> Literal:
    kinds = {bool: BOOLEAN, int: DataType.INTEGER, float: DataType.DOUBLE, str: DataType.TEXT}
    return Literal(value, kinds.get(type(value), DataType.NULL))


def call(name: str, *arguments: Value, dtype: DataType = DataType.DOUBLE) -> Value:
    expression: Expression = Call(name, tuple(map(literal, arguments)), dtype)
    found: Value = compile_expression(expression)(())
    return found


@pytest.mark.parametrize(("a", "b"), list(itertools.product(TRUTH, TRUTH)))
def test_and_or_not_follow_three_valued_logic(a: bool | None, b: bool | None) -> None:
    both = False if False in (a, b) else None if None in (a, b) else True
    either = True if True in (a, b) else None if None in (a, b) else False
    assert call("AND", a, b) is both
    assert call("OR", a, b) is either
    assert call("NOT", a) is (None if a is None else not a)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("/", (7, 2), 3),
        ("/", (-7, 2), -3),
        ("/", (7, -2), -3),
        ("/", (7.0, 2), 3.5),
        ("/", (1, 0), None),
        ("/", (1.0, 0.0), None),
        ("%", (-7, 2), -1),
        ("%", (7, -2), 1),
        ("%", (5, 0), None),
        ("+", (1, None), None),
        ("*", (1e308, 1e308), None),
        ("||", ("a", 1), "a1"),
        ("LIKE", ("a%b", "a_b"), True),
        ("LIKE", ("line\nbreak", "line%"), True),
        ("LIKE", ("abc", "b%"), False),
        ("LIKE", ("a.c", "a.c"), True),
        ("LIKE", ("abc", "a.c"), False),
        ("DISTANCE", (0.0, 0.0, 3.0, 4.0), 5.0),
        ("DISTANCE", (0.0, 0.0, 0.0, 1.0, 2.0, 2.0), 3.0),
        ("SQRT", (-1.0,), None),
        ("POWER", (0.0, -1.0), None),
        ("SUBSTRING", ("abcdef", 2, 3), "bcd"),
        ("SUBSTRING", ("abcdef", -1, 3), "a"),
        ("POSITION", ("c", "abc"), 3),
        ("POSITION", ("x", "abc"), 0),
        ("LEAST", (3, 1, 2), 1),
        ("GREATEST", (3, None, 2), None),
        ("IN", (1, 2, None), None),
        ("IN", (2, 2, None), True),
        ("IN", (1, 2, 3), False),
        ("COALESCE", (None, None, 4), 4),
        ("CASE", (None, 1, True, 2, 3), 2),
        ("CASE", (False, 1, 3), 3),
        ("IS NULL", (None,), True),
        ("IS NOT NULL", (None,), False),
    ],
)
def test_functions_at_their_corners(
    name: str, arguments: tuple[Value, ...], expected: Value
) -> None:
    found = call(name, *arguments)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (2.5, DataType.INTEGER, 2),
        (3.5, DataType.INTEGER, 4),
        ("x", DataType.INTEGER, None),
        (" 12 ", DataType.INTEGER, 12),
        (True, DataType.INTEGER, 1),
        (True, DataType.TEXT, "true"),
        (None, DataType.TEXT, None),
        ("1e400", DataType.DOUBLE, None),
    ],
)
def test_casts_convert_or_give_null(value: Value, dtype: DataType, expected: Value) -> None:
    assert cast(value, dtype) == expected


@given(st.one_of(st.none(), st.integers(-5, 5)), st.one_of(st.none(), st.integers(-5, 5)))
def test_a_predicate_holds_only_where_it_is_true(a: int | None, b: int | None) -> None:
    columns = (Column(0, "a", DataType.INTEGER), Column(1, "b", DataType.INTEGER))
    holds = compile_predicate(Call("<", columns, BOOLEAN))
    assert holds((a, b)) is (a is not None and b is not None and a < b)


def test_rows_are_built_from_expressions() -> None:
    columns = (Column(1, "b", DataType.INTEGER), Column(0, "a", DataType.INTEGER))
    assert compile_row(columns)((1, 2)) == (2, 1)
    assert compile_row((columns[0], literal("x")))((1, 2)) == (2, "x")


def test_an_unknown_function_is_our_defect() -> None:
    with pytest.raises(InternalError, match="FROB"):
        call("FROB", 1)
