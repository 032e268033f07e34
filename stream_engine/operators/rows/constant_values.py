"""Constant rows."""

from collections.abc import Iterable

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator
from streamsql.data.delta import Delta, from_rows
from streamsql.data.types import Row
from streamsql.errors import InternalError


class ValuesOperator(Operator):
    """A constant relation: everything comes out at the start and nothing ever changes."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = from_rows(rows)

    @override
    def initial(self) -> Delta:
        return self._rows

    @override
    def apply(self, port: int, delta: Delta) -> Delta:
        raise InternalError(f"constant rows have no input port {port}; got {len(delta)} rows")

    @override
    def state_rows(self) -> int:
        return len(self._rows)
