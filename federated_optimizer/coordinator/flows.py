"""Quiescence: has everything that was sent arrived, and is nobody busy?

Every site reports, per query, the next sequence number of each of its channels, both ends. When
all sites of a bundle have reported, none is busy, and both ends of every channel agree, nothing is
on its way: the answer is settled until the next reading. (Reports travel on their own; two ends
that agree by stale reports differ again as soon as the newer report comes, so a mark may be early
by one report, never wrong for long.)
"""

from collections.abc import Mapping

from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import FlowReport

OUTPUT = ""
"""How sites name the channel of the query's result."""


class FlowReports:
    """The newest report of every site for one query."""

    def __init__(self) -> None:
        self._reports: dict[str, FlowReport] = {}

    def hear(self, site: str, report: FlowReport, bundle: FragmentBundle) -> bool:
        """Take in a report of a site of the bundle; return whether it was of use."""
        if report.version != bundle.version or site not in sites_of(bundle):
            return False
        known = self._reports.get(site)
        if known is not None and report.epoch < known.epoch:
            return False
        self._reports[site] = report
        return True

    def clear(self) -> None:
        """Forget all reports, after a redeployment."""
        self._reports = {}

    def heard_from(self) -> frozenset[str]:
        """Return the sites that have reported."""
        return frozenset(self._reports)

    def is_idle(self, site: str) -> bool:
        """Whether a site has everything it waits for and has worked it off."""
        report = self._reports.get(site)
        return report is not None and not report.busy

    def batches(self, site: str) -> tuple[int, int]:
        """Return how many batches a site has sent and received."""
        report = self._reports.get(site)
        if report is None:
            return (0, 0)
        return (sum(report.sent.values()), sum(report.received.values()))

    def is_settled(self, bundle: FragmentBundle, received: Mapping[str, int]) -> bool:
        """Whether nothing is on its way.

        Args:
            bundle: The running version.
            received: Next sequence number expected here from every result site.
        """
        sites = sites_of(bundle)
        if any(not self.is_idle(site) for site in sites):
            return False
        return all(self._both_ends_agree(site, received) for site in sites)

    def _both_ends_agree(self, sender: str, received: Mapping[str, int]) -> bool:
        for to, count in self._reports[sender].sent.items():
            if to == OUTPUT:
                arrived = received.get(sender)
            else:
                receiver = self._reports.get(to)
                arrived = receiver.received.get(sender) if receiver is not None else None
            if arrived != count:
                return False
        return True


def sites_of(bundle: FragmentBundle) -> tuple[str, ...]:
    """Return all sites that run something of a bundle, sorted."""
    return tuple(sorted({site for fragment in bundle.fragments for site in fragment.sites}))
