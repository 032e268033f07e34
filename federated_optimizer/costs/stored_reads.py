"""Costs of the engines of stored tables: evaluations of whole tables, and keys looked up."""

from federated_optimizer.costs.cost import Cost
from federated_optimizer.statistics.default_facts import SNAPSHOT_SECONDS
from federated_optimizer.statistics.planning_statistics import Statistics


def read_whole(rows: float, statistics: Statistics) -> Cost:
    """Return the price of evaluating tables of so many rows each time that rows are sent anew."""
    speeds = statistics.speeds
    is_local = rows <= (statistics.local_rows or 0)
    executor = speeds.local if is_local else speeds.spark
    seconds = executor.floor + rows / executor.rows
    return Cost(engine=1_000 * seconds / SNAPSHOT_SECONDS.value)


def looked_up(requests: float, statistics: Statistics) -> Cost:
    """Return the price of so many requests a second with keys, each of which has to be answered.

    Keys are asked for in small tables of their rows, or in files that are sorted by them: a request
    takes as long as a small evaluation.
    """
    speeds = statistics.speeds
    floor = 1_000 * (speeds.spark if statistics.local_rows is None else speeds.local).floor
    return Cost(milliseconds=floor, engine=requests * floor)
