"""Messages of a sink: those to send, and those that its receiver refused."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from federated_optimizer.coordinator.contract.sink_model import DeadLetter
from streamsql.data.types import Row


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message.

    Attributes:
        key: Of an upsert sink.
        row: None: the key has no row any more.
        number: Of an append sink: one that no row of it ever had, later rows have greater ones.
        forget: All that was ever said about the key is taken back.
    """

    key: Row = ()
    row: Row | None = None
    number: int = 0
    forget: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message that the receiver did not take.

    Attributes:
        tries: How often it was sent.
    """

    message: Outgoing
    reason: str
    tries: int = 1


class Sender(Protocol):
    """Brings messages to one receiver, in order."""

    @property
    def max_batch(self) -> int:
        """Messages that it takes at once."""

    @property
    def problem(self) -> str:
        """Reason why it cannot send now, in a sentence, or empty."""

    async def send(self, batch: Sequence[Outgoing]) -> list[Refusal]:
        """Return once the receiver has all messages but those returned; may wait for long.

        Raises:
            FederationError: Nobody can tell which it has; they are to be sent again.
        """

    async def close(self) -> None:
        """Let the receiver go."""


class Book(Protocol):
    """Changes that the receiver of one sink has still to get."""

    @property
    def waiting(self) -> int:
        """Messages that are to be sent, and those on their way."""

    def take(self, limit: int) -> list[Outgoing]:
        """Return the next messages; until `done` or `put_back` they are on their way."""

    def done(self, batch: Sequence[Outgoing], refused: Sequence[Refusal], now: int) -> None:
        """The receiver has the messages, but for those it refused."""

    def put_back(self, batch: Sequence[Outgoing]) -> None:
        """Nobody can tell whether the receiver has the messages."""

    def retry(self) -> int:
        """Send dead letters again; return how many."""

    def discard(self) -> int:
        """Forget dead letters; return how many."""

    @property
    def dead(self) -> tuple[DeadLetter, ...]:
        """The messages that were given up, oldest first."""

    @property
    def dropped(self) -> int:
        """Messages that were dropped because there was no room for more."""
