"""Values that the coordinator gives the console about sinks, and what it may be asked."""

import enum
from dataclasses import dataclass
from typing import Protocol

import msgspec

from streamsql.catalog.sink_definitions import SinkDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import Row


class SinkStatus(enum.StrEnum):
    """State of a sink."""

    STARTING = "starting"  # the answer is not there yet
    RUNNING = "running"
    FAILING = "failing"  # something keeps it from sending; it tries again


class DeadLetter(msgspec.Struct, frozen=True):
    """A message that was given up.

    Attributes:
        number: Of an append sink's row.
        given_up: Microseconds since 1970.
    """

    key: Row
    row: Row | None
    number: int
    reason: str
    tries: int
    given_up: int


@dataclass(frozen=True, slots=True)
class SinkInfo:
    """A sink as lists show it.

    Attributes:
        query: Id of its running query.
        query_status: Status of that query.
        problem: What keeps it from sending, or what of its answer cannot be sent; or empty.
        delivered: Messages that its receiver has taken.
        waiting: Messages that are to be sent.
        unknown: Keys that are kept as they are, because their rows may be back at once.
        dead: Messages that were given up, oldest first.
        dropped: Messages that were dropped because there was no room for more.
        last: When the receiver took the last one, in microseconds, or None.
    """

    definition: SinkDefinition
    query: str
    query_status: str
    schema: Schema
    status: SinkStatus
    problem: str = ""
    delivered: int = 0
    waiting: int = 0
    unknown: int = 0
    dead: tuple[DeadLetter, ...] = ()
    dropped: int = 0
    last: int | None = None


class SinkApi(Protocol):
    """Questions and commands of the console about sinks."""

    def infos(self) -> tuple[SinkInfo, ...]:
        """Return all sinks, in the order they were made."""
        ...

    def retry(self, name: str) -> int:
        """Send the dead letters of a sink again; return how many.

        Raises:
            KeyError: There is no such sink.
        """
        ...

    def discard(self, name: str) -> int:
        """Forget the dead letters of a sink; return how many.

        Raises:
            KeyError: There is no such sink.
        """
        ...
