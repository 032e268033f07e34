"""Predicates over two or three columns, and all rows of a small world, as sets of row numbers."""

from collections.abc import Callable, Sequence
from itertools import product
from random import Random
from typing import Any

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.scalar_functions.scalar import compile_predicate
from streamsql.data.types import GREATEST_TIME, LEAST_TIME, DataType, Row

N, D, T, B = DataType.INTEGER, DataType.DOUBLE, DataType.TEXT, DataType.BOOLEAN
S, GAP = DataType.TIMESTAMP, DataType.INTERVAL
MOST = 2**63 - 1
COMPARED = ("=", "<>", "<", "<=", ">", ">=")
PATTERNS = ("a%", "ab%", "%b", "a%b", "%a%", "%ab%", "_b%", "abc%", "ab")
TEXTS = ("", "a", "ab", "abc", "b", "ba")
MORNING = 1_767_254_400_000_000  # 2026-01-01 08:00
STEP = 1_200_000_000  # 20 minutes
DAY = 72 * STEP
UNITS = ("HOUR", "MINUTE", "DAY")


class SmallWorld:
    """Rows of some columns: all combinations of a few values of each."""

    def __init__(self, columns: Sequence[tuple[DataType, Sequence[Any]]]) -> None:
        self.columns = [Column(n, f"c{n}", dtype) for n, (dtype, _) in enumerate(columns)]
        self.rows: list[Row] = list(product(*(values for _, values in columns)))
        self._masks: dict[str, int] = {}

    def mask(self, predicate: Expression) -> int:
        """Return the rows for which a predicate is TRUE, as bits."""
        name = repr(predicate)
        if name not in self._masks:
            test = compile_predicate(predicate)
            bits = "".join("1" if test(row) else "0" for row in self.rows)
            self._masks[name] = int(bits, 2)
        return self._masks[name]

    def passing(self, predicates: Sequence[Expression]) -> int:
        """Return the rows for which all predicates are TRUE, as bits."""
        found = (1 << len(self.rows)) - 1
        for predicate in predicates:
            found &= self.mask(predicate)
        return found


def integers() -> SmallWorld:
    """Return a world of three integers, the greatest and the least among them."""
    values = (None, -MOST - 1, *range(-7, 13), MOST - 1, MOST)
    return SmallWorld([(N, values)] * 3)


def numbers() -> SmallWorld:
    """Return a world of an integer and two DOUBLEs."""
    whole = (None, -MOST - 1, *range(-3, 7), MOST)
    doubles = (None, *(n / 4 for n in range(-12, 26)), -0.0, float("nan"), 1e308, -1e308)
    return SmallWorld([(N, whole), (D, doubles), (D, (None, *doubles[1::2]))])


def texts() -> SmallWorld:
    """Return a world of two texts and an integer."""
    short = ["".join(letters) for size in range(4) for letters in product("abc", repeat=size)]
    return SmallWorld([(N, (None, *range(-2, 6), MOST)), (T, (None, *short)), (T, (None, *short))])


