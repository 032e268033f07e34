"""The bounded, ordered queue of publishes that a client has not got acknowledged.

Pure bookkeeping of one event loop. A message is *waiting* until it is handed to the connection,
then *sent* until its acknowledgement. When the connection is lost everything sent goes back to
the front, in order, so the order of publishing survives a reconnect.
"""

from collections import deque

import msgspec

from host.mqtt.message_client import ClientClosed, QueueFull
from host.mqtt.ticket import Ticket

_FIRST_ID, _LAST_ID = 32_768, 65_535
"""Of publishes; subscriptions have ids below, which paho counts."""


class Outgoing(msgspec.Struct, frozen=True):
    """One publish on its way."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    ticket: Ticket


class Outbox:
    """Waiting and sent publishes, bounded together.

    Attributes:
        window: Most publishes that are sent and not acknowledged.
    """

    def __init__(self, *, max_messages: int, max_bytes: int, window: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self.window = window
        self._waiting: deque[Outgoing] = deque()
        self._sent: dict[int, Outgoing] = {}
        self._bytes = 0
        self._last_id = _LAST_ID

    def __len__(self) -> int:
        return len(self._waiting) + len(self._sent)

    def add(self, item: Outgoing) -> None:
        """Append a message.

        Raises:
            QueueFull: A bound is reached; nothing was added.
        """
        if len(self) >= self._max_messages or self._bytes + len(item.payload) > self._max_bytes:
            message = (
                f"{len(self)} messages ({self._bytes} bytes) wait for the broker already; "
                f"{item.topic!r} was not queued"
            )
            raise QueueFull(
                message, hint="publish less, or find out why the broker does not answer"
            )
        self._waiting.append(item)
        self._bytes += len(item.payload)

    def last(self) -> Ticket | None:
        """Return the ticket of the newest message, or None when all are acknowledged."""
        if self._waiting:
            return self._waiting[-1].ticket
        return next(reversed(self._sent.values())).ticket if self._sent else None

    def next(self) -> Outgoing | None:
        """Return the message to send now, or None (nothing waits, or the window is full)."""
        if not self._waiting or len(self._sent) >= self.window:
            return None
        return self._waiting[0]

    def next_id(self) -> int:
        """Return a packet id that no sent message has."""
        while True:
            self._last_id = self._last_id + 1 if self._last_id < _LAST_ID else _FIRST_ID
            if self._last_id not in self._sent:
                return self._last_id

    def mark_sent(self, packet_id: int) -> None:
        """Note that the message `next` returned was handed over under this packet id."""
        item = self._waiting.popleft()
        if item.qos:
            self._sent[packet_id] = item
        else:
            self._settle(item)

    def acknowledge(self, packet_id: int, refusal: str = "") -> str:
        """Note an acknowledgement; one of an earlier connection is ignored.

        Args:
            packet_id: Of the publish.
            refusal: Why the broker does not take the message, or empty.

        Returns:
            The topic of the message, or empty.
        """
        item = self._sent.pop(packet_id, None)
        if item is None:
            return ""
        item.ticket.refusal = refusal
        self._settle(item)
        return item.topic

    def rewind(self) -> None:
        """Forget the connection: what was sent waits again, before the rest, in order."""
        self._waiting.extendleft(reversed(self._sent.values()))
        self._sent.clear()

    def fail(self, error: ClientClosed) -> None:
        """Give up on everything; waiters get the error."""
        self.rewind()
        while self._waiting:
            self._waiting.popleft().ticket.resolve(error)
        self._bytes = 0

    def _settle(self, item: Outgoing) -> None:
        self._bytes -= len(item.payload)
        item.ticket.resolve()
