"""Sites that hold back the final rows of a query, and by how much."""

from stream_engine.exchange.channel_inbox import Inbox
from streamsql.algebra.operators import Scan, ScanPart, walk_plan
from streamsql.data.types import MICROSECONDS
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import SlowSite

BEHIND = 10
"""Seconds of event time by which a site has to be behind the foremost one to be reported, in
multiples, so that the report does not change with every reading."""


class SlowSites:
    """Compares the progress that the sites have sent.

    The watermark of a query is the least of all sites', so a site whose readings are old (a clock
    that is behind, a device that has stopped while others go on) holds back the windows of all.
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
        """Return the slow sites at a time (microseconds since 1970 UTC), the slowest first.

        Sites that have become slow since the last call are slow since `now`. Work: O(sites),
        nothing for a query that waits for no watermark.
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
