"""The nodes of streams that queries give: their instants, and windows over them."""

from stream_engine.circuit.closing import ClosingNode
from stream_engine.circuit.instants import ChangesOperator, InstantsOperator
from stream_engine.circuit.nodes import OperatorNode, StepInput, combined
from stream_engine.operators.windows.stream_window import StreamWindowOperator
from streamsql.algebra.operators import Plan, ToStream
from streamsql.data.delta import Delta


class InstantsNode(ClosingNode):
    """ISTREAM, DSTREAM or RSTREAM: like windows that close it waits for the slowest site."""

    def __init__(self, plan: ToStream, operator: InstantsOperator) -> None:
        super().__init__(plan, operator)


class ChangesNode(OperatorNode):
    """The same in a circuit that is stepped instant by instant: each step is an instant."""

    def __init__(self, plan: ToStream, operator: ChangesOperator) -> None:
        super().__init__(plan, operator)
        self._changes = operator
        self._is_first = False

    def start(self) -> Delta:
        """Return nothing: the first step is before all instants."""
        self._is_first = True
        return {}

    def run(self, step: StepInput) -> Delta:
        """Return what the query's change adds to the stream."""
        wiring, first = self.wiring, self._is_first
        self._is_first = False
        if not wiring.pending:
            return {}
        changed = combined([delta for _port, delta in wiring.pending])
        wiring.pending = []
        wiring.rows_in += len(changed)
        return self._changes.at(step.now, changed, first=first) if changed else {}


class StreamWindowNode(OperatorNode):
    """A window over a stream that a query gives; it moves as time passes."""

    is_timed = True

    def __init__(self, plan: Plan, operator: StreamWindowOperator) -> None:
        super().__init__(plan, operator)
        self._window = operator

    def run(self, step: StepInput) -> Delta:
        """Move the time, then take the new rows."""
        moved = self._window.advance(step.now)
        changed = super().run(step)
        return combined([moved, changed]) if moved and changed else moved or changed

    def next_wakeup(self) -> int | None:
        """Return when the window next moves."""
        return self._window.next_wakeup()
