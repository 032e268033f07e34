"""Why a row is there, how probable it is, and what a deletion would do: questions and answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
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


Chance = Callable[[BaseRow], float | None]
"""Probability that a base row holds, from 0 to 1; None for a row that is certain."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """The probability (0 to 1) that a row holds, or a lower bound with the reason why not exact."""

    probability: float
    exact: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Why:
    """The supports of a row.

    Attributes:
        holds: Whether the row is in the result.
        supports: Minimal sets of base rows, smallest first: the row stays as long as all rows of
            one of them are there; an empty set: always. Rows of a set come in the order in which a
            derivation uses them.
        complete: Whether these are all minimal supports.
        known: How many have been found, of which only `limit` are listed; at least that many exist.
        confidence: The probability that the row holds, when requested.
        notes: Other dependencies, in words.
    """

    holds: bool
    supports: tuple[tuple[BaseRow, ...], ...] = ()
    complete: bool = True
    known: int = 0
    confidence: Confidence | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Confidences:
    """The probabilities of rows, in order; None where unknown; `total` distinct rows exist."""

    rows: tuple[tuple[Row, Confidence | None], ...]
    total: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The effect of deleting base rows on a result.

    Attributes:
        gone: Rows that would go, in order, as often as copies would.
        come: Rows that would come, likewise: next best paths, smaller counts.
        rows: Number of rows of the current result.
    """

    deleted: tuple[BaseRow, ...]
    gone: tuple[Row, ...]
    come: tuple[Row, ...]
    rows: int
    notes: tuple[str, ...] = ()


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
