"""Tells gateways which streams' observations somebody reads; the others are not published.

Readers are the lake, if there is a lander (but of no source with `keep = 'no'`), and windows at
base sites over the rows of all gateways. The lake does not want them soon.

A gateway that was told nothing publishes, so nothing is lost where this is silent: before the first
look, and for a while after it.
"""

import logging
from collections.abc import Iterable

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.run_reads import streams_read_by
from federated_optimizer.coordinator.shared_parts import SharedParts
from host.clocks import monotonic_clock
from host.mqtt import MessagingError
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.keep_options import NO
from streamsql.data.types import MICROSECONDS
from streamsql.wire.codec import encode_json
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.observation_logs import Interest
from streamsql.wire.site_messages import SiteRole
from streamsql.wire.topics import level_of

log = logging.getLogger(__name__)

_SOON = Interest(wanted=True, soon=True)
SILENT_SECONDS = 30.0
"""After a start, or a connection: a lander may not have been heard yet."""


class ObservationInterest:
    """Keeps the retained interest in each stream equal to who reads it."""

    def __init__(self, shared: SharedParts) -> None:
        self._shared = shared
        self._told: dict[str, Interest] = {}
        self._reads: dict[str, tuple[FragmentBundle, frozenset[str]]] = {}
        self._silent_until = 0
        self._connected(True)
        shared.client.on_connection(self._connected)
        shared.deployment.before_publish = self.needed_by

    def _connected(self, connected: bool) -> None:
        """Begin again: a broker that was away may have forgotten what it was told."""
        if connected:
            self._told.clear()
            self._silent_until = monotonic_clock() + int(SILENT_SECONDS * MICROSECONDS)

    def needed_by(self, bundle: FragmentBundle) -> None:
        """Have published what a query is about to read.

        Raises:
            MessagingError: The message queue is full.
        """
        for stream in sorted(streams_read_by(bundle)):
            if self._told.get(stream, _SOON) != _SOON:
                self._tell(stream, _SOON)

    def look(self, queries: Iterable[RunningQuery]) -> None:
        """Tell what has changed; a query of each run that reads observations is enough."""
        is_silent = monotonic_clock() < self._silent_until
        is_kept = bool(self._shared.membership.with_role(SiteRole.LANDER))
        streams = {
            source.name.lower()
            for source in self._shared.catalog.sources
            if source.kind != SourceKind.TABLE
        }
        unkept = {
            source.name.lower()
            for source in self._shared.catalog.sources
            if (source.option("keep") or "").strip().lower() == NO
        }
        read = self._read_by(queries)
        try:
            for stream in sorted(streams):
                soon = stream in read
                found = Interest(soon or (is_kept and stream not in unkept), soon)
                if self._told.get(stream) != found and (found.wanted or not is_silent):
                    self._tell(stream, found)
            for stream in sorted(self._told.keys() - streams):
                self._shared.client.publish(self._topic(stream), b"", retain=True)
                del self._told[stream]
        except MessagingError as error:
            log.warning("interest in observations is told later: %s", error.message)

    def _read_by(self, queries: Iterable[RunningQuery]) -> set[str]:
        known, self._reads = self._reads, {}
        for query in queries:
            found = known.get(query.run)
            if found is None or found[0] is not query.bundle:
                found = (query.bundle, streams_read_by(query.bundle))
            self._reads[query.run] = found
        return {name for _bundle, names in self._reads.values() for name in names}

    def _tell(self, stream: str, interest: Interest) -> None:
        self._shared.client.publish(self._topic(stream), encode_json(interest), retain=True)
        self._told[stream] = interest

    def _topic(self, stream: str) -> str:
        return self._shared.topics.interest(level_of(stream))
