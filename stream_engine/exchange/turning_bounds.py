"""Comparisons that differ in a constant inside: `a > b + 3`, `a > b + 4`, and so on."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from streamsql.algebra.expressions import Call, Expression, columns_of
from streamsql.algebra.scalar_functions.scalar import compile_opened
from streamsql.data.delta import Delta
from streamsql.data.types import Row
from streamsql.wire.bundles.reader_conditions import Turning

_T = TypeVar("_T")

_Test = Callable[[Row, int | float], bool | None]
"""Returns whether a comparison is TRUE of a row with a constant; None: it is NULL."""

_NONE = (0, 0)


class TurningBounds(Generic[_T]):
    """Finds the comparisons that are TRUE of a row, by the constants where they turn.

    The comparison itself is evaluated, with O(log comparisons) constants of a row, so rounding is
    what it is for each of them. Where it is NULL with the least or the greatest constant, though no
    column is, it may turn more than once: then all may be TRUE.

    State: one entry a comparison, all of one term.
    """

    __slots__ = ("_columns", "_constants", "_holders", "_tests")

    def __init__(self, first: Turning) -> None:
        comparison = first.term.expression
        # `a = b + 3` is TRUE where both `a <= b + 3` and `a >= b + 3` are, and each of these turns.
        self._tests: list[_Test] = [
            compile_opened(each, first.place) for each in _turning_once(comparison)
        ]
        self._columns = tuple(columns_of(comparison) - {first.place})
        self._constants: list[int | float] = []
        self._holders: dict[int | float, dict[_T, None]] = {}

    def __len__(self) -> int:
        """Return the number of different comparisons."""
        return len(self._constants)

    def add(self, constant: float, holder: _T) -> None:
        """Add the comparison with a constant; nothing happens if the holder has it."""
        if constant not in self._holders:
            insort(self._constants, constant)
            self._holders[constant] = {}
        self._holders[constant][holder] = None

    def remove(self, constant: float, holder: _T) -> None:
        """Remove the comparison with a constant, of a holder who has it."""
        del self._holders[constant][holder]
        if not self._holders[constant]:
            del self._holders[constant]
            del self._constants[bisect_left(self._constants, constant)]

    def found(
        self, delta: Delta, failures: tuple[type[Exception], ...]
    ) -> Iterator[tuple[Iterable[_T], Delta]]:
        """Yield who has comparisons, with the rows of which these are TRUE, or fail.

        Rows of the same comparisons come together, and no row comes twice to one comparison.
        """
        if not self._constants:
            return
        groups: dict[tuple[int, int], Delta] = {}
        for row, weight in delta.items():
            try:
                span = self._span(row)
            except failures:
                span = 0, len(self._constants)
            if span[0] < span[1]:
                groups.setdefault(span, {})[row] = weight
        for (begin, end), rows in groups.items():
            constants = self._constants[begin:end]
            yield [holder for each in constants for holder in self._holders[each]], rows

    def _span(self, row: Row) -> tuple[int, int]:
        """Return the first constant with which the comparison is TRUE, and the one after all."""
        begin, end = 0, len(self._constants)
        for test in self._tests:
            first, last = test(row, self._constants[0]), test(row, self._constants[-1])
            if first is None or last is None:
                is_null = any(row[column] is None for column in self._columns)
                return _NONE if is_null else (0, len(self._constants))
            if not (first or last):
                return _NONE
            if first != last:
                turn = bisect_left(self._constants, True, key=_turned(test, row, is_true=last))
                begin, end = (max(begin, turn), end) if last else (begin, min(end, turn))
        return begin, end


def _turning_once(comparison: Expression) -> Iterable[Expression]:
    if isinstance(comparison, Call) and comparison.function == "=":
        names = ("<=", ">=")
        return [Call(name, comparison.arguments, comparison.dtype) for name in names]
    return [comparison]


def _turned(test: _Test, row: Row, *, is_true: bool) -> Callable[[Any], bool]:
    """Return what is FALSE of all constants before the comparison turns, and TRUE of the others."""
    return (lambda c: bool(test(row, c))) if is_true else (lambda c: not test(row, c))
