"""Messages between services: one client interface, MQTT and in-memory implementations."""

from messaging.client import (
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
]
