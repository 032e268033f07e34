"""Bag union."""

from streamsql.data.delta import Delta


class UnionAllOperator:
    """The bag sum of its inputs.

    Linear in every input. State: none. Work: none; the circuit adds the changes of the ports.
    """

    def initial(self) -> Delta:
        """Return nothing."""
        return {}

    def apply(self, _port: int, delta: Delta) -> Delta:
        """Return the change as it is."""
        return delta

    def state_rows(self) -> int:
        """Return 0."""
        return 0
