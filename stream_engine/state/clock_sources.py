"""The sources whose clocks have to move when a query has work."""

from collections.abc import Iterable, Sequence

from streamsql.algebra.operators import Scan, ScanPart


class ClockSources:
    """The sources whose progress is the site's clock, by the sources that are read with them.

    A stream over several sources emits what is final at all of them, so when one has events the
    clocks of the others move as well; those that no such query reads rest.

    State: a number for any two sources that a query reads together, if one has a clock.
    """

    def __init__(self) -> None:
        self._beside: dict[str, dict[str, int]] = {}

    def add(self, scans: Sequence[Scan]) -> None:
        """Count what a query reads."""
        self._count(scans, 1)

    def drop(self, scans: Sequence[Scan]) -> None:
        """Discount what a query has read."""
        self._count(scans, -1)

    def with_clocks(self, sources: Iterable[str]) -> dict[str, None]:
        """Return sources, and those whose clocks move with them."""
        found = dict.fromkeys(sources)
        for source in tuple(found):
            found.update(dict.fromkeys(self._beside.get(source, ())))
        return found

    def all(self) -> dict[str, None]:
        """Return the sources that have clocks."""
        return {clock: None for clocks in self._beside.values() for clock in clocks}

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._beside)

    def _count(self, scans: Sequence[Scan], difference: int) -> None:
        clocks = {scan.source for scan in scans if has_clock(scan)}
        if not clocks:
            return
        for source in {scan.source for scan in scans}:
            beside = self._beside.setdefault(source, {})
            for clock in sorted(clocks):
                beside[clock] = beside.get(clock, 0) + difference
                if not beside[clock]:
                    del beside[clock]
            if not beside:
                del self._beside[source]


def has_clock(scan: Scan) -> bool:
    """Whether a scan's progress is the site's clock, for want of a watermark."""
    return scan.part == ScanPart.PROGRESS and scan.lateness is None
