"""A circuit: nodes in topological order, pushed one step at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stream_engine.circuit.nodes import (
    FixpointNode,
    Node,
    RecursionStatistics,
    RemoteNode,
    SourceNode,
    StepInput,
    combined,
)
from stream_engine.state.source_relation import TimedDelta
from streamsql.algebra.operators import Scan
from streamsql.data.delta import Delta


@dataclass(frozen=True, slots=True)
class OperatorStatistics:
    """What one operator has done so far.

    Attributes:
        operator: The line EXPLAIN shows for it.
        rows_in: Changed rows taken in, over all ports.
        rows_out: Changed rows given out.
        state_rows: Rows remembered now.
    """

    operator: str
    rows_in: int
    rows_out: int
    state_rows: int


class Circuit:
    """An incremental program for one plan.

    The sum of all deltas that `step` has returned is the plan's relation over the sum of all
    inputs, at the time of the last step: whatever the batching. The first step also gives what the
    plan holds over empty inputs (constants, scalar aggregates), so its sources should be snapshots.

    Work per step: that of the operators that something reaches, plus O(nodes).

    Attributes:
        scans: Sources it reads.
        remotes: Ids of the fragments it reads.
        fixpoints: Its recursions, in order; other sites' batches are handed to them directly.
    """

    def __init__(self, nodes: Sequence[Node], output: int) -> None:
        self._nodes = nodes
        self._output = output
        self._started = False
        self.scans: tuple[Scan, ...] = tuple(
            dict.fromkeys(node.scan for node in nodes if isinstance(node, SourceNode))
        )
        self.remotes: tuple[str, ...] = tuple(
            node.fragment for node in nodes if isinstance(node, RemoteNode)
        )
        self._recursions = [node for node in nodes if isinstance(node, FixpointNode)]
        self.fixpoints = [node.operator for node in self._recursions]

    def step(
        self, sources: Mapping[Scan, TimedDelta], remotes: Mapping[str, Delta], now: int
    ) -> Delta:
        """Take the changes of all inputs; return the change of the output.

        Args:
            sources: By scan; scans the circuit does not read are ignored.
            remotes: By fragment id, likewise.
            now: Microseconds since 1970 UTC; never before that of the last step.

        Raises:
            RecursionLimitError: A recursion grew past its limit; the circuit is of no more use.
        """
        step = StepInput(sources, remotes, now)
        nodes = self._nodes
        result: Delta = {}
        for number, node in enumerate(nodes):
            initial = {} if self._started else node.start()
            delta = node.run(step)
            if initial:
                delta = combined([initial, delta])
            if not delta:
                continue
            wiring = node.wiring
            wiring.rows_out += len(delta)
            for consumer, port in wiring.consumers:
                nodes[consumer].wiring.pending.append((port, delta))
            if number == self._output:
                result = delta
        self._started = True
        return result

    def next_wakeup(self) -> int | None:
        """Return when a step would change something although no input does, or None."""
        times = (node.next_wakeup() for node in self._nodes)
        return min((time for time in times if time is not None), default=None)

    def recursion_statistics(self) -> list[RecursionStatistics]:
        """Return one entry per recursion, in the order of `fixpoints`; O(1) each."""
        return [node.statistics() for node in self._recursions]

    def statistics(self) -> list[OperatorStatistics]:
        """Return one entry per node, inputs before their consumers."""
        return [
            OperatorStatistics(
                node.wiring.label(),
                node.wiring.rows_in,
                node.wiring.rows_out,
                node.state_rows(),
            )
            for node in self._nodes
        ]
