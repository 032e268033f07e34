"""Sets of values that a term may have: spans of an ordered domain, and perhaps NaN and NULL.

A predicate over one term lets a region pass, so `a > 3`, `a IN (1, 2)`, `a BETWEEN 1 AND 5`,
`a <> 4`, `a IS NULL`, `s LIKE 'ab%'` and disjunctions of them are all regions, and implication is
inclusion. A region has one form: its spans are sorted and apart, and those of whole numbers closed.

| domain | values                                   | ends                    |
|--------|------------------------------------------|-------------------------|
| WHOLE  | integers, times, durations               | closed                  |
| DENSE  | DOUBLE; between two there may be others  | open or closed, or NaN  |
| TEXT   | texts by code points                     | open or closed          |
| ORDER  | how one value stands to another: -1, 0, 1| closed, or NaN          |
| TRUTH  | 0 and 1                                  | closed                  |
"""

import enum
from collections.abc import Iterable, Iterator
from fractions import Fraction

import msgspec

from federated_optimizer.canonical.linear_comparisons import Number

Cut = tuple[int, Number, int]
"""A place between values: below all (-1), above all (1), or (0) before (-1) or behind (1) one."""

BOTTOM: Cut = (-1, 0, 0)
TOP: Cut = (1, 0, 0)
_LAST_CHARACTER = 0x10FFFF


class Domain(enum.StrEnum):
    """The kind of values a term has."""

    WHOLE = "WHOLE"
    DENSE = "DENSE"
    TEXT = "TEXT"
    ORDER = "ORDER"
    TRUTH = "TRUTH"

    @property
    def is_discrete(self) -> bool:
        """Return whether between two neighbours there is no other value."""
        return self not in (Domain.DENSE, Domain.TEXT)

    @property
    def has_nan(self) -> bool:
        """Return whether a value may be in no order."""
        return self in (Domain.DENSE, Domain.ORDER)


Span = tuple[Cut, Cut]


def before(value: Number) -> Cut:
    """Return the place right before a value."""
    return (0, value, -1)


def behind(value: Number) -> Cut:
    """Return the place right behind a value."""
    return (0, value, 1)


_ENDS: dict[Domain, Span] = {
    Domain.ORDER: (before(-1), behind(1)),
    Domain.TRUTH: (before(0), behind(1)),
}


