"""The node of operators that emit only final rows: it waits until every sender was received."""

from operator import itemgetter
from typing import Protocol

from stream_engine.circuit.nodes import OperatorNode, StepInput
from stream_engine.operators.rows.operator import Operator
from stream_engine.operators.windows.hold import Hold
from streamsql.algebra.operators import Plan
from streamsql.data.delta import Delta, accumulate


class HeldBack(Operator, Protocol):
    """An operator that emits only final rows, while it is not held back."""

    @property
    def hold(self) -> Hold:
        """Whether it is held back."""

    def advance(self) -> Delta:
        """Return the rows that the watermark has made final; called only while not held back."""


class ClosingNode(OperatorNode):
    """EMIT ON WINDOW CLOSE or a stream, held back while the watermark of some site is unknown.

    Windows stay open (see `Hold`) until all senders were received or given up, at most for as long
    as a site may be idle.
    """

    is_timed = True

    def __init__(self, plan: Plan, operator: HeldBack) -> None:
        super().__init__(plan, operator)
        self.closing = operator

    def run(self, step: StepInput) -> Delta:
        """Apply the pending changes by port, rows before progress; close windows when due."""
        self.wiring.pending.sort(key=itemgetter(0))
        result = super().run(step)
        if self.closing.hold.over_at(step.now):
            result = dict(result)
            accumulate(result, self.closing.advance())
        return result

    def next_wakeup(self) -> int | None:
        """Return when the max wait is over, or None."""
        return self.closing.hold.until
