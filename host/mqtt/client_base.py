"""What clients have in common: callbacks, filters, and publishes until they are acknowledged."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TypeVar

from host.mqtt.message_client import (
    ClientClosed,
    ConnectionCallback,
    FailureCallback,
    Message,
    MessagesCallback,
)
from host.mqtt.publish_queue import Outbox, Outgoing
from host.mqtt.ticket import Ticket
from host.mqtt.topic_filters import check_topic
from host.mqtt.unreachable import Failure

_Argument = TypeVar("_Argument")


class ClientBase(ABC):
    """Implements what `host.mqtt.message_client.MessageClient` keeps at this end.

    Args:
        client_id: The MQTT client id.
        outbox: Where publishes wait.

    Attributes:
        dropped_qos0: QoS 0 publishes dropped because the link was down.
    """

    def __init__(self, client_id: str, outbox: Outbox) -> None:
        self.client_id = client_id
        self.dropped_qos0 = 0
        self._outbox = outbox
        self._filters: dict[str, int] = {}
        self._on_messages: list[MessagesCallback] = []
        self._on_connection: list[ConnectionCallback] = []
        self._on_failure: list[FailureCallback] = []
        self._started = self._closed = False

    @property
    @abstractmethod
    def connected(self) -> bool:
        """Whether the broker has accepted us and the link is believed to be up."""

    @property
    @abstractmethod
    def failure(self) -> Failure | None:
        """Why there is no connection; None while there is one."""

    @abstractmethod
    def _feed(self) -> None:
        """Hand over waiting publishes, now or soon."""

    def publish(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> Ticket:
        """Queue a message; see `host.mqtt.message_client.MessageClient.publish`."""
        self._check_open()
        check_topic(topic)
        check_qos(qos)
        ticket = Ticket()
        if qos == 0 and not self.connected:
            self.dropped_qos0 += 1
            ticket.resolve()
            return ticket
        self._outbox.add(Outgoing(topic, payload, qos, retain, ticket))
        self._feed()
        return ticket

    def on_messages(self, callback: MessagesCallback) -> None:
        """Add a callback for bursts of messages."""
        self._on_messages.append(callback)

    def on_connection(self, callback: ConnectionCallback) -> None:
        """Add a callback for connects (True) and disconnects (False)."""
        self._on_connection.append(callback)

    def on_failure(self, callback: FailureCallback) -> None:
        """Add a callback for lost connections and failed attempts."""
        self._on_failure.append(callback)

    def pending(self) -> int:
        """Count the publishes that are not yet acknowledged."""
        return len(self._outbox)

    def _report(self, messages: list[Message]) -> None:
        self._call_each(self._on_messages, messages)

    def _report_link(self, *, connected: bool) -> None:
        self._call_each(self._on_connection, connected)

    def _report_failure(self, failure: Failure) -> None:
        self._call_each(self._on_failure, failure)

    def _call_each(
        self, callbacks: Iterable[Callable[[_Argument], None]], argument: _Argument
    ) -> None:
        """Call every callback on the running loop; what one raises goes to the loop's handler."""
        for callback in callbacks:
            try:
                callback(argument)
            except Exception as error:  # noqa: BLE001 - reported, and the next one is called
                context = {
                    "message": f"a callback of broker client {self.client_id!r} failed",
                    "exception": error,
                }
                asyncio.get_running_loop().call_exception_handler(context)

    def _start(self) -> None:
        if self._started:
            raise RuntimeError(f"client {self.client_id!r} was already started")
        self._started = True

    def _check_open(self) -> None:
        if self._closed or not self._started:
            state = "closed" if self._closed else "not started"
            raise ClientClosed(f"client {self.client_id!r} is {state}")

    def _fail_pending(self) -> None:
        self._outbox.fail(ClientClosed(f"client {self.client_id!r} was closed"))


def check_qos(qos: int) -> None:
    """Refuse a quality of service that no client of ours has.

    Raises:
        ValueError: It is neither 0 nor 1.
    """
    if qos not in (0, 1):
        raise ValueError(
            f"qos {qos} is not 0 or 1; duplicates are dropped by (gateway, epoch, seq)"
        )
