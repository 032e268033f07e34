"""Publish what may be left out when the broker does not keep up."""

import logging

from host.mqtt.message_client import MessageClient, QueueFull

log = logging.getLogger(__name__)


def publish_or_warn(  # noqa: PLR0913  (what is published, and what the log calls it)
    client: MessageClient,
    topic: str,
    payload: bytes,
    *,
    retain: bool = False,
    qos: int = 1,
    otherwise: str = "",
) -> bool:
    """Publish a message; return whether it was taken. If not, the log says so, or `otherwise`."""
    try:
        client.publish(topic, payload, retain=retain, qos=qos)
    except QueueFull:
        said = otherwise or f"{topic} not sent"
        log.warning("too many messages wait for the broker; %s", said)
        return False
    return True
