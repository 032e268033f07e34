"""What crosses from paho's network thread to the event loop, in bursts.

The network thread appends events; the event loop is woken once per burst, not once per message
(measured: several times cheaper). When the loop falls behind by too many messages or bytes the
network thread is held, so TCP holds the broker, whose own bounds then apply: memory stays bounded
everywhere.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from host.mqtt.message_client import Message

_LOG = logging.getLogger(__name__)


class Acknowledged(msgspec.Struct, frozen=True):
    """The broker acknowledged a publish; with a reason it did not take it (MQTT 5)."""

    packet_id: int
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The broker answered a subscribe or unsubscribe; `refused` are positions of its filters."""

    packet_id: int
    refused: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Connected:
    """The broker accepted us; connections are numbered from 1.

    Attributes:
        window: Publishes that it takes before it acknowledges the first.
        session_kept: It still had our session.
    """

    generation: int
    window: int
    session_kept: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """The broker answered and refused us."""

    reason: str
    hint: str
    permanent: bool


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The link is gone, or could not be made."""

    reason: str
    hint: str = ""


Event = Message | Acknowledged | Subscribed | Connected | Refused | Disconnected


class Inbox:
    """A bounded hand-over of events from one thread to an event loop.

    Args:
        loop: The loop that gets the events.
        deliver: Called on the loop with each burst, in order.
        max_events: How many may wait before the network thread is held.
        max_bytes: How many bytes of payload may wait before it is held.
        glance: Called on the network thread with each message before it waits.
        burst: Most events delivered in one turn of the loop.
    """

    def __init__(  # noqa: PLR0913  (where events go, and the bounds)
        self,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[list[Event]], None],
        *,
        max_events: int = 20_000,
        max_bytes: int = 64 * 1024 * 1024,
        burst: int = 1_000,
        glance: Callable[[Message], None] | None = None,
    ) -> None:
        self._loop = loop
        self._deliver = deliver
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._burst = burst
        self._glance = glance
        self._events: deque[Event] = deque()
        self._scheduled = False
        self._room = threading.Event()
        self._closed = False
        # Two counters with one writer each: their difference needs no lock.
        self._bytes_in = 0
        self._bytes_out = 0

    def put(self, *events: Event) -> None:
        """Add events; called on the network thread, which is held while there is no room."""
        for event in events:
            if type(event) is Message:
                if self._glance is not None:
                    self._glance(event)
                self._bytes_in += len(event.payload)
                if self._full():
                    self._wait_for_room()
            self._events.append(event)
        self._wake()

    def close(self) -> None:
        """Let a held network thread go; called on the loop."""
        self._closed = True
        self._room.set()

    def _full(self) -> bool:
        return (
            len(self._events) >= self._max_events
            or self._bytes_in - self._bytes_out > self._max_bytes
        ) and bool(self._events)

    def _wait_for_room(self) -> None:
        self._wake()
        while self._full() and not self._closed:
            self._room.clear()
            if self._full():
                self._room.wait(0.5)

    def _wake(self) -> None:
        if self._scheduled:
            return
        self._scheduled = True
        try:
            self._loop.call_soon_threadsafe(self._drain)
        except RuntimeError:
            # The loop ended without closing its client; nobody is left to tell but the log.
            self._closed = True
            _LOG.warning("the event loop ended before its broker client was closed")

    def _drain(self) -> None:
        # Cleared first: an event added while draining causes at worst one empty drain more.
        self._scheduled = False
        events = self._events
        burst = [events.popleft() for _ in range(min(len(events), self._burst))]
        self._bytes_out += sum(len(e.payload) for e in burst if type(e) is Message)
        if not self._room.is_set():
            self._room.set()
        if events and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._drain)
        if burst:
            self._deliver(burst)
