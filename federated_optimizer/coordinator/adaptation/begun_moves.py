"""Moves under way: queries on their way to another run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from federated_optimizer.coordinator.queries.planned_queries import Planned
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from host.clocks import monotonic_clock
from streamsql.wire.fragments import FragmentBundle


@dataclass(slots=True)
class Move:
    """Queries on their way to another run.

    Attributes:
        planned: What they will run.
        trial: Reads the new run meanwhile; nobody sees its answer.
        former: By id of the queries what they run; who runs something else by then stays there.
        began: By `monotonic_clock`.
        published: Bytes of the bundles that were sent for it.
        stored: Whether the catalog has the new plan already.
        nodes: The runs that the catalog has as nodes since, for those who read what is received.
        seen: What had been received when both runs were first seen at rest, or None.
        may_be_busy: Whether it need not wait for rest any more.
        moved: The queries that have changed over.
        failed: Why it is given up, from when this begins.
        compared: Until when rows of busy runs are not compared again.
        fills: How long both have to run beside each other until windows hold the same.
        beside: Since when they do, with the same sites in the same incarnations; None: not yet.
        sites: Those, and whether they are away.
        is_together: Whether all who rest on one run leave it.
        earlier: Moves of others of these; this one comes after them, as it may read
            what they move to.
    """

    planned: Planned
    trial: RunningQuery
    former: Mapping[str, FragmentBundle]
    began: int = field(default_factory=monotonic_clock)
    published: int = 0
    stored: bool = False
    nodes: frozenset[str] = frozenset()
    seen: object = None
    may_be_busy: bool = False
    moved: tuple[RunningQuery, ...] = ()
    failed: str = ""
    compared: int = 0
    fills: int = 0
    beside: int | None = None
    sites: object = None
    is_together: bool = False
    earlier: "tuple[Move, ...]" = ()

    @property
    def left(self) -> FragmentBundle:
        """The bundle that they ran when the move began."""
        return next(iter(self.former.values()))

    @property
    def run(self) -> str:
        """The run that they leave."""
        return self.left.query

    @property
    def waits(self) -> bool:
        """Return whether it waits for other moves to come about."""
        return any(not move.moved for move in self.earlier)

    @property
    def filled_for(self) -> int:
        """Microseconds since windows hold the same, as far as time says; negative: not yet."""
        return -1 if self.beside is None else monotonic_clock() - self.beside - self.fills

    @property
    def seconds(self) -> float:
        """Time since it began."""
        return (monotonic_clock() - self.began) / 1_000_000

    @property
    def filled(self) -> int:
        """Bytes that have travelled for the new run, with its bundles."""
        return self.published + sent_bytes_of(self.trial)


def sent_bytes_of(query: RunningQuery) -> int:
    """Return the bytes that the sites of a query's run have sent, as last reported."""
    return sum(traffic.bytes for traffic in query.flows.traffic().values())
