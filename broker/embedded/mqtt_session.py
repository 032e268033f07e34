"""The broker's state of one client id: subscriptions, queue, unacknowledged deliveries.

A session outlives its connection when the client asked for it. Deliveries leave in the order in
which they arrived; one that cannot leave now (client away, its buffer full, its window of
unacknowledged deliveries used up) waits in a bounded queue. When the client comes back, what was
sent and not acknowledged is sent again first, with the same packet ids and the DUP flag.
"""

from __future__ import annotations

from collections import deque
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

from broker.embedded.limits import Counters, Limits
from broker.embedded.packets.encode import publish_frame
from broker.embedded.packets.packets import Message, Options


class Outlet(Protocol):
    """The connection of a session, as the session sees it."""

    version: int
    max_packet_size: int | None

    @property
    def writable(self) -> bool:
        """Whether the client keeps up with what we write."""
        ...

    def send(self, frame: bytes) -> None:
        """Write a packet, soon."""
        ...

    def close(self, reason: int) -> None:
        """End the connection; `reason` tells an MQTT 5 client why."""
        ...


@dataclass(slots=True, eq=False)
class Delivery:
    """One message on its way to one session.

    Attributes:
        qos: 0 or 1.
        retain: The retain flag sent with it.
        exempt: Not subject to the queue's bounds: it comes from the retained set, which is bounded
            itself, or was sent before and is bounded by the window.
        packet_id: 0 until it is sent at QoS 1 for the first time.
        dup: Whether it was sent before.
    """

    message: Message
    qos: int
    _: KW_ONLY
    retain: bool
    exempt: bool = False
    packet_id: int = 0
    dup: bool = False


@dataclass(frozen=True, slots=True)
class Will:
    """A will of a connected client; `delay` and `expiry` in seconds."""

    message: Message
    delay: float
    expiry: float | None


