"""Many small queries as one Spark job: what a job costs is mostly its start.

The queries' rows go side by side into one wide relation: the number of the query, and for every
type as many columns as any of them needs. Each is told apart again afterwards.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from deploy.session.engines import SparkExecutor
from deploy.session.frozen import frozen
from deploy.session.history import History
from static_engine.evaluation.static_executor import StaticExecutor
from static_engine.spark.spark_executor import SparkExecutor as Spark
from streamsql.algebra.explain import explain_plan
from streamsql.algebra.expressions import Column, Expression, Literal
from streamsql.algebra.operators import Plan, Project, UnionAll
from streamsql.binder import BoundQuery
from streamsql.catalog.catalog import Catalog
from streamsql.data.delta import Delta
from streamsql.data.types import DataType, Row
from streamsql.reference import evaluate

BATCH = 24
THREADS = 2  # planning keeps one core busy
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Compiling a query takes longer than its few rows; other tests do compile."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query over constant rows, and its answer by definition."""

    plan: Plan
    answer: Delta


class Batches:
    """Answers by definition at once, and compares with Spark later.

    Args:
        executor: Not started yet.
    """

    def __init__(self, executor: SparkExecutor) -> None:
        self._executor = executor
        self._spark: StaticExecutor | None = None
        self._asked: list[Asked] = []

    def answer(self, bound: BoundQuery, history: History, _catalog: Catalog) -> Delta:
        """Return what the language says, and keep the question."""
        found = evaluate(bound.plan, history.database, history.now)
        self._asked.append(Asked(frozen(bound.plan, history.database, history.now), found))
        return found

    def compare(self) -> int:
        """Ask Spark everything that was asked since; return how many queries that were."""
        asked, self._asked = self._asked, []
        self._started()
        batches = [asked[start : start + BATCH] for start in range(0, len(asked), BATCH)]
        with ThreadPoolExecutor(THREADS) as pool:
            for batch, answers in zip(batches, pool.map(self._answers, batches), strict=True):
                for question, found in zip(batch, answers, strict=True):
                    assert found == question.answer, explain_plan(question.plan)
        return len(asked)

    def close(self) -> None:
        """Stop Spark."""
        self._executor.close()

    def _answers(self, batch: list[Asked]) -> list[Delta]:
        dtypes = [question.plan.schema.dtypes for question in batch]
        needed = Counter[DataType]()
        for types in dtypes:
            needed |= Counter(types)
        wide = [dtype for dtype, count in needed.items() for _ in range(count)]
        rows = self._started().evaluate(
            UnionAll(tuple(_widened(n, question.plan, wide) for n, question in enumerate(batch)))
        )
        answers: list[Delta] = [{} for _ in batch]
        for row, weight in rows.items():
            number = row[0]
            assert isinstance(number, int)
            narrow: Row = tuple(row[p + 1] for p in _places(dtypes[number], wide))
            answers[number][narrow] = answers[number].get(narrow, 0) + weight
        return answers

    def _started(self) -> StaticExecutor:
        if self._spark is None:
            self._spark = self._executor._spark = self._executor._start()
            assert isinstance(self._spark, Spark)
            for name, value in QUICK.items():
                self._spark._spark.session.conf.set(name, value)
        return self._spark


def _places(dtypes: tuple[DataType, ...], wide: list[DataType]) -> list[int]:
    """Return where a query's columns are in the wide relation."""
    used = Counter[DataType]()
    places = []
    for dtype in dtypes:
        places.append(wide.index(dtype) + used[dtype])
        used[dtype] += 1
    return places


def _widened(number: int, plan: Plan, wide: list[DataType]) -> Plan:
    expressions: list[Expression] = [Literal(None, dtype) for dtype in wide]
    for position, place in enumerate(_places(plan.schema.dtypes, wide)):
        field = plan.schema.fields[position]
        expressions[place] = Column(position, field.name, field.dtype)
    names = tuple(f"w{n}" for n in range(len(wide) + 1))
    return Project(plan, (Literal(number, DataType.INTEGER), *expressions), names)
