"""Readers of one relation by their conditions: who may need a row, without asking all of them."""

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import count
from operator import itemgetter
from typing import Any

from stream_engine.exchange.bound_pairs import BoundPairs, TextPieces
from stream_engine.exchange.turning_bounds import TurningBounds
from streamsql.algebra.expressions import Column
from streamsql.algebra.scalar_functions.scalar import compile_expression, compile_filter
from streamsql.data.delta import Delta
from streamsql.data.types import Row, Value
from streamsql.errors import FederationError
from streamsql.wire.bundles.reader_conditions import (
    Bound,
    Containing,
    OneOf,
    RowCondition,
    Simple,
    Term,
    Turning,
    Within,
    branches,
    predicate_of,
)

FAILURES = (ArithmeticError, FederationError, LookupError, RuntimeError, TypeError, ValueError)
"""Errors with which an expression may fail."""

FEW = 4
"""Conditions with bounds of a term that are compared one by one, where these are all there are.

Of a hundred rows each then takes 0.03 µs a row; a sorted list takes 0.2 µs and a tree 0.5 µs, for
all. Of a change of one row four take as long either way.
"""

_Side = list[tuple[Bound, int, str]]
"""A bound, whether it is in (see `Within`), and the name of the condition, sorted."""

_Valued = list[tuple[Row, int, Any]]
"""Rows with their weights and the values of a term, none of them NULL or NaN."""


class FilterBank:
    """Finds the readers whose condition a row fulfils.

    Readers of equal conditions are one entry, and get one part of a change. A term of conditions, a
    column or another expression, is evaluated once a row for all of them; the only condition of a
    term is a predicate. Conditions of equality are found by hash, those with one bound in a sorted
    list, those with two in a tree, pieces of texts by hash at each place; a few with bounds are
    compared one by one. Comparisons with a constant inside are found by where they turn. One with
    branches is found by each of these. Nobody needs a row for a condition on a value that is NULL
    or NaN. A row for which a term fails goes to all readers that are found by the term: their
    filters fail, too, or do not ask for it.

    State: one entry a condition, branch and value, and one a reader. Work: of a change, O(terms *
    log conditions) a row, and that of `TextPieces`; O(conditions found) for all rows together that
    are equal to the same values or between the same bounds; one copy of a row for each different
    part. Of a new condition, amortised, O(log conditions) comparisons.
    """

    def __init__(self) -> None:
        self._by_reader: dict[str, _Alike] = {}
        self._alike: dict[RowCondition, _Alike] = {}
        self._terms: dict[Term, _TermReaders] = {}
        self._single: dict[Term, _Single] = {}  # terms of one condition
        self._count = count()

    def __len__(self) -> int:
        """Return the number of readers."""
        return len(self._by_reader)

    def add(self, reader: str, condition: RowCondition) -> None:
        """Add a reader that is not there.

        Raises:
            InternalError: The condition calls a function that is unknown here.
        """
        alike = self._alike.get(condition)
        if alike is None:
            alike = self._alike[condition] = _Alike(str(next(self._count)), condition)
            for number, branch in enumerate(branches(condition)):
                self._add(alike, number, branch)
        alike.readers[reader] = None
        self._by_reader[reader] = alike

    def _add(self, alike: "_Alike", number: int, branch: Simple) -> None:
        term = self._terms.get(branch.term)
        if term is None:
            first = self._single.pop(branch.term, None)
            if first is None:
                self._single[branch.term] = _Single(alike, number, branch)
                return
            term = self._terms[branch.term] = _TermReaders(branch.term)
            term.add(first.alike, first.number, first.branch)
        term.add(alike, number, branch)

    def remove(self, reader: str) -> None:
        """Remove a reader; nothing happens if it is not there."""
        alike = self._by_reader.pop(reader, None)
        if alike is None:
            return
        del alike.readers[reader]
        if alike.readers:
            return
        del self._alike[alike.condition]
        for number, branch in enumerate(branches(alike.condition)):
            if self._single.pop(branch.term, None) is not None:
                continue
            term = self._terms[branch.term]
            term.remove(alike, number, branch)
            if term.is_empty:
                del self._terms[branch.term]

    def parts(self, delta: Delta) -> list[tuple[Collection[str], Delta]]:
        """Return readers with the rows of a change that each of them may need.

        No reader is named twice, and nobody may alter a part.
        """
        found: dict[_Alike, list[Delta]] = {}
        for single in self._single.values():
            rows = single.found(delta)
            if rows:
                found.setdefault(single.alike, []).append(rows)
        for term in self._terms.values():
            for those, rows in term.found(delta):
                for alike in those:
                    found.setdefault(alike, []).append(rows)
        added: dict[tuple[int, ...], Delta] = {}
        return [(alike.readers, _sum(groups, added)) for alike, groups in found.items()]


