"""Answers that are followed change by change: when rows that go are known to have gone.

A row that goes while the answer is in doubt may be back at once. The doubt begins when a site that
may feed the answer leaves. It ends when the query has settled, with the site or without it: every
receiver has retracted what the site had sent, or has it again. A query that never settles is
doubted for `DOUBT_MICROSECONDS` after the last site has left or returned.
"""

from abc import ABC, abstractmethod

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from host.clocks import Clock, monotonic_clock
from streamsql.data.delta import Delta

REFILL_MICROSECONDS = 15_000_000
"""An answer that many readings keep from settling counts as filled all the same after this time."""
# A receiver gives up a sender that left no will after TRUST_SECONDS (25 s), and retracts its rows
# after its grace time (5 s); it asks for a snapshot again after 10 s at most. Sites repeat their
# counts every 10 s. That is 50 s, and some for the way.
DOUBT_MICROSECONDS = 60_000_000
"""The time after a site has left or returned in which rows may go because of it."""


class FollowedAnswer(ABC):
    """The answer of one query, and whether it is in doubt.

    Attributes:
        is_met: Whether the whole answer was there once, since we follow it.
        is_refilling: Whether a site that is back fills the answer again: rows pass that never held,
            as every count up to the true one.
        unsettled_since: Since when it is in doubt, by the wall clock, or None.
    """

    def __init__(self, query: RunningQuery, clock: Clock) -> None:
        self.query = query
        self.is_met = False
        self.is_refilling = False
        self.unsettled_since: int | None = None
        self._clock = clock
        # Sites that are away and whose rows the answer has been without since before.
        self._missing: frozenset[str] = frozenset()
        self._last_away: frozenset[str] = frozenset()
        self._last_moved = monotonic_clock()  # when a site last left or returned
        # A site was away, and the query has not settled since: when the site is back its rows may
        # still be retracted (a base that gave it up says so only when it is back itself).
        self._is_unsettled = False
        self._refilled_since: int | None = None
        query.on_site_left = self.site_left
        query.result.follow(self._changed)

    @abstractmethod
    def meet(self, *, in_doubt: bool) -> None:
        """Ingest the whole answer, which is there for the first time."""

    @abstractmethod
    def follow(self, delta: Delta, *, in_doubt: bool) -> None:
        """Ingest a change; before the answer is met, too."""

    @abstractmethod
    def waited(self) -> None:
        """Time has passed since the answer was met; the doubt may have begun or ended."""

    @abstractmethod
    def settled(self, *, away: frozenset[str]) -> None:
        """The answer is known to be complete, but for the rows of sites that are away."""

    def site_left(self, site: str) -> None:
        """Doubt rows that go from now on, even if the site is back before the next look."""
        self._last_away |= {site}
        self._missing -= {site}
        self._last_moved = monotonic_clock()
        self._is_unsettled = True
        self._note_unsettled()

    def look(self) -> None:
        """Meet the answer once it is there, and say when it has settled."""
        result = self.query.result
        away = self._look_at_sites()
        if not self.is_met:
            if not self.query.started or result.held or not result.is_synchronised:
                return
            self.is_met = True
            self.meet(in_doubt=bool(away) or result.is_partial)
        self.waited()
        if not self.query.is_settled() and not self._is_doubt_over(away):
            self._missing &= away
            self._note_unsettled()
            return
        self._missing, self._is_unsettled, self.unsettled_since = away, False, None
        self._refilled_since, self.is_refilling = None, False
        self.settled(away=away)

    @property
    def now(self) -> int:
        """The time in the answer: in a replay the recording's, not ours."""
        return self.query.result.time.at(self._clock())

    @property
    def away(self) -> frozenset[str]:
        """The sites that feed the answer and are not known to be there."""
        sites = self.query.engine_sites
        return frozenset(site for site in sites if not self.query.membership.is_in_touch(site))

    @property
    def is_in_doubt(self) -> bool:
        """Whether rows that go now may be back at once."""
        result = self.query.result
        is_partial = result.is_partial and not _is_long_ago(result.held_since)
        return not self.query.started or is_partial or self._is_unsettled

    def _look_at_sites(self) -> frozenset[str]:
        """Return the sites that are away; note whether one that is back fills the answer again."""
        away, moment = self.away, monotonic_clock()
        if self._last_away - away:
            self._refilled_since = moment
        if self._last_away != away:
            self._last_moved = moment
        self._last_away = away
        self._is_unsettled = self._is_unsettled or not away <= self._missing
        since = self._refilled_since
        self.is_refilling = since is not None and moment - since < REFILL_MICROSECONDS
        return away

    def _note_unsettled(self) -> None:
        if self.unsettled_since is None:
            self.unsettled_since = self._clock()

    def _is_doubt_over(self, away: frozenset[str]) -> bool:
        """Whether an unsettled answer has its rows back, or is without them, for long enough."""
        query = self.query
        has_reports = query.flows.outdated <= away  # from all that are there, since they returned
        is_whole = query.started and not query.result.held
        return is_whole and has_reports and _is_long_ago(self._last_moved, query.result.held_since)

    def _changed(self, delta: Delta) -> None:
        self._look_at_sites()
        self.follow(delta, in_doubt=self.is_in_doubt)


def _is_long_ago(*moments: int) -> bool:
    return monotonic_clock() - max(moments) >= DOUBT_MICROSECONDS
