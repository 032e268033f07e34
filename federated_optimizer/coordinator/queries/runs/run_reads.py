"""Runs for which the coordinator has work of its own: found without going through all runs."""

from collections.abc import Collection

from streamsql.algebra.operators import Scan, SourceKind, walk_plan
from streamsql.catalog.system import SYS_STREAM, is_site_source
from streamsql.wire.fragments import Engine, FragmentBundle


class RunReads:
    """Index of the runs that read something that few read.

    Args:
        host: The coordinator.

    Attributes:
        tables: Runs with fragments at the coordinator: they read the system's tables.
        reports: Runs that read the system's stream.
        observations: Runs that read streams at base sites.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._of: dict[str, FragmentBundle] = {}
        self.tables: dict[str, None] = {}
        self.reports: dict[str, None] = {}
        self.observations: dict[str, None] = {}

    def put(self, run: str, bundle: FragmentBundle) -> None:
        """Note the bundle of a run that somebody reads."""
        if self._of.get(run) is bundle:
            return
        self.discard(run)
        self._of[run] = bundle
        if bundle.at(self._host):
            self.tables[run] = None
        if reads_reports(bundle):
            self.reports[run] = None
        if streams_read_by(bundle):
            self.observations[run] = None

    def discard(self, run: str) -> None:
        """Let go a run that nobody reads any more, if it is there."""
        if self._of.pop(run, None) is not None:
            for index in (self.tables, self.reports, self.observations):
                index.pop(run, None)

    def names(self) -> Collection[str]:
        """Return the runs that are known."""
        return self._of.keys()


def reads_reports(bundle: FragmentBundle) -> bool:
    """Return whether a bundle reads the system's stream."""
    return any(
        isinstance(node, Scan) and node.source == SYS_STREAM.name
        for fragment in bundle.fragments
        for node in walk_plan(fragment.plan)
    )


def streams_read_by(bundle: FragmentBundle) -> frozenset[str]:
    """Return the streams whose observations a bundle reads at base sites, in lower case."""
    return frozenset(
        node.source.lower()
        for fragment in bundle.fragments
        if fragment.engine is Engine.BASE
        for node in walk_plan(fragment.plan)
        if isinstance(node, Scan)
        and node.kind != SourceKind.TABLE
        and not is_site_source(node.source)
    )