def _sum(groups: Sequence[Delta], added: dict[tuple[int, ...], Delta]) -> Delta:
    """Return groups of rows as one, each row once.

    The same groups give the same object, one group itself.
    """
    if len(groups) == 1:
        return groups[0]
    key = tuple(map(id, groups))
    total = added.get(key)
    if total is None:
        total = added[key] = {}
        for rows in groups:
            total.update(rows)
    return total


class _Alike:
    """The readers of one condition, and a name of it."""

    __slots__ = ("condition", "name", "readers")

    def __init__(self, name: str, condition: RowCondition) -> None:
        self.name = name
        self.condition = condition
        self.readers: dict[str, None] = {}


_Found = Iterator[tuple[Iterable[_Alike], Delta]]
"""Conditions with rows for which they hold."""


class _Single:
    """The only condition of a term: a predicate.

    Ten thousand of these take a quarter of the time that they take as `_TermReaders`.
    """

    __slots__ = ("_kept", "alike", "branch", "number")

    def __init__(self, alike: _Alike, number: int, branch: Simple) -> None:
        self.alike = alike
        self.number = number
        self.branch = branch
        self._kept = compile_filter(predicate_of(branch))

    def found(self, delta: Delta) -> Delta:
        """Return the rows for which the condition holds or fails."""
        try:
            return self._kept(delta)
        except FAILURES:
            return {row: weight for row, weight in delta.items() if self._may_hold(row)}

    def _may_hold(self, row: Row) -> bool:
        try:
            return bool(self._kept({row: 1}))
        except FAILURES:
            return True


class _TermReaders:
    """The conditions that are found by one term."""

    __slots__ = ("_alike", "_bounds", "_equal", "_pieces", "_turning", "_value")

    def __init__(self, term: Term) -> None:
        match term.expression:
            case Column(position=position):
                self._value: Callable[[Row], Any] = itemgetter(position)
            case computed:
                self._value = compile_expression(computed)
        self._equal: dict[Value, dict[_Alike, None]] = {}
        self._bounds = _TermBounds()
        self._pieces = TextPieces[_Alike]()
        self._turning: TurningBounds[_Alike] | None = None  # then there is nothing of the others
        self._alike: dict[_Alike, int] = {}  # how many branches of each there are

    @property
    def is_empty(self) -> bool:
        return not self._alike

    def add(self, alike: _Alike, number: int, condition: Simple) -> None:
        self._alike[alike] = self._alike.get(alike, 0) + 1
        match condition:
            case OneOf(values=values):
                for value in values:
                    self._equal.setdefault(value, {})[alike] = None
            case Within():
                self._bounds.add(f"{alike.name}/{number}", alike, condition)
            case Containing(piece=piece):
                self._pieces.add(piece, alike)
            case Turning(constant=constant):
                if self._turning is None:
                    self._turning = TurningBounds(condition)
                self._turning.add(constant, alike)

    def remove(self, alike: _Alike, number: int, condition: Simple) -> None:
        self._alike[alike] -= 1
        if not self._alike[alike]:
            del self._alike[alike]
        match condition:
            case OneOf(values=values):
                for value in values:
                    del self._equal[value][alike]
                    if not self._equal[value]:
                        del self._equal[value]
            case Within():
                self._bounds.remove(f"{alike.name}/{number}", condition)
            case Containing(piece=piece):
                self._pieces.remove(piece, alike)
            case Turning(constant=constant):
                assert self._turning is not None  # noqa: S101  (it has been added)
                self._turning.remove(constant, alike)

    def found(self, delta: Delta) -> _Found:
        """Yield conditions with the rows for which they hold, perhaps in groups."""
        if self._turning is not None:
            yield from self._turning.found(delta, FAILURES)
            return
        try:
            values = list(map(self._value, delta))
        except FAILURES:
            delta, values, failed = self._one_by_one(delta)
            yield self._alike, failed
        if self._equal:
            groups: dict[Value, Delta] = {}
            for row, value in zip(delta, values, strict=True):
                if value in self._equal:
                    groups.setdefault(value, {})[row] = delta[row]
            for value, rows in groups.items():
                yield self._equal[value], rows
        if self._bounds:
            yield from self._bounds.found(delta, values)
        if self._pieces:
            found: dict[str, Delta] = {}
            for value, (row, weight) in zip(values, delta.items(), strict=True):
                for piece in () if value is None else self._pieces.inside(value):
                    found.setdefault(piece, {})[row] = weight
            for piece, rows in found.items():
                yield self._pieces[piece], rows

    def _one_by_one(self, delta: Delta) -> tuple[Delta, list[Any], Delta]:
        """Return the rows with a value, their values, and the other rows."""
        valued, values, failed = Delta(), list[Any](), Delta()
        for row, weight in delta.items():
            try:
                values.append(self._value(row))
            except FAILURES:
                failed[row] = weight
            else:
                valued[row] = weight
        return valued, values, failed


