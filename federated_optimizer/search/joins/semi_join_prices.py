"""Prices of joins at the base of what keys find at gateways."""

from federated_optimizer.alternatives.gateway_pieces import TwoSided
from federated_optimizer.alternatives.joins.keys_first import SemiJoin
from federated_optimizer.alternatives.joins.stored_at_gateways import StoredSide
from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.relations.estimates import Estimating
from federated_optimizer.costs.relations.semi_join_estimates import keys_sent, rows_found
from federated_optimizer.costs.sent_columns import sent_bytes
from federated_optimizer.costs.shipments import broadcast, shipment
from federated_optimizer.costs.stored_reads import evaluated, sent_to_gateways
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import Join


def keys_cost(  # noqa: PLR0913, PLR0917  (a join, its sites, and what is known)
    reduction: Join,
    whole: tuple[str, ...],
    reduced: tuple[str, ...],
    bases: tuple[str, ...],
    statistics: Statistics,
    estimating: Estimating,
) -> Cost:
    """Return the price of keys, and of what they find.

    Args:
        reduction: The rows that keys find, with the keys as its right side.
        whole: Sites that have keys.
        reduced: Sites that have the rows.
        bases: The rows go there.
        statistics: Of the sources.
        estimating: Of what gateways have together.
    """
    wires, sent = statistics.wires, keys_sent(reduction, statistics, len(whole))
    asked = broadcast(sent, sent_bytes(reduction.right, statistics), whole, reduced, wires)
    matched = rows_found(reduction, estimating)
    width = sent_bytes(reduction.left, statistics, matched)
    return shipment(matched, width, reduced, bases, wires).after(asked)


def stored_keys_cost(  # noqa: PLR0913, PLR0917  (a join, what travels, and what is known)
    plan: TwoSided,
    sides: StoredSide,
    found: SemiJoin,
    bases: tuple[str, ...],
    statistics: Statistics,
    estimating: Estimating,
) -> Cost:
    """Return the price of a table's keys, of what they find, and of the table at the base.

    The table is evaluated once more for its keys, and each gateway keeps them.
    """
    stream, table = (plan.right, plan.left) if sides.table_first else (plan.left, plan.right)
    site, sites, wires = sides.table.site, sides.stream.sites, statistics.wires
    keys = estimating.of(found.keys)
    asked = sent_to_gateways(keys, sent_bytes(found.keys, statistics, keys), site, sites, wires)
    reduced = found.reduced(stream, found.keys)
    matched = rows_found(reduced, estimating)
    answered = shipment(matched, sent_bytes(reduced, statistics, matched), sites, bases, wires)
    rows = estimating.of(table)
    stored = shipment(rows, sent_bytes(table, statistics, rows), (site,), bases, wires)
    again = evaluated(sides.table.plan, estimating, statistics)
    kept = Cost(state=keys.rows * len(sites))
    return answered.after(asked).after(again) + stored + kept
