"""The node of windows that close: it waits until every site has been heard."""

from stream_engine.circuit.nodes import StepInput
from stream_engine.circuit.port_order import PortOrderNode
from stream_engine.operators.on_close import OnCloseOperator
from streamsql.algebra.operators import OnClose
from streamsql.data.delta import Delta, accumulate


class ClosingNode(PortOrderNode):
    """EMIT ON WINDOW CLOSE, held back while the watermark of some site is not known yet.

    A query that begins, and one whose site was restarted, hears its senders one after another: the
    least watermark of those heard so far says nothing. So windows stay open until all have been
    heard or given up, at the longest for as long as a site may be idle.
    """

    is_timed = True

    def __init__(self, plan: OnClose, operator: OnCloseOperator) -> None:
        super().__init__(plan, operator)
        self.closing = operator

    def run(self, step: StepInput) -> Delta:
        """Apply what came; let windows close if the longest wait is over."""
        result = super().run(step)
        released = self.closing.at(step.now)
        if released:
            result = dict(result)
            accumulate(result, released)
        return result

    def next_wakeup(self) -> int | None:
        """Return when the wait is over, or None."""
        return self.closing.held_until
