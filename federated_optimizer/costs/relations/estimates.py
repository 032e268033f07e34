"""Estimates of a plan: number of rows, their width, and how often they come and go.

Rough on purpose: prices of ways differ by factors of ten, and what is assumed is said in words.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from federated_optimizer.costs.relations.column_estimates import Columns
from federated_optimizer.costs.relations.repeated_conditions import RepeatedConditions
from federated_optimizer.costs.relations.size_and_motion import (
    GUESSED,
    UNKNOWN,
    Estimate,
    grouped_at_once,
    wider,
)
from federated_optimizer.statistics.default_facts import (
    BOOLEAN_BYTES,
    DOUBLE_BYTES,
    INTEGER_BYTES,
    RENEWALS,
    REPLACED,
    ROW_LIFE,
    STREAM_ROWS,
    TABLE_ROWS,
    TEXT_BYTES,
    TIMESTAMP_BYTES,
)
from federated_optimizer.statistics.passing_rows import default_of, passed
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
)
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
    RemoteSource,
    Scan,
    SessionWindow,
    SetOperation,
    SourceKind,
    TopN,
    UnionAll,
    Values,
    Window,
    WindowBounds,
    WindowKind,
    Younger,
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
OTHER_BYTES = 8
"""Bytes of a value of any other type."""


def row_bytes(schema: Schema, columns: Iterable[int] | None = None) -> float:
    """Return the expected bytes of a row in a message, or of some of its columns."""
    dtypes = schema.dtypes
    chosen = range(len(dtypes)) if columns is None else columns
    return 2.0 + sum(BYTES.get(dtypes[c], OTHER_BYTES) for c in chosen)


def selectivity(predicate: Expression) -> float:
    """Return the share of rows that pass: a tenth for an equality, a third for anything else."""
    return prod(default_of(part).value for part in conjuncts(predicate))


NO_LEAVES: Mapping[str, "Estimate"] = {}


def estimate(
    plan: Plan,
    statistics: Statistics,
    *,
    sites: int = 1,
    merged: int = 1,
    leaves: Mapping[str, Estimate] = NO_LEAVES,
) -> Estimate:
    """Return the estimate of a plan without recursive references.

    Args:
        plan: Of one place, or of each of some sites.
        statistics: Of the sources.
        sites: Sites that compute the plan of their own rows; the estimate is that of all of them.
        merged: Gateways whose rows each site has.
        leaves: Of its leaves `RemoteSource`, by name; of others nothing comes.
    """
    # No gateway has some sources: nothing comes of them.
    return Estimating(statistics, max(sites, 1), leaves, merged).of(plan).scaled(sites)


class Estimating:
    """Estimates of what one of some sites computes of its own rows, each made once."""

    def __init__(
        self,
        statistics: Statistics,
        sites: int = 1,
        leaves: Mapping[str, Estimate] = NO_LEAVES,
        merged: int = 1,
    ) -> None:
        self._statistics = statistics
        self._sites = sites
        self._leaves = leaves
        self._columns = Columns(
            lambda scan: _scan(scan, statistics).rows / sites, statistics.columns, sites, merged
        )
        self._repeated = RepeatedConditions()
        self._known: dict[int, tuple[Plan, Estimate]] = {}  # by id: the plan keeps it from reuse

    def of(self, plan: Plan) -> Estimate:
        """Return the estimate of a plan at one site."""
        known = self._known.get(id(plan))
        if known is None:
            known = self._known[id(plan)] = (plan, self._estimated(plan))
        return known[1]

    def is_counted(self, plan: Plan, columns: Sequence[int]) -> bool:
        """Whether it is known how many distinct values columns have, or they are a whole key."""
        return self._columns.is_counted(plan, columns)

    def values(self, plan: Plan, columns: Sequence[int]) -> float:
        """Return how many distinct values columns may have, whatever filters leave of them."""
        return self._columns.domain(plan, columns)

    def _leaf(
        self, plan: Scan | Window | WindowBounds | Younger | RemoteSource | Values
    ) -> Estimate:
        match plan:
            case Scan():
                return _scan(plan, self._statistics).scaled(1 / self._sites)
            case WindowBounds(input=scan):
                return _bounds(plan, self._leaf(scan))
            case Younger(left=rows):
                return _window(plan, self.of(rows))
            case Window(input=scan):
                return _window(plan, self._leaf(scan))
            case RemoteSource(fragment=name):
                return self._leaves.get(name, Estimate(0.0, 0.0, 0.0))
            case Values(rows=rows):
                return Estimate(float(len(rows)), 0.0, 0.0)

    def _filtered(self, plan: Filter) -> Estimate:
        found = passed(plan, self._statistics)
        guessed = wider(*[GUESSED] * len(found.assumed))
        below = self.of(plan.input).scaled(found.share, guessed)
        read = tuple(columns_of(plan.predicate))
        # Of a reading in the place of another one both pass, or only one.
        of_others = 0.0 if _is_one_value(plan.predicate) else found.share
        both = 1.0 - self._columns.changing(plan.input, read) * (1.0 - of_others)
        assumed = below.assumed + found.assumed
        bunched = max(below.bunched * found.share, 1.0)
        return replace(below, assumed=assumed, replaced=below.replaced * both, bunched=bunched)

    def _joined(self, plan: Join) -> Estimate:
        once = self._repeated.without(plan)
        found = self._columns.joined(once, self.of(once.left), self.of(once.right))
        if once is plan:
            return found
        # What its sides cost assumes their conditions as well.
        assumed = (*self.of(plan.left).assumed, *self.of(plan.right).assumed)
        return replace(found, assumed=tuple(dict.fromkeys(assumed)))

    def _estimated(self, plan: Plan) -> Estimate:
        match plan:
            case RemoteSource(fragment=name) if name in self._statistics.nodes:
                return self.of(self._statistics.nodes[name])
            case Scan() | Window() | WindowBounds() | Younger() | RemoteSource() | Values():
                return self._leaf(plan)
            case Filter():
                return self._filtered(plan)
            case Project(input=child):
                return self._columns.projected(plan, self.of(child))
            case Distinct(input=child):
                below = self.of(child)
                return grouped_at_once(self._columns.distinct(plan, below), below)
            case Aggregate(input=child):
                below = self.of(child)
                return grouped_at_once(self._columns.aggregated(plan, below), below)
            case TopN(input=child):
                return self._columns.first(plan, self.of(child))
            case AsOfJoin(left=child) | SetOperation(left=child):
                return self.of(child)
            case Materialize() | SessionWindow() | OverWindow():
                return self.of(plan.input)
            case HopWindow(input=child, size=size, hop=hop):
                return self.of(child).scaled(size / hop)
            case Join():
                return self._joined(plan)
            case UnionAll(branches=branches):
                return total(self.of(branch) for branch in branches)
            case Fixpoint():
                return total(self.of(branch) for branch in plan.base)
            case _:
                return Estimate(0.0, 0.0, 0.0)


def _is_one_value(predicate: Expression) -> bool:
    """Whether one value of a column passes, so that no other one does."""
    match predicate:
        case Column() | Call("NOT", (Column(),)):
            return True
        case Call("=", (Column(), Literal()) | (Literal(), Column())):
            return True
        case _:
            return False


def total(parts: Iterable[Estimate]) -> Estimate:
    """Return the sum of estimates."""
    found = list(parts)
    moved = sum(part.inserts for part in found)
    return Estimate(
        sum(part.rows for part in found),
        moved,
        sum(part.deletes for part in found),
        tuple(dict.fromkeys(text for part in found for text in part.assumed)),
        sum(part.replaced * part.inserts for part in found) / moved if moved else 0.0,
        max((part.factor for part in found), default=1.0),
    )


def _scan(scan: Scan, statistics: Statistics) -> Estimate:
    known = statistics.sources if scan.history is None else {}
    facts = known.get(scan.source.lower())
    rows = facts.rows if facts is not None else None
    factor = UNKNOWN if rows is None else 1.0
    if scan.kind == SourceKind.TABLE:
        return Estimate(TABLE_ROWS.value if rows is None else rows, 0.0, 0.0, factor=factor)
    assumed = []
    if rows is None:
        rows = STREAM_ROWS.value
        assumed.append(f"{scan.source}: {rows:g} rows ({STREAM_ROWS.range_text})")
    changes = counted = facts.changes if facts is not None else None
    if changes is None:
        life, low, high = _life(scan)
        changes = 2 * rows / life
        if low < high:
            text, *ends = (duration_text(int(s * MICROSECONDS)) for s in (life, low, high))
            assumed.append(f"{scan.source}: a row holds for {text} ({' to '.join(ends)})")
            factor = UNKNOWN
    replaced = 0.0
    if scan.key:
        # Of counted readings all but those with which a row begins or ends.
        born = 2 * rows / _life(scan)[0]
        replaced = REPLACED.value if counted is None else 1.0 - born / max(counted, born)
    return Estimate(rows, changes / 2, changes / 2, tuple(assumed), replaced, factor)


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


def _bounds(plan: WindowBounds, below: Estimate) -> Estimate:
    """Return the estimate of the bounds of a window, which change when a row leaves by time."""
    share = 1.0 if plan.predicate is None else selectivity(plan.predicate)
    moves = below.inserts * (1.0 - below.replaced) * share
    return Estimate(1.0, moves, moves, below.assumed, 1.0, below.factor)


def _window(window: Window | Younger, below: Estimate) -> Estimate:
    """Return the estimate of a window: its rows go again after its size."""
    if window.kind != WindowKind.RANGE or not window.size:
        return below
    rows = max(below.inserts * window.size / MICROSECONDS, 1.0)
    return Estimate(rows, below.inserts, below.inserts, below.assumed, 0.0, below.factor)
