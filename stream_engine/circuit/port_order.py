"""A node whose inputs have to be taken in their order."""

from stream_engine.circuit.nodes import OperatorNode, StepInput
from streamsql.data.delta import Delta


class PortOrderNode(OperatorNode):
    """An operator to which what came at one port means something for what came at another.

    In a step the changes of port 0 are applied first, then those of port 1, and so on, whichever
    the circuit computed first.
    """

    def run(self, step: StepInput) -> Delta:
        """Apply the pending changes in the order of their ports."""
        self.wiring.pending.sort(key=_port)
        return super().run(step)


def _port(pending: tuple[int, Delta]) -> int:
    return pending[0]
