"""A query whose operators run one at a time, with what waits between them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.nodes import OperatorNode, RemoteNode, SourceNode, StepInput
from stream_engine.exchange.channel_inbox import Arrivals
from stream_engine.exchange.channel_outbox import RESULT, Outbox
from stream_engine.exchange.routing import route
from stream_engine.scheduling.tasks import Element, PortMeasures, Task
from stream_engine.state.source_relation import TimedDelta
from streamsql.algebra.operators import Scan
from streamsql.data.delta import Delta
from streamsql.errors import InternalError
from streamsql.wire.fragments import Fragment

Enqueue = Callable[[Task, Element], None]


@dataclass(slots=True, eq=False, kw_only=True)
class OperatorTask(Task):
    """The task of a node of a query's circuit."""

    node: OperatorNode
    place: "_Place"
    number: int
    work: "QueryWork"


@dataclass(slots=True, eq=False)
class _Place:
    """A fragment here: which queues take the output of each of its nodes."""

    fragment: Fragment
    circuit: Circuit
    tasks: dict[int, OperatorTask] = field(default_factory=dict)
    targets: list[list[tuple[OperatorTask, int]]] = field(default_factory=list)


class QueryWork:
    """The queues of one query at one site, and how a change goes on from one to the next.

    Sources, windows over sources and what other sites send are where changes come in: they run in
    every step. All other operators have a queue.

    Attributes:
        name: Of the query.
        tasks: Its operators, inputs before their consumers.
        batches: Changes that wait now.
    """

    def __init__(  # noqa: PLR0913  (what runs, where, and where to what it gives)
        self,
        name: str,
        plan: Sequence[tuple[Fragment, Circuit]],
        *,
        site: str,
        outbox: Outbox,
        enqueue: Enqueue,
        orders: Iterator[int],
    ) -> None:
        """Make the queues.

        Args:
            name: Of the query.
            plan: Fragments here, producers first; all nodes are sources or plain operators.
            site: This site's id.
            outbox: Takes what goes to other sites.
            enqueue: Puts an element into a queue of the site.
            orders: Growing numbers for the operators.
        """
        self.name = name
        self.tasks: list[OperatorTask] = []
        self.batches = 0
        self._site = site
        self._outbox = outbox
        self._enqueue = enqueue
        self._places = [_Place(fragment, circuit) for fragment, circuit in plan]
        self._readers: dict[str, list[tuple[_Place, int]]] = {}
        for place in self._places:
            self._make_tasks(place, orders)
        for place in reversed(self._places):
            self._connect(place)

    def _make_tasks(self, place: _Place, orders: Iterator[int]) -> None:
        nodes = place.circuit.nodes
        for number, node in enumerate(nodes):
            if isinstance(node, OperatorNode):
                ports = [PortMeasures() for _ in place.circuit.producers(number)]
                task = OperatorTask(
                    next(orders), ports=ports, node=node, place=place, number=number, work=self
                )
                place.tasks[number] = task
                self.tasks.append(task)
            elif isinstance(node, RemoteNode):
                self._readers.setdefault(node.fragment, []).append((place, number))
        for node in nodes:
            consumers = node.wiring.consumers
            place.targets.append([(place.tasks[number], port) for number, port in consumers])

    def _connect(self, place: _Place) -> None:
        for number, task in place.tasks.items():
            task.consumers = list(self._queues_after(place, number))

    def _queues_after(self, place: _Place, number: int) -> Iterator[Task]:
        """Yield the operator of each queue here that takes a node's output."""
        for task, _port in place.targets[number]:
            yield task
        fragment = place.fragment
        if number != place.circuit.output or self._site not in fragment.destinations:
            return
        for reader, remote in self._readers.get(fragment.id, ()):
            yield from self._queues_after(reader, remote)

    # --- changes that come in -------------------------------------------------------------------

    def admit(  # noqa: PLR0913  (what comes from where, and when)
        self,
        sources: Mapping[Scan, TimedDelta],
        oldest: Mapping[Scan, int],
        arrived: Mapping[str, Arrivals],
        *,
        now: int,
        batch: int,
        stopwatch: Callable[[], int] | None,
    ) -> None:
        """Put what has changed into the queues of the operators that read it.

        Args:
            sources: By scan.
            oldest: Time of the oldest reading behind each change.
            arrived: From other sites, by fragment.
            now: Microseconds since 1970 UTC.
            batch: Number of the step.
            stopwatch: To measure sources and windows with, or None.
        """
        for place in self._places:
            circuit = place.circuit
            remotes = {port: arrived[port].delta for port in circuit.remotes if port in arrived}
            changed = remotes or any(scan in sources for scan in circuit.scans)
            if circuit.depends_on_inputs_only and not changed:
                continue
            step = StepInput(sources, remotes, now)
            for number, delta in circuit.take_in(step, stopwatch):
                node, ts = circuit.nodes[number], None
                if isinstance(node, SourceNode):
                    ts = oldest.get(node.scan)
                elif isinstance(node, RemoteNode):
                    ts = arrived[node.fragment].ts
                self._hand_on(place, number, delta, batch, ts)

    # --- runs -----------------------------------------------------------------------------------

    def run(self, task: OperatorTask) -> Delta:
        """Let an operator take its oldest element; return what it has made of it."""
        element = task.take()
        self.batches -= 1
        node = task.node
        node.wiring.rows_in += len(element.delta)
        delta = node.operator.apply(element.port, element.delta)
        if delta:
            self._hand_on(task.place, task.number, delta, element.batch, element.ts)
        return delta

    def _hand_on(
        self, place: _Place, number: int, delta: Delta, batch: int, ts: int | None
    ) -> None:
        """Put a node's output where it goes: into queues here, or to other sites."""
        place.circuit.nodes[number].wiring.rows_out += len(delta)
        for task, port in place.targets[number]:
            self.batches += 1
            self._enqueue(task, Element(port, delta, batch, ts))
        if number == place.circuit.output:
            self._dispatch(place.fragment, delta, batch, ts)

    def _dispatch(self, fragment: Fragment, delta: Delta, batch: int, ts: int | None) -> None:
        if not fragment.consumer:
            self._outbox.collect(RESULT, fragment.id, delta, ts)
            return
        for destination, part in route(delta, fragment.destinations, fragment.partition).items():
            if destination != self._site:
                self._outbox.collect(destination, fragment.id, part, ts)
                continue
            for place, number in self._readers.get(fragment.id, ()):
                place.circuit.nodes[number].wiring.rows_in += len(part)
                self._hand_on(place, number, part, batch, ts)

    # --- what is saved --------------------------------------------------------------------------

    def save(self, batch: int) -> list[tuple[str, int, int, Delta, int, int | None]]:
        """Return what waits, oldest first in each queue.

        Args:
            batch: Number of the last step.

        Returns:
            Fragment, node, port, change, batch (0 for that of the last step, below for earlier
            ones) and time of the oldest reading.
        """
        return [
            (task.place.fragment.id, task.number, e.port, e.delta, e.batch - batch, e.ts)
            for task in self.tasks
            for e in task.elements
        ]

    def restore(self, saved: Sequence[Any]) -> None:
        """Let wait what another life's `save` has returned.

        Raises:
            InternalError: It is of another plan.
        """
        places = {place.fragment.id: place for place in self._places}
        for fragment, number, port, delta, batch, ts in saved:
            task = places[fragment].tasks.get(number) if fragment in places else None
            if task is None or not 0 <= port < len(task.ports):
                raise InternalError(f"a change was saved for port {port} of {fragment}/{number}")
            self.batches += 1
            self._enqueue(task, Element(port, delta, batch, ts))

    # --- what is measured -----------------------------------------------------------------------

    def queue_of(self, fragment: str, number: int) -> Task | None:
        """Return the operator with this number and its queue, or None where nothing can wait."""
        for place in self._places:
            if place.fragment.id == fragment:
                return place.tasks.get(number)
        return None
