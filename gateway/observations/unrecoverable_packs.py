"""Packs that a base site will never receive, why not, and until when they matter."""

from dataclasses import dataclass, field
from enum import Enum

from gateway.intake.validation import MAX_FUTURE
from streamsql.data.types import EARLIEST, LATEST
from streamsql.errors import WireError
from streamsql.wire.messages import ObservationPack
from streamsql.wire.senml import microseconds

Key = tuple[str, str]
"""Gateway and stream."""


class Cause(Enum):
    """Why packs are missing, as a sentence about a gateway and one of its streams."""

    NOT_KEPT = "{gateway} published it while this site did not receive it, and no longer keeps it"
    ABSENT = (
        "{gateway} is offline; it may have published {stream} while this site was cut off from "
        "the broker: start {gateway}, or remove it"
    )
    UNANSWERED = (
        "{gateway} does not answer which {stream} it has published (request cmd/packs): update "
        "its software, and let the broker's access list pass cmd/packs and cmd/published"
    )
    UNCOUNTED = (
        "{gateway} does not number what it publishes, so what this site missed while it was cut "
        "off from the broker is unknown: update its software"
    )
    REDEFINED = "{gateway} has published it by another definition of {stream} than there is now"


@dataclass(frozen=True, slots=True)
class Missing:
    """Packs of a stream that will never come.

    Attributes:
        since: Earliest time at which they may have been published, in microseconds.
        until: When that was found, in microseconds.
        newest: The latest event time they can have, in microseconds.
    """

    gateway: str
    stream: str
    since: int
    until: int
    newest: int
    cause: Cause = Cause.NOT_KEPT

    @property
    def reason(self) -> str:
        """Why they do not come, and what to do."""
        return self.cause.value.format(gateway=self.gateway, stream=self.stream)

    @property
    def origin(self) -> str:
        """Identity of this loss for its withdrawal; empty: it is never withdrawn."""
        return f"{self.gateway} {self.stream}" if self.cause is Cause.ABSENT else ""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The losses by absence of a stream that were named until now: the gateway has answered."""

    gateway: str
    stream: str

    @property
    def origin(self) -> str:
        """See `Missing.origin`."""
        return f"{self.gateway} {self.stream}"


@dataclass(slots=True)
class Findings:
    """Findings of a site's logs that are not yet reported, and the memory that the logs share.

    Attributes:
        losses: Those found and those withdrawn, in order.
        held_bytes: Estimated memory of the packs that wait for those before them.
    """

    losses: list[Missing | Withdrawn] = field(default_factory=list)
    held_bytes: int = 0


def redefined(gateway: str, stream: str, pack: ObservationPack, now: int) -> Missing:
    """Return the loss of a pack that was made by another definition of its stream.

    Raises:
        WireError: One of its times is none.
    """
    try:
        times = [microseconds(record.bt) for record in pack.e if record.bt is not None] or [now]
    except ValueError as error:
        raise WireError(f"observations of {stream}: {error}") from error
    if not EARLIEST <= min(times) <= max(times) < LATEST:
        raise WireError(f"observations of {stream}: a time is outside the years 1 to 9999")
    return Missing(gateway, stream, min(times), now, max(times), Cause.REDEFINED)


def newest_until(moment: int) -> int:
    """Return the latest event time of what was published until a moment, in microseconds.

    Gateways refuse event times further ahead of their clock.
    """
    return moment + MAX_FUTURE
