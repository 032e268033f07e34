"""Bag union."""

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator
from streamsql.data.delta import Delta


class UnionAllOperator(Operator):
    """The bag sum of its inputs.

    Linear in every input. State: none. Work: none; the circuit adds the changes of the ports.
    """

    @override
    def apply(self, _port: int, delta: Delta) -> Delta:
        return delta
