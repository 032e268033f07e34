"""A broker and clients inside one event loop, for tests: no sockets, seeded faults.

It keeps what Pando relies on: retained messages, wills, persistent sessions, order per topic. On
request it does, by seed, what a real network may do: deliver topics in another order relative to
each other, deliver a run of messages twice, lose messages, cut a client off, stop for a while.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from host.mqtt.in_memory_client import InMemoryClient
from host.mqtt.message_client import Message, Will
from host.mqtt.topic_filters import matches, split_shared

__all__ = ["Faults", "InMemoryBroker", "InMemoryClient"]


@dataclass(frozen=True, slots=True)
class Faults:
    """What the network does wrong; rates are probabilities per delivery.

    Attributes:
        reorder: Deliver topics in a random order relative to each other, in pieces; the order
            within one topic stays.
        duplicate: Rate at which a message of QoS 1 is followed by a second copy later on.
        lose: Rate at which a live delivery never happens.
    """

    reorder: bool = False
    duplicate: float = 0.0
    lose: float = 0.0


class _Session:
    """What the broker knows about one client id."""

    def __init__(self, client: InMemoryClient) -> None:
        self.client = client
        self.filters: dict[str, int] = {}
        self.queue: deque[Message] = deque()
        self.unacknowledged: dict[int, Message] = {}
        self.receipts = 0
        self.scheduled = False

    def handed_over(self, burst: list[Message]) -> list[Message]:
        """Return a burst as its client gets it; what it has to acknowledge is kept until then."""
        if not self.client.acknowledges_by_hand:
            return burst
        told: list[Message] = []
        for message in burst:
            if message.qos:
                self.receipts += 1
                self.unacknowledged[self.receipts] = message
                told.append(replace(message, receipt=self.receipts))
            else:
                told.append(message)
        return told


class InMemoryBroker:
    """The broker.

    Args:
        seed: Of the random choices made under `faults`.
        faults: May be replaced at any time (`broker.faults = Faults()` heals the network).
        max_queued: Bound on messages queued for a client; more are dropped and counted.

    Attributes:
        retained: The retained set, topic to message.
        delivered: Deliveries made, `dropped`: deliveries lost by faults or full queues.
    """

    def __init__(
        self, *, seed: int = 0, faults: Faults | None = None, max_queued: int = 100_000
    ) -> None:
        self.faults = faults or Faults()
        self.retained: dict[str, Message] = {}
        self.delivered = 0
        self.dropped = 0
        self._random = random.Random(seed)  # noqa: S311 - reproducible faults, not secrets
        self._max_queued = max_queued
        self._sessions: dict[str, _Session] = {}
        self._clients: list[InMemoryClient] = []
        self._turns: dict[str, int] = {}
        self._running = True

    def client(
        self,
        client_id: str,
        *,
        will: Will | None = None,
        clean: bool = True,
        max_pending: int = 10_000,
        acknowledges_by_hand: bool = False,
    ) -> InMemoryClient:
        """Build a client (not yet connected) of this broker."""
        return InMemoryClient(
            *(self, client_id),
            will=will,
            clean=clean,
            max_pending=max_pending,
            acknowledges_by_hand=acknowledges_by_hand,
        )

    def cut(self, client_id: str) -> None:
        """Break a client's link as a crash or a pulled cable would: its will is published."""
        session = self._sessions.get(client_id)
        if session is not None and session.client.connected:
            self._detach(session, publish_will=True)

    def restore(self, client_id: str) -> None:
        """Let a client that was cut reconnect."""
        for client in self._clients:
            if client.client_id == client_id and not client.connected:
                self._attach(client)

    def stop(self, *, forget: bool = False) -> None:
        """Stop the broker: every link breaks, no will is published.

        With `forget` it also loses the retained set and all sessions, as a restart without disk.
        """
        self._running = False
        for session in list(self._sessions.values()):
            if session.client.connected:
                self._detach(session, publish_will=False)
        if forget:
            self.retained.clear()
            self._sessions.clear()

    def start(self) -> None:
        """Start again after `stop`: the clients reconnect, in the order they were started."""
        self._running = True
        for client in self._clients:
            if not client.connected:
                self._attach(client)

    async def settle(self) -> None:
        """Run the loop until every message is delivered and acknowledged (bounded)."""
        for _ in range(100_000):
            await asyncio.sleep(0)
            if not any(s.scheduled for s in self._sessions.values()) and not any(
                c.connected and c.pending() for c in self._clients
            ):
                return
        raise RuntimeError(
            "the in-memory broker does not settle: check whether two clients answer each other"
        )

    # --- used by InMemoryClient ----------------------------------------------------------------

    def admit(self, client: InMemoryClient) -> None:
        """Register a started client and connect it when the broker runs."""
        self._clients.append(client)
        self._attach(client)

    def leave(self, client: InMemoryClient) -> None:
        """Disconnect cleanly: no will."""
        if client in self._clients:
            self._clients.remove(client)
        session = self._sessions.get(client.client_id)
        if session is not None and session.client is client:
            self._detach(session, publish_will=False)

    def acknowledge(self, client: InMemoryClient, receipts: Iterable[int]) -> None:
        """Forget messages that are kept for a client until then."""
        session = self._sessions.get(client.client_id)
        if session is not None:
            for receipt in receipts:
                session.unacknowledged.pop(receipt, None)

    def subscribe(self, client: InMemoryClient, filters: dict[str, int]) -> None:
        """Add filters to the client's session and send what is retained under them."""
        session = self._sessions[client.client_id]
        for topic_filter, qos in filters.items():
            session.filters[topic_filter] = qos
            group, plain = split_shared(topic_filter)
            if group is None:
                for message in self.retained.values():
                    if matches(plain, message.topic):
                        self._queue(
                            session, message.topic, message.payload, min(qos, message.qos), True
                        )

    def unsubscribe(self, client: InMemoryClient, filters: tuple[str, ...]) -> None:
        """Remove filters from the client's session."""
        session = self._sessions.get(client.client_id)
        for topic_filter in filters:
            if session is not None:
                session.filters.pop(topic_filter, None)

    def route(self, topic: str, payload: bytes, qos: int, *, retain: bool) -> None:
        """Take one publish: retain it if asked, queue it for every subscriber."""
        if retain and payload:
            self.retained[topic] = Message(topic, payload, qos, retain=True)
        elif retain:
            self.retained.pop(topic, None)
        groups: dict[str, list[tuple[_Session, int]]] = {}
        for session in list(self._sessions.values()):
            best = -1
            for topic_filter, granted in session.filters.items():
                group, plain = split_shared(topic_filter)
                if not matches(plain, topic):
                    continue
                if group is None:
                    best = max(best, granted)
                else:
                    groups.setdefault(topic_filter, []).append((session, granted))
            if best >= 0:
                self._send(session, topic, payload, min(qos, best))
        for topic_filter, members in groups.items():
            self._send_shared(topic_filter, members, topic, payload, qos)

    def _send_shared(
        self,
        topic_filter: str,
        members: list[tuple[_Session, int]],
        topic: str,
        payload: bytes,
        qos: int,
    ) -> None:
        online = [member for member in members if member[0].client.connected] or members
        turn = self._turns.get(topic_filter, 0)
        self._turns[topic_filter] = turn + 1
        session, granted = online[turn % len(online)]
        self._send(session, topic, payload, min(qos, granted))

    def _send(self, session: _Session, topic: str, payload: bytes, qos: int) -> None:
        if not session.client.connected and qos == 0:
            return
        if self.faults.lose and self._random.random() < self.faults.lose:
            self.dropped += 1
            return
        self._queue(session, topic, payload, qos, False)

    def _queue(self, session: _Session, topic: str, payload: bytes, qos: int, retain: bool) -> None:
        if len(session.queue) >= self._max_queued:
            self.dropped += 1
            return
        session.queue.append(Message(topic, payload, qos, retain))
        self._schedule(session)

    def _schedule(self, session: _Session) -> None:
        if session.queue and session.client.connected and not session.scheduled:
            session.scheduled = True
            asyncio.get_running_loop().call_soon(self._flush, session)

    def _flush(self, session: _Session) -> None:
        session.scheduled = False
        if not session.client.connected:
            return
        burst = self._choose(session)
        self.delivered += len(burst)
        self._schedule(session)
        if burst:
            session.client.receive(session.handed_over(burst))

    def _choose(self, session: _Session) -> list[Message]:
        """Take the next burst off a session's queue, as the faults have it."""
        queue, rng = session.queue, self._random
        if not self.faults.reorder:
            burst = list(queue)
            queue.clear()
        else:
            lanes: dict[str, deque[Message]] = {}
            for message in queue:
                lanes.setdefault(message.topic, deque()).append(message)
            burst = []
            for _ in range(rng.randint(1, len(queue))):
                topic = rng.choice(list(lanes))
                burst.append(lanes[topic].popleft())
                if not lanes[topic]:
                    del lanes[topic]
            queue.clear()
            queue.extend(message for lane in lanes.values() for message in lane)
        if self.faults.duplicate:
            # As after a reconnect: a run is delivered again, in order, after its first delivery.
            burst += [
                m for m in burst if m.qos and rng.random() < self.faults.duplicate and not m.retain
            ]
        return burst

    def _attach(self, client: InMemoryClient) -> None:
        if not self._running:
            return
        session = self._sessions.get(client.client_id)
        if session is not None and session.client is not client and session.client.connected:
            self._detach(session, publish_will=True)  # taken over
            session = self._sessions.get(client.client_id)
        if session is None or client.clean:
            is_kept = False
            session = self._sessions[client.client_id] = _Session(client)
        else:
            is_kept = True
        session.client = client
        client.link_up(session_kept=is_kept)
        self._schedule(session)

    def _detach(self, session: _Session, *, publish_will: bool) -> None:
        client = session.client
        client.link_down()
        if client.clean:
            self._sessions.pop(client.client_id, None)
        else:
            waiting = [*session.unacknowledged.values(), *session.queue]
            session.unacknowledged.clear()
            session.queue = deque(m for m in waiting if m.qos)
        if publish_will and client.will is not None:
            will = client.will
            self.route(will.topic, will.payload, will.qos, retain=will.retain)
