"""Number of rows that the operators of a query keep, as reports tell it."""

from collections.abc import Iterable

from stream_engine.circuit.circuit import Circuit
from streamsql.data.types import MICROSECONDS

COUNT_MICROSECONDS = 2 * MICROSECONDS
"""Between two counts: a grouping counts its groups one by one."""
_SMALL = 1_000
"""Fewer rows are told as none, so that small queries do not report every row that comes."""


class KeptRows:
    """Counts now and then."""

    def __init__(self) -> None:
        self._counted_at: int | None = None
        self._rows = 0

    def rows(self, circuits: Iterable[Circuit], now: int) -> int:
        """Return the rows of all operators, rounded up to two digits; `now` in microseconds."""
        if self._counted_at is None or abs(now - self._counted_at) >= COUNT_MICROSECONDS:
            self._counted_at = now
            nodes = (node for circuit in circuits for node in circuit.nodes)
            self._rows = rounded(sum(node.state_rows() for node in nodes))
        return self._rows


def rounded(rows: int) -> int:
    """Return a number of rows with two digits, rounded up.

    Examples:
        >>> rounded(999), rounded(1_000), rounded(1_001), rounded(123_456)
        (0, 1000, 1100, 130000)
    """
    if rows < _SMALL:
        return 0
    unit: int = 10 ** (len(str(rows)) - 2)
    return -(-rows // unit) * unit
