"""Shares of rows that pass filters: measured where a site has counted them, else assumed."""

from dataclasses import dataclass
from math import prod

from federated_optimizer.statistics.default_facts import COMPARISON, EQUALITY, Default
from federated_optimizer.statistics.planning_statistics import Passing, Statistics
from federated_optimizer.statistics.predicate_text import predicate_text
from streamsql.algebra.expressions import Call, Expression, conjuncts, expression_text
from streamsql.algebra.operators import Filter, Scan
from streamsql.wire.fragments import filtered_scan


@dataclass(frozen=True, slots=True)
class Passed:
    """A share with its range.

    Attributes:
        assumed: What of it nobody has counted, in words.
    """

    share: float
    low: float
    high: float
    assumed: tuple[str, ...] = ()


def passed(node: Filter, statistics: Statistics) -> Passed:
    """Return the share of rows that pass a filter.

    What was counted for the whole predicate, else the product over its parts: counted ones of
    queries with that part alone, and defaults.
    """
    scan = filtered_scan(node)
    known = _known(scan, node.predicate, statistics)
    if known is not None:
        return Passed(known.share, known.low, known.high)
    parts = [_part(scan, part, statistics) for part in conjuncts(node.predicate)]
    return Passed(
        prod(part.share for part in parts),
        prod(part.low for part in parts),
        min(part.high for part in parts),
        tuple(word for part in parts for word in part.assumed),
    )


def default_of(part: Expression) -> Default:
    """Return what is assumed of a comparison."""
    return EQUALITY if isinstance(part, Call) and part.function == "=" else COMPARISON


def _known(scan: Scan | None, predicate: Expression, statistics: Statistics) -> Passing | None:
    if scan is None:
        return None
    text = predicate_text(predicate, scan.schema.names)
    return statistics.passing.get((scan.source.lower(), text))


def _part(scan: Scan | None, part: Expression, statistics: Statistics) -> Passed:
    known = _known(scan, part, statistics)
    if known is not None:
        return Passed(known.share, known.low, known.high)
    default = default_of(part)
    share = f"{default.value:.2g} of the rows ({default.range_text})"
    words = f"{expression_text(part)} holds for {share}"
    return Passed(default.value, default.low, default.high, (words,))
