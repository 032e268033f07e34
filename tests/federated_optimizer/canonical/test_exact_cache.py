"""Remembered results belong to what an argument says, to the sign of zero."""

from federated_optimizer.canonical.exact_cache import LONGEST, exactly_cached
from streamsql.algebra.expressions import Expression, Literal
from streamsql.data.types import DataType


def zero(value: float) -> Expression:
    return Literal(value, DataType.DOUBLE)


def test_zeros_are_told_apart_and_equal_arguments_are_not() -> None:
    asked: list[Expression] = []

    @exactly_cached(8)
    def text(expression: Expression) -> str:
        asked.append(expression)
        return repr(expression)

    assert text(zero(0.0)) != text(zero(-0.0))
    assert text(zero(-0.0)) == repr(zero(-0.0))
    assert len(asked) == 2


def test_an_object_in_the_place_of_one_that_is_gone_has_its_own_result() -> None:
    @exactly_cached(4)
    def value(expression: Expression) -> object:
        assert isinstance(expression, Literal)
        return expression.value

    for number in range(1_000):  # ids are used again as objects go
        assert value(zero(float(number))) == float(number)


def test_an_argument_that_is_too_deep_for_bytes_is_computed() -> None:
    deep: tuple[object, ...] = ()
    for _ in range(2_000):
        deep = (deep,)

    @exactly_cached(4)
    def length(argument: tuple[object, ...]) -> int:
        return len(argument)

    assert length(deep) == 1


def test_a_very_long_argument_is_computed_each_time() -> None:
    asked: list[str] = []

    @exactly_cached(4)
    def length(text: str) -> int:
        asked.append(text[:1])
        return len(text)

    for text in ("a" * LONGEST, "b"):
        assert length(text) == length(text) == len(text)
    assert asked == ["a", "a", "b"]
