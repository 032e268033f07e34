"""Numbers of rows that the operators of a query keep, and that its filters read, for reports."""

from collections.abc import Iterable

from stream_engine.circuit.circuit import Circuit
from streamsql.data.types import MICROSECONDS
from streamsql.wire.fragments import Fragment, source_filters
from streamsql.wire.messages import FilterReport

COUNT_MICROSECONDS = 2 * MICROSECONDS
"""Between two counts: a grouping counts its groups one by one."""
_SMALL = 1_000
"""Fewer rows are told as none, so that small queries do not report every row that comes."""
_LEAST_READ = 64
"""Fewer rows say little about a filter."""


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


class ReadRows:
    """Counts of the filters right over sources, taken again when they have doubled."""

    def __init__(self, plan: Iterable[tuple[Fragment, Circuit]]) -> None:
        self._filters = [
            (fragment.id, number, wirings[node])
            for fragment, circuit in plan
            if (wirings := {node.wiring.plan: node.wiring for node in circuit.nodes})
            for number, node in enumerate(source_filters(fragment.plan))
            if node in wirings
        ]
        self._due = [_LEAST_READ] * len(self._filters)
        self._taken: dict[int, FilterReport] = {}
        self._reports: tuple[FilterReport, ...] = ()

    def reports(self) -> tuple[FilterReport, ...]:
        """Return the counts as taken last; of filters that have read little there are none."""
        for place, (fragment, number, wiring) in enumerate(self._filters):
            if wiring.rows_in >= self._due[place]:
                self._due[place] = 2 * wiring.rows_in
                counts = (wiring.rows_in, min(wiring.rows_out, wiring.rows_in))
                self._taken[place] = FilterReport(fragment, number, *counts)
                self._reports = tuple(self._taken.values())
        return self._reports


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
