"""Every bound of the broker in one place, and its counters."""

from __future__ import annotations

from dataclasses import dataclass

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds. Sizes are in bytes, times in seconds.

    Attributes:
        max_packet_size: Largest packet taken from a client.
        max_connections: Connections at once.
        max_sessions: Sessions kept, connected or not.
        max_session_age: A disconnected session is forgotten after this, whatever it asked for.
        max_filters: Subscriptions of one session.
        max_queued: QoS 1 messages waiting for one session.
        max_queued_qos0: QoS 0 messages waiting for one connected but slow session.
        max_queued_bytes: Payload bytes waiting for one session.
        max_total_queued_bytes: Payload bytes waiting for all sessions.
        max_inflight: Unacknowledged QoS 1 deliveries of one session.
        max_inflight_bytes: Their payload bytes (one message is always let through).
        max_incoming_qos2: Unfinished QoS 2 publishes of one client.
        max_retained: Retained messages.
        max_retained_bytes: Their payload bytes.
        max_write_buffer: Bytes waiting in one socket's buffer before the client counts as slow.
        connect_timeout: From TCP connect to CONNECT.
        statistics_interval: Between two publications of `$SYS`.
    """

    max_packet_size: int = 8 * _MIB
    max_connections: int = 1_000
    max_sessions: int = 5_000
    max_session_age: float = 7 * 86_400.0
    max_filters: int = 10_000
    max_queued: int = 100_000
    max_queued_qos0: int = 10_000
    max_queued_bytes: int = 64 * _MIB
    max_total_queued_bytes: int = 256 * _MIB
    max_inflight: int = 2_048
    max_inflight_bytes: int = 16 * _MIB
    max_incoming_qos2: int = 256
    max_retained: int = 100_000
    max_retained_bytes: int = 256 * _MIB
    max_write_buffer: int = _MIB
    connect_timeout: float = 10.0
    statistics_interval: float = 10.0


@dataclass(slots=True)
class Counters:
    """Counts since the start; published under `$SYS/broker/`.

    Attributes:
        received: Messages taken from publishers.
        sent: Deliveries to subscribers.
        dropped: Deliveries lost to a full queue, an expiry or a client's own size limit.
        not_retained: Retained publishes not kept because the retained set is full.
        malformed: Connections ended because of a packet against the protocol.
        queued_bytes: Payload bytes waiting in all queues now.
    """

    received: int = 0
    sent: int = 0
    dropped: int = 0
    not_retained: int = 0
    malformed: int = 0
    queued_bytes: int = 0
