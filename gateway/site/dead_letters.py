"""What becomes of payloads that cannot be used: counted, logged once, kept on the broker."""

import logging
import time

from messaging import Message, MessageClient, MessagingError
from streamsql.errors import FederationError
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import DeadLetter
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

MAX_KINDS = 1_000
MAX_KEPT = 2_000
_KIND_LENGTH = 60


class DeadLetters:
    """Counts bad payloads; the first of each sender and kind is logged and published.

    When more kinds than anybody reads have come, the rest is only counted.
    """

    def __init__(self, site: str, client: MessageClient, topics: Topics) -> None:
        self.count = 0
        self._topic = topics.dead(site)
        self._client = client
        self._kinds: set[tuple[str, str]] = set()

    def add(self, message: Message, error: FederationError) -> None:
        """Take in a payload and what is wrong with it."""
        self.count += 1
        kind = (message.topic, error.message[:_KIND_LENGTH])
        if kind in self._kinds or len(self._kinds) >= MAX_KINDS:
            return
        self._kinds.add(kind)
        log.warning("ignored a bad payload on %s: %s", message.topic, error.message)
        text = message.payload[:MAX_KEPT].decode("utf-8", "replace")
        letter = DeadLetter(message.topic, error.message, time.time_ns() // 1000, text)
        try:
            self._client.publish(self._topic, encode_json(letter))
        except MessagingError as refusal:
            log.warning("the bad payload is not kept: %s", refusal.message)
