"""Costs of rows that travel between sites."""

import math
from collections.abc import Sequence

from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.size_and_motion import Estimate
from federated_optimizer.statistics.default_facts import (
    ENVELOPE_BYTES,
    HOP_MILLISECONDS,
    ROWS_PER_MESSAGE,
    SNAPSHOT_SECONDS,
    STEP_SECONDS,
    TEXT_BYTES,
    TOPIC_BYTES,
)

ROW_BYTES = 1
"""Of a row beside its values: its weight."""

MESSAGE_BYTES = ENVELOPE_BYTES.value + TOPIC_BYTES.value
MIXED_BYTES = MESSAGE_BYTES + ROWS_PER_MESSAGE.value * 2 * TEXT_BYTES.value
"""Of a message of a recursion, whose rows are mostly pairs of names."""

MILLISECONDS = HOP_MILLISECONDS.value + 1_000 * STEP_SECONDS.value


def broadcast(
    relation: Estimate, width: float, senders: Sequence[str], receivers: Sequence[str]
) -> Cost:
    """Return the price of sending every row of a relation to each of some sites; see `shipment`."""
    return sum((shipment(relation, width, senders, (to,)) for to in receivers), NOTHING)


def shipment(
    relation: Estimate, width: float, senders: Sequence[str], receivers: Sequence[str]
) -> Cost:
    """Return the price of sending a relation from sites to sites, each row to one of them.

    Args:
        relation: Of all senders together.
        width: Bytes of a row.
        senders: Each has a like part of the rows.
        receivers: A row goes to one of them.
    """
    if not senders or not receivers:
        return NOTHING
    away = 1.0 - len(set(senders) & set(receivers)) / (len(senders) * len(receivers))
    if not away:
        return NOTHING
    rate = relation.events / len(senders)
    step = STEP_SECONDS.value  # what changes meanwhile is one message
    steps = len(senders) * (1.0 - math.exp(-rate * step)) / step
    changes = relation.inserts + relation.deletes
    size = away * (
        changes * (width + ROW_BYTES)
        + steps * MESSAGE_BYTES
        + relation.rows * (width + ROW_BYTES) / SNAPSHOT_SECONDS.value
    )
    return Cost(size, size / relation.factor, size * relation.factor, away * steps, MILLISECONDS)
