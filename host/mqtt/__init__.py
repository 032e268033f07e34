"""Messages between services: one client interface, MQTT and in-memory implementations."""

from host.mqtt.message_client import (
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
from host.mqtt.opening import open_client, open_service_client

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
