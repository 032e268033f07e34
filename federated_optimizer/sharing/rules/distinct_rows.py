"""DISTINCT over rows that are distinct already, and over groups.

DISTINCT is groups by all columns, without calls, so it is computed as `coarser_groups` computes
groups: from distinct rows of more columns, from groups by these columns and others. Never the
reverse: distinct rows say nothing of copies. DISTINCT over an offer that keeps copies is DISTINCT
over what answers its input.
"""

from federated_optimizer.sharing.group_blocks import group_block_of
from federated_optimizer.sharing.refusals import NotSharedError
from federated_optimizer.sharing.rules.coarser_groups import answered
from streamsql.algebra.operators import Plan


def answer(wanted: Plan, offered: Plan, leaf: Plan) -> Plan | None:
    """Return distinct rows over distinct rows or groups; None: it cannot be proven right."""
    groups = group_block_of(wanted)
    if groups is None or not groups.is_distinct:
        return None
    try:
        return answered(wanted, offered, leaf)
    except NotSharedError:
        return None
