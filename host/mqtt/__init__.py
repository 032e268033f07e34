"""Messages between services: one client interface, MQTT and in-memory implementations."""

from host.mqtt.lean_paho import import_paho

import_paho()  # before the modules below, which name it

from host.mqtt.message_client import (  # noqa: E402
    ClientClosed,
    ConnectFailed,
    Message,
    MessageClient,
    MessagingError,
    PublishTicket,
    QueueFull,
    SubscribeRefused,
    Will,
)
from host.mqtt.opening import open_client, open_service_client  # noqa: E402

__all__ = [
    "ClientClosed",
    "ConnectFailed",
    "Message",
    "MessageClient",
    "MessagingError",
    "PublishTicket",
    "QueueFull",
    "SubscribeRefused",
    "Will",
    "open_client",
    "open_service_client",
]
