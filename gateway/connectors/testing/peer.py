"""Peer of a connector, given by the test: a real one, to be started, stopped and made to send."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from gateway.connectors.testing.absence import Transport
from streamsql.catalog.definitions import SourceDefinition


class Peer(Protocol):
    """A device, broker or server; not running at first.

    Attributes:
        endpoint: Settings of the endpoint, without "connector".
        sources: The sources to read from it. One of their columns holds the number of a reading.
    """

    @property
    def endpoint(self) -> Mapping[str, object]:
        """See above; is asked for after `start`."""

    @property
    def sources(self) -> Sequence[SourceDefinition]:
        """See above; is asked for after `start`."""

    async def start(self) -> None:
        """Begin to serve, at the same address every time."""

    async def stop(self) -> None:
        """End as a crash does: connections are lost, what was acknowledged stays so."""

    async def send(self, number: int) -> None:
        """Give a reading with that number, or the value that the next poll finds."""


@runtime_checkable
class FaultyPeer(Protocol):
    """A peer that can also send what cannot be used."""

    async def send_bad(self) -> None:
        """Give something that is no reading, such as a payload that is no JSON."""


@runtime_checkable
class AcknowledgedPeer(Protocol):
    """A peer of a protocol with acknowledgements."""

    def acknowledged(self) -> set[int]:
        """Return the numbers of the readings that the connector has acknowledged."""


@runtime_checkable
class FloodingPeer(Protocol):
    """A peer that can send faster than a gateway keeps."""

    async def flood(self, numbers: range) -> None:
        """Give readings with these numbers, as fast as it can."""


@runtime_checkable
class AddressedPeer(Protocol):
    """A peer that is reached at a port of loopback: attempts to reach it are counted.

    Attributes:
        address: Transport and port, the same every time.
    """

    @property
    def address(self) -> tuple[Transport, int]:
        """See above."""


@runtime_checkable
class HugePeer(Protocol):
    """A peer whose payloads may be as large as it likes."""

    async def send_huge(self, number: int) -> None:
        """Give a reading with that number whose payload has more than 1 MB, once."""


@runtime_checkable
class AttendedPeer(Protocol):
    """A peer that knows who reads it."""

    def clients(self) -> int:
        """Return how many it knows: connections, sessions and subscriptions that outlive these."""


def is_lasting(peer: Peer) -> bool:
    """Whether the peer keeps what was sent while nobody was connected: attribute `lasting`."""
    return bool(getattr(peer, "lasting", False))


def calls_us(peer: Peer) -> bool:
    """Whether the peer connects to the connector: it says so with an attribute `calls_us`."""
    return bool(getattr(peer, "calls_us", False))
