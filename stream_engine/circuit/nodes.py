"""The nodes of a circuit: operators with their wiring and counters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stream_engine.operators.rows.operator import (
    Operator,
    RecursiveOperator,
    TimedOperator,
    TimedRecursion,
    WorkCounters,
)
from stream_engine.operators.rows.scan import ScanOperator
from stream_engine.state.source_relation import TimedDelta, with_both
from streamsql.algebra.explain import describe
from streamsql.algebra.operators import Fixpoint, Plan, RemoteSource, Scan
from streamsql.data.delta import Delta, accumulate
from streamsql.errors import RecursionRoundsError


@dataclass(slots=True)
class StepInput:
    """The input of a circuit in one step, which it only reads.

    Attributes:
        sources: Changes of sources, by scan.
        remotes: Changes of other fragments' outputs, by fragment id.
        now: Microseconds since 1970 UTC.
    """

    # Not frozen: making a frozen one takes three times as long, and every step makes one.

    sources: Mapping[Scan, TimedDelta]
    remotes: Mapping[str, Delta]
    now: int


@dataclass(frozen=True, slots=True)
class RecursionStatistics:
    """Statistics of a recursion at this site.

    Attributes:
        leaf_rows: Current rows of all leaves here.
        leaf_changes: Changed rows of them so far.
        view_rows: Current rows of the view here.
        view_changes: Changed rows of it so far.
        most_rounds: Max rounds of a change.
        beyond: Rows that need more rounds than the query allows.
        allowed: That number of rounds, or 0.
        work: The operator's own counters.
    """

    name: str
    description: str
    leaf_rows: int
    leaf_changes: int
    view_rows: int
    view_changes: int
    most_rounds: int
    beyond: int
    allowed: int
    work: WorkCounters


@dataclass(slots=True)
class Wiring:
    """A node's consumers, pending input and counters.

    Attributes:
        plan: The subplan the node computes.
        consumers: (node index, port) pairs that take its output.
        pending: (port, delta) pairs of the current step.
        runs: Measured runs.
        busy_ns: Nanoseconds of the measured runs.
        retractions: Rows of their output with a negative weight.
    """

    plan: Plan
    consumers: list[tuple[int, int]] = field(default_factory=list)
    pending: list[tuple[int, Delta]] = field(default_factory=list)
    rows_in: int = 0
    rows_out: int = 0
    runs: int = 0
    busy_ns: int = 0
    retractions: int = 0
    _targets: list[tuple["Wiring", int]] = field(default_factory=list)

    def connect(self, wirings: Sequence["Wiring"]) -> None:
        """Find the consumers' wirings, once all nodes of the circuit are made."""
        self._targets = [(wirings[consumer], port) for consumer, port in self.consumers]

    def hand_on(self, delta: Delta) -> None:
        """Make the output of this step pending at the consumers."""
        self.rows_out += len(delta)
        for target, port in self._targets:
            target.pending.append((port, delta))

    def ran(self, delta: Delta, time: int) -> None:
        """Count a measured run: its output and its nanoseconds."""
        self.runs += 1
        self.busy_ns += time
        self.retractions += sum([weight < 0 for weight in delta.values()])

    def label(self) -> str:
        """Return the operator as EXPLAIN writes it."""
        return describe(self.plan)


class Node(Protocol):
    """One operator in a circuit.

    Attributes:
        is_timed: Whether time alone may ever change the output.
    """

    wiring: Wiring
    is_timed: bool

    def start(self) -> Delta:
        """Return the output over empty inputs; called once."""

    def run(self, step: StepInput) -> Delta:
        """Consume what is pending; return the change of the output."""

    def next_wakeup(self) -> int | None:
        """Return when time alone changes the output, or None."""

    def state_rows(self) -> int:
        """Return the number of rows in the operator's state."""


