"""What a query may fail with, and how that is told."""

from streamsql.errors import FederationError, InternalError

STOPPING = (
    FederationError,
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    RuntimeError,
)
"""What a query may fail with."""


def as_failure(query: str, site: str, error: Exception) -> FederationError:
    """Return an error of a query as what operators are told.

    Args:
        query: That has failed.
        site: Where.
        error: One of `STOPPING`.
    """
    if isinstance(error, FederationError):
        return error
    return InternalError(f"query {query} failed at site {site}: {error!r:.300}")
