"""Estimates of a plan: number of rows, their width, and how often they come and go.

Rough on purpose: prices of ways differ by factors of ten, and what is assumed is said in words.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod

from federated_optimizer.placement.passing_rows import default_of, passed
from federated_optimizer.placement.statistics import Statistics
from federated_optimizer.statistics.default_facts import (
    BOOLEAN_BYTES,
    DOUBLE_BYTES,
    INTEGER_BYTES,
    RENEWALS,
    ROW_LIFE,
    STREAM_ROWS,
    TABLE_ROWS,
    TEXT_BYTES,
    TIMESTAMP_BYTES,
)
from streamsql.algebra.expressions import Expression, conjuncts
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    Materialize,
    OverWindow,
    Plan,
    Project,
    Scan,
    SessionWindow,
    SetOperation,
    SourceKind,
    TopN,
    UnionAll,
    Values,
    Window,
    WindowKind,
)
from streamsql.data.durations import duration_text
from streamsql.data.schema import Schema
from streamsql.data.types import MICROSECONDS, DataType

BYTES = {
    DataType.BOOLEAN: BOOLEAN_BYTES.value,
    DataType.INTEGER: INTEGER_BYTES.value,
    DataType.DOUBLE: DOUBLE_BYTES.value,
    DataType.TEXT: TEXT_BYTES.value,
    DataType.TIMESTAMP: TIMESTAMP_BYTES.value,
}
"""Bytes of a value in a message (MessagePack): short names and small numbers."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A relation's size and motion.

    Attributes:
        rows: At any time.
        inserts: Rows a second that come.
        deletes: Rows a second that go.
        assumed: What was not known, in words.
    """

    rows: float
    inserts: float
    deletes: float
    assumed: tuple[str, ...] = ()

    def scaled(self, by: float) -> "Estimate":
        """Return a share of it."""
        return Estimate(self.rows * by, self.inserts * by, self.deletes * by, self.assumed)


def row_bytes(schema: Schema, columns: Iterable[int] | None = None) -> float:
    """Return the expected bytes of a row in a message, or of some of its columns."""
    dtypes = schema.dtypes
    chosen = range(len(dtypes)) if columns is None else columns
    return 2.0 + sum(BYTES.get(dtypes[c], 8) for c in chosen)


def selectivity(predicate: Expression) -> float:
    """Return the share of rows that pass: a tenth for an equality, a third for anything else."""
    return prod(default_of(part).value for part in conjuncts(predicate))


def estimate(plan: Plan, statistics: Statistics) -> Estimate:
    """Return the estimate of a plan without recursive references."""
    match plan:
        case Scan():
            return _scan(plan, statistics)
        case Window(input=scan):
            return _window(plan, _scan(scan, statistics))
        case Values(rows=rows):
            return Estimate(float(len(rows)), 0.0, 0.0)
        case Filter(input=child):
            below, found = estimate(child, statistics), passed(plan, statistics)
            return replace(below.scaled(found.share), assumed=below.assumed + found.assumed)
        case Project() | Distinct() | Aggregate() | Materialize():
            return estimate(plan.input, statistics)
        case SessionWindow(input=child) | AsOfJoin(left=child) | SetOperation(left=child):
            return estimate(child, statistics)
        case OverWindow(input=child):
            return estimate(child, statistics)
        case HopWindow(input=child, size=size, hop=hop):
            return estimate(child, statistics).scaled(size / hop)
        case TopN():
            return _top(estimate(plan.input, statistics), plan)
        case Join(kind=kind, left=child) if kind.is_filter:
            return estimate(child, statistics)
        case Join():
            return _join(estimate(plan.left, statistics), estimate(plan.right, statistics), plan)
        case UnionAll(branches=branches):
            return total(estimate(branch, statistics) for branch in branches)
        case Fixpoint():
            return total(estimate(branch, statistics) for branch in plan.base)
        case _:
            return Estimate(0.0, 0.0, 0.0)


def total(parts: Iterable[Estimate]) -> Estimate:
    """Return the sum of estimates."""
    rows = inserts = deletes = 0.0
    assumed: tuple[str, ...] = ()
    for part in parts:
        rows, inserts = rows + part.rows, inserts + part.inserts
        deletes, assumed = deletes + part.deletes, assumed + part.assumed
    return Estimate(rows, inserts, deletes, tuple(dict.fromkeys(assumed)))


def _scan(scan: Scan, statistics: Statistics) -> Estimate:
    known = statistics.sources if scan.history is None else {}
    facts = known.get(scan.source.lower())
    rows = facts.rows if facts is not None else None
    if scan.kind == SourceKind.TABLE:
        return Estimate(TABLE_ROWS.value if rows is None else rows, 0.0, 0.0)
    assumed = []
    if rows is None:
        rows = STREAM_ROWS.value
        assumed.append(f"{scan.source}: {rows:g} rows ({STREAM_ROWS.range_text})")
    changes = facts.changes if facts is not None else None
    if changes is None:
        life, low, high = _life(scan)
        changes = 2 * rows / life
        if low < high:
            text, *ends = (duration_text(int(s * MICROSECONDS)) for s in (life, low, high))
            assumed.append(f"{scan.source}: a row holds for {text} ({' to '.join(ends)})")
    return Estimate(rows, changes / 2, changes / 2, tuple(assumed))


def _life(scan: Scan) -> tuple[float, float, float]:
    """Return the seconds for which a row holds, and the range of that.

    Those of a bag end with their time to live. A row with a key is renewed before that, until a
    renewal fails or brings another value.
    """
    if scan.ttl is None:
        return ROW_LIFE.value, ROW_LIFE.low, ROW_LIFE.high
    once = scan.ttl / MICROSECONDS
    if not scan.key:
        return once, once, once
    return once * RENEWALS.value, once * RENEWALS.low, once * RENEWALS.high


def _window(window: Window, below: Estimate) -> Estimate:
    """Return the estimate of a window: its rows go again after its size."""
    if window.kind != WindowKind.RANGE or not window.size:
        return below
    rows = max(below.inserts * window.size / MICROSECONDS, 1.0)
    return Estimate(rows, below.inserts, below.inserts, below.assumed)


def _top(below: Estimate, top: TopN) -> Estimate:
    """Return the first rows: at most as many as asked for, of at least one partition."""
    if top.limit is None or top.partition or below.rows <= top.limit:
        return below
    return below.scaled(top.limit / below.rows)


def _join(left: Estimate, right: Estimate, join: Join) -> Estimate:
    """Return a join along a key: as many rows as the larger side, moved by both."""
    rows = max(left.rows, right.rows) if join.keys else left.rows * right.rows
    per_left, per_right = rows / max(left.rows, 1.0), rows / max(right.rows, 1.0)
    return Estimate(
        rows,
        left.inserts * per_left + right.inserts * per_right,
        left.deletes * per_left + right.deletes * per_right,
        left.assumed + right.assumed,
    )
