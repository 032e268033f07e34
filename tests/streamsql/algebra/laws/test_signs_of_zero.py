"""No function tells 0.0 from -0.0: rows that differ in nothing else are one row, counted twice."""

import sys
from collections.abc import Iterator
from itertools import product
from types import ModuleType
from typing import Any

import pytest

from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.scalar_functions.function_table import FUNCTIONS, cast
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.algebra.user_functions import UserFunctions
from streamsql.data.types import DataType, Value

D, TEXT, INTEGER = DataType.DOUBLE, DataType.TEXT, DataType.INTEGER
X = Column(0, "x", D)
TYPES = (D, INTEGER, TEXT)
MANY = (None, 1.0, -1.0, 3, "a")
"""Arguments; None is the zero."""
FEW = (None, 1.0)


def argument_lists() -> Iterator[tuple[Value, ...]]:
    """Yield one to four arguments, a zero among them."""
    for count in range(1, 5):
        for arguments in product(MANY if count < 3 else FEW, repeat=count):
            if None in arguments:
                yield arguments


def outcome(name: str, arguments: tuple[Value, ...], zero: float) -> object:
    """Return a result, as a text, too; None where the function takes no such arguments."""
    try:
        found = FUNCTIONS[name](*(zero if each is None else each for each in arguments))
    except (TypeError, AttributeError, ValueError, LookupError):
        return None
    return found, cast(found, TEXT)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_no_function_tells_zeros_apart(name: str) -> None:
    for arguments in argument_lists():
        expected = outcome(name, arguments, 0.0)
        assert outcome(name, arguments, -0.0) == expected, arguments


def test_most_functions_were_called() -> None:
    called = {n for n in FUNCTIONS if any(outcome(n, given, 0.0) for given in argument_lists())}
    assert {"ATAN2", "||", "ROUND", "LEAST", "POWER", "DISTANCE", "%"} <= called
    assert len(called) > 40


@pytest.mark.parametrize("dtype", TYPES)
def test_no_cast_tells_zeros_apart(dtype: DataType) -> None:
    found = [compile_expression(Call("CAST", (X,), dtype))((zero,)) for zero in (0.0, -0.0)]
    assert found[0] == found[1]
    assert found[0] is not None


def test_what_tells_them_apart_elsewhere_takes_both_for_zero() -> None:
    atan2 = Call("ATAN2", (X, Literal(-1.0, D)), D)
    assert compile_expression(atan2)((-0.0,)) == pytest.approx(3.14159265)
    assert compile_expression(Call("CAST", (X,), TEXT))((-0.0,)) == "0.0"
    assert compile_expression(Call("||", (Literal("a", TEXT), X), TEXT))((-0.0,)) == "a0.0"


def test_code_of_users_gets_one_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    class Texts:
        def init(self) -> tuple[str, ...]:
            return ()

        def step(self, state: tuple[str, ...], value: float) -> tuple[str, ...]:
            return (*state, str(value))

        def retract(self, state: tuple[str, ...], value: float) -> tuple[str, ...]:
            at = state.index(str(value))
            return (*state[:at], *state[at + 1 :])

        def merge(self, state: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
            return state + other

        def final(self, state: tuple[str, ...]) -> str:
            return ",".join(state)

    def spelled(value: float) -> str:
        return str(value)

    module: Any = ModuleType("signs_of_users")
    module.Texts, module.spelled = Texts, spelled
    Texts.__module__ = spelled.__module__ = "signs_of_users"
    monkeypatch.setitem(sys.modules, "signs_of_users", module)
    functions = UserFunctions()
    functions.allow(("signs_of_users",))
    assert functions.function("signs_of_users:spelled", TEXT)(-0.0) == "0.0"
    texts = functions.aggregate("signs_of_users:Texts", TEXT)
    state, _ = texts.step(texts.init(), (-0.0,))
    state, _ = texts.step(state, (1.0,))
    state, worked = texts.retract(state, (0.0,))
    assert (texts.final(state), worked) == ("1.0", True)
