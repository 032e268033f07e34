"""The rows of sources and tables that an explanation speaks about."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamsql.algebra.operators import Plan, Scan, Window, walk_plan
from streamsql.data.schema import Schema
from streamsql.data.types import Row

Leaf = Scan | Window
"""A source as a plan reads it: as a whole, or through a window."""

Contents = Mapping[Leaf, Sequence[Row]]
"""The rows every leaf of a plan holds now, in any order, with duplicates."""


@dataclass(frozen=True, slots=True)
class BaseRow:
    """A row of a source, all copies of it; the same row in several windows is one base row."""

    scan: Scan
    row: Row

    @property
    def source(self) -> str:
        """Name of the source or table."""
        return self.scan.source

    @property
    def columns(self) -> Schema:
        """Of the source."""
        return self.scan.columns


def leaves_of(plan: Plan) -> tuple[Leaf, ...]:
    """Return the distinct leaves of a plan, in the order they are read."""
    found: dict[Leaf, None] = {}
    for node in _above_windows(plan):
        if isinstance(node, Scan | Window):
            found[node] = None
    return tuple(found)


def _above_windows(plan: Plan) -> Iterator[Plan]:
    yield plan
    if not isinstance(plan, Window):
        for child in plan.inputs:
            yield from _above_windows(child)


def scan_of(leaf: Leaf) -> Scan:
    """Return the source behind a leaf."""
    return leaf.input if isinstance(leaf, Window) else leaf


def sources_of(plan: Plan) -> tuple[str, ...]:
    """Return the names of the sources a plan reads, in the order they are read."""
    return tuple(dict.fromkeys(n.source for n in walk_plan(plan) if isinstance(n, Scan)))


class Tokens:
    """Numbers for base rows, from 1 upwards in order of first use."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, Row], int] = {}
        self._rows: list[BaseRow] = []

    def of(self, leaf: Leaf, row: Row) -> int:
        """Return the token of a leaf's row."""
        scan = scan_of(leaf)
        key = (scan.source, row)
        number = self._numbers.get(key)
        if number is None:
            self._rows.append(BaseRow(scan, row))
            number = self._numbers[key] = len(self._rows)
        return number

    def base_row(self, token: int) -> BaseRow:
        """Return the base row of a token."""
        return self._rows[token - 1]

    def __iter__(self) -> Iterator[int]:
        """Yield all tokens given so far."""
        return iter(range(1, len(self._rows) + 1))
