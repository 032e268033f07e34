"""Ranges and orders of columns that follow from comparisons which are all TRUE.

A bound of one column gives one of another along a difference or a flow between them. Which steps
count is the caller's choice: along differences of zero (equalities and plain orders) every bound
that comes out is one of the bounds that went in, so nothing grows however often it is done again.
With steps that shift, a circle such as `a > b + 1 AND b > a + 1` gives ever greater bounds; each
column is passed at most once, so the work is bounded.

Engines compare an INTEGER with a DOUBLE as DOUBLE, which rounds from 2^53 on: for them 2^53 + 1
equals 2^53. Where the two meet, limits beyond that give nothing, and nor do orders: from
`a <= e AND e <= b` follows a <= b only if e has their type.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product

import msgspec

from federated_optimizer.canonical.inverse_functions import first_beyond
from federated_optimizer.canonical.linear_comparisons import (
    WHOLE,
    Bound,
    Difference,
    Flow,
    Number,
    Reading,
    Slope,
    exact,
    readings_of,
)
from streamsql.algebra.expressions import Call, Column, Expression, Literal, map_columns, walk
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.data.types import DataType

MAX_ORDERED = 12
"""Most columns whose orders are combined; with more, only bounds are."""

_EXACT_DOUBLES = 2**53
"""Whole numbers below it are DOUBLEs, and no greater whole number is rounded to one of them."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How far a column goes; not up to the value if it is strict."""

    value: Number
    strict: bool

    def is_stronger(self, other: "Limit | None", *, upper: bool) -> bool:
        """Compare two upper or two lower limits: True if fewer values pass this one."""
        if other is None:
            return True
        if self.value == other.value:
            return self.strict and not other.strict
        return _is_below(self.value, other.value) == upper


def _is_below(value: Number, other: Number) -> bool:
    """Whether a value is less than another one of its type."""
    if isinstance(value, str) or isinstance(other, str):
        return str(value) < str(other)
    return value < other


Ranges = dict[tuple[int, bool], Limit]
"""Limits by column and whether they are upper ones."""


