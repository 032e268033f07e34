"""The seam between Pando's services and a message broker.

Every service speaks to the broker through `MessageClient`. Two implementations exist:
`host.mqtt.paho_client` (paho-mqtt, a real broker) and `host.mqtt.in_memory` (tests). Code that
takes a `MessageClient` needs no broker to be tested.

The promises an implementation makes:

* messages of one publisher on one topic arrive in publishing order, across reconnects too;
* QoS 1 is *at least once*: a duplicate is possible, a loss only when the receiver had no session;
* callbacks run on the event loop that called `connect`, never on another thread;
* nothing grows without bound: a full queue of publishes raises `QueueFull`.

Every method is called on the event loop that called `connect`.

Exceptions:

    MessagingError (a DeploymentError: the operator can fix it)
    ├── ConnectFailed      the broker could not be reached or refused us (`reason` says why)
    ├── SubscribeRefused   the broker refused a filter (access rules)
    ├── QueueFull          more than `max_pending` publishes wait for their acknowledgement
    └── ClientClosed       the client was closed, or was closed while one waited
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from host.mqtt.unreachable import Failure
from streamsql.errors import DeploymentError


class MessagingError(DeploymentError):
    """Base of every error of the messaging layer."""

    code = "messaging_error"


class ConnectFailed(MessagingError):  # noqa: N818 - reads as what happened
    """The broker could not be reached in time, or refused the connection."""

    code = "connect_failed"


class SubscribeRefused(MessagingError):  # noqa: N818 - reads as what happened
    """The broker refused one of the filters."""

    code = "subscribe_refused"


class QueueFull(MessagingError):  # noqa: N818 - reads as what happened
    """The bounded queue of publishes is full; the message was not taken."""

    code = "queue_full"


class ClientClosed(MessagingError):  # noqa: N818 - reads as what happened
    """The client is closed (or was closed before the publish was acknowledged)."""

    code = "client_closed"


class Message(msgspec.Struct, frozen=True):
    """One message as received.

    Attributes:
        qos: Quality of service of this delivery, 0 or 1.
        retain: True when it came from the broker's retained set (on subscribing), False when
            it was published while we were subscribed.
        receipt: Of a message that is to be acknowledged by hand; 0: it is not.
    """

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    receipt: int = 0


@dataclass(frozen=True, slots=True)
class Will:
    """What the broker publishes for us when our connection dies without a clean close."""

    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = True


class PublishTicket(Protocol):
    """The receipt of one publish."""

    @property
    def refusal(self) -> str:
        """Once it is done: why the broker did not take it (MQTT 5 only), or empty."""

    def done(self) -> bool:
        """Say whether the broker acknowledged it (QoS 1) or it left the queue (QoS 0)."""

    async def wait(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the interface
        """Wait until `done`.

        Args:
            timeout: Seconds; None waits for ever.

        Raises:
            TimeoutError: Not acknowledged in time; it stays queued and may still be sent.
            ClientClosed: The client was closed first; whether it arrived is unknown.
        """


MessagesCallback = Callable[[list[Message]], None]
ConnectionCallback = Callable[[bool], None]
FailureCallback = Callable[[Failure], None]


class MessageClient(Protocol):
    """A connection to a broker that repairs itself."""

    @property
    def failure(self) -> Failure | None:
        """Why there is no connection; None while there is one."""

    @property
    def connected(self) -> bool:
        """Whether the broker has accepted us and the link is believed to be up."""

    @property
    def session_kept(self) -> bool:
        """Whether the broker still had our session when it accepted us last (`clean` is False).

        Otherwise what it held for us is lost.
        """

    async def connect(self, *, timeout: float | None = 10) -> None:  # noqa: ASYNC109
        """Start; from here on the connection is kept up until `close`.

        Args:
            timeout: Seconds to wait for the first connection. None returns at once and keeps
                trying in the background for ever (`on_connection` tells).

        Raises:
            ConnectFailed: Not connected in time, or refused; the client is closed again.
        """

    async def subscribe(self, *filters: str, qos: int = 1) -> None:
        """Subscribe; remembered and re-established after each reconnect.

        While the link is down it returns at once and takes effect on reconnecting.

        Raises:
            ValueError: A filter is malformed.
            SubscribeRefused: The broker refused a filter.
        """

    async def unsubscribe(self, *filters: str) -> None:
        """Forget subscriptions."""

    def publish(
        self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False
    ) -> PublishTicket:
        """Queue a message; never blocks, keeps order, survives a broken link (QoS 1).

        A QoS 0 message is dropped when the link is down; its ticket is done at once.

        Raises:
            QueueFull: `max_pending` messages wait already; this one was not taken.
            ClientClosed: The client is not started or already closed.
            ValueError: The topic is malformed or has a wildcard, or qos is not 0 or 1.
        """

    def on_messages(self, callback: MessagesCallback) -> None:
        """Add a callback that is called on the event loop with bursts of messages, in order."""

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Let the broker forget messages that it keeps until then, in the order of arrival.

        Only clients that were opened with `acknowledges_by_hand` do so; the broker sends
        no more while too many are not acknowledged. Receipts of an earlier connection do
        nothing: their messages come again.
        """

    def on_arrival(self, callback: Callable[[Message], None]) -> None:
        """Set a callback that sees each message as it arrives, before its turn on the event loop.

        It is called on the network thread while the loop may be busy: it must be short and may only
        touch what is safe to touch from there. Set it before connecting.
        """

    def on_connection(self, callback: ConnectionCallback) -> None:
        """Add a callback that is called on the event loop at each connect and disconnect."""

    def on_failure(self, callback: FailureCallback) -> None:
        """Add a callback that is called on the event loop with the reason of each failure.

        A failure is a lost connection or an attempt to connect that came to nothing.
        """

    def pending(self) -> int:
        """Count the publishes that are not yet acknowledged."""

    async def close(self) -> None:
        """Flush what is pending (bounded wait), then disconnect cleanly: no will is sent."""
