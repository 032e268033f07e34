"""An alarm over the whole run: what is raised stays raised, is unknown, or is over in truth."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks._soak.federation import FAKED
from benchmarks._soak.feed import ALARM, GATEWAYS, Feed
from streamsql.data.types import DataType, coerce


class Raised:
    """The rows that raised the alarm, by their numbers.

    Attributes:
        states: How many polls saw a row in each state.
        cleared: How many rows were cleared.
    """

    def __init__(self, feed: Feed) -> None:
        self.states: Counter[str] = Counter()
        self.cleared = 0
        self._runs: dict[str, list[tuple[int, int | None]]] = {}
        for name in GATEWAYS:
            for seat in feed[name].seats:
                runs = self._runs.setdefault(seat.mid, [])
                is_open = bool(runs) and runs[-1][1] is None
                if seat.value >= ALARM and not is_open:
                    runs.append((seat.ts, None))
                elif seat.value < ALARM and is_open:
                    runs[-1] = (runs[-1][0], seat.ts)
        self._judged: set[int] = set()
        self._seen: set[int] = set()

    def check(self, rows: Iterable[Mapping[str, Any]], clocks: Mapping[str, int]) -> list[str]:
        """Return the lies among the rows of the alarm, in words."""
        found = []
        for row in rows:
            self.states[row["state"]] += 1
            if row["id"] in self._seen and row["acknowledged"] is None:
                self._seen.discard(row["id"])
                found.append(f"row {row['id']} has lost its acknowledgement")
            if row["acknowledged"] is not None:
                self._seen.add(row["id"])
            if row["cleared"] is None or row["raised"] is None or row["id"] in self._judged:
                continue
            self._judged.add(row["id"])
            self.cleared += 1
            mid = row["row"]["mid"]
            now = clocks[mid.partition("-m")[0]]
            if not self._is_over(mid, _micros(row["raised"]), now):
                found.append(f"{mid} is cleared and was above {ALARM} all the time")
        return found

    def _is_over(self, mid: str, raised: int, now: int) -> bool:
        """Whether the high values that raised a row have ended.

        A gateway whose clock was set back lags behind, and its row may be one of an earlier run.
        """
        runs = self._runs[mid]
        place = max(bisect_right([start for start, _ in runs], raised) - 1, 0)
        if mid.startswith(FAKED):
            place = max(place - 1, 0)
        end = runs[place][1]
        return end is not None and end <= now


def _micros(text: str) -> int:
    found = coerce(text, DataType.TIMESTAMP)
    if not isinstance(found, int):
        raise TypeError(f"not a time: {text}")
    return found
