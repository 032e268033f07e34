"""Requests to sites, with pauses that double until an answer has helped."""

from typing import NamedTuple

from host.clocks import monotonic_clock

RESYNC_MICROSECONDS = 1_000_000
LONGEST_RESYNC_MICROSECONDS = 60_000_000


class _Asked(NamedTuple):
    """When a site was last asked for something of a query, how often, and whether it answered."""

    at: int
    times: int
    answered: bool = False

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
        if asked.answered and now - asked.at >= 2 * asked.pause:
            asked = _Asked(0, 0)
        if asked.times and now - asked.at < asked.pause:
            return False
        if len(self._asked) > 10_000:
            self._asked.clear()
        self._asked[query_id, site] = _Asked(now, asked.times + 1)
        return True

    def answered(self, query_id: str, site: str) -> None:
        """Ask at once the next time, if that is later than two pauses.

        A site that has answered and soon has to be asked again sends more than we take in.
        """
        asked = self._asked.get((query_id, site))
        if asked is not None and not asked.answered:
            self._asked[query_id, site] = asked._replace(answered=True)

    def discard(self, query_id: str) -> None:
        """Discard a query that was stopped."""
        self._asked = {key: asked for key, asked in self._asked.items() if key[0] != query_id}
