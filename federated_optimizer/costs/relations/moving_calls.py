"""Shares of changes by which the row of a group changes that shows several aggregates.

Counts and sums change together. The least and the greatest value of a group are two of its rows, so
each changes at its own time; who has the greatest value is known from the row that has it.
"""

from collections.abc import Hashable, Mapping

from msgspec import UNSET

from streamsql.algebra.operators import AggregateCall, AggregateFunction

_BEST = {
    AggregateFunction.MIN: "least",
    AggregateFunction.ARG_MIN: "least",
    AggregateFunction.BOOL_AND: "least",
    AggregateFunction.MAX: "greatest",
    AggregateFunction.ARG_MAX: "greatest",
    AggregateFunction.BOOL_OR: "greatest",
}


def any_changes(shares: Mapping[AggregateCall, float]) -> float:
    """Return how likely one of several aggregates of a group changes, at least.

    Args:
        shares: How likely each does.
    """
    together: dict[Hashable, float] = {}
    for call, share in shares.items():
        row = _row_of(call)
        together[row] = max(share, together.get(row, 0.0))
    none = 1.0
    for share in together.values():
        none *= 1.0 - share
    return 1.0 - none


def _row_of(call: AggregateCall) -> Hashable:
    """Return what tells the row apart that a call has its value from; of counts it is any."""
    function = call.function if call.merged_by is UNSET else call.merged_by
    best = _BEST.get(function)
    return None if best is None else (best, call.arguments[-1:])
