"""Pairs of bounds around a value, and pieces inside of a text: who has them."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Generic, TypeVar

from streamsql.wire.bundles.reader_conditions import Bound

_T = TypeVar("_T")

_Low = tuple[Bound, int]
_High = tuple[Bound, int]
_Pair = tuple[_Low, _High, str]

MOST_RECENT = 64
"""Pairs that are compared one by one before they are put in order: that takes O(all)."""


_SIZES = (*range(1, 9), 10, 12, 14, 16, 20, 24, 28, 32, 48, 64)


NEAREST = 4
"""Pairs below a value that are looked at before the tree is asked.

Where ranges hardly overlap that is all: of 10,000 disjoint ones a value is found in a third of the
time.
"""


class BoundPairs:
    """Finds the pairs around a value: sorted by lower bounds, below a tree of the highest upper.

    Bounds are as in `Within`: (value, 0 if it is in, else 1) below, (value, 1 if in, else 0) above.

    Work: O((pairs found + 1) * log pairs), plus at most 64 comparisons.
    """

    __slots__ = ("_highest", "_lows", "_pairs", "_recent", "_sorted", "_tops", "_width")

    def __init__(self) -> None:
        self._pairs: dict[str, _Pair] = {}
        self._order()

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self._pairs)

    def add(self, key: str, low: _Low, high: _High) -> None:
        """Add a pair under a key that is not there."""
        self._pairs[key] = self._recent[key] = (low, high, key)

    def remove(self, key: str) -> None:
        """Remove the pair of a key that is there."""
        del self._pairs[key]
        self._recent.pop(key, None)
        if len(self._sorted) > 2 * len(self._pairs) + MOST_RECENT:
            self._order()

    def around(self, value: Bound) -> Iterator[str]:
        """Yield the keys of the pairs that a value is between."""
        if len(self._recent) > MOST_RECENT:
            self._order()
        bound = (value, 1)
        for low, high, key in self._recent.values():
            if low < bound <= high:
                yield key
        end = bisect_left(self._lows, bound)
        for place in range(end - 1, max(end - 1 - NEAREST, -1), -1):
            if self._highest[place] < bound:
                return  # so are those of all pairs below
            pair = self._sorted[place]
            if bound <= pair[1] and self._pairs.get(pair[2]) is pair:
                yield pair[2]
        end -= NEAREST
        waiting = [(1, 0, self._width)] if end > 0 else []
        while waiting:
            node, begin, width = waiting.pop()
            top = self._tops[node]
            if begin >= end or top is None or top < bound:
                continue
            if width > 1:
                half = width // 2
                waiting.append((2 * node + 1, begin + half, half))
                waiting.append((2 * node, begin, half))
                continue
            pair = self._sorted[begin]
            if self._pairs.get(pair[2]) is pair:  # it may have been removed since
                yield pair[2]

    def _order(self) -> None:
        """Put all pairs in order."""
        self._recent: dict[str, _Pair] = {}
        self._sorted = sorted(self._pairs.values())
        self._lows = [low for low, _high, _key in self._sorted]
        self._highest = list(accumulate((high for _low, high, _key in self._sorted), max))
        self._width = 1
        while self._width < len(self._sorted):
            self._width *= 2
        # Node n has the highest of 2n and 2n + 1; the pairs are from `_width` on.
        self._tops: list[_High | None] = [None] * (2 * self._width)
        for place, (_low, high, _key) in enumerate(self._sorted, self._width):
            self._tops[place] = high
        for node in range(self._width - 1, 0, -1):
            self._tops[node] = _higher(self._tops[2 * node], self._tops[2 * node + 1])


def _higher(first: _High | None, second: _High | None) -> _High | None:
    if first is None or second is None:
        return second if first is None else first
    return max(first, second)


class TextPieces(Generic[_T]):
    """Finds the pieces that a text contains, by hash at each of its places.

    Pieces of many lengths are found by their beginnings, which have one of a few.

    Work: O(size of the text * lengths of beginnings + pieces with a beginning that is found), or
    O(pieces) searches of the text, whichever is less.
    """

    __slots__ = ("_begun", "_holders", "_sizes")

    def __init__(self) -> None:
        self._holders: dict[str, dict[_T, None]] = {}
        self._begun: dict[str, dict[str, None]] = {}  # pieces by their beginnings
        self._sizes = Counter[int]()  # of these beginnings

    def __len__(self) -> int:
        """Return the number of different pieces."""
        return len(self._holders)

    def __getitem__(self, piece: str) -> Iterable[_T]:
        """Return who has a piece that is there."""
        return self._holders[piece]

    def add(self, piece: str, holder: _T) -> None:
        """Add a piece of at least one character; nothing happens if the holder has it."""
        if piece not in self._holders:
            beginning = _beginning(piece)
            self._holders[piece] = {}
            if beginning not in self._begun:
                self._begun[beginning] = {}
                self._sizes[len(beginning)] += 1
            self._begun[beginning][piece] = None
        self._holders[piece][holder] = None

    def remove(self, piece: str, holder: _T) -> None:
        """Remove a piece of a holder who has it."""
        del self._holders[piece][holder]
        if self._holders[piece]:
            return
        beginning = _beginning(piece)
        del self._holders[piece], self._begun[beginning][piece]
        if not self._begun[beginning]:
            del self._begun[beginning]
            self._sizes[len(beginning)] -= 1
            self._sizes += Counter()  # leaves out what is 0

    def inside(self, text: str) -> Iterator[str]:
        """Yield each piece that a text contains, once."""
        if len(self._holders) <= len(text) * len(self._sizes):
            yield from (piece for piece in self._holders if piece in text)
            return
        places = ((size, range(len(text) - size + 1)) for size in self._sizes)
        for part in {text[at : at + size] for size, each in places for at in each}:
            if part in self._begun:
                yield from (piece for piece in self._begun[part] if piece in text)


def _beginning(piece: str) -> str:
    """Return as much of a piece as is looked up: 1 to 8, 10, 12, ... or 64 characters."""
    return piece[: max(size for size in _SIZES if size <= len(piece))]