class Session:
    """The state of one client id.

    Attributes:
        filters: Its subscriptions.
        user: Name of the account of its last connection, or None.
        guarded: Whether each delivery is to be checked against the account's rights.
        outlet: Its connection, or None while the client is away.
        expiry: Seconds it is kept while the client is away; None keeps it to the broker's limit.
        away_since: Monotonic time of the disconnect.
        will: The current connection's will.
        incoming_qos2: Packet ids of QoS 2 publishes taken and not yet released by the client.
    """

    def __init__(self, client_id: str, limits: Limits, counters: Counters) -> None:
        self.client_id = client_id
        self.filters: dict[str, Options] = {}
        self.user: str | None = None
        self.guarded = False
        self.outlet: Outlet | None = None
        self.expiry: float | None = 0.0
        self.away_since = 0.0
        self.will: Will | None = None
        self.incoming_qos2: set[int] = set()
        self._limits = limits
        self._counters = counters
        self._queue: deque[Delivery] = deque()
        self._waiting = [0, 0]  # deliveries in the queue by QoS, without the exempt ones
        self._waiting_exempt = 0
        self._waiting_bytes = 0
        self._inflight: dict[int, Delivery] = {}
        self._inflight_bytes = 0
        self._window = limits.max_inflight
        self._ids: set[int] = set()
        self._last_id = 0

    @property
    def queued(self) -> int:
        """Deliveries waiting in the queue."""
        return len(self._queue)

    @property
    def inflight(self) -> int:
        """Deliveries sent and not yet acknowledged."""
        return len(self._inflight)

    def attach(self, outlet: Outlet, receive_maximum: int) -> None:
        """Use a new connection with its max of unacknowledged deliveries; call `drain` then."""
        self.outlet = outlet
        self._window = min(self._limits.max_inflight, receive_maximum)
        for delivery in reversed(self._inflight.values()):
            delivery.dup = delivery.exempt = True
            self._queue.appendleft(delivery)
            self._account(delivery, 1)
        self._inflight.clear()
        self._inflight_bytes = 0

    def detach(self) -> None:
        """Discard the connection, and QoS 0 deliveries that it had not taken."""
        self.outlet = None
        kept = [delivery for delivery in self._queue if delivery.qos]
        for delivery in self._queue:
            if not delivery.qos:
                self._account(delivery, -1)
        self._queue = deque(kept)

    def discard(self) -> None:
        """Release everything this session holds, before it is dropped."""
        for delivery in self._queue:
            self._account(delivery, -1)
        self._queue.clear()
        self._inflight.clear()

    def deliver(
        self, message: Message, qos: int, now: float, *, retain: bool = False, stored: bool = False
    ) -> None:
        """Send a message at a granted QoS of 0 or 1, or queue it.

        A `stored` message comes from the retained set, which holds its bytes already.
        """
        outlet = self.outlet
        if outlet is not None and not self._queue and outlet.writable:
            if qos == 0:
                self._write(
                    outlet, publish_frame(message, outlet.version, 0, retain=retain, now=now)
                )
                return
            if self._window_open():
                self._send(outlet, Delivery(message, qos, retain=retain), now)
                return
        if outlet is None and qos == 0:
            return  # nothing is promised: not counted as dropped
        self._enqueue(Delivery(message, qos, retain=retain, exempt=stored))

    def _enqueue(self, delivery: Delivery) -> None:
        if self._has_room_for(delivery):
            self._queue.append(delivery)
            self._account(delivery, 1)
        else:
            self._counters.dropped += 1

    def _has_room_for(self, delivery: Delivery) -> bool:
        limits = self._limits
        if delivery.exempt:
            return self._waiting_exempt < 2 * limits.max_retained
        most = limits.max_queued if delivery.qos else limits.max_queued_qos0
        size = len(delivery.message.payload)
        return (
            self._waiting[delivery.qos] < most
            and self._waiting_bytes + size <= limits.max_queued_bytes
            and self._counters.queued_bytes + size <= limits.max_total_queued_bytes
        )

    def _account(self, delivery: Delivery, sign: int) -> None:
        if delivery.exempt:
            self._waiting_exempt += sign
            return
        self._waiting[delivery.qos] += sign
        size = sign * len(delivery.message.payload)
        self._waiting_bytes += size
        self._counters.queued_bytes += size

    def drain(self, now: float) -> None:
        """Send queued deliveries, as far as the client takes them."""
        queue = self._queue
        while queue and self.outlet is not None and self.outlet.writable:
            delivery = queue[0]
            if delivery.qos and not self._window_open():
                return
            queue.popleft()
            self._account(delivery, -1)
            expires_at = delivery.message.expires_at
            if expires_at is not None and expires_at <= now and not delivery.dup:
                self._counters.dropped += 1
                continue
            self._send(self.outlet, delivery, now)

    def acknowledge(self, packet_id: int, now: float) -> None:
        """Take a PUBACK; one for nothing is ignored (it may follow a takeover)."""
        delivery = self._inflight.pop(packet_id, None)
        if delivery is None:
            return
        self._inflight_bytes -= len(delivery.message.payload)
        self._ids.discard(packet_id)
        if self._queue:
            self.drain(now)

    def _window_open(self) -> bool:
        return len(self._inflight) < self._window and (
            self._inflight_bytes < self._limits.max_inflight_bytes
        )

    def _send(self, outlet: Outlet, delivery: Delivery, now: float) -> None:
        if delivery.qos and not delivery.packet_id:
            delivery.packet_id = self._next_id()
        frame = publish_frame(
            delivery.message,
            outlet.version,
            delivery.qos,
            retain=delivery.retain,
            dup=delivery.dup,
            packet_id=delivery.packet_id,
            now=now,
        )
        if self._write(outlet, frame) and delivery.qos:
            self._inflight[delivery.packet_id] = delivery
            self._inflight_bytes += len(delivery.message.payload)
        else:
            self._ids.discard(delivery.packet_id)

    def _write(self, outlet: Outlet, frame: bytes) -> bool:
        if outlet.max_packet_size is not None and len(frame) > outlet.max_packet_size:
            self._counters.dropped += 1
            return False
        self._counters.sent += 1
        outlet.send(frame)
        return True

    def _next_id(self) -> int:
        # The window is far smaller than the 65,535 identifiers, so this ends.
        while True:
            self._last_id = self._last_id % 0xFFFF + 1
            if self._last_id not in self._ids:
                self._ids.add(self._last_id)
                return self._last_id