class OperatorNode:
    """A node that depends on its inputs only."""

    is_timed = False

    def __init__(self, plan: Plan, operator: Operator) -> None:
        self.wiring = Wiring(plan)
        self.operator = operator

    def start(self) -> Delta:
        """Return the operator's initial output."""
        return self.operator.initial()

    def run(self, _step: StepInput) -> Delta:
        """Apply the pending changes port by port and add up what comes out."""
        wiring = self.wiring
        pending = wiring.pending
        if not pending:
            return {}
        wiring.pending = []
        if len(pending) == 1:
            ((port, delta),) = pending
            wiring.rows_in += len(delta)
            return self.operator.apply(port, delta)
        results = []
        for port, delta in pending:
            wiring.rows_in += len(delta)
            result = self.operator.apply(port, delta)
            if result:
                results.append(result)
        return combined(results)

    def next_wakeup(self) -> int | None:
        """Return None."""
        return None

    def state_rows(self) -> int:
        """Return the operator's rows."""
        return self.operator.state_rows()


class SourceNode:
    """A scan or a window: reads a source with event times, and may change as time passes.

    Attributes:
        filled: Earlier rows of the source, for this node alone; the next run takes them.
    """

    def __init__(self, plan: Plan, scan: Scan, operator: TimedOperator) -> None:
        self.wiring = Wiring(plan)
        self.filled: TimedDelta = {}
        self.scan = scan
        self.operator = operator
        self.is_timed = not isinstance(operator, ScanOperator)

    def start(self) -> Delta:
        """Return nothing: sources come with the first step."""
        return {}

    def run(self, step: StepInput) -> Delta:
        """Move the time, then take the change of the source."""
        moved = self.operator.advance(step.now) if self.is_timed else {}
        delta = step.sources.get(self.scan)
        if self.filled:
            delta = with_both(self.filled, delta) if delta else self.filled
            self.filled = {}
        if not delta:
            return moved
        self.wiring.rows_in += len(delta)
        changed = self.operator.apply_timed(delta)
        return combined([moved, changed]) if moved and changed else moved or changed

    def next_wakeup(self) -> int | None:
        """Return when the window next moves."""
        return self.operator.next_wakeup()

    def state_rows(self) -> int:
        """Return the window's rows."""
        return self.operator.state_rows()


class RemoteNode:
    """The output of another fragment, under the name by which it is taken (`sited_ports`)."""

    is_timed = False

    def __init__(self, plan: RemoteSource, name: str) -> None:
        self.wiring = Wiring(plan)
        self.fragment = name

    def start(self) -> Delta:
        """Return nothing."""
        return {}

    def run(self, step: StepInput) -> Delta:
        """Return the fragment's change as it is."""
        delta = step.remotes.get(self.fragment)
        if delta is None:
            return {}
        self.wiring.rows_in += len(delta)
        return delta

    def next_wakeup(self) -> int | None:
        """Return None."""
        return None

    def state_rows(self) -> int:
        """Return 0: the rows are state of the channel."""
        return 0


