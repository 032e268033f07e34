"""What explains rows and plans: the interface of an engine that is handed in from outside.

The coordinator asks gateways for base rows and shows the answer; the reasoning is an engine's,
which this package does not import.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from streamsql.algebra.operators import Fixpoint, Plan, Scan, Window
from streamsql.data.types import Row

Leaf = Scan | Window
Contents = Mapping[Leaf, Sequence[Row]]
"""The rows that every leaf of a plan holds."""


class BaseRow(Protocol):
    """A row of a source or table."""

    @property
    def scan(self) -> Scan:
        """The source."""

    @property
    def row(self) -> Row:
        """The values."""


Chance = Callable[[BaseRow], float | None]
"""Probability that a base row holds; None when it is certain."""


class Confidence(Protocol):
    """How probable a row is."""

    @property
    def probability(self) -> float:
        """From 0 to 1."""

    @property
    def exact(self) -> bool:
        """Whether it is that, or at least that."""

    @property
    def reason(self) -> str:
        """Why it is not exact."""


class WhyAnswer(Protocol):
    """What a row rests on."""

    @property
    def holds(self) -> bool:
        """Whether the row is there at all."""

    @property
    def supports(self) -> Sequence[Sequence[BaseRow]]:
        """Minimal sets of base rows, each of which keeps the row, smallest first."""

    @property
    def complete(self) -> bool:
        """Whether these are all."""

    @property
    def known(self) -> int:
        """How many were found."""

    @property
    def confidence(self) -> Confidence | None:
        """When asked for, and when there is one."""

    @property
    def notes(self) -> Sequence[str]:
        """What else the row rests on, in words."""


class WhatIfAnswer(Protocol):
    """What a deletion would do to a result."""

    @property
    def deleted(self) -> Sequence[BaseRow]:
        """The base rows."""

    @property
    def gone(self) -> Sequence[Row]:
        """Rows that would go."""

    @property
    def come(self) -> Sequence[Row]:
        """Rows that would come instead."""

    @property
    def rows(self) -> int:
        """How many rows there are now."""

    @property
    def notes(self) -> Sequence[str]:
        """What else to know."""


class ConfidencesAnswer(Protocol):
    """How probable the rows of a result are."""

    @property
    def rows(self) -> Sequence[tuple[Row, Confidence | None]]:
        """Rows with their probability, if one can be given."""

    @property
    def total(self) -> int:
        """How many different rows the result has."""

    @property
    def notes(self) -> Sequence[str]:
        """What else to know."""


class RowExplainer(Protocol):
    """An engine that explains itself and its rows; it computes, without waiting for anything."""

    def foresee(self, node: Fixpoint, sites: tuple[str, ...]) -> str:
        """Return how sites will maintain a recursion, in words.

        Raises:
            UnsupportedError: The strategy that the query asks for does not fit it.
        """

    def why(
        self, plan: Plan, contents: Contents, row: Row, *, limit: int, chance: Chance | None
    ) -> WhyAnswer:
        """Return what a row of a plan's result rests on.

        Raises:
            FederationError: It takes too much work.
        """

    def confidences(
        self, plan: Plan, contents: Contents, *, limit: int, chance: Chance
    ) -> ConfidencesAnswer:
        """Return how probable the first rows of a plan's result are.

        Raises:
            FederationError: It takes too much work.
        """

    def what_if_deleted(self, plan: Plan, contents: Contents, lost: Contents) -> WhatIfAnswer:
        """Return what would become of a plan's result without some rows of its leaves.

        Raises:
            FederationError: It takes too much work.
        """
