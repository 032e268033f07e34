"""Messages that cannot be used: counted, logged once, kept on the broker."""

import logging
from collections.abc import Callable

from host.clocks import wall_clock
from host.mqtt.message_client import Message, MessageClient, MessagingError
from streamsql.errors import FederationError, InternalError
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import DeadLetter
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

MAX_KINDS = 1_000
MAX_KEPT = 2_000
_KIND_LENGTH = 60
_TOPIC_LENGTH = 300


class DeadLetters:
    """Hands messages to a service; what it refuses or trips over is a dead letter.

    The first of each sender and kind is logged and published; when more kinds than anybody reads
    have come, the rest is only counted.

    Attributes:
        count: Dead letters so far.
    """

    def __init__(self, site: str, client: MessageClient, topics: Topics) -> None:
        self.count = 0
        self._topic = topics.dead(site)
        self._client = client
        self._kinds: set[tuple[str, str]] = set()

    def guard(self, handle: Callable[[Message], None], message: Message) -> None:
        """Handle a message; whatever is in it, the service goes on."""
        try:
            handle(message)
        except FederationError as error:
            self.add(message, error)
        except Exception as error:  # noqa: BLE001  (a payload must not stop a service)
            defect = InternalError(f"{type(error).__name__}: {error!s:.300}")
            self.add(message, defect, cause=error)

    def add(
        self, message: Message, error: FederationError, *, cause: Exception | None = None
    ) -> None:
        """Count a message and say what is wrong with it.

        Args:
            message: As it came.
            error: Why it cannot be used.
            cause: A defect of ours that it met, which is logged with its place.
        """
        self.count += 1
        topic, why = _line(message.topic[:_TOPIC_LENGTH]), _line(error.message)
        kind = (topic, why[:_KIND_LENGTH])
        if kind in self._kinds or len(self._kinds) >= MAX_KINDS:
            return
        self._kinds.add(kind)
        if cause is None:
            log.warning("ignored an invalid payload on %s: %s", topic, why)
        else:
            log.error("a defect interrupted the handling of a message on %s", topic, exc_info=cause)
        text = message.payload[:MAX_KEPT].decode("utf-8", "replace")
        letter = DeadLetter(topic, why, wall_clock(), text)
        try:
            self._client.publish(self._topic, encode_json(letter))
        except MessagingError as refusal:
            log.warning("the invalid payload is not kept: %s", refusal.message)


def _line(text: str) -> str:
    """Return text as one line: what others have chosen cannot forge a line of the log."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
