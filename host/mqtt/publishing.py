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
    """Publish a message; return whether it was taken.

    Args:
        client: Our connection.
        topic: See `MessageClient.publish`.
        payload: See there.
        retain: See there.
        qos: See there.
        otherwise: What the log says if it was not; without it that this topic's is not sent.
    """
    try:
        client.publish(topic, payload, retain=retain, qos=qos)
    except QueueFull:
        said = otherwise or f"{topic} not sent"
        log.warning("too many messages wait for the broker; %s", said)
        return False
    return True
