"""Joins with stored tables in the memo: the table travels, or keys travel and what they match.

A table that nobody has counted may be small: then what keys match is taken to be all of it.
"""

from dataclasses import replace

from federated_optimizer.alternatives.key_lookup import Sides, estimated_keys, keys_of, wanted_of
from federated_optimizer.alternatives.words import names_text
from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.relations.estimates import Estimating
from federated_optimizer.costs.relations.size_and_motion import GUESSED, UNKNOWN, Estimate, wider
from federated_optimizer.costs.sent_columns import sent_bytes
from federated_optimizer.costs.shipments import shipment
from federated_optimizer.costs.stored_reads import looked_up
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.column_origins import column_origins
from streamsql.algebra.operators import Join, JoinKind, Plan, Scan, walk_plan

ROWS_A_KEY = 4.0
"""Rows of a table that a key matches which is not the table's own, if nobody has counted them."""


SELDOM = 0.01
"""Share of a stream's changes below which those that bring a key nobody has asked for do not count
as the slowest path: most keys stay as they are while other columns change."""


def keyed_cost(
    plan: Join,
    sides: Sides,
    bases: tuple[str, ...],
    statistics: Statistics,
    estimating: Estimating,
) -> Cost:
    """Return the price of what travels between the base and the table of a join by keys.

    Args:
        plan: The join.
        sides: Of it.
        bases: Sites that ask.
        statistics: Of the sources.
        estimating: By them.
    """
    stream = plan.right if sides.table_first else plan.left
    table = plan.left if sides.table_first else plan.right
    keys = keys_of(stream, sides.stream_keys)
    wanted, _ = wanted_of(plan, sides, keys, table)
    sent = estimating.of(estimated_keys(keys))
    rows = estimating.of(table)
    if isinstance(wanted, Join) and is_counted(sides.table.tables, statistics):
        rows = answers(wanted, keys, sent, rows, estimating)
    site = (sides.table.site,)
    asked = shipment(sent, sent_bytes(keys, statistics), bases, site, statistics.wires)
    answered = shipment(rows, sent_bytes(wanted, statistics, rows), site, bases, statistics.wires)
    answer = answered.after(looked_up(asked.messages, statistics).after(asked))
    if sent.events < SELDOM * estimating.of(stream).events:
        return replace(answer, milliseconds=0.0)  # its key is known already when a row comes
    return answer


def answers(
    wanted: Join, keys: Plan, asked: Estimate, stored: Estimate, estimating: Estimating
) -> Estimate:
    """Return what a static engine answers: a few rows of every key that is asked.

    Args:
        wanted: The join of keys and table at the static engine.
        keys: Its side that are the keys.
        asked: Of the keys.
        stored: Of the table's side.
        estimating: By what is known of the sources.
    """
    keys_first = wanted.left == keys
    table = wanted.right if keys_first else wanted.left
    positions = [pair[1 if keys_first else 0] for pair in wanted.keys]
    if keys_first and wanted.kind != JoinKind.LEFT:
        return asked  # a key that has partners, or has none, comes back by itself
    found = _rows_a_key(table, positions, stored, estimating)
    if keys_first:
        return asked.scaled(max(found, 1.0), GUESSED)
    factor = wider(asked.factor, UNKNOWN)
    return replace(asked.scaled(found), rows=min(asked.rows * found, stored.rows), factor=factor)


def _rows_a_key(
    table: Plan, positions: list[int], stored: Estimate, estimating: Estimating
) -> float:
    """Return how many rows of a table a key finds that is there."""
    scans = [node for node in walk_plan(table) if isinstance(node, Scan)]
    whole = max((estimating.of(scan).rows for scan in scans), default=0.0)
    share = min(stored.rows / whole, 1.0) if whole else 0.0
    if estimating.is_counted(table, positions):
        return stored.rows / estimating.values(table, positions)
    origins = column_origins(table)
    read = {origin for p in positions if (origin := origins[p]) is not None}
    own = any(scan.key and {(scan.source, k) for k in scan.key} <= read for scan in scans)
    return min((1.0 if own else ROWS_A_KEY) * share, stored.rows)


def is_counted(tables: tuple[str, ...], statistics: Statistics) -> bool:
    """Whether the rows of all of some tables are known."""
    facts = [statistics.sources.get(table.lower()) for table in tables]
    return all(fact is not None and fact.rows is not None for fact in facts)


def keyed_words(sides: Sides) -> str:
    """Return what a join by keys does, for the list of plans."""
    return f"{names_text(sides.table.tables)} asked for keys"
