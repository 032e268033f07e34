"""Makes good what is lost between gateways that publish and base sites that read: asks, answers."""

import logging
from collections.abc import Callable

from gateway.buffer.published_packs import PublishedPacks
from gateway.site.heard_logs import HeardLogs, Missing
from host.mqtt import MessageClient, QueueFull
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.wire.codec import encode_json
from streamsql.wire.observation_logs import PacksPublished, PacksWanted
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

LOG = "log"
"""The note on how far a log has come without a pack."""


class LostPacks:
    """The part of a site's host that follows logs.

    Args:
        engine: The site.
        client: To publish with.
        topics: Of the federation.
        logs: What is read here of what gateways publish.
        published: What this site publishes itself.
        on_missing: Called with packs that will never come.
        on_change: Called when a log has become whole, or is not any more.
    """

    def __init__(  # noqa: PLR0913, PLR0917  (each is one seam)
        self,
        engine: RecordedSite,
        client: MessageClient,
        topics: Topics,
        logs: HeardLogs,
        published: PublishedPacks | None,
        on_missing: Callable[[Missing], None] | None,
        on_change: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._client = client
        self._topics = topics
        self._logs = logs
        self._published = published or PublishedPacks(engine.epoch)
        self._on_missing = on_missing
        self._on_change = on_change
        self._changes = 0

    def follow(self, now: float) -> None:
        """Ask for packs that did not come, and name those that never will.

        Args:
            now: Seconds of a clock that only goes forward.
        """
        logs = self._logs
        for jump in logs.jumps:
            self._engine.take_in({}, (LOG, jump))
        logs.jumps.clear()
        missing, logs.missing = logs.missing, []
        for lost in missing:
            log.warning("packs of %s from %s are lost", lost.stream, lost.gateway)
            if self._on_missing is not None:
                self._on_missing(lost)
        if logs.changes != self._changes:
            self._changes = logs.changes
            self._on_change()
        for gateway, wanted in logs.wanted(now) if self._client.connected else ():
            self._request(gateway, "packs", wanted)

    def answer(self, site: str, wanted: PacksWanted) -> None:
        """Publish packs again that a base site lacks, then say how many there are."""
        published, stream = self._published, wanted.stream
        is_same = wanted.life == published.life
        again = published.since(stream, wanted.next) if is_same else ()
        try:
            for _number, topic, payload in again:
                self._client.publish(topic, payload)
        except QueueFull:
            log.warning("too many messages wait for the broker; packs are sent again later")
        number = published.next(stream)
        first = again[0][0] if again else number
        newest = published.newest(stream)
        answer = PacksPublished(stream, published.life, first if is_same else None, number, newest)
        self._request(site, "published", answer)

    def _request(self, site: str, verb: str, message: PacksWanted | PacksPublished) -> None:
        topic = self._topics.request(site, verb, self._engine.site)
        try:
            self._client.publish(topic, encode_json(message))
        except QueueFull:
            log.warning("too many messages wait for the broker; %s not sent", topic)
