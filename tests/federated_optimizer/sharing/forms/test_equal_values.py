"""Expressions of equal numbers: 0.0 and -0.0 give equal values, or are told apart."""

import pytest

from federated_optimizer.sharing.forms.equal_values import tells_zeros_apart
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.algebra.scalar_functions.scalar_numbers import NUMERIC_FUNCTIONS
from streamsql.data.types import DataType

D, TEXT, INTEGER = DataType.DOUBLE, DataType.TEXT, DataType.INTEGER
X = Column(0, "x", D)
ONE = Literal(1.0, D)
EQUAL: tuple[Expression, ...] = (
    X,
    Call("+", (X, X), D),
    Call("*", (X, Literal(-2.0, D)), D),
    Call("/", (ONE, X), D),
    Call("%", (X, ONE), D),
    Call("NEGATE", (X,), D),
    Call("ROUND", (X,), D),
    Call("FLOOR", (X,), D),
    Call("SQRT", (X,), D),
    Call("CAST", (X,), INTEGER),
    Call("IN", (X, Literal(0.0, D)), DataType.BOOLEAN),
    Call("CASE", (Call(">=", (X, ONE), DataType.BOOLEAN), X, ONE), D),
    Call("CAST", (Literal(0.0, D),), TEXT),
    Call("LENGTH", (Column(1, "s", TEXT),), INTEGER),
)
APART: tuple[Expression, ...] = (
    Call("CAST", (X,), TEXT),
    Call("ATAN2", (X, Literal(-1.0, D)), D),
    Call("LENGTH", (Call("CAST", (Call("+", (X, X), D),), TEXT),), INTEGER),
)


@pytest.mark.parametrize("expression", EQUAL)
def test_equal_numbers_give_equal_values(expression: Expression) -> None:
    assert not tells_zeros_apart(expression)
    compiled = compile_expression(expression)
    assert compiled((0.0, "a")) == compiled((-0.0, "a"))


@pytest.mark.parametrize("name", sorted(NUMERIC_FUNCTIONS))
def test_every_function_of_a_number_is_judged_rightly(name: str) -> None:
    for arguments in ((X,), (X, ONE), (ONE, X), (X, Literal(-1.0, D)), (X, X)):
        call = Call(name, arguments, D)
        try:
            one, other = (compile_expression(call)((zero,)) for zero in (0.0, -0.0))
        except TypeError:  # of another number of arguments, or of texts
            continue
        assert tells_zeros_apart(call) or one == other


@pytest.mark.parametrize("expression", APART)
def test_signs_of_zero_are_told_apart(expression: Expression) -> None:
    assert tells_zeros_apart(expression)
    compiled = compile_expression(expression)
    assert compiled((0.0,)) != compiled((-0.0,))
