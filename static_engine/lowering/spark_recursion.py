"""Recursion as rounds of DataFrames: semi-naive, each round cut off from the ones before.

A round joins what the round before has found with what is known; a plan that grew with every round
would be planned again from its beginning each time, so its rows are kept and its origin is not.
Spark's own recursion knows UNION ALL only and does not end on cycles.

* A set: a branch is evaluated once per place where it reads the recursion, with the news of the
  last round there and all that is known at the other places. Where the news cannot stand alone,
  below an aggregate for example, the branch is evaluated over all that is known.
* With MIN or MAX only the best rows of each group are known, and news are those that became best.
* Copies: every round is made of the round before alone, until one is empty.
* Few rows are collected and computed here: a round of Spark takes tenths of a second, a chain of a
  thousand links a thousand rounds.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from static_engine.lowering.spark_orders import ordered
from static_engine.sources.values.conversion import arrow_schema, rows_in
from streamsql.algebra.choices import AggregateSelection, Copies
from streamsql.algebra.operators import (
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    JoinKind,
    Plan,
    Project,
    RecursiveReference,
    RemoteSource,
    UnionAll,
    refers_to,
    transform_up,
    with_inputs,
)
from streamsql.data.delta import expand
from streamsql.errors import RecursionLimitError, RecursionRoundsError
from streamsql.reference import Database, evaluate

Lower = Callable[[Plan, Mapping[str, DataFrame]], DataFrame]
"""Returns the frame of a plan; the frames of recursive references are given by name."""
Keep = Callable[[DataFrame], DataFrame]

FEW_ROWS = 2_000
"""Up to so many rows a recursion reads are collected and computed in this process."""
MAX_ROUNDS = 10_000
_PIECES = 16
"""Rounds after which what is known is one piece again."""


class SparkRecursion:
    """Evaluates one fixpoint.

    Args:
        plan: The fixpoint.
        lower: Of the plans inside it.
        keep: Marks a frame as one to be computed once.
    """

    def __init__(self, plan: Fixpoint, lower: Lower, keep: Keep) -> None:
        self._plan = plan
        self._lower = lower
        self._keep = keep
        self._still: dict[Plan, str] = {}
        self._frames: dict[str, DataFrame] = {}
        self._news = f"{plan.name} news"

    def rows(self) -> DataFrame:
        """Return the relation.

        Raises:
            RecursionLimitError: It has more rows than the query allows, or never ends.
            RecursionRoundsError: A row needs more rounds than the query allows.
        """
        base = reduce(DataFrame.unionAll, [self._lower(b, {}) for b in self._plan.base])
        base = self._keep(base)
        still = tuple(self._folded(branch) for branch in self._plan.step)
        if self._reads_few((base, *self._frames.values())):
            return self._computed_here(base, still)
        if self._plan.copies != Copies.ONE:
            return self._copies(base, still)
        return self._set(base, still)

    @staticmethod
    def _reads_few(frames: Iterable[DataFrame]) -> bool:
        left = FEW_ROWS
        for frame in frames:
            left -= frame.limit(left + 1).count()
            if left < 0:
                return False
        return True

    def _computed_here(self, base: DataFrame, branches: tuple[Plan, ...]) -> DataFrame:
        """Return the relation as the definition of the language computes it."""
        name, columns = self._plan.name, self._plan.columns
        remote = {part: list(rows_in(frame.toArrow())) for part, frame in self._frames.items()}
        remote[""] = list(rows_in(base.toArrow()))

        def named(node: Plan) -> Plan:
            if isinstance(node, RecursiveReference) and node.name != name:
                return RemoteSource(node.name, node.columns)
            return node

        plan = msgspec.structs.replace(
            self._plan,
            base=(RemoteSource("", columns),),
            step=tuple(transform_up(branch, named) for branch in branches),
        )
        found = list(expand(evaluate(plan, Database(), 0, remote)))
        schema = arrow_schema(columns)
        values = [pa.array([row[n] for row in found], f.type) for n, f in enumerate(schema)]
        return base.sparkSession.createDataFrame(pa.Table.from_arrays(values, schema=schema))

    def _set(self, base: DataFrame, branches: tuple[Plan, ...]) -> DataFrame:
        name, news_name = self._plan.name, self._news
        steps = [plan for branch in branches for plan in variants(branch, name, news_name)]
        known = news = self._cut(self._best(base.distinct()))
        pieces, total = 1, self._counted(known)
        fresh = total
        for _ in range(MAX_ROUNDS):
            if not (fresh and steps):
                return known
            scope = {self._plan.name: known, self._news: news}
            made = [self._evaluated(plan, scope) for plan in steps]
            found = reduce(DataFrame.unionAll, made).distinct()
            if self._plan.selection is not None:
                best = self._cut(self._best(known.unionAll(found).distinct()))
                news, known = self._cut(best.subtract(known)), best
                total, fresh = self._counted(known), news.count()
                continue
            news = self._cut(found.subtract(known))
            fresh = self._counted(news, total)
            total += fresh
            known, pieces = known.unionAll(news), pieces + 1
            if pieces > _PIECES:
                known, pieces = self._cut(known), 1
        raise RecursionLimitError(
            f"recursion {self._plan.name} still changes after {MAX_ROUNDS} rounds",
            hint="check for a cycle of negative cost",
        )

    def _copies(self, base: DataFrame, branches: tuple[Plan, ...]) -> DataFrame:
        layer = known = self._cut(base)
        total = self._counted(layer)
        fresh = total
        for _ in range(MAX_ROUNDS):
            if not (fresh and branches):
                return known
            scope = {self._plan.name: layer}
            made = [self._evaluated(branch, scope) for branch in branches]
            layer = self._cut(reduce(DataFrame.unionAll, made))
            fresh = self._counted(layer, total)
            total += fresh
            known = known.unionAll(layer)
        raise RecursionLimitError(
            f"recursion {self._plan.name} still has chains after {MAX_ROUNDS} rounds",
            hint="bound it: hops < 12",
        )

    def _counted(self, frame: DataFrame, before: int = 0) -> int:
        """Return the rows of a frame, if together with those before there may be so many."""
        most = self._plan.most_rounds
        last = f"c{len(self._plan.columns) - 1}"
        if most is not None and not frame.filter(fn.col(last) > most).isEmpty():
            raise RecursionRoundsError.of(self._plan.name, most)
        count = frame.count()
        if before + count > self._plan.limit:
            raise RecursionLimitError(
                f"recursion {self._plan.name} has more than {self._plan.limit} rows",
                hint="bound it (hops < 12) or raise it: WITH RECURSIVE (LIMIT n)",
            )
        return count

    def _evaluated(self, plan: Plan, scope: Mapping[str, DataFrame]) -> DataFrame:
        return self._lower(plan, {**self._frames, **scope})

    def _best(self, frame: DataFrame) -> DataFrame:
        selection = self._plan.selection
        return frame if selection is None else best_rows(frame, selection, self._plan)

    @staticmethod
    def _cut(frame: DataFrame) -> DataFrame:
        """Return a frame with rows of its own."""
        return frame.localCheckpoint(eager=True)

    def _folded(self, plan: Plan) -> Plan:
        """Return a branch whose parts that do not read the recursion are named frames."""
        if isinstance(plan, RecursiveReference):
            return plan
        if not refers_to(plan, self._plan.name):
            if plan not in self._still:
                name = self._still[plan] = f"{self._plan.name} part {len(self._still)}"
                self._frames[name] = self._keep(self._lower(plan, {}))
            return RecursiveReference(self._still[plan], plan.schema)
        return with_inputs(plan, tuple(self._folded(child) for child in plan.inputs))


def best_rows(frame: DataFrame, selection: AggregateSelection, plan: Fixpoint) -> DataFrame:
    """Return the rows that are best of their group for one of the aggregates, all ties."""
    dtypes = plan.columns.dtypes
    group = [ordered(fn.col(f"c{position}"), dtypes[position]) for position in selection.group]
    result, wanted = frame, fn.lit(False)
    for number, best in enumerate(selection.bests):
        value = ordered(fn.col(f"c{best.value}"), dtypes[best.value])
        order = value.asc_nulls_last() if best.minimum else value.desc_nulls_last()
        rank = fn.rank().over(Window.partitionBy(*group).orderBy(order))
        result = result.withColumn(f"rank{number}", rank)
        wanted |= (fn.col(f"rank{number}") == 1) & fn.col(f"c{best.value}").isNotNull()
    return result.filter(wanted).select(*frame.columns)


def variants(branch: Plan, name: str, news: str) -> tuple[Plan, ...]:
    """Return plans that together give what a branch gives anew when the recursion has news.

    One per place that reads the recursion: there it reads the news, elsewhere what is known, the
    news included. A branch whose news cannot stand alone is returned as it is.
    """
    found = _places(branch, name, news)
    return (branch,) if found is None else found


def _places(plan: Plan, name: str, news: str) -> tuple[Plan, ...] | None:
    if isinstance(plan, RecursiveReference):
        return (RecursiveReference(news, plan.columns),) if plan.name == name else ()
    if not refers_to(plan, name):
        return ()
    result: list[Plan] = []
    for position, child in enumerate(plan.inputs):
        if refers_to(child, name) and not _passes_on(plan, position):
            return None
        inner = _places(child, name, news)
        if inner is None:
            return None
        for made in inner:
            inputs = (*plan.inputs[:position], made, *plan.inputs[position + 1 :])
            # Of a union the branch with the news is enough; it has the same types.
            is_union = isinstance(plan, UnionAll)
            result.append(made if is_union else with_inputs(plan, inputs))
    return tuple(result)


def _passes_on(plan: Plan, position: int) -> bool:
    """Whether news of an input alone give the news of an operator, and take nothing away."""
    match plan:
        case Filter() | Project() | Distinct() | UnionAll() | HopWindow():
            return True
        case Join(kind=JoinKind.INNER | JoinKind.SEMI):
            return True
        case Join(kind=JoinKind.LEFT | JoinKind.ANTI):
            return position == 0
        case _:
            return False
