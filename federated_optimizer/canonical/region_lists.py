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
from collections.abc import Iterator
from fractions import Fraction
from operator import itemgetter

from federated_optimizer.canonical.linear_comparisons import Number
from federated_optimizer.canonical.regions import BOTTOM, TOP, Cut, Region, Span

_Entry = tuple[Cut, int, Region]
_CUT = itemgetter(0)
_POINT = "point"

_Class = tuple[str, int, str]
"""Name of a list, the exponent of its lengths, and the beginning that its texts have."""


class RegionList:
    """Regions of one term, each once."""

    def __init__(self) -> None:
        self._numbers: dict[Region, int] = {}
        self._next = 0
        self._classes: dict[_Class, list[_Entry]] = {}
        self._points: dict[Number, dict[Region, None]] = {}
        self._bare: dict[Region, None] = {}
        self._with_null: dict[Region, None] = {}
        self._with_nan: dict[Region, None] = {}
        self._by_start: list[_Entry] = []
        self._by_end: list[_Entry] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, region: Region) -> bool:
        return region in self._numbers

    def __iter__(self) -> Iterator[Region]:
        return iter(self._numbers)

    def add(self, region: Region) -> None:
        """Add a region that is not there."""
        number = self._numbers[region] = self._next
        self._next += 1
        for flagged, has in self._flags(region):
            if has:
                flagged[region] = None
        if not region.spans:
            self._bare[region] = None
            return
        insort(self._by_start, (region.spans[0][0], number, region), key=_CUT)
        insort(self._by_end, (region.spans[-1][1], number, region), key=_CUT)
        for span in region.spans:
            name = _class_of(span)
            if name[0] == _POINT:
                self._points.setdefault(span[0][1], {})[region] = None
            else:
                entry = (_sorted_by(name, span), number, region)
                insort(self._classes.setdefault(name, []), entry, key=_CUT)

    def remove(self, region: Region) -> None:
        """Remove a region that is there."""
        number = self._numbers.pop(region)
        for flagged, has in self._flags(region):
            if has:
                del flagged[region]
        if not region.spans:
            del self._bare[region]
            return
        _take_out(self._by_start, region.spans[0][0], number)
        _take_out(self._by_end, region.spans[-1][1], number)
        for span in region.spans:
            name = _class_of(span)
            if name[0] == _POINT:
                del self._points[span[0][1]][region]
                if not self._points[span[0][1]]:
                    del self._points[span[0][1]]
            else:
                _take_out(self._classes[name], _sorted_by(name, span), number)
                if not self._classes[name]:
                    del self._classes[name]

    def _flags(self, region: Region) -> tuple[tuple[dict[Region, None], bool], ...]:
        return (self._with_null, region.null), (self._with_nan, region.nan)

    def including(self, wanted: Region) -> list[Region]:
        """Return all regions that include another one."""
        return [region for region in self._perhaps_including(wanted) if region.includes(wanted)]

    def _perhaps_including(self, wanted: Region) -> list[Region]:
        if not wanted.spans:
            flagged = self._with_null if wanted.null else self._with_nan
            return list(flagged if wanted.null or wanted.nan else self._numbers)
        span = wanted.spans[0]
        low, high = span
        found: list[Region] = []
        if _class_of(span)[0] == _POINT:
            found += self._points.get(low[1], ())
        for name, entries in self._classes.items():
            match name[0]:
                case "all":
                    chosen = entries
                case "upper":
                    chosen = entries[bisect_left(entries, high, key=_CUT) :]
                case "lower":
                    chosen = entries[: bisect_right(entries, low, key=_CUT)]
                case "number" if not low[0] and not isinstance(low[1], str):
                    first = (0, low[1] - Fraction(2) ** name[1], -1)
                    start = bisect_left(entries, first, key=_CUT)
                    chosen = entries[start : bisect_right(entries, low, key=_CUT)]
                case _:
                    continue
            found += [region for _, _, region in chosen]
        if not low[0] and isinstance(low[1], str):
            for length in range(len(low[1]) + 1):
                entries = self._classes.get(("text", 0, low[1][:length]), [])
                end = bisect_right(entries, low, key=_CUT)
                found += [region for _, _, region in entries[:end]]
        return found

    def included(self, wanted: Region) -> list[Region]:
        """Return all regions that another one includes."""
        found = [region for region in self._bare if wanted.includes(region)]
        for span in wanted.spans:
            entries, start, end = self._near(span, wanted.spans[-1][1])
            found += [
                r for _, _, r in entries[start:end] if _begins(r, span) and wanted.includes(r)
            ]
        return found

    def most_included(self, wanted: Region) -> int:
        """Return a number that no fewer regions than another one includes have; quick."""
        near = (self._near(span, wanted.spans[-1][1]) for span in wanted.spans)
        return len(self._bare) + sum(end - start for _, start, end in near)

    def _near(self, span: Span, last: Cut) -> tuple[list[_Entry], int, int]:
        """Return entries among which all are that begin in a span and end before a cut."""
        low, high = span
        begins, ends = self._by_start, self._by_end
        start, end = bisect_left(begins, low, key=_CUT), bisect_left(begins, high, key=_CUT)
        first, behind = bisect_right(ends, low, key=_CUT), bisect_right(ends, last, key=_CUT)
        return (begins, start, end) if end - start <= behind - first else (ends, first, behind)


def _begins(region: Region, span: Span) -> bool:
    return span[0] <= region.spans[0][0] < span[1]


def _take_out(entries: list[_Entry], cut: Cut, number: int) -> None:
    place = bisect_left(entries, cut, key=_CUT)
    while entries[place][1] != number:
        place += 1
    del entries[place]


def _sorted_by(name: _Class, span: Span) -> Cut:
    return span[1] if name[0] == "upper" else span[0]


def _class_of(span: Span) -> _Class:
    """Return the list in which a span stands."""
    low, high = span
    if low == BOTTOM or high == TOP:
        if low == BOTTOM and high == TOP:
            return ("all", 0, "")
        return ("upper" if low == BOTTOM else "lower", 0, "")
    start, end = low[1], high[1]
    if start == end:
        return (_POINT, 0, "")
    if isinstance(start, str) or isinstance(end, str):
        return ("text", 0, _common(str(start), str(end)))
    return ("number", math.frexp(float(end - start))[1], "")


def _common(first: str, second: str) -> str:
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return first[:count]
