"""Estimates of a semi-join before a join at the base: of the keys that travel, and what they find.

It pays only if keys are few, or find few rows. So both rest on counted distinct values: where
nobody has counted these, each row is taken to have another key, and keys to find every row.
"""

from federated_optimizer.costs.estimates import Estimating, estimate
from federated_optimizer.costs.size_and_motion import Estimate
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import Distinct, Join


def keys_sent(reduction: Join, statistics: Statistics, sites: int) -> Estimate:
    """Return the keys that some sites send, each those of its own rows.

    Args:
        reduction: The rows that keys find, with the keys as its right side.
        statistics: Of the sources.
        sites: That have keys.
    """
    keys = reduction.right
    if isinstance(keys, Distinct) and not _is_counted(reduction, Estimating(statistics)):
        keys = keys.input
    return estimate(keys, statistics, sites=sites)


def rows_found(reduction: Join, estimating: Estimating) -> Estimate:
    """Return the rows that keys find, at all sites together; see `keys_sent`."""
    counted = _is_counted(reduction, estimating)
    return estimating.of(reduction if counted else reduction.left)


def _is_counted(reduction: Join, estimating: Estimating) -> bool:
    mine = [column for column, _ in reduction.keys]
    return estimating.is_counted(reduction.left, mine) and estimating.is_counted(
        reduction.right, range(len(reduction.right.schema))
    )
