"""Repairs of losses that no receiver has noticed: they are sent again.

A receiver notices a lost batch by the next one; the last batch before a silence has no next one.
But both ends report their counts: when those disagree and stay as they are, something is lost.
The same goes for fragments: a site that is there and says nothing of a version never got it.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.sites.deployment import Deployment
from federated_optimizer.coordinator.sites.federation_membership import Membership
from federated_optimizer.coordinator.sites.flows import OUTPUT, sites_of

log = logging.getLogger(__name__)

LOOK_MICROSECONDS = 1_000_000
FIRST_PATIENCE = 3_000_000
LONGEST_PATIENCE = 60_000_000

_Key = tuple[str, int, str, str | None]
"""Run, version, site, and to whom it sends; None for the fragment itself, `REPORT` for what it
says."""

REPORT = "?"

_Counts = tuple[int, int]


@dataclass(slots=True)
class _Doubt:
    """Something that does not fit.

    Attributes:
        counts: Of both ends, as last looked at.
        since: Since when they have not moved, or been asked about.
        asked: How often it was asked about.
        quiet: Since when it fits; it is discarded after as long a time as its patience.
    """

    counts: _Counts
    since: int
    asked: int = 0
    quiet: int | None = None

    @property
    def patience(self) -> int:
        return min(FIRST_PATIENCE << min(self.asked, 10), LONGEST_PATIENCE)


class Repairs:
    """Looks at the counts of all queries once a second.

    What does not fit for a few seconds is asked about first, because a report may be what was
    lost; what still does not fit is sent again. While counts move nothing is asked. The pauses
    double until both ends have agreed for as long as the last pause: what is sent again moves
    counts, and a slow receiver would be sent everything again each time it has caught up.
    """

    def __init__(self, deployment: Deployment, membership: Membership) -> None:
        self._deployment = deployment
        self._membership = membership
        self._doubts: dict[_Key, _Doubt] = {}
        self._looked: int | None = None

    def look(self, queries: Iterable[RunningQuery], now: int) -> None:
        """Ask for what has been missing for long enough.

        Raises:
            MessagingError: The message queue is full; what is not asked now is asked later.
        """
        if self._looked is not None and now - self._looked < LOOK_MICROSECONDS:
            return
        self._looked = now
        before, self._doubts = self._doubts, {}
        due: list[tuple[RunningQuery, _Key]] = []
        looked_at: set[str] = set()
        for query in queries:
            if query.status == QueryStatus.FAILED or query.run in looked_at:
                continue  # stopped on purpose, or another query reads the same
            looked_at.add(query.run)
            for key, counts in self._doubtful(query):
                doubt = self._doubts[key] = before.pop(key, _Doubt(counts, now))
                if doubt.counts != counts or doubt.quiet is not None:
                    doubt.counts, doubt.since, doubt.quiet = counts, now, None
                if now - doubt.since >= doubt.patience:
                    due.append((query, key))
        for key, doubt in before.items():
            if doubt.quiet is None:
                doubt.quiet = now
            if doubt.asked and now - doubt.quiet < doubt.patience:
                self._doubts[key] = doubt
        self._ask(due, now)

    def _ask(self, due: list[tuple[RunningQuery, _Key]], now: int) -> None:
        sites: set[str] = set()
        for query, key in due:
            doubt = self._doubts[key]
            _query, _version, site, to = key
            sites.update(end for end in (site, to) if end not in (None, OUTPUT, REPORT))
            if doubt.asked and to != REPORT:
                self._send_again(query, site, to)
            doubt.asked, doubt.since = doubt.asked + 1, now
        for site in sorted(sites):
            self._deployment.request_flow(site)

    def _send_again(self, query: RunningQuery, site: str, to: str | None) -> None:
        if to is None:
            log.warning("site %s does not run query %s; sent again", site, query.run)
            if site in query.flows.later:
                self._deployment.withdraw_from(query.run, site)
            self._deployment.publish_to(site, query.bundle)
        else:
            receiver = to or "the coordinator"
            log.warning("query %s: %s has sent what %s lacks", query.run, site, receiver)
            self._deployment.request_snapshot(query.run, site, to)

    def _doubtful(self, query: RunningQuery) -> Iterator[tuple[_Key, _Counts]]:
        version = query.bundle.version
        waiting = query.result.unsynchronised
        received, lives = query.result.received(), query.result.lives()
        for sender, to, sent, arrived in query.flows.disagreements(received, lives):
            ends = (sender,) if to == OUTPUT else (sender, to)
            if all(map(self._membership.is_online, ends)) and not (
                to == OUTPUT and sender in waiting
            ):
                yield ((query.run, version, sender, to), (sent, arrived))
        yield from self._doubtful_sites(query)

    def _doubtful_sites(self, query: RunningQuery) -> Iterator[tuple[_Key, _Counts]]:
        version, flows = query.bundle.version, query.flows
        heard = flows.heard_from()
        sites = [s for s in sites_of(query.bundle) if self._membership.is_online(s)]
        incomplete = bool(flows.without_input(sites))
        for site in sites:
            unsettled = incomplete or site in flows.outdated or not flows.is_idle(site)
            if site in heard and unsettled:
                yield ((query.run, version, site, REPORT), flows.batches(site))
            elif site not in heard and site not in query.problems:
                yield ((query.run, version, site, None), (0, 0))
