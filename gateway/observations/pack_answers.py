"""A gateway's answers to readers that lack packs: the packs again, then how many there are."""

import logging

from gateway.buffer.published_packs import MAX_AHEAD, PublishedPacks
from host.mqtt import MessageClient, QueueFull
from host.mqtt.publishing import publish_or_warn
from streamsql.wire.codec import encode_json
from streamsql.wire.observation_logs import PacksPublished, PacksWanted
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

RESEND_SECONDS = 3.0
"""Before an asker gets the same packs again: they may be under way still."""
MAX_ASKERS = 1_000
"""Askers and streams whose last resending is known."""


class PackAnswers:
    """Publishes packs again that a base site or a lander lacks."""

    def __init__(
        self, site: str, client: MessageClient, topics: Topics, published: PublishedPacks
    ) -> None:
        self._site = site
        self._client = client
        self._topics = topics
        self._published = published
        self._resent: dict[tuple[str, str], tuple[int, float]] = {}

    def answer(self, asker: str, wanted: PacksWanted, now: float, *, is_known: bool = True) -> None:
        """Publish what is wanted, then say how many packs there are; `now` in seconds, never back.

        Askers that are not known count as one, so that together they get the same packs once in a
        while. Nothing is said where packs cannot be sent now: they would count as lost. Who asks
        does so again.
        """
        published, stream = self._published, wanted.stream
        is_same = wanted.life == published.life
        again = published.since(stream, wanted.next) if is_same else ()
        name = asker if is_known else ""
        if again:
            if self._client.pending() > MAX_AHEAD or self._is_under_way(name, wanted, now):
                return
            try:
                for _number, topic, payload in again:
                    self._client.publish(topic, payload)
            except QueueFull:
                log.warning("too many messages wait for the broker; packs are sent again later")
                return
            self._resent.pop((name, stream), None)
            self._resent[name, stream] = (wanted.next, now)
            if len(self._resent) > MAX_ASKERS:
                del self._resent[next(iter(self._resent))]
        number = published.next(stream)
        first = again[0][0] if again else number
        answer = PacksPublished(
            stream,
            published.life,
            first if is_same else None,
            number,
            published.newest(stream),
        )
        topic = self._topics.request(asker, "published", self._site)
        publish_or_warn(self._client, topic, encode_json(answer))

    def _is_under_way(self, asker: str, wanted: PacksWanted, now: float) -> bool:
        """Whether an asker got the same a moment ago; one that has got on asks for later packs."""
        number, at = self._resent.get((asker, wanted.stream), (-1, now))
        return wanted.next <= number and now - at < RESEND_SECONDS
