"""What a query may fail with, and how that is told."""

from stream_engine.site.step_budget import StepBudgetExceeded
from streamsql.errors import FederationError, InternalError, StepBudgetError

STOPPING = (
    StepBudgetExceeded,
    FederationError,
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    RuntimeError,
)
"""What a query may fail with."""


def as_failure(query: str, site: str, error: BaseException) -> FederationError:
    """Return an error of a query as what operators are told.

    Args:
        query: That has failed.
        site: Where.
        error: One of `STOPPING`.
    """
    if isinstance(error, FederationError):
        return error
    if isinstance(error, StepBudgetExceeded):
        return StepBudgetError(
            f"query {query} is stopped at site {site}: it {error}",
            hint="read fewer rows: a window, a stricter condition, a key in every join; then "
            "DROP QUERY and start it again",
        )
    return InternalError(f"query {query} failed at site {site}: {error!r:.300}")
