"""Quiescence: has everything that was sent arrived, and is nobody busy?

Every site reports, per query, the next sequence number of each of its channels, both ends. When
all sites of a bundle that are there have reported, none is busy, and both ends of every channel
agree, nothing is on its way: the answer is settled until the next reading. (Reports travel on their
own; two ends that agree by stale reports differ again as soon as the newer report comes, so a mark
may be early by one report, never wrong for long.)
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from host.clocks import monotonic_clock
from streamsql.data.types import MICROSECONDS
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import (
    FilterReport,
    FlowReport,
    RecursionReport,
    SlowSite,
    TrafficReport,
)

OUTPUT = ""
"""How sites name the channel of the query's result."""

OF_ANOTHER_LIFE = -1
"""What has arrived of a sender of whose present incarnation nothing has: every incarnation restarts
its count, so that what one has sent may be as many batches as another."""

_NO_LIVES: Mapping[str, int] = {}

MARKED_FOR = 300 * MICROSECONDS
"""Rates are of the last five to ten minutes."""

Mark = tuple[int, FlowReport]
"""A report, with the time by `monotonic_clock` when it was heard."""


class FlowReports:
    """The newest report of every site for one query.

    Attributes:
        later: Sites that run a later version than the query's: they know it from another catalog.
        outdated: Sites that have not reported since they, or we, were cut off from the broker. What
            they have sent, received or missed meanwhile is not known.
        found: Whether sites have counted before anybody listened here.
    """

    def __init__(self, *, found: bool = False) -> None:
        self.found = found
        self._reports: dict[str, FlowReport] = {}
        self._marks: dict[str, tuple[Mark, ...]] = {}
        self._told: dict[str, int] = {}
        self.later: set[str] = set()
        self.outdated: set[str] = set()

    def lost_touch(self) -> None:
        """Discount every report until the next one of its site: the broker is away."""
        self.outdated = set(self._reports)

    def left(self, site: str) -> None:
        """Discount the report of a site that is away: it says nothing once the site is back."""
        if site in self._reports:
            self.outdated.add(site)

    def hear(self, site: str, report: FlowReport, bundle: FragmentBundle, message: int = 0) -> bool:
        """Ingest a report of a site of the bundle; return whether it was of use.

        `message` numbers what sites say in the order of their messages; 0: it came otherwise.
        """
        if site not in sites_of(bundle):
            return False
        if report.version != bundle.version:
            if report.version > bundle.version:
                self.later.add(site)
            return False
        self.later.discard(site)
        known = self._reports.get(site)
        if known is not None and report.epoch < known.epoch:
            return False
        life = (report.epoch, report.version)
        if known is not None and (known.epoch, known.version) == life and not report.filters:
            report = replace(report, filters=known.filters)
        self._reports[site] = report
        self._told[site] = message
        self.outdated.discard(site)
        self._mark(site, report, monotonic_clock())
        return True

    def _mark(self, site: str, report: FlowReport, moment: int) -> None:
        """Remember a report from which on rates are counted: of a site that has what it needs."""
        marks = self._marks.get(site, ())
        if marks and not _is_one_life(marks[-1][1], report):
            marks = ()
        if not marks and not report.busy:
            marks = ((moment, report),)
        elif marks and moment - marks[-1][0] >= MARKED_FOR:
            marks = (marks[-1], (moment, report))
        self._marks[site] = marks

    def marked(self, site: str) -> Mark | None:
        """Return the report of a site from which on rates are counted; None: there is none."""
        marks = self._marks.get(site)
        return marks[0] if marks else None

    def reports(self) -> Mapping[str, FlowReport]:
        """Return the newest reports, by site."""
        return dict(self._reports)

    def told_by(self, site: str) -> int:
        """Return the number of the message in which a site has reported; 0: in none."""
        return self._told.get(site, 0)

    def clear(self) -> None:
        """Discard all reports, after a redeployment."""
        self._reports = {}
        self._marks = {}
        self._told = {}
        self.later = set()
        self.outdated = set()

    def heard_from(self) -> frozenset[str]:
        """Return the sites that have reported."""
        return frozenset(self._reports)

    def kept_rows(self) -> int:
        """Return the rows that all sites keep for the query, as last reported."""
        return sum(report.state_rows for report in self._reports.values())

    def is_idle(self, site: str) -> bool:
        """Whether a site has everything it waits for and has worked it off."""
        report = self._reports.get(site)
        return report is not None and not report.busy

    def batches(self, site: str, since: FlowReport | None = None) -> tuple[int, int]:
        """Return how many batches a site has sent and received for this query.

        `since` is an earlier report of the site, from which on they count; None: all of them.
        """
        report = self._reports.get(site)
        if report is None:
            return (0, 0)
        before = since if since is not None and _is_one_life(since, report) else None
        was_sent = {} if before is None else before.sent
        was_received = {} if before is None else before.received
        sent = sum(n - was_sent.get(to, report.first) for to, n in report.sent.items())
        # Of a sender that has not reported nobody knows what was sent before this query began.
        began = {by: self._reports[by].first for by in report.received if by in self._reports}
        received = sum(
            max(report.received[by] - was_received.get(by, first), 0) for by, first in began.items()
        )
        return (sent, received)

    def recursions(self, name: str) -> Iterator[tuple[str, RecursionReport]]:
        """Yield what sites have counted of a recursion, by site."""
        for site in sorted(self._reports):
            for recursion in self._reports[site].recursions:
                if recursion.name == name:
                    yield (site, recursion)

    def filters(self) -> Iterator[FilterReport]:
        """Yield what the filters of all sites have read."""
        for report in self._reports.values():
            yield from report.filters

    def beyond_rounds(self) -> Iterator[RecursionReport]:
        """Yield the recursions that need more rounds than their query allows."""
        for report in self._reports.values():
            yield from (recursion for recursion in report.recursions if recursion.beyond)

    def traffic(self) -> dict[str, TrafficReport]:
        """Return what the channels have cost, by site; sites that say nothing are left out."""
        return {
            site: report.traffic
            for site, report in sorted(self._reports.items())
            if report.traffic != TrafficReport()
        }

    def slow(self) -> dict[str, SlowSite]:
        """Return the sites that hold windows back, by name; the worst that any site says."""
        found: dict[str, SlowSite] = {}
        for report in self._reports.values():
            for slow in report.slow:
                known = found.get(slow.site)
                if known is None or slow.behind > known.behind:
                    found[slow.site] = slow
        return found

    def disagreements(
        self, received: Mapping[str, int], lives: Mapping[str, int] = _NO_LIVES
    ) -> Iterator[tuple[str, str, int, int]]:
        """Yield (sender, receiver, sent, arrived) of the channels whose ends count differently.

        A receiver that waits for a snapshot, or has never reported, is left out.

        Args:
            received: Next sequence number expected here from every result site.
            lives: The result site's epoch that this is of, where it is known.
        """
        for sender, report in tuple(self._reports.items()):
            for to, sent in report.sent.items():
                arrived = self._arrived(sender, to, received, lives)
                if arrived is not None and arrived != sent:
                    yield (sender, to, sent, arrived)

    def without_input(self, sites: Iterable[str]) -> set[str]:
        """Return the senders among these sites that a receiver among them has not heard yet."""
        present, reports = frozenset(sites), self._reports
        return {
            sender
            for sender in present & reports.keys()
            for to in reports[sender].sent
            if to in present and self._arrived(sender, to, {}, _NO_LIVES) is None
        }

    def is_settled(
        self,
        bundle: FragmentBundle,
        received: Mapping[str, int],
        away: frozenset[str] = frozenset(),
        lives: Mapping[str, int] = _NO_LIVES,
    ) -> bool:
        """Whether nothing is on its way.

        Args:
            bundle: The running version.
            received: Next sequence number expected here from every result site.
            away: Sites that are offline. Nothing can be on its way to them; as long as a site
                still counts what one of them has sent, its rows have yet to be given up.
            lives: The result site's epoch that `received` is of, where it is known.
        """
        reports = self._reports
        present = [site for site in sites_of(bundle) if site not in away]
        if away & set(bundle.result_sites) or not all(map(self.is_idle, present)):
            return False
        if any(site in reports[receiver].received for receiver in present for site in away):
            return False
        return all(
            to in away or self._arrived(sender, to, received, lives) == count
            for sender in present
            for to, count in reports[sender].sent.items()
        )

    def _arrived(
        self, sender: str, to: str, received: Mapping[str, int], lives: Mapping[str, int]
    ) -> int | None:
        if to != OUTPUT:
            receiver = self._reports.get(to)
            if receiver is None:
                return None
            received, lives = receiver.received, receiver.lives
        count, epoch = received.get(sender), self._reports[sender].epoch
        return count if count is None or lives.get(sender, epoch) == epoch else OF_ANOTHER_LIFE


def sites_of(bundle: FragmentBundle) -> tuple[str, ...]:
    """Return all sites that run something of a bundle, sorted."""
    return tuple(sorted(bundle.sites))


def _is_one_life(before: FlowReport, after: FlowReport) -> bool:
    return (before.epoch, before.version) == (after.epoch, after.version)
