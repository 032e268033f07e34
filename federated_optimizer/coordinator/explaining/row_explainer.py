"""The interface of an engine that explains rows and plans, handed in from outside.

The coordinator asks gateways for base rows and shows the answer; the reasoning is an engine's,
which this package does not import.
"""

from typing import Protocol

from streamsql.algebra.operators import Fixpoint, Plan
from streamsql.algebra.row_explanations import Chance, Confidences, Contents, WhatIf, Why
from streamsql.data.types import Row


class RowExplainer(Protocol):
    """An engine that explains itself and its rows; it computes, without waiting for anything."""

    def foresee(self, node: Fixpoint, sites: tuple[str, ...]) -> str:
        """Return how sites will maintain a recursion, in words.

        Raises:
            UnsupportedError: The strategy that the query asks for does not fit it.
        """

    def why(
        self, plan: Plan, contents: Contents, row: Row, *, limit: int, chance: Chance | None
    ) -> Why:
        """Return what a row of a plan's result rests on.

        Raises:
            FederationError: It takes too much work.
        """

    def confidences(
        self, plan: Plan, contents: Contents, *, limit: int, chance: Chance
    ) -> Confidences:
        """Return how probable the first rows of a plan's result are.

        Raises:
            FederationError: It takes too much work.
        """

    def what_if_deleted(self, plan: Plan, contents: Contents, lost: Contents) -> WhatIf:
        """Return what would become of a plan's result without some rows of its leaves.

        Raises:
            FederationError: It takes too much work.
        """