def timestamps() -> SmallWorld:
    """Return a world of three times around a morning, the greatest and the least among them."""
    # There are times between any two constants.
    near = [MORNING + n * STEP // 2 for n in range(-4, 15)]
    far = (LEAST_TIME, MORNING - DAY, MORNING + 1, MORNING + DAY, GREATEST_TIME)
    return SmallWorld([(S, (None, *near, *far))] * 3)


def booleans() -> SmallWorld:
    """Return a world of three BOOLEANs and an integer."""
    either = (None, False, True)
    return SmallWorld([(B, either)] * 3 + [(N, (None, *range(-4, 9), MOST))])


WORLDS: dict[str, Callable[[], SmallWorld]] = {
    "integers": integers,
    "numbers": numbers,
    "texts": texts,
    "timestamps": timestamps,
    "booleans": booleans,
}


def literal(random: Random, columns: Sequence[Column]) -> Expression:
    """Return a predicate that is no combination of others, of constants well inside the world."""
    column = random.choice(columns)
    others = [c for c in columns if c.dtype == column.dtype and c != column]
    name = random.choice(COMPARED)
    if random.random() < 0.06:
        return Call(random.choice(("IS NULL", "IS NOT NULL")), (column,), B)
    match column.dtype:
        case DataType.INTEGER:
            return _of_integers(random, column, others, name)
        case DataType.DOUBLE:
            return _of_doubles(random, column, columns, name)
        case DataType.TIMESTAMP:
            return _of_times(random, column, random.choice(others), name)
        case DataType.BOOLEAN:
            return _of_booleans(random, column, random.choice(others))
        case _:
            return _of_texts(random, column, others, name)


def _integer(value: int) -> Literal:
    return Literal(value, N)


def _of_integers(random: Random, column: Column, others: list[Column], name: str) -> Expression:
    constant = _integer(random.randrange(-1, 4))
    kind = random.randrange(8)
    other: Expression = random.choice(others) if others else constant
    if kind == 0:
        values = random.sample(range(-1, 5), random.randrange(1, 4))
        return Call("IN", (column, *map(_integer, values)), B)
    if kind == 1:
        return Call(name, (column, other), B)
    if kind == 2:
        return Call(name, (column, Call("+", (other, constant), N)), B)
    if kind == 3:
        return Call(name, (Call("-", (column, other), N), constant), B)
    if kind == 4:
        factor = _integer(random.choice((2, 3, -1)))
        return Call(name, (Call("*", (factor, column), N), constant), B)
    if kind == 5 and random.random() < 0.5:
        return Call("=", (Call("%", (column, _integer(2)), N), _integer(random.randrange(2))), B)
    return Call(name, (column, constant), B)


def _of_doubles(random: Random, column: Column, columns: Sequence[Column], name: str) -> Expression:
    constant = Literal(random.randrange(0, 7) / 2, D)
    match random.randrange(5):
        case 0:
            return Call(name, (column, random.choice([c for c in columns if c.dtype == N])), B)
        case 1:
            half = Call("*", (Literal(0.5, D), column), D)
            return Call(name, (half, constant), B)
        case 2:
            return Call("IN", (column, constant, Literal(1.0, D)), B)
        case _:
            return Call(name, (column, constant), B)


def _of_texts(random: Random, column: Column, others: list[Column], name: str) -> Expression:
    constant = Literal(random.choice(TEXTS), T)
    match random.randrange(6):
        case 0 | 1:
            return Call("LIKE", (column, Literal(random.choice(PATTERNS), T)), B)
        case 2:
            return Call("IN", (column, constant, Literal("ab", T)), B)
        case 3:
            return Call(name, (column, random.choice(others)), B)
        case 4:
            return Call("=", (column, constant), B)
        case _:
            return Call(name, (column, constant), B)


def _time(random: Random) -> Literal:
    return Literal(MORNING + random.randrange(-1, 7) * STEP, S)


def _apart(random: Random) -> Literal:
    return Literal(random.randrange(-1, 5) * STEP, GAP)


def _of_times(random: Random, column: Column, other: Column, name: str) -> Expression:
    match random.randrange(7):
        case 0:
            return Call("IN", (column, _time(random), _time(random)), B)
        case 1:
            return Call(name, (column, other), B)
        case 2:
            return Call(name, (column, Call("+", (other, _apart(random)), S)), B)
        case 3:
            return Call(name, (Call("-", (column, other), GAP), _apart(random)), B)
        case 4:
            unit = Literal(random.choice(UNITS), T)
            return Call(name, (Call("DATE_TRUNC", (unit, column), S), _time(random)), B)
        case _:
            return Call(name, (column, _time(random)), B)


def _of_booleans(random: Random, column: Column, other: Column) -> Expression:
    value = Literal(random.random() < 0.5, B)
    match random.randrange(7):
        case 0:
            return Call("NOT", (column,), B)
        case 1:
            return Call(random.choice(("=", "<>")), (column, value), B)
        case 2:
            return Call(random.choice(("=", "<>")), (column, other), B)
        case 3:  # IS [NOT] TRUE, IS [NOT] FALSE
            known = Call("COALESCE", (Call("=", (column, value), B), Literal(False, B)), B)
            return known if random.random() < 0.5 else Call("NOT", (known,), B)
        case 4:
            return Call(random.choice(("AND", "OR")), (column, other), B)
        case _:
            return column


def usual(random: Random, columns: Sequence[Column]) -> Expression:
    """Return a predicate as queries usually have it."""
    column = random.choice(columns)
    others = [c for c in columns if c.dtype == column.dtype and c != column]
    if column.dtype == B:
        return _usual_of_boolean(random, column, columns)
    constants = _constants(column.dtype)
    low, high, third = random.sample(constants, 3)
    name = random.choice(COMPARED)
    match random.randrange(9):
        case 0 if others:
            return Call(random.choice(("=", "<", "<=")), (column, random.choice(others)), B)
        case 1 if others and column.dtype in {N, S}:
            apart = Call("-", (column, random.choice(others)), N if column.dtype == N else GAP)
            limit = low if column.dtype == N else _apart(random)
            return Call(random.choice(("<", "<=", ">=")), (apart, limit), B)
        case 2:
            return Call("IN", (column, low, high, third), B)
        case 3:
            parts = (Call(">=", (column, low), B), Call("<=", (column, high), B))
            return Call("AND", parts, B)
        case 4 if column.dtype == T:
            return Call("LIKE", (column, Literal(random.choice(PATTERNS), T)), B)
        case 5:
            other = random.choice([c for c in columns if c != column])
            return Call("OR", (Call(name, (column, low), B), usual_comparison(random, other)), B)
        case 6:
            return Call("IS NOT NULL", (column,), B)
        case _:
            return Call(name, (column, low), B)


def _constants(dtype: DataType) -> list[Literal]:
    match dtype:
        case DataType.INTEGER:
            return [_integer(n) for n in range(-1, 5)]
        case DataType.DOUBLE:
            return [Literal(n / 2, D) for n in range(7)]
        case DataType.TIMESTAMP:
            return [Literal(MORNING + n * STEP, S) for n in range(-1, 7)]
        case DataType.BOOLEAN:
            return [Literal(value, B) for value in (False, True)]
        case _:
            return [Literal(text, T) for text in TEXTS]


def _usual_of_boolean(random: Random, column: Column, columns: Sequence[Column]) -> Expression:
    other = random.choice([c for c in columns if c != column])
    match random.randrange(5):
        case 0:
            return Call("NOT", (column,), B)
        case 1:
            return Call("OR", (column, usual_comparison(random, other)), B)
        case 2:
            return Call(random.choice(("IS NULL", "IS NOT NULL")), (column,), B)
        case 3:
            return usual_comparison(random, column)
        case _:
            return column


def usual_comparison(random: Random, column: Column) -> Expression:
    """Return a comparison with a constant."""
    names = ("=", "<>") if column.dtype == B else COMPARED
    return Call(random.choice(names), (column, random.choice(_constants(column.dtype))), B)


def clause(random: Random, columns: Sequence[Column]) -> Expression:
    """Return a literal, or a disjunction or negation of some."""
    found = literal(random, columns)
    choice = random.random()
    if choice < 0.2:
        return Call("OR", (found, literal(random, columns)), B)
    if choice < 0.25:
        return Call("NOT", (Call("AND", (found, literal(random, columns)), B),), B)
    return Call("NOT", (found,), B) if choice < 0.3 else found
