"""Budget of a query in one step of a site; the host of the site measures it."""

from collections.abc import Callable
from typing import Protocol

from streamsql.errors import FederationError
from streamsql.wire.fragments import FragmentBundle

Refusal = Callable[[FragmentBundle], FederationError | None]
"""Returns why a query must not be run, or None."""


class StepBudgetExceeded(BaseException):
    """A query has spent its budget in one step; the text names what.

    Raised by the host while an operator works. No `Exception`, so that no function of a user takes
    it for a failure of its own.
    """


class StepBudget(Protocol):
    """Counts what queries spend, one at a time."""

    def begin(self, query: str) -> None:
        """Count for a query from now on; may raise `StepBudgetExceeded` until `end`."""

    def end(self) -> None:
        """Count no more; may be called twice."""

    def exceeded(self, bundle: FragmentBundle, error: FederationError) -> None:
        """Note that a query was stopped for what it has spent."""


class Unlimited:
    """Counts nothing."""

    def begin(self, query: str) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""

    def exceeded(self, bundle: FragmentBundle, error: FederationError) -> None:
        """Do nothing."""
