"""Expressions compiled to Python: three-valued logic, the corners where engines usually differ."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.scalar_functions.scalar import (
    FUNCTIONS,
    ExpressionSource,
    cast,
    compile_expression,
    compile_filter,
    compile_predicate,
    compile_row,
)
from streamsql.data.types import DataType, Row, Value
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


BOOLEAN, INTEGER, DOUBLE = DataType.BOOLEAN, DataType.INTEGER, DataType.DOUBLE
NUMBERS = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.sampled_from([2**63 - 1, -(2**63), 2**62, 0.1, 0.2, 1e308, -1e308]),
)
ROWS = st.tuples(NUMBERS, NUMBERS, NUMBERS)


def numeric(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def call(names: list[str], least: int, most: int) -> st.SearchStrategy[Expression]:
        return st.builds(
            lambda name, arguments: Call(name, tuple(arguments), DOUBLE),
            st.sampled_from(names),
            st.lists(children, min_size=least, max_size=most),
        )

    return st.one_of(
        call(["+", "-", "*", "/"], 2, 2),
        call(["LEAST", "GREATEST", "COALESCE"], 2, 3),
        call(["ABS", "NEGATE", "CAST"], 1, 1),
        st.builds(
            lambda a, b, then, otherwise: Call(
                "CASE", (Call("<", (a, b), BOOLEAN), then, otherwise), DOUBLE
            ),
            children,
            children,
            children,
            children,
        ),
    )


LEAVES: st.SearchStrategy[Expression] = st.one_of(
    st.builds(lambda position: Column(position, "", DOUBLE), st.integers(0, 2)),
    st.builds(lambda value: Literal(value, DOUBLE), NUMBERS),
)
VALUES = st.recursive(LEAVES, numeric, max_leaves=6)
COMPARISONS = st.builds(
    lambda name, left, right: Call(name, (left, right), BOOLEAN),
    st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
    VALUES,
    VALUES,
)


def connect(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(lambda a, b: Call("AND", (a, b), BOOLEAN), inner, inner),
        st.builds(lambda a, b: Call("OR", (a, b), BOOLEAN), inner, inner),
        st.builds(lambda a: Call("NOT", (a,), BOOLEAN), inner),
        st.builds(lambda a: Call("IS NULL", (a,), BOOLEAN), inner),
        st.builds(lambda a: Call("IS NOT NULL", (a,), BOOLEAN), inner),
        st.builds(
            lambda parts: Call("IN", tuple(parts), BOOLEAN),
            st.lists(LEAVES, min_size=2, max_size=4),
        ),
    )


PREDICATES = st.recursive(COMPARISONS, connect, max_leaves=3)


def meaning(expression: Expression, row: Row) -> Any:
    """Return the value of an expression by three-valued logic, written plainly."""
    match expression:
        case Column(position=position):
            return row[position]
        case Literal(value=value):
            return value
        case Call(function="CASE", arguments=arguments):
            for condition, then in zip(arguments[:-1:2], arguments[1::2], strict=True):
                if meaning(condition, row) is True:
                    return meaning(then, row)
            return meaning(arguments[-1], row)
        case Call(function="CAST", arguments=(inner,), dtype=dtype):
            return cast(meaning(inner, row), dtype)
        case Call(function=name, arguments=arguments):
            return _value(name, [meaning(a, row) for a in arguments])


def _value(name: str, values: list[Any]) -> Any:
    match name:
        case "AND":
            return False if False in values else None if None in values else True
        case "OR":
            return True if True in values else None if None in values else False
        case "IS NULL":
            return values[0] is None
        case "IS NOT NULL":
            return values[0] is not None
        case "COALESCE":
            return next((v for v in values if v is not None), None)
        case "IN":
            needle, *others = values
            if needle is None:
                return None
            return True if needle in others else None if None in others else False
        case _:
            return None if None in values else FUNCTIONS[name](*values)


@given(expression=VALUES, row=ROWS)
def test_values(expression: Expression, row: Row) -> None:
    value, expected = compile_expression(expression)(row), meaning(expression, row)
    assert value == expected
    assert type(value) is type(expected)


@given(predicate=PREDICATES, row=ROWS)
def test_predicates_hold_only_where_they_are_true(predicate: Expression, row: Row) -> None:
    expected = meaning(predicate, row)
    assert compile_expression(predicate)(row) is expected
    assert compile_predicate(predicate)(row) is (expected is True)


@given(expressions=st.lists(st.one_of(VALUES, PREDICATES), max_size=4), row=ROWS)
def test_rows_are_made_of_their_values(expressions: list[Expression], row: Row) -> None:
    expected = tuple(meaning(e, row) for e in expressions)
    assert compile_row(tuple(expressions))(row) == expected


def test_text_from_outside_never_gets_into_the_source() -> None:
    source = ExpressionSource(lambda position: f"r[{position}]")
    text = "'); raise SystemExit('"
    source_text = source.value(Literal(text, DataType.TEXT))
    assert text not in source_text
    assert source.names == {source_text: text}


A, B = Column(0, "a", INTEGER), Column(1, "b", INTEGER)


def nested(name: str, depth: int) -> Expression:
    expression: Expression = A
    for _ in range(depth):
        expression = Call(name, (expression, B), INTEGER)
    return expression


def test_expressions_may_be_nested_deeper_than_python_source() -> None:
    """The language allows 150 levels (`streamsql.syntax`)."""
    assert compile_expression(nested("+", 180))((1, 1)) == 181
    assert compile_expression(nested("+", 180))((1, None)) is None


@pytest.mark.parametrize("name", ["AND", "OR"])
def test_many_conditions(name: str) -> None:
    below: Expression = Call("<", (A, B), BOOLEAN)
    expression = below
    for _ in range(900):
        expression = Call(name, (expression, below), BOOLEAN)
    holds = compile_predicate(expression)
    assert [holds(row) for row in ((1, 2), (2, 1), (1, None))] == [True, False, False]


def test_cases_with_many_branches() -> None:
    parts: list[Expression] = []
    for number in range(500):
        literal = Literal(number, INTEGER)
        parts += [Call("=", (A, literal), BOOLEAN), Literal(number * 2, INTEGER)]
    choose = compile_expression(Call("CASE", (*parts, B), INTEGER))
    assert [choose(row) for row in ((0, 7), (499, 7), (500, 7), (None, 7))] == [0, 998, 7, 7]


def test_coalesce_of_many() -> None:
    parts: list[Expression] = [Column(p, "", INTEGER) for p in range(300)]
    parts.append(Literal(5, INTEGER))
    first = compile_expression(Call("COALESCE", tuple(parts), INTEGER))
    assert first((None,) * 250 + (3,) + (None,) * 49) == 3
    assert first((None,) * 300) == 5


def test_an_unknown_function_is_said() -> None:
    with pytest.raises(InternalError, match="no scalar function 'NO SUCH'"):
        compile_expression(Call("NO SUCH", (A,), INTEGER))


@pytest.mark.parametrize("name", ["/", "%"])
@given(
    st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9)),
    st.sampled_from([-3, 0, 1, 2, 3, 7, 123, 2**62]),
)
def test_division_by_a_constant_is_division(name: str, dividend: int | None, divisor: int) -> None:
    first, second = Column(0, "a", INTEGER), Column(1, "b", INTEGER)
    constant = compile_row((Call(name, (first, Literal(divisor, INTEGER)), INTEGER),))
    doubled = Call("+", (first, first), INTEGER)
    nested = compile_row((Call(name, (doubled, Literal(divisor, INTEGER)), INTEGER),))
    general = compile_row((Call(name, (first, second), INTEGER),))
    above = compile_row((Call(name, (doubled, second), INTEGER),))
    assert constant((dividend,)) == general((dividend, divisor))
    assert nested((dividend,)) == above((dividend, divisor))


@given(
    st.sampled_from(["MICROSECONDS", "SECOND", "HOUR", "DAY", "WEEK", "MONTH"]),
    st.one_of(
        st.none(), st.sampled_from([-(2**63), 2**63 - 1, -1, 0]), st.integers(-(2**50), 2**50)
    ),
)
def test_truncation_to_a_constant_part_is_truncation(part: str, micros: int | None) -> None:
    time, text = Column(0, "t", DataType.TIMESTAMP), Column(1, "p", DataType.TEXT)
    constant = Call("DATE_TRUNC", (Literal(part, DataType.TEXT), time), DataType.TIMESTAMP)
    general = Call("DATE_TRUNC", (text, time), DataType.TIMESTAMP)
    assert compile_row((constant,))((micros,)) == compile_row((general,))((micros, part))


@given(PREDICATES, st.dictionaries(ROWS, st.sampled_from([-2, -1, 1, 3]), max_size=6))
def test_a_filter_keeps_what_its_predicate_holds_for(
    predicate: Expression, delta: dict[Row, int]
) -> None:
    holds = compile_predicate(predicate)
    kept = {row: weight for row, weight in delta.items() if holds(row)}
    assert compile_filter(predicate)(delta) == kept


@pytest.mark.parametrize(
    "written", [("a%",), ("%b%",), ("a_",), ("ab",), ("a!%%", "!"), ("a!", "!")]
)
@pytest.mark.parametrize("text", ["", "a", "ab", "a%b", "abc", "b", None])
def test_a_constant_pattern_tests_texts_as_one_of_a_column_does(
    text: str | None, written: tuple[str, ...]
) -> None:
    name = "LIKE" if len(written) == 1 else "LIKE ESCAPE"
    texts, places = Column(0, "s", DataType.TEXT), range(1, len(written) + 1)
    constants = Call(name, (texts, *map(literal, written)), DataType.BOOLEAN)
    columns = Call(
        name, (texts, *(Column(i, "p", DataType.TEXT) for i in places)), DataType.BOOLEAN
    )
    expected = compile_expression(columns)((text, *written))
    assert compile_expression(constants)((text,)) is expected
