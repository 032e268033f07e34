"""The node of windows that close: it waits until every site has been heard."""

from typing import Protocol

from stream_engine.circuit.nodes import StepInput
from stream_engine.circuit.port_order import PortOrderNode
from stream_engine.operators.rows.operator import Operator
from stream_engine.operators.windows.hold import Hold
from streamsql.algebra.operators import Plan
from streamsql.data.delta import Delta, accumulate


class HeldBack(Operator, Protocol):
    """An operator that gives what can never change any more, once nobody holds it back."""

    @property
    def hold(self) -> Hold:
        """Whether it is held back."""

    def advance(self) -> Delta:
        """Return what the watermark has made final; only asked while nothing holds it back."""


class ClosingNode(PortOrderNode):
    """EMIT ON WINDOW CLOSE, held back while the watermark of some site is not known yet.

    Windows stay open (see `Hold`) until all senders have been heard or given up, at the longest for
    as long as a site may be idle.
    """

    is_timed = True

    def __init__(self, plan: Plan, operator: HeldBack) -> None:
        super().__init__(plan, operator)
        self.closing = operator

    def run(self, step: StepInput) -> Delta:
        """Apply what came; let windows close if the longest wait is over."""
        result = super().run(step)
        if self.closing.hold.over_at(step.now):
            result = dict(result)
            accumulate(result, self.closing.advance())
        return result

    def next_wakeup(self) -> int | None:
        """Return when the wait is over, or None."""
        return self.closing.hold.until
