"""Random predicates over a row of all types, and rows at which arithmetic goes wrong."""

from random import Random
from typing import Any

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.data.types import DataType, Row

N, D, T, B = DataType.INTEGER, DataType.DOUBLE, DataType.TEXT, DataType.BOOLEAN
TS, IV = DataType.TIMESTAMP, DataType.INTERVAL
TYPES = (N, N, N, D, D, T, T, TS, TS, IV, B)
COLUMNS = [Column(n, f"c{n}", dtype) for n, dtype in enumerate(TYPES)]
MOST = 2**63 - 1
NAN, INF = float("nan"), float("inf")
VALUES: dict[DataType, tuple[Any, ...]] = {
    N: (None, -2, -1, 0, 1, 1, 2, 3, MOST, MOST - 1, -MOST - 1, 2**53 + 1),
    D: (None, -1.0, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0, NAN, INF, -INF, 1e308, 5e-324),
    T: (None, "", "a", "ab", "abc", "abd", "b", "a%", "B"),
    TS: (None, 0, 1, 2, 3, MOST, -MOST - 1),
    IV: (None, -1, 0, 1, 2, MOST),
    B: (None, True, False),
}
CONSTANTS: dict[DataType, tuple[Any, ...]] = {
    N: (-1, 0, 1, 2, 3, MOST, 2**53 + 1, None),
    D: (-1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 2.5),
    T: ("", "a", "ab", "abc", "b"),
    TS: (0, 1, 2, MOST),
    IV: (-1, 0, 1, 2),
    B: (True, False, None),
}
PATTERNS = ("a%", "ab%", "abc", "%b", "_b%", "a%c", "%", "a!%", "%b%", "abc%")
COMPARED = ("=", "=", "<>", "<", "<=", ">", ">=")


def random_row(random: Random, *, tame: bool = False) -> Row:
    """Return a row of all columns.

    Args:
        random: Of choices.
        tame: Whether only of values that every engine knows.
    """

    def value(dtype: DataType) -> Any:
        while True:
            chosen = random.choice(VALUES[dtype])
            if not tame or not isinstance(chosen, float) or abs(chosen) < 10:
                return chosen

    return tuple(value(dtype) for dtype in TYPES)


class RandomPredicates:
    """Writes expressions by the choices of a random number generator."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def constant(self, dtype: DataType) -> Literal:
        """Return a constant."""
        return Literal(self.random.choice(CONSTANTS[dtype]), dtype)

    def column(self, dtype: DataType) -> Column:
        """Return a column."""
        return self.random.choice([c for c in COLUMNS if c.dtype == dtype])

    def value(self, dtype: DataType, depth: int = 2) -> Expression:
        """Return an expression of a type."""
        if depth == 0 or self.random.random() < 0.4:
            of_column = self.random.random() < 0.7
            return self.column(dtype) if of_column else self.constant(dtype)
        below = depth - 1
        if self.random.random() < 0.08 and dtype != B:
            condition = self.predicate(below)
            return Call(
                "CASE", (condition, self.value(dtype, below), self.value(dtype, below)), dtype
            )
        if self.random.random() < 0.08:
            return Call("COALESCE", (self.value(dtype, below), self.value(dtype, below)), dtype)
        match dtype:
            case DataType.INTEGER | DataType.DOUBLE:
                return self._number(dtype, below)
            case DataType.TEXT:
                name = self.random.choice(("LOWER", "UPPER", "||"))
                count = 2 if name == "||" else 1
                return Call(name, tuple(self.value(T, below) for _ in range(count)), T)
            case DataType.TIMESTAMP:
                name = self.random.choice("+-")
                return Call(name, (self.value(TS, below), self.value(IV, below)), TS)
            case DataType.INTERVAL:
                if self.random.random() < 0.5:
                    return Call("-", (self.value(TS, below), self.value(TS, below)), IV)
                return Call("+", (self.value(IV, below), self.value(IV, below)), IV)
            case _:
                return self.predicate(below)

    def _number(self, dtype: DataType, depth: int) -> Expression:
        name = self.random.choice(("+", "+", "-", "-", "*", "*", "/", "NEGATE", "ABS", "LEAST"))
        kinds = (dtype,) if dtype == N else (D, D, N)
        count = 1 if name in ("NEGATE", "ABS") else 2
        parts = [self.value(self.random.choice(kinds), depth) for _ in range(count)]
        if dtype == D and all(part.dtype == N for part in parts):
            parts[0] = self.column(D)
        if name == "LEAST":
            parts = [self.value(dtype, depth), self.value(dtype, depth)]
        return Call(name, tuple(parts), dtype)

    def predicate(self, depth: int = 2) -> Expression:
        """Return a predicate."""
        choice = self.random.random()
        if depth and choice < 0.35:
            name = self.random.choice(("AND", "OR", "OR", "NOT"))
            count = 1 if name == "NOT" else self.random.choice((2, 2, 3))
            return Call(name, tuple(self.predicate(depth - 1) for _ in range(count)), B)
        return self.literal(depth)

    def literal(self, depth: int) -> Expression:
        """Return a predicate that is no combination of others."""
        choice = self.random.random()
        dtype = self.random.choice((N, N, N, D, D, T, T, TS, IV, B))
        value = self.value(dtype, depth)
        if choice < 0.08:
            return Call(self.random.choice(("IS NULL", "IS NOT NULL")), (value,), B)
        if choice < 0.12:
            return Call("COALESCE", (self.compared(dtype, value, depth), Literal(False, B)), B)
        if choice < 0.15:
            return self.same(dtype, value, depth)
        if choice < 0.3 and dtype != B:
            count = self.random.randrange(1, 4)
            return Call("IN", (value, *(self.constant(dtype) for _ in range(count))), B)
        if choice < 0.7 and dtype == T:
            return self.like(value)
        if dtype == B:
            return value if choice < 0.7 else self.compared(B, value, depth, ("=", "<>"))
        return self.compared(dtype, value, depth)

    def like(self, text: Expression) -> Expression:
        """Return LIKE, with or without ESCAPE, or STARTS_WITH."""
        pattern = Literal(self.random.choice(PATTERNS), T)
        match self.random.randrange(4):
            case 0:
                return Call("LIKE ESCAPE", (text, pattern, Literal("!", T)), B)
            case 1:
                return Call("STARTS_WITH", (text, self.constant(T)), B)
            case _:
                return Call("LIKE", (text, pattern), B)

    def compared(
        self, dtype: DataType, value: Expression, depth: int, names: tuple[str, ...] = COMPARED
    ) -> Expression:
        """Return a comparison, of numbers perhaps of both types."""
        if dtype in (N, D) and self.random.random() < 0.2:
            dtype = D if dtype == N else N
        constant = self.random.random() < 0.6
        other = self.constant(dtype) if constant else self.value(dtype, depth)
        sides = (value, other) if self.random.random() < 0.7 else (other, value)
        return Call(self.random.choice(names), sides, B)

    def same(self, dtype: DataType, left: Expression, depth: int) -> Expression:
        """Return IS NOT DISTINCT FROM as the binder writes it."""
        right = self.value(dtype, depth)
        empty = Call("IS NULL", (left,), B), Call("IS NULL", (right,), B)
        equal = Call("=", (left, right), B)
        return Call("CASE", (empty[0], empty[1], empty[1], Literal(False, B), equal), B)
