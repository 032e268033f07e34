"""Joins by time, orders, set operations, time windows and further aggregates on Spark."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from static_engine.sources.table_locations import Locations
from static_engine.spark.spark_executor import SparkExecutor
from static_engine.spark.spark_session import RunningSpark
from static_engine.tables.table_store import TableStore
from streamsql.algebra.explain import explain_plan
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    AsOfJoin,
    Distinct,
    Filter,
    HopWindow,
    Join,
    JoinKind,
    OnClose,
    Plan,
    SessionWindow,
    SetKind,
    SetOperation,
    SortKey,
    TopN,
    Values,
)
from streamsql.algebra.user_functions import INSTALLED
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Value
from streamsql.reference import Database, evaluate

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

B, INT, D, T = DataType.BOOLEAN, DataType.INTEGER, DataType.DOUBLE, DataType.TEXT
TIME = DataType.TIMESTAMP
A = AggregateFunction
VALUES: dict[DataType, list[Value]] = {
    B: [True, False, None],
    INT: [0, 1, -3, 2**53 + 1, None],
    D: [0.0, -0.0, 0.1, -3.0, 1e16, float(2**53), None],
    T: ["", "a", "ab", "é", "\uffee", "😀", None],
    TIME: [0, 1, 4, 5, 11, -7, None],
}
FEW = settings(max_examples=6, suppress_health_check=list(HealthCheck))
SPREADS = [A.VAR_SAMP, A.VAR_POP, A.STDDEV_SAMP, A.STDDEV_POP, A.EXACT_SUM, A.EXACT_SQUARES]


@pytest.fixture(scope="module")
def executor(spark: RunningSpark, tmp_path_factory: pytest.TempPathFactory) -> SparkExecutor:
    folder = tmp_path_factory.mktemp("tables")
    return SparkExecutor(spark, TableStore(Locations(folder), folder / "snapshots"))


def check(executor: SparkExecutor, plan: Plan) -> None:
    assert executor.evaluate(plan) == evaluate(plan, Database(), 0), explain_plan(plan)


def column(plan: Plan, position: int) -> Column:
    field = plan.schema.fields[position]
    return Column(position, field.name, field.dtype)


@st.composite
def tables(draw: st.DrawFn, *dtypes: DataType, size: int = 8) -> Plan:
    chosen = dtypes or tuple(draw(st.lists(st.sampled_from([B, INT, D, T]), min_size=1)))[:4]
    rows = draw(st.lists(st.tuples(*(st.sampled_from(VALUES[d]) for d in chosen)), max_size=size))
    return Values(tuple(rows), Schema.of(*((f"v{n}", d) for n, d in enumerate(chosen))))


def some(width: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, width - 1), max_size=2, unique=True)


@FEW
@given(data=st.data())
def test_first_rows(executor: SparkExecutor, data: st.DataObject) -> None:
    table = data.draw(tables())
    width = len(table.schema)
    order = tuple(
        SortKey(p, data.draw(st.booleans()), data.draw(st.booleans()))
        for p in data.draw(some(width))
    )
    limit, offset = data.draw(st.sampled_from([0, 1, 3, None])), data.draw(st.sampled_from([0, 2]))
    check(executor, TopN(table, order, limit, offset, tuple(data.draw(some(width)))))


@FEW
@given(data=st.data())
def test_as_of_joins(executor: SparkExecutor, data: st.DataObject) -> None:
    key, other = data.draw(st.sampled_from([(T, T), (INT, D), (D, INT), (D, D)]))
    time = data.draw(st.sampled_from([TIME, D, T]))
    left, right = data.draw(tables(key, time, B)), data.draw(tables(time, INT, other))
    keys = ((0, 2),) if data.draw(st.booleans()) else ()
    kind = data.draw(st.sampled_from([JoinKind.INNER, JoinKind.LEFT]))
    check(executor, AsOfJoin(left, right, kind, 1, 0, data.draw(st.booleans()), keys))


@FEW
@given(data=st.data())
def test_set_operations(executor: SparkExecutor, data: st.DataObject) -> None:
    dtypes = data.draw(st.sampled_from([(INT,), (D, T), (B, B)]))
    left, right = data.draw(tables(*dtypes, size=12)), data.draw(tables(*dtypes, size=12))
    check(
        executor,
        SetOperation(
            left, right, data.draw(st.sampled_from(list(SetKind))), data.draw(st.booleans())
        ),
    )


@FEW
@given(data=st.data())
def test_windows_over_time(executor: SparkExecutor, data: st.DataObject) -> None:
    table = data.draw(tables(T, TIME, D))
    size, hop = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    check(executor, HopWindow(table, 1, size, hop, data.draw(st.integers(-3, 3))))
    check(executor, SessionWindow(table, 1, size, tuple(data.draw(some(3)))))


@FEW
@given(data=st.data())
def test_joins_with_predicates_in_python(executor: SparkExecutor, data: st.DataObject) -> None:
    left, right = data.draw(tables(INT, T)), data.draw(tables(INT, T))
    fields = (left.schema + right.schema).fields
    power = Call("POWER", (Column(0, fields[0].name, INT), Column(2, fields[2].name, INT)), D)
    residual = Call("<", (power, Literal(2.0, D)), B)
    keys = ((1, 1),) if data.draw(st.booleans()) else ()
    check(executor, Join(left, right, data.draw(st.sampled_from(list(JoinKind))), keys, residual))


@FEW
@given(data=st.data())
def test_aggregates_of_all_values(executor: SparkExecutor, data: st.DataObject) -> None:
    table = data.draw(tables(T, INT, D, B, size=12))
    distinct = data.draw(st.booleans())
    calls = [
        AggregateCall(f, (column(table, p),), f"{f}{p}", distinct) for f in SPREADS for p in (1, 2)
    ]
    calls += [
        AggregateCall(A.PERCENTILE_CONT, (column(table, p),), f"p{p}{q}", distinct, q)
        for p in (1, 2)
        for q in (0.0, 0.5, 0.9, 1.0)
    ]
    calls += [AggregateCall(A.ARRAY_AGG, (column(table, p),), f"a{p}", distinct) for p in range(4)]
    calls += [AggregateCall(f, (column(table, 3),), f, distinct) for f in (A.BOOL_AND, A.BOOL_OR)]
    group = data.draw(st.sampled_from([(), (0,)]))
    check(executor, Aggregate(table, group, tuple(calls)))


def test_variances_are_exact_where_doubles_cancel(executor: SparkExecutor) -> None:
    rows = ((1e16, 2**60), (1e16 + 2, 2**60 + 1), (1e16 + 10, 2**60 + 5), (1.7e308, 1))
    table = Values(rows, Schema.of(("x", D), ("y", INT)))
    near = Filter(table, Call("<", (column(table, 0), Literal(1e300, D)), B))
    calls = tuple(AggregateCall(f, (column(table, p),), f"{f}{p}") for f in SPREADS for p in (0, 1))
    check(executor, Aggregate(near, (), calls))
    check(executor, Aggregate(table, (), calls))


class Longest:
    """The longest text, of equal ones the last."""

    def init(self) -> list[str]:
        return []

    def step(self, state: list[str], text: str) -> list[str]:
        return [*state, text]

    def retract(self, state: list[str], text: str) -> list[str]:
        state.remove(text)
        return state

    def merge(self, state: list[str], other: list[str]) -> list[str]:
        return state + other

    def final(self, state: list[str]) -> str | None:
        return max(state, key=lambda text: (len(text), text), default=None)


def test_aggregates_of_the_user(executor: SparkExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(INSTALLED, "_modules", frozenset({__name__}))
    texts = ("a", "bcd", "bce", None, "x")
    table = Values(tuple((n % 2, t) for n, t in enumerate(texts)), Schema.of(("k", INT), ("t", T)))
    name = f"{__name__}:Longest"
    for distinct in (False, True):
        call = AggregateCall(
            A.USER, (column(table, 1),), "l", distinct, implementation=name, result=T
        )
        check(executor, Aggregate(table, (0,), (call,)))
        check(executor, Aggregate(Filter(table, Literal(False, B)), (), (call,)))


def test_a_plan_of_all_of_them(executor: SparkExecutor) -> None:
    rows = tuple((n % 3, "abc"[n % 2], 3 * n) for n in range(12))
    table = Values(rows, Schema.of(("k", INT), ("t", T), ("ts", TIME)))
    hop = HopWindow(table, 2, 10, 5)
    count = AggregateCall(A.COUNT_ALL, (), "n")
    grouped = Aggregate(hop, (0, 3), (count,))
    best = TopN(grouped, (SortKey(2, descending=True),), 2, partition=(0,))
    joined = Join(best, table, JoinKind.SEMI, ((0, 0),))
    check(executor, SetOperation(joined, Distinct(best), SetKind.INTERSECT))
    check(executor, TopN(SessionWindow(table, 2, 4, (1,)), (SortKey(0),), 3, 1))
    by_end = Aggregate(HopWindow(table, 2, 10, 10), (4,), (count,))
    for marks in ((), (("s", 20),), (("s", 30), ("t", 10))):
        progress = Values(marks, Schema.of(("site", T), ("watermark", TIME)))
        check(executor, OnClose(by_end, progress, 0))
