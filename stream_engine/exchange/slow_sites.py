"""Which sites hold back what a query gives only when it is final, and for how long."""

from stream_engine.exchange.channel_inbox import Inbox
from streamsql.algebra.operators import Scan, ScanPart, walk_plan
from streamsql.data.types import MICROSECONDS
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import SlowSite

BEHIND = 10
"""Seconds of event time by which a site has to be behind the foremost one to be told of; what is
told is a multiple of it, so that it does not change with every reading."""


class SlowSites:
    """Looks through the progress that the sites have sent.

    The watermark of a query is the least of all sites', so a site whose readings are old (a clock
    that is behind, a device that has stopped while others go on) holds back the windows of all.

    Args:
        bundle: The whole plan.
        inbox: What has come of it here.
    """

    __slots__ = ("_inbox", "_ports", "_since")

    def __init__(self, bundle: FragmentBundle, inbox: Inbox) -> None:
        self._inbox = inbox
        self._ports = [
            fragment.id
            for fragment in bundle.fragments
            if any(
                isinstance(node, Scan) and node.part == ScanPart.PROGRESS
                for node in walk_plan(fragment.plan)
            )
        ]
        self._since: dict[str, int] = {}

    def at(self, now: int) -> tuple[SlowSite, ...]:
        """Return who holds back whom, the slowest first.

        Work: O(sites), nothing for a query that waits for no watermark.

        Args:
            now: Microseconds since 1970 UTC; who has become slow since the last look is told to
                have been since now.
        """
        if not self._ports:
            return ()
        marks: dict[str, int] = {}
        for channel in self._inbox.channels.values():
            for port in self._ports:
                for site, mark in channel.contents.get(port, ()):
                    if isinstance(site, str) and isinstance(mark, int):
                        marks[site] = min(mark, marks.get(site, mark))
        foremost = max(marks.values(), default=0)
        tens = {site: (foremost - mark) // (BEHIND * MICROSECONDS) for site, mark in marks.items()}
        slow = sorted((site for site in tens if tens[site]), key=lambda site: (-tens[site], site))
        self._since = {site: self._since.get(site, now) for site in slow}
        return tuple(SlowSite(site, tens[site] * BEHIND, self._since[site]) for site in slow)
