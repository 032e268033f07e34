"""The node of windows that close: it waits until every site has been heard."""

from typing import Protocol

from stream_engine.circuit.nodes import StepInput
from stream_engine.circuit.port_order import PortOrderNode
from stream_engine.operators.operator import Operator
from streamsql.algebra.operators import Plan
from streamsql.data.delta import Delta, accumulate


class HeldBack(Operator, Protocol):
    """An operator that gives what can never change any more, once nobody holds it back.

    Attributes:
        held_until: Time at which it is held no longer, or None: not held, or without end.
    """

    held_until: int | None

    def hold(self, wait: int | None) -> None:
        """Give nothing until `release`, or for so long after the next step."""

    def release(self) -> None:
        """Go on from the next step."""

    def at(self, now: int) -> Delta:
        """Take in the time; return what is given because nothing holds it back any more."""


class ClosingNode(PortOrderNode):
    """EMIT ON WINDOW CLOSE, held back while the watermark of some site is not known yet.

    A query that begins, and one whose site was restarted, hears its senders one after another: the
    least watermark of those heard so far says nothing. So windows stay open until all have been
    heard or given up, at the longest for as long as a site may be idle.
    """

    is_timed = True

    def __init__(self, plan: Plan, operator: HeldBack) -> None:
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
