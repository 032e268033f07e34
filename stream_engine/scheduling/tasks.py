"""An operator with its queue, as schedulers see it."""

from collections import deque
from dataclasses import dataclass, field

from stream_engine.scheduling.profile import Profile
from streamsql.data.delta import Delta


@dataclass(frozen=True, slots=True)
class Element:
    """A change that waits at an operator.

    Attributes:
        port: Of the operator.
        delta: Never empty, never changed.
        batch: The step in which what caused it came in; grows.
        ts: Time of the oldest reading behind it, or None.
    """

    port: int
    delta: Delta
    batch: int
    ts: int | None


@dataclass(slots=True)
class PortMeasures:
    """What waits at one port, which is what one operator has given to another.

    Attributes:
        rows: Changed rows that wait now.
        batches: Changes that wait now.
        peak_rows: The most rows that ever waited.
    """

    rows: int = 0
    batches: int = 0
    peak_rows: int = 0


@dataclass(slots=True, eq=False)
class Task:
    """An operator that runs one element at a time; its elements wait in order.

    That order is kept whatever the scheduler does, so what an operator has taken from each input is
    at all times a beginning of what was given to it, and its output is right for that.

    Attributes:
        order: Unique at the site; an operator stands behind its inputs.
        consumers: The operators whose queues take its output, one entry per queue.
        elements: What waits, oldest first; batches never go down.
        ports: By port.
        profile: Measured time and selectivity.
        waits: Whether it is among those that can run.
        since: Number of the slice in which it began to wait or has last run.
        turn: Grows with every run, so that what was said of it before is known to be old.
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
        """Let an element wait."""
        self.elements.append(element)
        measures = self.ports[element.port]
        measures.batches += 1
        measures.rows += len(element.delta)
        measures.peak_rows = max(measures.peak_rows, measures.rows)

    def take(self) -> Element:
        """Return the oldest element, which waits no more."""
        element = self.elements.popleft()
        measures = self.ports[element.port]
        measures.batches -= 1
        measures.rows -= len(element.delta)
        return element
