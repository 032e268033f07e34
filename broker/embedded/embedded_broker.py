"""The broker's state: sessions, routing, the retained set, wills. No IO, no clock."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

from broker.access.rights import CONTROL_TOPIC, RESPONSE_TOPIC
from broker.embedded.access_control import AccessControl
from broker.embedded.access_rules import Access
from broker.embedded.dynamic_access import DynamicAccess
from broker.embedded.limits import Counters, Limits
from broker.embedded.mqtt_session import Outlet, Session, Will
from broker.embedded.packets.packets import Connect, Message, Options, WillMessage
from broker.embedded.retained import RetainedMessages
from broker.embedded.subscription_tree import SharedGroup, Subscriptions
from host.mqtt.topic_filters import check_filter, split_shared

NOT_AUTHORIZED: Final = 0x87
FILTER_INVALID: Final = 0x8F
SESSION_TAKEN_OVER: Final = 0x8E
QUOTA_EXCEEDED: Final = 0x97
ADMINISTRATIVE_ACTION: Final = 0x98
NO_SUCH_SUBSCRIPTION: Final = 0x11


class Broker:
    """Sessions, by client id, connected or not, and routing."""

    def __init__(self, limits: Limits | None = None, access: AccessControl | None = None) -> None:
        self.limits = limits or Limits()
        self.access: AccessControl = access or Access()
        self.counters = Counters()
        self.sessions: dict[str, Session] = {}
        self.retained = RetainedMessages(self.limits.max_retained, self.limits.max_retained_bytes)
        self._subscriptions: Subscriptions[Session] = Subscriptions()
        self._delayed_wills: dict[str, tuple[float, Will]] = {}

    def has_room_for(self, client_id: str) -> bool:
        """Return whether a session of this id exists or may be added."""
        return client_id in self.sessions or len(self.sessions) < self.limits.max_sessions

    def connect(
        self, packet: Connect, client_id: str, outlet: Outlet, now: float
    ) -> tuple[Session, bool]:
        """Open a session for an accepted CONNECT, resuming or replacing the one that exists.

        An older connection of the same client id is closed.

        Returns:
            The session and whether it was there before. `Session.drain` is to be called once
            CONNACK is sent.
        """
        session = self.sessions.get(client_id)
        if session is not None and session.outlet is not None:
            older = session.outlet
            self.lost(session, older, now)
            older.close(SESSION_TAKEN_OVER)
            session = self.sessions.get(client_id)
        if session is not None and packet.clean:
            self._end(session, now)
            session = None
        present = session is not None
        if session is None:
            session = Session(client_id, self.limits, self.counters)
            self.sessions[client_id] = session
        self._delayed_wills.pop(client_id, None)  # it is back in time
        session.user = packet.user
        session.expiry = packet.session_expiry
        session.will = _will(packet.will, client_id) if packet.will is not None else None
        session.attach(outlet, packet.receive_maximum)
        return session, present

    def lost(self, session: Session, outlet: Outlet, now: float) -> None:
        """Note that a session's connection ended; publish its will, if still there."""
        if session.outlet is not outlet:
            return  # taken over meanwhile
        session.detach()
        session.away_since = now
        will, session.will = session.will, None
        if will is not None:
            if will.delay > 0 and session.expiry != 0:
                self._delayed_wills[session.client_id] = (now + will.delay, will)
            else:
                self._publish_will(session, will, now)
        if session.expiry == 0:
            self._end(session, now)

    def _end(self, session: Session, now: float) -> None:
        """Drop a session; a will still delayed is due now."""
        for topic_filter in session.filters:
            self._subscriptions.remove(topic_filter, session)
        session.filters.clear()
        session.discard()
        if self.sessions.get(session.client_id) is session:
            del self.sessions[session.client_id]
        delayed = self._delayed_wills.pop(session.client_id, None)
        if delayed is not None:
            self._publish_will(session, delayed[1], now)

    def tick(self, now: float) -> None:
        """Publish wills that are due and drop sessions that expired."""
        due = [key for key, (when, _) in self._delayed_wills.items() if when <= now]
        for client_id in due:
            _, will = self._delayed_wills.pop(client_id)
            self._publish_will(self.sessions[client_id], will, now)
        for session in [s for s in self.sessions.values() if s.outlet is None]:
            longest = self.limits.max_session_age
            age = longest if session.expiry is None else min(session.expiry, longest)
            if session.away_since + age <= now:
                self._end(session, now)

    def _publish_will(self, session: Session, will: Will, now: float) -> None:
        # The right may have gone since CONNECT.
        topic = will.message.topic
        if not self.access.may_publish(session.client_id, session.user, topic):
            return
        if will.expiry is not None:
            will.message.expires_at = now + will.expiry
        self.publish(will.message, now)

    def publish(self, message: Message, now: float) -> bool:
        """Retain a message if it asks for it and hand it to every subscriber.

        Returns:
            False when it should have been retained and the retained set is full.
        """
        self.counters.received += 1
        kept = True
        if message.retain:
            kept = self.retained.store(message)
            self.counters.not_retained += not kept
        route = self._subscriptions.match(message.topic)
        for session, options in route.direct:
            if options.no_local and session.client_id == message.origin:
                continue
            if session.guarded and not self._may_receive(session, message.topic):
                continue
            qos = min(options.qos, message.qos)
            session.deliver(
                message, qos, now, retain=message.retain and options.retain_as_published
            )
        for group in route.shared:
            self._deliver_shared(group, message, now)
        return kept

    def _may_receive(self, session: Session, topic: str) -> bool:
        return self.access.may_receive(session.client_id, session.user, topic)

    def _deliver_shared(self, group: SharedGroup[Session], message: Message, now: float) -> None:
        """Hand a message to one member: one that keeps up, else one connected, else any."""
        best: tuple[int, Session, Options] | None = None
        for session, options in group.rotation():
            if session.guarded and not self._may_receive(session, message.topic):
                continue
            outlet = session.outlet
            rank = 2 if outlet is None else 0 if outlet.writable and not session.queued else 1
            if best is None or rank < best[0]:
                best = (rank, session, options)
            if rank == 0:
                break
        if best is not None:
            _, session, options = best
            retain = message.retain and options.retain_as_published
            session.deliver(message, min(message.qos, options.qos), now, retain=retain)

    def subscribe(
        self, session: Session, user: str | None, wishes: Sequence[tuple[str, Options]]
    ) -> tuple[list[int], list[tuple[str, Options]]]:
        """Add subscriptions.

        Returns:
            The reason code of each wish (the granted QoS, or 0x80 and above), and the granted
            wishes that want retained messages (`send_retained`, to be called after SUBACK).
        """
        codes: list[int] = []
        wanting: list[tuple[str, Options]] = []
        for topic_filter, options in wishes:
            code = self._refusal(session, user, topic_filter, options)
            if code is None:
                code = options.qos
                new = topic_filter not in session.filters
                session.filters[topic_filter] = options
                self._subscriptions.add(topic_filter, session, options)
                _, plain = split_shared(topic_filter)
                session.guarded |= not self.access.receives_all(session.client_id, user, plain)
                if options.retain_handling == 0 or (options.retain_handling == 1 and new):
                    wanting.append((topic_filter, options))
            codes.append(code)
        return codes, wanting

    def _refusal(
        self, session: Session, user: str | None, topic_filter: str, options: Options
    ) -> int | None:
        try:
            check_filter(topic_filter)
        except ValueError:
            return FILTER_INVALID
        group, plain = split_shared(topic_filter)
        if group is not None and options.no_local:
            return FILTER_INVALID
        if not self.access.may_subscribe(session.client_id, user, plain):
            return NOT_AUTHORIZED
        known = topic_filter in session.filters
        if not known and len(session.filters) >= self.limits.max_filters:
            return QUOTA_EXCEEDED
        return None

    def send_retained(
        self, session: Session, wishes: Sequence[tuple[str, Options]], now: float
    ) -> None:
        """Send what is retained under newly granted filters; shared ones get nothing."""
        for topic_filter, options in wishes:
            group, plain = split_shared(topic_filter)
            if group is not None:
                continue
            for message in self.retained.find(plain, now):
                if options.no_local and message.origin == session.client_id:
                    continue
                if session.guarded and not self._may_receive(session, message.topic):
                    continue
                qos = min(message.qos, options.qos)
                session.deliver(message, qos, now, retain=True, stored=True)

    def unsubscribe(self, session: Session, filters: Sequence[str]) -> list[int]:
        """Remove subscriptions; return a reason code for each."""
        codes = []
        for topic_filter in filters:
            known = session.filters.pop(topic_filter, None) is not None
            if known:
                self._subscriptions.remove(topic_filter, session)
            codes.append(0 if known else NO_SUCH_SUBSCRIPTION)
        return codes

    def administer(self, topic: str, payload: bytes, now: float) -> bool:
        """Carry out commands for accounts, answer them, and cut off whom they concern.

        Returns:
            False when nothing here reads the topic.
        """
        if topic != CONTROL_TOPIC or not isinstance(self.access, DynamicAccess):
            return False
        answer, changes = self.access.carry_out(payload)
        for user in changes.touched | changes.cut_off:
            session = self.sessions.get(user)  # an account's client id is its user name
            if session is None:
                continue
            # Older subscriptions may reach further than the rights of now.
            session.guarded = True
            if user in changes.cut_off:
                self._cut_off(session, now)
            if user in changes.deleted:
                self._end(session, now)
        self.publish(Message(RESPONSE_TOPIC, answer, 1, retain=False), now)
        return True

    def _cut_off(self, session: Session, now: float) -> None:
        """Close a session's connection; its will is not published."""
        outlet, session.will = session.outlet, None
        self._delayed_wills.pop(session.client_id, None)
        if outlet is not None:
            self.lost(session, outlet, now)
            outlet.close(ADMINISTRATIVE_ACTION)


def made_up_client_id() -> str:
    """Return an id for a client that left the choice to us."""
    return f"auto-{secrets.token_hex(8)}"


def _will(packet: WillMessage, client_id: str) -> Will:
    message = Message(
        packet.topic,
        packet.payload,
        packet.qos,
        retain=packet.retain,
        properties=packet.properties,
        origin=client_id,
    )
    return Will(message, packet.delay, packet.expiry)
