"""Estimates of a semi-join before a join at the base: of the keys that travel, and what they find.

It pays only if keys are few, or find few rows. So both rest on counted distinct values: where
nobody has counted these, each row is taken to have another key, and keys to find every row.
"""

from msgspec.structs import replace

from federated_optimizer.costs.relations.estimates import Estimating, estimate
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import Distinct, Join, Plan, Scan, SourceKind, walk_plan


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
    """Return the rows that keys find, at all sites together; see `keys_sent`.

    A stored table, whose rows are counted, has no more keys than rows.
    """
    keys = reduction.right
    if _is_counted(reduction, estimating):
        return estimating.of(reduction)
    if isinstance(keys, Distinct) and _is_stored(keys) and _finds_counted(reduction, estimating):
        return estimating.of(replace(reduction, right=keys.input))
    return estimating.of(reduction.left)


def _is_counted(reduction: Join, estimating: Estimating) -> bool:
    keys = reduction.right
    return _finds_counted(reduction, estimating) and estimating.is_counted(
        keys, range(len(keys.schema))
    )


def _finds_counted(reduction: Join, estimating: Estimating) -> bool:
    return estimating.is_counted(reduction.left, [column for column, _ in reduction.keys])


def _is_stored(plan: Plan) -> bool:
    scans = [node for node in walk_plan(plan) if isinstance(node, Scan)]
    return all(scan.kind == SourceKind.TABLE for scan in scans)
