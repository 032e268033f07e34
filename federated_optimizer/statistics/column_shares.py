"""Shares of a source's readings by the value of a column, from facts about the column."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from federated_optimizer.statistics.planning_statistics import ColumnFacts
from streamsql.data.types import Value

LEAST_SHARE = 1e-4
"""Of what was never seen."""


class Share(NamedTuple):
    """A share with its range."""

    value: float
    low: float
    high: float


def equal_share(facts: ColumnFacts, value: Value) -> Share:
    """Return the share of readings with a value: one of so many, or as the deciles say."""
    most = facts.most
    present = 1.0 - facts.nulls
    usual = min(present / max(facts.distinct, 1.0), present)
    if not facts.deciles or not isinstance(value, int | float):
        return Share(usual, 0.0, max(most, usual))
    before = bisect_left(facts.deciles, value)
    found = bisect_right(facts.deciles, value) - before
    if not found:
        outside = before in {0, len(facts.deciles)}
        rare = LEAST_SHARE if outside else min(usual, 0.1)
        return Share(rare, 0.0, max(min(most, 0.1 + 2 * facts.unsure), rare))
    share = min(found / 10, 1.0) * present
    if facts.common:
        share = min(share, facts.common)
    low = max((found - 1) / 10 * present - 2 * facts.unsure, 0.0)
    high = min(most, (found + 1) / 10 + 2 * facts.unsure)
    return Share(share, min(low, share), max(high, share))


def below_share(facts: ColumnFacts, value: float, *, equal: bool) -> Share:
    """Return the share of readings below a value, of those that are not NULL.

    Args:
        facts: About a column of numbers, with deciles.
        value: The bound.
        equal: Whether the bound itself is counted too.
    """
    deciles = facts.deciles
    after = (bisect_right if equal else bisect_left)(deciles, value)
    off = facts.unsure
    if after == 0:
        return Share(0.0, 0.0, off)
    if after == len(deciles):
        return Share(1.0, 1.0 - off, 1.0)
    share = (after - 1 + _part(deciles, after, value)) / 10
    return Share(share, max((after - 1) / 10 - off, 0.0), min(after / 10 + off, 1.0))


def _part(deciles: Sequence[float], after: int, value: float) -> float:
    width = deciles[after] - deciles[after - 1]
    return min(max((value - deciles[after - 1]) / width, 0.0), 1.0) if width > 0 else 1.0
