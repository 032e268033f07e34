"""Windows that are given once, when they are over: each whole, none twice, none taken back."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from benchmarks._soak.feed import GATEWAYS, SECOND, WINDOW, Feed

TEXT = (
    "SELECT window_end, COUNT(*) AS n, SUM(n) AS total FROM TUMBLE(car, ts, INTERVAL "
    f"'{WINDOW // SECOND} s') GROUP BY window_start, window_end EMIT ON WINDOW CLOSE"
)

Excuse = Callable[[str, int], bool]
"""Whether a window with this end may lack this gateway: it was away, or a gap names it."""


@dataclass
class Windows:
    """The windows that were given.

    Attributes:
        given: Number and sum of readings by end, as they were seen first.
        without: Windows that were given without a gateway that was away.
    """

    feed: Feed
    given: dict[int, tuple[int, int]] = field(default_factory=dict)
    without: int = 0

    def check(
        self, rows: Iterable[tuple[int, int, int]], excuse: Excuse, *, is_whole: bool
    ) -> list[str]:
        """Return what is wrong with these windows, in words.

        Args:
            rows: End, number and sum of every window that is listed.
            excuse: Whose readings may be missing.
            is_whole: The answer says that it is complete.
        """
        listed = Counter(rows)
        found = [f"window {row} is listed {n} times" for row, n in listed.items() if n > 1]
        ends = Counter(end for end, _, _ in listed)
        found += [f"window {end} has {n} rows" for end, n in ends.items() if n > 1]
        for end, n, total in sorted(listed):
            before = self.given.get(end)
            if before is None:
                self.given[end] = (n, total)
                found += self._judge(end, n, total, excuse)
            elif before != (n, total):
                found.append(f"window {end} was {before} and is {(n, total)}")
        if is_whole and self.given:
            found += [f"window {end} is not listed any more" for end in self.given.keys() - ends]
            found += self._lost(excuse)
        return found

    def _judge(self, end: int, n: int, total: int, excuse: Excuse) -> list[str]:
        """Check a window by the readings of each gateway, which its sum tells apart."""
        found, counted = [], 0
        for place, name in enumerate(GATEWAYS):
            count = total // 1_000**place % 1_000
            counted += count
            fed = self.fed(name, end)
            if count == fed:
                continue
            if count or not excuse(name, end):
                found.append(f"window {end} has {count} of {fed} readings of {name}")
            else:
                self.without += 1
        return [
            *found,
            *([f"window {end}: {n} readings sum up to {total}"] if n != counted else []),
        ]

    def _lost(self, excuse: Excuse) -> list[str]:
        """Name windows between those that were given which are not there."""
        found = []
        for end in range(min(self.given), max(self.given), WINDOW):
            fed = [name for name in GATEWAYS if self.fed(name, end)]
            if end not in self.given and not all(excuse(name, end) for name in fed):
                self.given[end] = (0, 0)  # named once
                found.append(f"window {end} was never given")
        return found

    def fed(self, gateway: str, end: int) -> int:
        """Return how many readings of a gateway are in a window."""
        return sum(end - WINDOW <= car.ts < end for car in self.feed[gateway].cars)