class Comparisons:
    """Comparisons that are all TRUE.

    Attributes:
        columns: That are read, by position.
        bounds: The strongest of each column as they are written.
    """

    def __init__(self, predicates: Iterable[Expression]) -> None:
        self.columns: dict[int, Column] = {}
        self.bounds: Ranges = {}
        self.differences: list[Difference] = []
        self.slopes: list[Slope] = []
        self.flows: list[Flow] = []
        self._ranges: dict[bool, Ranges] = {}
        for predicate in predicates:
            readings, columns = _read(predicate)
            self.columns.update(columns)
            for reading in readings:
                self._take(reading)

    def _take(self, reading: Reading) -> None:
        match reading:
            case Bound(column=column, upper=upper, value=value, strict=strict):
                _strengthen(self.bounds, column, Limit(value, strict), upper=upper)
            case Difference():
                self.differences.append(reading)
            case Slope():
                self.slopes.append(reading)
            case Flow():
                self.flows.append(reading)

    def ranges(self, *, shifted: bool) -> Ranges:
        """Return the limits of all columns that follow.

        Args:
            shifted: Whether also along differences other than zero, slopes and flows.
        """
        shifted = shifted and self.shift
        if shifted not in self._ranges:
            self._ranges[shifted] = self._reached(shifted=shifted)
        return self._ranges[shifted]

    @cached_property
    def shift(self) -> bool:
        """Whether a bound may come out that is none of those that went in."""
        lines = self.flows or self.slopes
        return bool(lines) or any(each.distance for each in self.differences)

    @property
    def sources(self) -> set[int]:
        """The columns whose bounds may give others one."""
        differences = {column for each in self.differences for column in (each.low, each.high)}
        flows = {column for each in self.flows for column in (each.source, each.target)}
        return differences | flows | {each.source for each in self.slopes}

    def _reached(self, *, shifted: bool) -> Ranges:
        found = dict(self.bounds)
        if not found:
            return found
        for _ in range(len(self.columns) + 1):
            before = dict(found)
            for difference in self.differences:
                if shifted or not difference.distance:
                    _pass(found, difference, mixed=self._is_mixed(difference))
            for slope in self.slopes if shifted else ():
                self._slide(found, slope)
            for flow in self.flows if shifted else ():
                self._flow(found, flow)
                self._flow_back(found, flow)
            if found == before:
                break
        return found

    def _flow(self, found: Ranges, flow: Flow) -> None:
        limit = found.get((flow.source, flow.rising != flow.below))
        value = self._computed(flow, limit) if limit is not None else None
        mixed = flow.function.dtype != self.columns[flow.target].dtype
        if value is not None and not (mixed and _is_rounded(value)):
            reached = Limit(value + flow.shift, flow.strict)
            _strengthen(found, flow.target, reached, upper=not flow.below)

    def _flow_back(self, found: Ranges, flow: Flow) -> None:
        """Bound the source of a flow where its function would go beyond a limit of the target."""
        limit = found.get((flow.target, flow.below))
        if limit is None or isinstance(limit.value, str):
            return
        mixed = flow.function.dtype != self.columns[flow.target].dtype
        most = limit.value - flow.shift
        if mixed and (_is_rounded(limit.value) or _is_rounded(most)):
            return
        source, strict = self.columns[flow.source], limit.strict or flow.strict
        end = first_beyond(flow.function, source, most, upper=flow.below, strict=strict)
        if end is not None:
            _strengthen(found, flow.source, Limit(end, True), upper=flow.below == flow.rising)

    def _slide(self, found: Ranges, slope: Slope) -> None:
        upper = slope.upper == (slope.ratio > 0)
        limit = found.get((slope.source, upper))
        if limit is None or isinstance(limit.value, str):
            return
        at, strict = limit.value, limit.strict
        if strict and self.columns[slope.source].dtype in WHOLE:
            at, strict = _next_whole(at, upper=upper), False
        value = slope.ratio * at + slope.shift
        mixed = self.columns[slope.source].dtype != self.columns[slope.target].dtype
        if mixed and (_is_rounded(at) or _is_rounded(value)):
            return
        whole = value.numerator if value.denominator == 1 else value
        reached = Limit(whole, strict or slope.strict)
        _strengthen(found, slope.target, reached, upper=slope.upper)

    def _computed(self, flow: Flow, limit: Limit) -> int | Fraction | None:
        """Return the function at a limit of its source; None where there is no such value."""
        source, upper = self.columns[flow.source], flow.rising != flow.below
        written = _literal(limit, source.dtype, upper=upper)
        if written is None:
            return None
        at, strict = written
        if strict and source.dtype in WHOLE:  # the next number passes first
            following = _whole(int(limit.value) + (-1 if upper else 1), source.dtype, strict=False)
            at = at if following is None else following[0]
        value = compile_expression(map_columns(flow.function, lambda _: at))(())
        number = exact(value)
        return None if isinstance(number, str) else number

    @property
    def contradict(self) -> bool:
        """Find a contradiction: True is certain, False is not."""
        ranges = self.ranges(shifted=True)
        for (column, upper), limit in ranges.items():
            other = ranges.get((column, False)) if upper else None
            if other is not None and _is_empty(other, limit, self.columns[column].dtype):
                return True
        if not any(each.strict or each.distance for each in self._exact):
            return False
        return any(a == b and self._is_less(a, b) for a, b in self._orders)

    def order(self, low: int, high: int) -> str | None:
        """Return how a column stands to another one: `=`, `<` or `<=`; None: nothing is known."""
        if not self._orders or not self._is_at_most(low, high):
            return None
        if self._is_less(low, high):
            return "<"
        return "=" if self._is_at_most(high, low) else "<="

    @cached_property
    def related(self) -> list[tuple[int, int]]:
        """The pairs of columns of which something is known by `order`, sorted."""
        at_most = (pair for pair, distance in self._orders.items() if distance[0] <= 0)
        return sorted((low, high) for low, high in at_most if low != high)

    @cached_property
    def equal_pairs(self) -> list[tuple[int, int]]:
        """The pairs of columns that `order` knows to be equal, the lesser first, sorted."""
        orders = self._orders
        return sorted(
            (low, high)
            for (low, high), distance in orders.items()
            if low < high and distance == (0, False) and orders.get((high, low), (1,))[0] <= 0
        )

    def equal(self, column: Column, limit: Limit) -> Expression | None:
        """Return that a column equals a limit; None where no constant says it."""
        bounded = self.predicate(column, limit, upper=True)
        return None if bounded is None else msgspec.structs.replace(bounded, function="=")

    def predicate(self, column: Column, limit: Limit, *, upper: bool) -> Call | None:
        """Return a limit as a comparison with a constant; None where no constant says it."""
        written = _literal(limit, column.dtype, upper=upper)
        if written is None:
            return None
        constant, strict = written
        name = ("<" if upper else ">") + ("" if strict else "=")
        return Call(name, (column, constant), DataType.BOOLEAN)

    def _is_less(self, low: int, high: int) -> bool:
        distance = self._orders.get((low, high))
        return distance is not None and (distance[0] < 0 or distance == (0, True))

    def _is_at_most(self, low: int, high: int) -> bool:
        distance = self._orders.get((low, high))
        return distance is not None and distance[0] <= 0

    @cached_property
    def ordered(self) -> list[int]:
        """The columns of all differences within a type."""
        return sorted({c for each in self._exact for c in (each.low, each.high)})

    @cached_property
    def _exact(self) -> list[Difference]:
        return [each for each in self.differences if not self._is_mixed(each)]

    def _is_mixed(self, difference: Difference) -> bool:
        return self.columns[difference.low].dtype != self.columns[difference.high].dtype

    @cached_property
    def _orders(self) -> dict[tuple[int, int], tuple[int, bool]]:
        """The least distance from a column to another one, and whether it is strict."""
        found: dict[tuple[int, int], tuple[int, bool]] = {}
        if len(self.ordered) > MAX_ORDERED:
            return found
        for each in self._exact:
            _shorten(found, (each.low, each.high), (each.distance, each.strict))
        if all(found.get((high, low)) == each == (0, False) for (low, high), each in found.items()):
            return _same(found)
        # Few columns are compared with each other: looking at every three of them takes ten times
        # as long (chains of five self-joins).
        for middle in self.ordered:
            into = [(low, found[low, middle]) for low in self.ordered if (low, middle) in found]
            out = [(high, found[middle, high]) for high in self.ordered if (middle, high) in found]
            for (low, (first, one)), (high, (second, other)) in product(into, out):
                _shorten(found, (low, high), (first + second, one or other))
        return found


