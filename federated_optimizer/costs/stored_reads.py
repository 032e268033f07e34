"""Costs of stored tables: of evaluating them, of looking up keys, and of rows at gateways."""

from collections.abc import Sequence
from dataclasses import replace

from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.relations.estimates import Estimating
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.costs.shipments import broadcast
from federated_optimizer.statistics.default_facts import SNAPSHOT_SECONDS
from federated_optimizer.statistics.planning_statistics import Statistics
from federated_optimizer.statistics.wires import Wires
from streamsql.algebra.operators import Plan, Scan, walk_plan


def read_whole(rows: float, statistics: Statistics) -> Cost:
    """Return the price of evaluating tables of so many rows each time that rows are sent anew."""
    speeds = statistics.speeds
    is_local = rows <= (statistics.local_rows or 0)
    executor = speeds.local if is_local else speeds.spark
    seconds = executor.floor + rows / executor.rows
    return Cost(engine=1_000 * seconds / SNAPSHOT_SECONDS.value)


def evaluated(plan: Plan, estimating: Estimating, statistics: Statistics) -> Cost:
    """Return the price of evaluating a plan over stored tables; see `read_whole`."""
    scans = (node for node in walk_plan(plan) if isinstance(node, Scan))
    return read_whole(sum(estimating.of(scan).rows for scan in scans), statistics)


def looked_up(requests: float, statistics: Statistics) -> Cost:
    """Return the price of so many requests a second with keys, each of which has to be answered.

    Keys are asked for in small tables of their rows, or in files that are sorted by them: a request
    takes as long as a small evaluation.
    """
    speeds = statistics.speeds
    floor = 1_000 * (speeds.spark if statistics.local_rows is None else speeds.local).floor
    return Cost(milliseconds=floor, engine=requests * floor)


def sent_to_gateways(
    stored: Estimate, width: float, site: str, gateways: Sequence[str], wires: Wires
) -> Cost:
    """Return the price of the rows of a table that go to each of some gateways.

    They are there before a reading comes, so that it does not wait for them.

    Args:
        stored: Rows that each gateway keeps.
        width: Bytes of one.
        site: Of the static engine.
        gateways: All that join them.
        wires: What sending costs.
    """
    return replace(broadcast(stored, width, (site,), gateways, wires), milliseconds=0.0)