class _TermBounds:
    """The bounds of one term."""

    __slots__ = ("_alike", "_conditions", "_high", "_low", "_pairs")

    def __init__(self) -> None:
        self._low: _Side = []
        self._high: _Side = []
        self._pairs = BoundPairs()
        self._alike: dict[str, _Alike] = {}
        self._conditions: dict[str, Within] = {}

    def __len__(self) -> int:
        """Return the number of conditions."""
        return len(self._alike)

    @property
    def are_few(self) -> bool:
        return len(self._alike) <= FEW

    def add(self, name: str, alike: _Alike, condition: Within) -> None:
        low, high = condition.low, condition.high
        self._alike[name] = alike
        self._conditions[name] = condition
        if low is not None and high is not None:
            self._pairs.add(name, low, high)
        elif low is not None:
            insort(self._low, (*low, name))
        elif high is not None:
            insort(self._high, (*high, name))

    def remove(self, name: str, condition: Within) -> None:
        low, high = condition.low, condition.high
        del self._alike[name]
        del self._conditions[name]
        if low is not None and high is not None:
            self._pairs.remove(name)
        elif low is not None:
            del self._low[bisect_left(self._low, (*low, name))]
        elif high is not None:
            del self._high[bisect_left(self._high, (*high, name))]

    def found(self, delta: Delta, values: Sequence[Any]) -> _Found:
        """Yield conditions with the rows for which they hold; values of the term in order."""
        if self.are_few:
            yield from self.each(delta, values)
            return
        both = zip(values, delta.items(), strict=True)
        # NULL and NaN have no order; NaN alone differs from itself.
        valued = [(row, n, v) for v, (row, n) in both if v is not None and v == v]  # noqa: PLR0124
        yield from self._above_or_below(valued)
        yield from self._between(valued)

    def each(self, delta: Delta, values: Sequence[Any]) -> _Found:
        """Yield conditions with the rows for which they hold, compared one by one."""
        for name, condition in self._conditions.items():
            rows = _within(condition, zip(delta, values, strict=True))
            if rows:
                yield (self._alike[name],), {row: delta[row] for row in rows}

    def _above_or_below(self, valued: _Valued) -> _Found:
        """Yield conditions of one bound with rows for which they hold; no row comes twice.

        Rows between the same bounds come together: 300 values under five bounds take a seventh of
        the time of asking for each.
        """
        lows, highs = self._low, self._high
        if not (lows or highs):
            return
        groups: dict[tuple[int, int], Delta] = {}
        for row, weight, value in valued:
            place = (bisect_left(lows, (value, 1)), bisect_left(highs, (value, 1)))
            groups.setdefault(place, {})[row] = weight
        for (low, high), rows in groups.items():
            names = [name for _bound, _in, name in (*lows[:low], *highs[high:])]
            yield [self._alike[name] for name in names], rows

    def _between(self, valued: _Valued) -> _Found:
        """Yield the conditions of two bounds with the rows for which they hold."""
        found: dict[str, Delta] = {}
        if self._pairs:
            around: dict[Bound, list[str]] = {}
            for row, weight, value in valued:
                names = around.get(value)
                if names is None:
                    names = around[value] = list(self._pairs.around(value))
                for name in names:
                    found.setdefault(name, {})[row] = weight
        for name, part in found.items():
            yield (self._alike[name],), part


def _within(condition: Within, valued: Iterable[tuple[Row, Any]]) -> list[Row]:
    """Return the rows whose values are between the bounds of a condition."""
    found = ((row, v) for row, v in valued if v is not None) if condition.low is None else valued
    if condition.low is not None:  # values have an order with the bounds (see `needed_rows`)
        low, is_out = condition.low
        found = (
            [each for each in valued if (v := each[1]) is not None and v > low]
            if is_out
            else [each for each in valued if (v := each[1]) is not None and v >= low]
        )
    if condition.high is None:
        return [row for row, _value in found]
    high, is_in = condition.high
    return [row for row, v in found if (v <= high if is_in else v < high)]
