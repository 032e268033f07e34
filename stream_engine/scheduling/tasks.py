"""An operator with its queue and its measured profile, as schedulers see it."""

from collections import deque
from dataclasses import dataclass, field

from streamsql.data.delta import Delta

MEMORY = 32
"""Runs after which a run counts 1/e: enough to even out, few enough to follow a change."""

_KEPT = 1 - 1 / MEMORY


@dataclass(slots=True)
class Profile:
    """Decaying sums over the runs of an operator.

    A change that three operators take counts three times, and one that leaves the site's queues (to
    a channel, to the answer) does not count.

    Attributes:
        rows: Changed rows taken from its queue.
        queued: Changed rows put into queues in return.
        time: Nanoseconds.
    """

    rows: float = 0.0
    queued: float = 0.0
    time: float = 0.0

    def add(self, rows: int, queued: int, time: int) -> None:
        """Count a run."""
        self.rows = self.rows * _KEPT + rows
        self.queued = self.queued * _KEPT + queued
        self.time = self.time * _KEPT + max(time, 1)

    @property
    def is_measured(self) -> bool:
        """Whether it has run."""
        return self.rows > 0

    @property
    def selectivity(self) -> float:
        """Return the rows put into queues per row taken; 1 before the first run."""
        return self.queued / self.rows if self.rows else 1.0

    @property
    def time_per_row(self) -> float:
        """Return nanoseconds per row taken; 0 before the first run."""
        return self.time / self.rows if self.rows else 0.0

    @property
    def rate(self) -> float:
        """Return rows removed from the queues per nanosecond; 0 before the first run."""
        return (self.rows - self.queued) / self.time if self.time else 0.0


@dataclass(frozen=True, slots=True)
class Element:
    """A change pending at a port of an operator.

    Attributes:
        delta: Never empty, never changed.
        batch: The step that ingested its cause.
        ts: Time of the oldest reading behind it, or None.
    """

    port: int
    delta: Delta
    batch: int
    ts: int | None


@dataclass(slots=True)
class PortMeasures:
    """Pending changes at one port, and the max of their rows so far."""

    rows: int = 0
    batches: int = 0
    peak_rows: int = 0


@dataclass(slots=True, eq=False)
class Task:
    """An operator with a first-in-first-out queue, which runs one element at a time.

    The queue keeps its order whatever the scheduler does, so an operator has always taken a prefix
    of each input, and its output is right for that.

    Attributes:
        order: Unique at the site; an operator stands behind its inputs.
        consumers: The operators whose queues take its output, one entry per queue.
        elements: Pending changes, oldest first; batches never go down.
        waits: Whether it is among those that can run.
        since: Number of the slice in which it became pending or has last run.
        turn: Grows with every run and marks older heap entries as stale.
    """

    order: int
    consumers: list["Task"] = field(default_factory=list)
    elements: deque[Element] = field(default_factory=deque)
    ports: list[PortMeasures] = field(default_factory=list)
    profile: Profile = field(default_factory=Profile)
    waits: bool = False
    since: int = 0
    turn: int = 0

    @property
    def batch(self) -> int:
        """The batch of the oldest element."""
        return self.elements[0].batch

    def put(self, element: Element) -> None:
        """Append an element."""
        self.elements.append(element)
        measures = self.ports[element.port]
        measures.batches += 1
        measures.rows += len(element.delta)
        measures.peak_rows = max(measures.peak_rows, measures.rows)

    def take(self) -> Element:
        """Remove and return the oldest element."""
        element = self.elements.popleft()
        measures = self.ports[element.port]
        measures.batches -= 1
        measures.rows -= len(element.delta)
        return element
