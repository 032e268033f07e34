"""The broker's own figures as retained messages under `$SYS/broker/`, named as Mosquitto's."""

from __future__ import annotations

from broker.embedded.embedded_broker import Broker
from broker.embedded.packets.packets import Message

VERSION = "pando embedded broker 1"


def statistics(broker: Broker, uptime: float) -> dict[str, str]:
    """Return topic and value of every figure.

    Args:
        broker: The broker.
        uptime: Seconds since its start.
    """
    counters = broker.counters
    connected = sum(session.outlet is not None for session in broker.sessions.values())
    figures: dict[str, int | str] = {
        "version": VERSION,
        "uptime": f"{uptime:.0f} seconds",
        "clients/connected": connected,
        "clients/total": len(broker.sessions),
        "publish/messages/received": counters.received,
        "publish/messages/sent": counters.sent,
        "publish/messages/dropped": counters.dropped,
        "publish/messages/not retained": counters.not_retained,
        "packets/malformed": counters.malformed,
        "retained messages/count": len(broker.retained),
        "queues/bytes": counters.queued_bytes,
    }
    return {f"$SYS/broker/{name}": str(value) for name, value in figures.items()}


def publish_statistics(broker: Broker, uptime: float, now: float) -> None:
    """Publish the figures that changed since they were published last."""
    received = broker.counters.received
    for topic, value in statistics(broker, uptime).items():
        payload = value.encode()
        known = broker.retained.get(topic)
        if known is None or known.payload != payload:
            broker.publish(Message(topic, payload, 0, retain=True), now)
    broker.counters.received = received  # the broker's own messages are nobody's publishes
