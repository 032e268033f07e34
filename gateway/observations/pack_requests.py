"""Makes good what a base site lacks of what gateways publish: asks for it, and names losses."""

import logging
from collections.abc import Callable

from gateway.observations.followed_logs import FollowedLogs
from gateway.observations.unrecoverable_packs import Missing, Withdrawn
from host.clocks import Clock
from host.mqtt import Message, MessageClient
from host.mqtt.publishing import publish_or_warn
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.wire.codec import encode_json
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

LOG = "log"
"""The note on how far a log has come without a pack."""


class PackRequests:
    """The part of a site's host that follows logs.

    `on_due` gets packs that nobody waits for any more, in order, `on_missing` those that will never
    come, `on_withdrawn` losses that are none; `on_change` is called when a log has become whole, or
    is not any more.
    """

    def __init__(  # noqa: PLR0913  (each is one seam)
        self,
        engine: RecordedSite,
        client: MessageClient,
        topics: Topics,
        clock: Clock,
        logs: FollowedLogs,
        *,
        on_due: Callable[[list[Message]], None],
        on_missing: Callable[[Missing], None],
        on_withdrawn: Callable[[Withdrawn], None],
        on_change: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._client = client
        self._topics = topics
        self._clock = clock
        self._logs = logs
        self._on_due = on_due
        self._on_missing = on_missing
        self._on_withdrawn = on_withdrawn
        self._on_change = on_change
        self._changes = 0

    def follow(self, now: float) -> None:
        """Ask for packs that did not come, and name those that never will.

        `now` in seconds of a clock that only goes forward.
        """
        logs = self._logs
        requests = logs.wanted(now, self._clock()) if self._client.connected else ()
        self._report()
        if logs.due:
            due, logs.due = logs.due, []
            self._on_due(due)
        for jump in logs.jumps:
            self._engine.take_in({}, (LOG, jump))
        logs.jumps.clear()
        if logs.changes != self._changes:
            self._changes = logs.changes
            self._on_change()
        for gateway, wanted in requests:
            topic = self._topics.request(gateway, "packs", self._engine.site)
            publish_or_warn(self._client, topic, encode_json(wanted))

    def _report(self) -> None:
        losses = self._logs.findings.losses
        for lost in losses:
            if isinstance(lost, Missing):
                log.warning("packs of %s from %s are lost", lost.stream, lost.gateway)
                self._on_missing(lost)
            else:
                self._on_withdrawn(lost)
        if losses:
            self._on_change()
            losses.clear()
