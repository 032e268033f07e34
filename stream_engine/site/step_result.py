"""The output of a step of a site, for its host to send."""

from dataclasses import dataclass, field

from streamsql.errors import FederationError
from streamsql.wire.messages import DeltaBatch


@dataclass(slots=True)
class Outgoing:
    """A batch to send; destination "" is the query's result.

    Attributes:
        snapshot: It belongs to a snapshot of its channel.
    """

    # Not frozen: as for `StepInput`; a step makes one for each answer that changes.

    query: str
    destination: str
    batch: DeltaBatch
    snapshot: bool = False


@dataclass(frozen=True, slots=True)
class Forget:
    """Rows that a sender of a query need not remember for this site; see `SiteEngine.forget`."""

    query: str
    sender: str
    version: int
    watermark: int
    bounds: dict[str, int]


@dataclass(frozen=True, slots=True)
class StepResult:
    """The output of a step.

    Attributes:
        outgoing: Batches in the order in which each channel must carry them.
        resyncs: (query, sender) pairs: ask that sender for a snapshot of its channel to here.
        forgets: Messages to senders; they may get lost.
        failures: Queries that were stopped at this site, with the reason.
    """

    outgoing: list[Outgoing] = field(default_factory=list)
    resyncs: list[tuple[str, str]] = field(default_factory=list)
    forgets: list[Forget] = field(default_factory=list)
    failures: list[tuple[str, FederationError]] = field(default_factory=list)
