"""Constant parts are evaluated, but to no constant that equals another one."""

from federated_optimizer.canonical.constant_folding import fold
from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.data.types import DataType

D = DataType.DOUBLE


def folded(function: str, *values: float) -> Expression:
    return fold(Call(function, tuple(Literal(value, D) for value in values), D))


def test_constants_are_evaluated() -> None:
    assert folded("*", 2.0, -3.0) == Literal(-6.0, D)
    assert str(folded("*", 0.0, 3.0)) == str(Literal(0.0, D))


def test_no_constant_is_minus_zero() -> None:
    """0.0 and -0.0 are equal to Python, so plans of different values would be taken for equal."""
    made = folded("*", 0.0, -3.0)
    assert not isinstance(made, Literal)
    assert str(compile_expression(made)(())) == "-0.0"
