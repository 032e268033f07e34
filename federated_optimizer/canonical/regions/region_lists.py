"""Regions of one term in sorted lists: which include a further one, and which it includes.

| a stored span                | is found, where it includes another one, by                     |
|------------------------------|-----------------------------------------------------------------|
| open to one side             | its end in a sorted list: all behind it are found               |
| of one value                 | that value                                                      |
| of numbers, shorter than 2^k | its beginning in a sorted list, no further away than 2^k        |
| of texts                     | the beginning that its ends have in common, of the other's texts|

So a look-up takes time for what it finds, and for regions that begin near by, not for all.
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from typing import Generic, TypeVar

from federated_optimizer.canonical.linear_comparisons import Number
from federated_optimizer.canonical.regions.regions import BOTTOM, TOP, Cut, Region, Span

Owner = TypeVar("Owner")


@dataclass(slots=True, eq=False)
class Stored(Generic[Owner]):
    """A region that is in a list, and to whom it belongs."""

    region: Region
    owner: Owner
    number: int


_Entry = tuple[Cut, int, Stored[Owner]]
_CUT: Callable[[tuple[Cut, int, object]], Cut] = itemgetter(0)

_Class = tuple[str, int]
"""Name of a list, and the exponent of its lengths."""


SPREAD = 8
"""Of spans that begin near another one some end too early to include it."""


class RegionList(Generic[Owner]):
    """Regions of one term, each once, and to whom they belong."""

    def __init__(self) -> None:
        self._stored: dict[Region, Stored[Owner]] = {}
        self._next = 0
        self._classes: dict[_Class, list[_Entry[Owner]]] = {}
        self._texts: dict[str, list[_Entry[Owner]]] = {}
        self._points: dict[Number, dict[int, Stored[Owner]]] = {}
        self._bare: dict[int, Stored[Owner]] = {}
        self._with_null: dict[int, Stored[Owner]] = {}
        self._with_nan: dict[int, Stored[Owner]] = {}
        self._by_start: list[_Entry[Owner]] = []
        self._by_end: list[_Entry[Owner]] = []

    def __len__(self) -> int:
        return len(self._stored)

    def __iter__(self) -> Iterator[Region]:
        return iter(self._stored)

    def owner(self, region: Region) -> Owner | None:
        """Return to whom a region belongs; None if it is not there."""
        found = self._stored.get(region)
        return None if found is None else found.owner

    def add(self, region: Region, owner: Owner) -> None:
        """Add a region that is not there."""
        number = self._next
        self._next += 1
        stored = self._stored[region] = Stored(region, owner, number)
        for flagged in self._flagged(region):
            flagged[number] = stored
        if region.spans:
            insort(self._by_start, (region.spans[0][0], number, stored), key=_CUT)
            insort(self._by_end, (region.spans[-1][1], number, stored), key=_CUT)
        for span in region.spans:
            if _is_point(span):
                self._points.setdefault(span[0][1], {})[number] = stored
            else:
                self._insert(span, stored)

    def remove(self, region: Region) -> None:
        """Remove a region that is there."""
        number = self._stored.pop(region).number
        for flagged in self._flagged(region):
            del flagged[number]
        if region.spans:
            _take_out(self._by_start, region.spans[0][0], number)
            _take_out(self._by_end, region.spans[-1][1], number)
        for span in region.spans:
            if _is_point(span):
                points = self._points[span[0][1]]
                del points[number]
                if not points:
                    del self._points[span[0][1]]
            else:
                self._delete(span, number)

    def _flagged(self, region: Region) -> list[dict[int, Stored[Owner]]]:
        flags = (
            (self._with_null, region.null),
            (self._with_nan, region.nan),
            (self._bare, not region.spans),
        )
        return [flagged for flagged, has in flags if has]

    def _insert(self, span: Span, stored: Stored[Owner]) -> None:
        """Put a span that is no point into its sorted list."""
        prefix = _prefix_of(span)
        if prefix is None:
            entries = self._classes.setdefault(_class_of(span), [])
        else:
            entries = self._texts.setdefault(prefix, [])
        insort(entries, (_sorted_by(span), stored.number, stored), key=_CUT)

    def _delete(self, span: Span, number: int) -> None:
        prefix = _prefix_of(span)
        if prefix is None:
            name = _class_of(span)
            _take_out(self._classes[name], _sorted_by(span), number)
            if not self._classes[name]:
                del self._classes[name]
        else:
            _take_out(self._texts[prefix], _sorted_by(span), number)
            if not self._texts[prefix]:
                del self._texts[prefix]

    def including(self, wanted: Region, most: int | None = None) -> list[Owner]:
        """Return the owners of all regions that include another one; some perhaps twice.

        With `most`, of those that are open to one side only so many, the nearest: what is further
        away includes these, too. Of those that are bounded on both sides `SPREAD` times as many of
        a length are looked at, the ones that begin nearest.
        """
        return [
            stored.owner
            for stored in self._perhaps_including(wanted, most)
            if stored.region.includes(wanted)
        ]

    def _perhaps_including(self, wanted: Region, most: int | None) -> list[Stored[Owner]]:
        if not wanted.spans:
            if wanted.null or wanted.nan:
                return list((self._with_null if wanted.null else self._with_nan).values())
            return list(self._stored.values())
        low, high = wanted.spans[0]
        found: list[Stored[Owner]] = []
        if _is_point(wanted.spans[0]):
            found += self._points.get(low[1], {}).values()
        for name, entries in self._classes.items():
            around = _around(name, entries, low, high)
            if most is not None:
                around = _nearest(name, around, most)
            found += [stored for _, _, stored in around]
        if not low[0] and isinstance(low[1], str):
            for length in range(len(low[1]) + 1):
                entries = self._texts.get(low[1][:length], [])
                end = bisect_right(entries, low, key=_CUT)
                found += [stored for _, _, stored in entries[:end]]
        return found

    def included(self, wanted: Region) -> list[Owner]:
        """Return the owners of all regions that another one includes."""
        found = [each.owner for each in self._bare.values() if wanted.includes(each.region)]
        for span in wanted.spans:
            entries, start, end = self._near(span, wanted.spans[-1][1])
            found += [
                stored.owner
                for _, _, stored in entries[start:end]
                if _begins(stored.region, span) and wanted.includes(stored.region)
            ]
        return found

    def most_included(self, wanted: Region) -> int:
        """Return a number that no fewer regions than another one includes have; quick."""
        near = (self._near(span, wanted.spans[-1][1]) for span in wanted.spans)
        return len(self._bare) + sum(end - start for _, start, end in near)

    def _near(self, span: Span, last: Cut) -> tuple[list[_Entry[Owner]], int, int]:
        """Return entries among which all are that begin in a span and end before a cut."""
        low, high = span
        begins, ends = self._by_start, self._by_end
        start, end = bisect_left(begins, low, key=_CUT), bisect_left(begins, high, key=_CUT)
        first, behind = bisect_right(ends, low, key=_CUT), bisect_right(ends, last, key=_CUT)
        return (begins, start, end) if end - start <= behind - first else (ends, first, behind)


def _around(name: _Class, entries: list[_Entry[Owner]], low: Cut, high: Cut) -> list[_Entry[Owner]]:
    """Return the entries of a list among which all are that include a span."""
    match name:
        case ("all", _):
            return entries
        case ("upper", _):
            return entries[bisect_left(entries, high, key=_CUT) :]
        case ("lower", _):
            return entries[: bisect_right(entries, low, key=_CUT)]
        case (_, exponent) if not low[0] and not isinstance(low[1], str):
            first: Cut = (0, low[1] - Fraction(2) ** exponent, -1)
            start = bisect_left(entries, first, key=_CUT)
            return entries[start : bisect_right(entries, low, key=_CUT)]
        case _:
            return []


def _nearest(name: _Class, entries: list[_Entry[Owner]], most: int) -> list[_Entry[Owner]]:
    """Return those of the entries around a span that begin or end nearest to it."""
    match name:
        case ("upper", _):
            return entries[:most]
        case ("lower", _):
            return entries[-most:]
        case ("number", _):
            return entries[-SPREAD * most :]
        case _:
            return entries


def _begins(region: Region, span: Span) -> bool:
    return span[0] <= region.spans[0][0] < span[1]


def _take_out(entries: list[_Entry[Owner]], cut: Cut, number: int) -> None:
    place = bisect_left(entries, cut, key=_CUT)
    while entries[place][1] != number:
        place += 1
    del entries[place]


def _sorted_by(span: Span) -> Cut:
    low, high = span
    return high if low == BOTTOM and high != TOP else low


def _is_point(span: Span) -> bool:
    (low_rank, low, _), (high_rank, high, _) = span
    return low_rank == high_rank == 0 and low == high


def _prefix_of(span: Span) -> str | None:
    """Return the beginning that the ends of a span of texts have in common; None for others."""
    (low_rank, low, _), (high_rank, high, _) = span
    if low_rank or high_rank or not isinstance(low, str) or not isinstance(high, str):
        return None
    return _common(low, high)


def _class_of(span: Span) -> _Class:
    """Return the list in which a span of numbers stands, or one that is open to a side."""
    low, high = span
    if low == BOTTOM or high == TOP:
        both = low == BOTTOM and high == TOP
        return ("all" if both else "upper" if low == BOTTOM else "lower", 0)
    start, end = low[1], high[1]
    if isinstance(start, str) or isinstance(end, str):
        raise TypeError(span)  # texts have lists of their own
    return ("number", math.frexp(float(end - start))[1])


def _common(first: str, second: str) -> str:
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return first[:count]
