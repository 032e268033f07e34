"""A query whose operators run one at a time, with the queues between them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.nodes import OperatorNode, RemoteNode, SourceNode, StepInput
from stream_engine.exchange.channel_inbox import Arrivals
from stream_engine.exchange.channel_outbox import Outbox
from stream_engine.scheduling.queue_meter import QueueMeasures
from stream_engine.scheduling.tasks import Element, PortMeasures, Task
from stream_engine.state.source_relation import SourceChanges
from streamsql.data.delta import Delta
from streamsql.errors import InternalError
from streamsql.wire.fragments import Fragment

Enqueue = Callable[[Task, Element], None]
QueryPlan = Sequence[tuple[Fragment, Circuit]]
"""The fragments of a query at a site, producers first."""


@dataclass(slots=True, eq=False, kw_only=True)
class OperatorTask(Task):
    """The task of a node of a query's circuit."""

    node: OperatorNode
    place: "_Place"
    number: int
    work: "QueryWork"


@dataclass(slots=True, eq=False)
class _Place:
    """A fragment here; `targets` are the (queue, port) pairs that take each node's output."""

    fragment: Fragment
    circuit: Circuit
    tasks: dict[int, OperatorTask] = field(default_factory=dict)
    targets: list[list[tuple[OperatorTask, int]]] = field(default_factory=list)


class QueryWork:
    """The queues of one query at one site, and how a change goes on from one to the next.

    Changes come in at sources, windows over sources and remote fragments, which run in every step.
    All other operators have a queue.

    Args:
        name: Of the query.
        plan: All its nodes are sources or plain operators.
        site: This site's id.
        outbox: Takes what goes to other sites.
        enqueue: Puts an element into a queue of the site.
        orders: Growing numbers for the operators.

    Attributes:
        tasks: Its operators, inputs before their consumers.
        batches: Pending changes.
    """

    def __init__(  # noqa: PLR0913  (what runs, where, and where to what it emits)
        self,
        name: str,
        plan: QueryPlan,
        *,
        site: str,
        outbox: Outbox,
        enqueue: Enqueue,
        orders: Iterator[int],
    ) -> None:
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

    def admit(
        self,
        sources: SourceChanges,
        arrived: Mapping[str, Arrivals],
        *,
        now: int,
        batch: int,
        stopwatch: Callable[[], int] | None,
    ) -> None:
        """Put the changes of a step into the queues of the operators that read them.

        Args:
            sources: Of the site.
            arrived: From other sites, by fragment.
            now: Microseconds since 1970 UTC.
            batch: Number of the step.
            stopwatch: Measures sources and windows, if given.
        """
        for place in self._places:
            circuit = place.circuit
            remotes = {port: arrived[port].delta for port in circuit.remotes if port in arrived}
            changed = remotes or any(scan in sources.deltas for scan in circuit.scans)
            if circuit.depends_on_inputs_only and not changed:
                continue
            step = StepInput(sources.deltas, remotes, now)
            for number, delta in circuit.take_in(step, stopwatch):
                node, ts = circuit.nodes[number], None
                if isinstance(node, SourceNode):
                    ts = sources.oldest.get(node.scan)
                elif isinstance(node, RemoteNode):
                    ts = arrived[node.fragment].ts
                self._hand_on(place, number, delta, batch, ts)

    def run(self, task: OperatorTask) -> Delta:
        """Let an operator take its oldest element; return the operator's output."""
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
        """Put a node's output into queues here, and collect it for other sites."""
        place.circuit.nodes[number].wiring.rows_out += len(delta)
        for task, port in place.targets[number]:
            self.batches += 1
            self._enqueue(task, Element(port, delta, batch, ts))
        if number != place.circuit.output:
            return
        fragment = place.fragment
        part = self._outbox.dispatch(fragment, delta, ts, here=self._site)
        for reader, remote in self._readers.get(fragment.id, ()) if part else ():
            reader.circuit.nodes[remote].wiring.rows_in += len(part)
            self._hand_on(reader, remote, part, batch, ts)

    def save(self, batch: int) -> list[tuple[str, int, int, Delta, int, int | None]]:
        """Return the pending changes, oldest first in each queue.

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
        """Queue what `save` has returned in another incarnation.

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


def measures_of_queues(
    query: str, plan: QueryPlan, work: QueryWork | None
) -> Iterator[QueueMeasures]:
    """Yield the measures between any two operators; zeros without `work`."""
    tasks = {} if work is None else {(t.place.fragment.id, t.number): t for t in work.tasks}
    for fragment, circuit in plan:
        for number in range(len(circuit.nodes)):
            task = tasks.get((fragment.id, number))
            for port, producer in enumerate(circuit.producers(number)):
                at = PortMeasures() if task is None else task.ports[port]
                entity = f"{fragment.id}/{producer}-{number}.{port}"
                yield QueueMeasures(query, entity, at.rows, at.batches, at.peak_rows)