class Region(msgspec.Struct, frozen=True):
    """Values of a domain.

    Attributes:
        domain: Of the values.
        spans: From cut to cut, ascending, none touching the next one.
        nan: Whether NaN belongs to it.
        null: Whether NULL belongs to it.
    """

    domain: Domain
    spans: tuple[Span, ...]
    nan: bool = False
    null: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether nothing belongs to it."""
        return not (self.spans or self.nan or self.null)

    @property
    def is_everything(self) -> bool:
        """Return whether everything belongs to it, NULL included."""
        return self.null and self.nan == self.domain.has_nan and self.spans == ((BOTTOM, TOP),)

    @property
    def hull(self) -> Span | None:
        """The cuts that enclose all of its values but NaN and NULL; None: there are none."""
        return (self.spans[0][0], self.spans[-1][1]) if self.spans else None

    def points(self, most: int) -> list[Number] | None:
        """Return all of its values; None if they are more than `most`, or NaN is among them."""
        if self.nan:
            return None
        found: list[Number] = []
        least, greatest = _ENDS.get(self.domain, (BOTTOM, TOP))
        for low, high in self.spans:
            (rank, start, side), (end_rank, end, end_side) = max(low, least), min(high, greatest)
            if rank or end_rank:
                return None
            if start == end and side < end_side:
                found.append(start)
            elif self.domain.is_discrete and isinstance(start, int) and isinstance(end, int):
                if end - start >= most:
                    return None
                found.extend(range(start, end + 1))
            else:
                return None
            if len(found) > most:
                return None
        return found

    def includes(self, other: "Region") -> bool:
        """Return whether all of another region belongs to this one."""
        if (other.null and not self.null) or (other.nan and not self.nan):
            return False
        mine = iter(self.spans)
        at = next(mine, None)
        for low, high in other.spans:
            while at is not None and at[1] < high:
                at = next(mine, None)
            if at is None or low < at[0]:
                return False
        return True

    def union(self, other: "Region") -> "Region":
        """Return what belongs to either."""
        spans = _merged((*self.spans, *other.spans), self.domain)
        return Region(self.domain, spans, self.nan or other.nan, self.null or other.null)

    def intersection(self, other: "Region") -> "Region":
        """Return what belongs to both."""
        if other.is_everything:
            return self
        found: list[Span] = []
        mine, others = iter(self.spans), iter(other.spans)
        one, another = next(mine, None), next(others, None)
        while one is not None and another is not None:
            span = (max(one[0], another[0]), min(one[1], another[1]))
            if span[0] < span[1]:
                found.append(span)
            if one[1] <= another[1]:
                one = next(mine, None)
            else:
                another = next(others, None)
        # In order and apart as those of both are: nothing is to be merged.
        spans = tuple(found)
        return Region(self.domain, spans, self.nan and other.nan, self.null and other.null)

    def complement(self) -> "Region":
        """Return what does not belong to it."""
        starts = (BOTTOM, *(high for _, high in self.spans))
        ends = (*(low for low, _ in self.spans), TOP)
        gaps = ((low, high) for low, high in zip(starts, ends, strict=True) if low < high)
        nan = self.domain.has_nan and not self.nan
        return Region(self.domain, _merged(gaps, self.domain), nan, not self.null)

    def within(self, limits: Span) -> "Region":
        """Return it where values go from one cut to another: ends at these are open."""
        if not self.spans or (limits[0] < self.spans[0][0] and self.spans[-1][1] < limits[1]):
            return self
        spans = []
        for low, high in self.spans:
            start, end = max(low, limits[0]), min(high, limits[1])
            if start < end:
                start = BOTTOM if start == limits[0] else start
                spans.append((start, TOP if end == limits[1] else end))
        return Region(self.domain, tuple(spans), self.nan, self.null)

    def without_null(self) -> "Region":
        """Return it without NULL."""
        return Region(self.domain, self.spans, self.nan) if self.null else self


def _merged(spans: Iterable[Span], domain: Domain) -> tuple[Span, ...]:
    """Return spans in their one form."""
    found: list[Span] = []
    for low, high in sorted(_closed(spans) if domain.is_discrete else spans):
        if found and _touches(found[-1][1], low, domain):
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def _touches(high: Cut, low: Cut, domain: Domain) -> bool:
    """Return whether a span that ends at a cut leaves out nothing before another one begins."""
    if low <= high:
        return True
    if not domain.is_discrete or high[0] or low[0]:
        return False
    return isinstance(high[1], int) and isinstance(low[1], int) and high[1] + 1 >= low[1]


def _closed(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield spans of whole numbers with closed ends: 0 < x < 1.5 is 1 <= x <= 1."""
    for low, high in spans:
        if low[0] == 0 and not isinstance(low[1], str):
            low = before(_up(low[1], strict=low[2] > 0))  # noqa: PLW2901
        if high[0] == 0 and not isinstance(high[1], str):
            high = behind(-_up(-high[1], strict=high[2] < 0))  # noqa: PLW2901
        if low < high:
            yield low, high


def _up(value: int | Fraction, *, strict: bool) -> int:
    """Return the least whole number from a value on, or beyond it."""
    return int(value // 1) + 1 if strict else -int(-value // 1)


def region(
    domain: Domain, spans: Iterable[Span], *, nan: bool = False, null: bool = False
) -> Region:
    """Return a region in its one form."""
    return Region(domain, _merged(spans, domain), nan, null)


def empty(domain: Domain) -> Region:
    """Return the region of nothing."""
    return Region(domain, ())


def everything(domain: Domain) -> Region:
    """Return the region of all values, NaN and NULL."""
    return Region(domain, ((BOTTOM, TOP),), domain.has_nan, null=True)


def compared(domain: Domain, operator: str, value: Number) -> Region:
    """Return the values that compare TRUE with a constant; NaN differs from all.

    Args:
        domain: Of the values.
        operator: One of `=`, `<>`, `<`, `<=`, `>` and `>=`.
        value: The constant on the right.
    """
    spans: dict[str, tuple[Span, ...]] = {
        "=": ((before(value), behind(value)),),
        "<>": ((BOTTOM, before(value)), (behind(value), TOP)),
        "<": ((BOTTOM, before(value)),),
        "<=": ((BOTTOM, behind(value)),),
        ">": ((behind(value), TOP),),
        ">=": ((before(value), TOP),),
    }
    found = spans[operator]
    if domain.is_discrete and isinstance(value, Fraction) and value.denominator != 1:
        if operator == "=":
            return empty(domain)
        if operator == "<>":
            found = ((BOTTOM, TOP),)
    return region(domain, found, nan=operator == "<>" and domain.has_nan)


def beginning_with(prefix: str) -> Region:
    """Return the texts that begin with another one."""
    following = prefix
    while following and ord(following[-1]) == _LAST_CHARACTER:
        following = following[:-1]
    end: Cut = TOP
    if following:
        end = before(following[:-1] + chr(ord(following[-1]) + 1))
    return Region(Domain.TEXT, ((before(prefix) if prefix else BOTTOM, end),))
