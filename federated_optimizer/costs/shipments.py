"""Costs of rows that travel between sites."""

import math
from collections.abc import Sequence

from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.statistics.default_facts import (
    ROWS_PER_MESSAGE,
    SNAPSHOT_SECONDS,
    STEP_SECONDS,
    TEXT_BYTES,
)
from federated_optimizer.statistics.wires import DEFAULT_WIRES, Wires

ROW_BYTES = 1
"""Of a row beside its values: its weight."""
OF_LARGE_BATCHES = 0.1
"""What a byte takes to encode and decode in batches of more than 32 rows, over one in small ones.

Measured: 12 ns to 150 (`deploy/calibration/batch_times.py`). Rows that are sent anew travel so.
"""


def mixed_bytes(wires: Wires) -> float:
    """Return the bytes of a message of a recursion, whose rows are mostly pairs of names."""
    return wires.message_bytes + ROWS_PER_MESSAGE.value * 2 * TEXT_BYTES.value


def broadcast(
    relation: Estimate,
    width: float,
    senders: Sequence[str],
    receivers: Sequence[str],
    wires: Wires = DEFAULT_WIRES,
) -> Cost:
    """Return the price of sending every row of a relation to each of some sites; see `shipment`."""
    return sum((shipment(relation, width, senders, (to,), wires) for to in receivers), NOTHING)


def shipment(  # noqa: PLR0913, PLR0917  (rows, their way, and what it costs)
    relation: Estimate,
    width: float,
    senders: Sequence[str],
    receivers: Sequence[str],
    wires: Wires = DEFAULT_WIRES,
    away: float | None = None,
) -> Cost:
    """Return the price of sending a relation from sites to sites, each row to one of them.

    Args:
        relation: Of all senders together.
        width: Bytes of a row.
        senders: Each has a like part of the rows.
        receivers: A row goes to one of them.
        wires: What sending costs.
        away: Share of the rows that leave their sender; None: by chance.
    """
    if not senders or not receivers:
        return NOTHING
    if away is None:
        away = 1.0 - len(set(senders) & set(receivers)) / (len(senders) * len(receivers))
    if not away:
        return NOTHING
    rate = relation.events / relation.bunched / len(senders)
    step = STEP_SECONDS.value  # what changes meanwhile is one message
    steps = len(senders) * (1.0 - math.exp(-rate * step)) / step
    # Rows that come and go between two messages are in none: no more go than there are.
    going = min(relation.inserts, relation.deletes)
    sent = min(going, steps * (1.0 + relation.rows / len(senders)))
    changes = relation.inserts + relation.deletes - 2.0 * (going - sent)
    again = away * wires.repetitions(senders)
    live = again * (changes * (width + ROW_BYTES) + steps * wires.message_bytes)
    anew = again * relation.rows * (width + ROW_BYTES) / SNAPSHOT_SECONDS.value
    size = live + anew
    hops, farthest = wires.distances(senders, receivers)
    return Cost(
        bytes=size,
        low=size / relation.factor,
        high=size * relation.factor,
        messages=again * steps,
        milliseconds=farthest * wires.hop_milliseconds + 1_000 * step,
        energy=size * hops * wires.hop_energy,
        cpu=wires.processor(again * steps, live + anew * OF_LARGE_BATCHES),
    )
