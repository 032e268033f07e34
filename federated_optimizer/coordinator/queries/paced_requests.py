"""Requests to sites, with pauses that double until the site has answered."""

from typing import NamedTuple

from host.clocks import monotonic_clock

RESYNC_MICROSECONDS = 1_000_000
LONGEST_RESYNC_MICROSECONDS = 10_000_000


class _Asked(NamedTuple):
    """When a site was last asked for something of a query, and how often without an answer."""

    at: int
    times: int

    @property
    def pause(self) -> int:
        """Microseconds until it may be asked again."""
        doubled = RESYNC_MICROSECONDS << min(self.times - 1, 10)
        return min(doubled, LONGEST_RESYNC_MICROSECONDS)


class PacedRequests:
    """When which site was last asked for something of a query. Bounded: it starts anew."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, str], _Asked] = {}

    def may_ask(self, query_id: str, site: str) -> bool:
        """Whether a request may be sent now; if so, it is taken for sent."""
        now = monotonic_clock()
        asked = self._asked.get((query_id, site), _Asked(0, 0))
        if asked.times and now - asked.at < asked.pause:
            return False
        if len(self._asked) > 10_000:
            self._asked.clear()
        self._asked[query_id, site] = _Asked(now, asked.times + 1)
        return True

    def answered(self, query_id: str, site: str) -> None:
        """Ask at once the next time."""
        self._asked.pop((query_id, site), None)

    def discard(self, query_id: str) -> None:
        """Discard a query that was stopped."""
        self._asked = {key: asked for key, asked in self._asked.items() if key[0] != query_id}
