"""Constant rows."""

from collections.abc import Iterable

from streamsql.data.delta import Delta, from_rows
from streamsql.data.types import Row
from streamsql.errors import InternalError


class ValuesOperator:
    """A constant relation: everything comes out at the start and nothing ever changes."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = from_rows(rows)

    def initial(self) -> Delta:
        """Return the rows."""
        return self._rows

    def apply(self, port: int, delta: Delta) -> Delta:
        """Refuse input: there is no port."""
        raise InternalError(f"constant rows have no input port {port}; got {len(delta)} rows")

    def state_rows(self) -> int:
        """Return the number of distinct rows."""
        return len(self._rows)