def _same(pairs: Iterable[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, bool]]:
    """Return the distances where all that is known is which columns are equal."""
    classes: dict[int, set[int]] = {}
    for low, high in pairs:
        united = classes.get(low, {low}) | classes.get(high, {high})
        classes.update(dict.fromkeys(united, united))
    return {(low, high): (0, False) for low, united in classes.items() for high in united}


@lru_cache(maxsize=4_096)
def _read(predicate: Expression) -> tuple[tuple[Reading, ...], dict[int, Column]]:
    """Return what a predicate says however INTEGER is compared with DOUBLE, and its columns."""
    readings = readings_of(predicate)
    parts = list(walk(predicate)) if readings else []
    if {DataType.INTEGER, DataType.DOUBLE} <= {part.dtype for part in parts}:
        constants = [exact(part.value) for part in parts if isinstance(part, Literal)]
        limits = [reading.value for reading in readings if isinstance(reading, Bound)]
        if limits and any(_is_rounded(value) for value in (*constants, *limits)):
            readings = ()
    columns = {part.position: part for part in parts if isinstance(part, Column)}
    return readings, columns if readings else {}


def _next_whole(value: int | Fraction, *, upper: bool) -> int:
    """Return the greatest whole number below a value if that is an upper limit, else the least."""
    return math.ceil(value) - 1 if upper else math.floor(value) + 1


def _is_rounded(value: Number | None) -> bool:
    """Whether DOUBLE may have a value for others as well."""
    return isinstance(value, int | Fraction) and not -_EXACT_DOUBLES < value < _EXACT_DOUBLES


def _shorten(
    found: dict[tuple[int, int], tuple[int, bool]], pair: tuple[int, int], new: tuple[int, bool]
) -> None:
    old = found.get(pair)
    if old is None or new[0] < old[0] or (new[0] == old[0] and new[1] and not old[1]):
        found[pair] = new


def _pass(found: Ranges, difference: Difference, *, mixed: bool) -> None:
    """Hand the limits of one column to the other: low - high <= distance.

    Args:
        found: By column; stronger ones are put in.
        difference: Of two columns.
        mixed: Whether they are of different types.
    """
    low, high, distance = difference.low, difference.high, difference.distance
    for source, target, upper in ((high, low, True), (low, high, False)):
        limit = found.get((source, upper))
        if limit is None:
            continue
        value = _moved(limit.value, distance if upper else -distance)
        if mixed and (_is_rounded(limit.value) or _is_rounded(value)):
            continue
        reached = Limit(value, limit.strict or difference.strict)
        _strengthen(found, target, reached, upper=upper)


def _moved(value: Number, distance: int) -> Number:
    return value if isinstance(value, str) else value + distance


def _strengthen(found: Ranges, column: int, limit: Limit, *, upper: bool) -> None:
    if limit.is_stronger(found.get((column, upper)), upper=upper):
        found[column, upper] = limit


def _literal(limit: Limit, dtype: DataType, *, upper: bool) -> tuple[Literal, bool] | None:
    """Return a limit as a constant of a type and whether it is strict; None if there is none."""
    value = limit.value
    if isinstance(value, str):
        return (Literal(value, dtype), limit.strict) if dtype == DataType.TEXT else None
    if dtype in WHOLE:
        if isinstance(value, Fraction) and value.denominator != 1:
            return _whole(math.floor(value) if upper else math.ceil(value), dtype, strict=False)
        return _whole(int(value), dtype, strict=limit.strict)
    if dtype == DataType.DOUBLE:
        try:
            number = float(value)
        except OverflowError:
            return None
        return (Literal(number, dtype), limit.strict) if Fraction(number) == value else None
    return None


def _whole(value: int, dtype: DataType, *, strict: bool) -> tuple[Literal, bool] | None:
    return (Literal(value, dtype), strict) if -(2**63) <= value < 2**63 else None


def _is_empty(lower: Limit, upper: Limit, dtype: DataType) -> bool:
    least, most = lower.value, upper.value
    if dtype in WHOLE and not isinstance(least, str) and not isinstance(most, str):
        least = math.floor(least) + 1 if lower.strict else math.ceil(least)
        most = math.ceil(most) - 1 if upper.strict else math.floor(most)
        return least > most
    return _is_below(most, least) or (least == most and (lower.strict or upper.strict))