class FixpointNode:
    """A recursion; it runs in every step, because other sites may have sent to it."""

    def __init__(self, plan: Fixpoint, operator: RecursiveOperator) -> None:
        self.wiring = Wiring(plan)
        self.operator = operator
        self._timed = operator if isinstance(operator, TimedRecursion) else None
        self.is_timed = self._timed is not None
        self._name = plan.name
        self._leaf_rows = 0
        self._view_rows = 0
        self._most_rounds = 0
        self._allowed = plan.most_rounds
        self._beyond = 0

    def start(self) -> Delta:
        """Return nothing: base branches come with the first step."""
        return {}

    def run(self, step: StepInput) -> Delta:
        """Hand over the pending changes and run to local quiescence.

        Raises:
            RecursionLimitError: The view grew past its limit.
        """
        wiring, operator = self.wiring, self.operator
        pending = wiring.pending
        if pending:
            wiring.pending = []
            for port, delta in pending:
                wiring.rows_in += len(delta)
                self._leaf_rows += sum(delta.values())
                operator.apply(port, delta)
        if self._timed is not None:
            self._timed.advance(step.now)
        before = operator.counters.rounds
        change = operator.settle()
        operator.counters.trace.end(*come_and_gone(change))
        if change:
            self._view_rows += sum(change.values())
            if self._allowed is not None:
                self._beyond += rows_beyond(change, self._allowed)
        rounds = operator.counters.rounds - before
        self._most_rounds = max(self._most_rounds, rounds)
        return change

    @property
    def is_checked(self) -> bool:
        """Whether its query bounds the rounds."""
        return self._allowed is not None

    def check_rounds(self) -> None:
        """Check that the view needs no more rounds than its query allows.

        Raises:
            RecursionRoundsError: It does.
        """
        if self._beyond and self._allowed is not None:
            raise RecursionRoundsError.of(self._name, self._allowed)

    def statistics(self) -> RecursionStatistics:
        """Return its counters."""
        return RecursionStatistics(
            self._name,
            self.operator.description,
            self._leaf_rows,
            self.wiring.rows_in,
            self._view_rows,
            self.wiring.rows_out,
            self._most_rounds,
            self._beyond,
            self._allowed or 0,
            self.operator.counters,
        )

    def next_wakeup(self) -> int | None:
        """Return when derivations held back are due to be sent, or None."""
        return None if self._timed is None else self._timed.next_wakeup()

    def state_rows(self) -> int:
        """Return the rows of the view."""
        return self._view_rows


def come_and_gone(change: Delta) -> tuple[int, int]:
    """Return how many rows enter, and how many leave, copies among them."""
    come = sum([weight for weight in change.values() if weight > 0])
    return come, come - sum(change.values())


def rows_beyond(change: Delta, most: int) -> int:
    """Return how many more rows are past a round; the last column is a row's round."""
    return sum(
        weight
        for row, weight in change.items()
        if isinstance(number := row[-1], int) and number > most
    )


def combined(deltas: list[Delta]) -> Delta:
    """Return the sum of deltas; a single one is returned as it is."""
    if not deltas:
        return {}
    if len(deltas) == 1:
        return deltas[0]
    total = dict(deltas[0])
    for delta in deltas[1:]:
        accumulate(total, delta)
    return total


class NodeChain:
    """The nodes of a circuit of which each reads the one before, and the first a fragment.

    Such are the queries that filter and project what others compute. Nothing waits between their
    nodes, so nothing is put before them: a step of a filter and a projection over one row takes
    1.3 µs instead of 1.9.
    """

    __slots__ = ("_first", "_rest")

    def __init__(self, first: RemoteNode, rest: Sequence[OperatorNode]) -> None:
        self._first = first
        self._rest = [(node.wiring, node.operator) for node in rest]

    def step(self, remotes: Mapping[str, Delta]) -> Delta:
        """Return the change of the last node, and count rows as `Node.run` does."""
        delta = remotes.get(self._first.fragment)
        if not delta:
            return {}
        before = self._first.wiring
        before.rows_in += len(delta)
        for wiring, operator in self._rest:
            before.rows_out += len(delta)
            wiring.rows_in += len(delta)
            delta = operator.apply(0, delta)
            if not delta:
                return {}
            before = wiring
        before.rows_out += len(delta)
        return delta


def chain_of(nodes: Sequence[Node], output: int) -> NodeChain | None:
    """Return the nodes of a circuit as a chain, or None if they are none."""
    first, *rest = nodes
    if not isinstance(first, RemoteNode) or output != len(rest):
        return None
    # No sub-class: those that follow instants or the time run otherwise.
    operators = [node for node in rest if type(node) is OperatorNode]
    targets = [node.wiring.consumers for node in nodes[:-1]]
    in_order = [[(number, 0)] for number in range(1, len(nodes))]
    if len(operators) < len(rest) or targets != in_order or nodes[-1].wiring.consumers:
        return None
    return NodeChain(first, operators)
