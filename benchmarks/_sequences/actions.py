"""Actions of a sequence, as values: a story can be told, cut down and played again."""

from dataclasses import dataclass

from streamsql.data.types import Row


@dataclass(frozen=True, slots=True)
class Register:
    """A query begins; its number tells it from the others of the sequence."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Deregister:
    """A query ends."""

    number: int


@dataclass(frozen=True, slots=True)
class Insert:
    """A row comes at a gateway."""

    gateway: str
    source: str
    row: Row


@dataclass(frozen=True, slots=True)
class Delete:
    """A row is withdrawn.

    Attributes:
        gateway: That has it.
        source: Likewise.
        row: Its values.
        which: Its place by age among rows of equal values, counted around.
    """

    gateway: str
    source: str
    row: Row
    which: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """Microseconds pass."""

    microseconds: int


@dataclass(frozen=True, slots=True)
class Kill:
    """A site dies, with the messages that are under way from it or without."""

    site: str
    in_flight_survives: bool


@dataclass(frozen=True, slots=True)
class Restart:
    """A dead site is back, empty."""

    site: str


@dataclass(frozen=True, slots=True)
class Crash:
    """A site crashes, and goes on from its disk before others notice.

    Attributes:
        site: Its id.
        is_saved: Whether it has taken a snapshot just before; else its journal is longer.
        in_flight_survives: As for `Kill`.
    """

    site: str
    is_saved: bool
    in_flight_survives: bool


@dataclass(frozen=True, slots=True)
class Deliver:
    """Some messages arrive, or sites step; others stay under way."""

    events: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Sites come to rest, and all answers are compared."""


Action = Register | Deregister | Insert | Delete | Wait | Kill | Restart | Crash | Deliver | Settle
