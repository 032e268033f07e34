"""Plans on Spark against the reference evaluator."""

import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from static_engine.evaluation.static_executor import EvaluationError
from static_engine.sources.table_locations import Locations
from static_engine.spark.row_bounds import rows_at_most
from static_engine.spark.spark_executor import SparkExecutor
from static_engine.spark.spark_session import RunningSpark
from static_engine.tables.table_store import TableStore
from streamsql.algebra.explain import explain_plan
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    RemoteSource,
    Scan,
    SourceKind,
    UnionAll,
    Values,
    Window,
    WindowKind,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Value
from streamsql.errors import UnsupportedError
from streamsql.reference import Database, evaluate

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

B, INT, D, T = DataType.BOOLEAN, DataType.INTEGER, DataType.DOUBLE, DataType.TEXT
A = AggregateFunction

VALUES: dict[DataType, list[Value]] = {
    B: [True, False, None],
    INT: [0, 1, -3, 2**53 + 1, None],
    D: [0.0, -0.0, 0.1, -3.0, 1e16, float(2**53), None],
    T: ["", "a", "ab", "é", "\uffee", "😀", None],
}
AGGREGATES: dict[DataType, list[AggregateFunction]] = {
    B: [A.COUNT, A.MIN, A.MAX],
    INT: [A.COUNT, A.SUM, A.AVG, A.MIN, A.MAX],
    D: [A.COUNT, A.SUM, A.AVG, A.MIN, A.MAX],
    T: [A.COUNT, A.MIN, A.MAX],
}


@pytest.fixture(scope="module")
def executor(spark: RunningSpark, tmp_path_factory: pytest.TempPathFactory) -> SparkExecutor:
    folder = tmp_path_factory.mktemp("tables")
    return SparkExecutor(spark, TableStore(Locations(folder), folder / "snapshots"))


def check(executor: SparkExecutor, plan: Plan) -> None:
    expected = evaluate(plan, Database(), 0)
    found = executor.evaluate(plan)
    assert found == expected, explain_plan(plan)
    assert sum(expected.values()) <= rows_at_most(plan, lambda _: math.inf), explain_plan(plan)
    for row in found:
        for value, dtype in zip(row, plan.schema.dtypes, strict=True):
            if value is not None:
                assert type(value) is {B: bool, INT: int, D: float, T: str}[dtype]


def column(plan: Plan, position: int) -> Column:
    field = plan.schema.fields[position]
    return Column(position, field.name, field.dtype)


def relation(*rows: tuple[Value, ...], types: str = "iidt") -> Values:
    kinds = {"i": INT, "d": D, "t": T, "b": B}
    return Values(rows, Schema.of(*((f"{k}{n}", kinds[k]) for n, k in enumerate(types))))


@st.composite
def tables(draw: st.DrawFn) -> Plan:
    dtypes = draw(st.lists(st.sampled_from([B, INT, D, T]), min_size=1, max_size=3))
    rows = draw(st.lists(st.tuples(*(st.sampled_from(VALUES[d]) for d in dtypes)), max_size=7))
    return Values(tuple(rows), Schema.of(*((f"v{n}", d) for n, d in enumerate(dtypes))))


@st.composite
def predicates(draw: st.DrawFn, schema: Schema) -> Expression:
    position = draw(st.integers(0, len(schema) - 1))
    dtype = schema.dtypes[position]
    one = Column(position, schema.names[position], dtype)
    alike = [
        Column(n, schema.names[n], d)
        for n, d in enumerate(schema.dtypes)
        if d == dtype or (d.is_numeric and dtype.is_numeric)
    ]
    other = draw(
        st.one_of(
            st.sampled_from(alike), st.sampled_from(VALUES[dtype]).map(lambda v: Literal(v, dtype))
        )
    )
    test: Expression = Call(draw(st.sampled_from(["=", "<>", "<", ">="])), (one, other), B)
    wrap = draw(st.sampled_from(["", "NOT", "IS NULL"]))
    return Call(wrap, (test,), B) if wrap else test


@st.composite
def aggregates(draw: st.DrawFn, child: Plan) -> Plan:
    width = len(child.schema)
    positions = st.integers(0, width - 1)
    group = tuple(draw(st.lists(positions, max_size=2, unique=True)))
    calls = []
    for number in range(draw(st.integers(0, 3))):
        argument, by = column(child, draw(positions)), column(child, draw(positions))
        function = draw(
            st.sampled_from([*AGGREGATES[argument.dtype], A.COUNT_ALL, A.ARG_MIN, A.ARG_MAX])
        )
        arguments = {A.COUNT_ALL: (), A.ARG_MIN: (argument, by), A.ARG_MAX: (argument, by)}
        distinct = function in AGGREGATES[argument.dtype] and draw(st.booleans())
        calls.append(
            AggregateCall(function, arguments.get(function, (argument,)), f"a{number}", distinct)
        )
    return Aggregate(child, group, tuple(calls))


@st.composite
def joins(draw: st.DrawFn, left: Plan, right: Plan) -> Plan:
    pairs = [
        (a, b)
        for a, x in enumerate(left.schema.dtypes)
        for b, y in enumerate(right.schema.dtypes)
        if x == y or (x.is_numeric and y.is_numeric)
    ]
    keys = tuple(draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True))) if pairs else ()
    schema = left.schema + right.schema
    residual = draw(st.none() | predicates(schema)) if len(schema) else None
    return Join(left, right, draw(st.sampled_from(list(JoinKind))), keys, residual)


@st.composite
def plans(draw: st.DrawFn, depth: int = 3) -> Plan:
    if not depth:
        return draw(tables())
    child = draw(plans(depth - 1))
    width = len(child.schema)
    kind = draw(st.sampled_from(["filter", "project", "join", "aggregate", "distinct", "union"]))
    if kind == "distinct" or (not width and kind in ("filter", "aggregate")):
        return Distinct(child)
    if kind == "filter":
        return Filter(child, draw(predicates(child.schema)))
    if kind == "project":
        kept = draw(st.lists(st.integers(0, width - 1), max_size=3)) if width else []
        columns = tuple(column(child, position) for position in kept)
        return Project(child, columns, tuple(f"p{n}" for n in range(len(kept))))
    if kind == "join":
        return draw(joins(child, draw(plans(depth - 2 if depth > 1 else 0))))
    if kind == "aggregate":
        return draw(aggregates(child))
    return UnionAll((child, draw(st.sampled_from([child, Distinct(child)]))))


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(plan=plans())
def test_any_plan_gives_what_the_language_says(executor: SparkExecutor, plan: Plan) -> None:
    check(executor, plan)


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_aggregate_gives_what_the_language_says(
    executor: SparkExecutor, data: st.DataObject
) -> None:
    check(executor, data.draw(aggregates(data.draw(tables()))))


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_join_gives_what_the_language_says(
    executor: SparkExecutor, data: st.DataObject
) -> None:
    check(executor, data.draw(joins(data.draw(tables()), data.draw(tables()))))


def test_sums_are_exact_in_any_order(executor: SparkExecutor) -> None:
    numbers = [1e16, 1.0, -1e16, 0.1, 1e300, 1e-300, -1e300, 0.2]
    table = relation(*((k, n) for n in numbers for k in ("x", "y")), types="td")
    calls = (
        AggregateCall(A.SUM, (column(table, 1),), "s"),
        AggregateCall(A.AVG, (column(table, 1),), "m"),
    )
    check(executor, Aggregate(table, (0,), calls))
    huge = relation(("x", 1.7e308), ("x", 1.7e308), ("y", 1.7e308), ("y", -1.7e308), types="td")
    check(executor, Aggregate(huge, (0,), calls))


def test_zero_counts_once_among_distinct_numbers(executor: SparkExecutor) -> None:
    table = relation((0.0,), (-0.0,), (3.0,), (3.0,), types="d")
    number = (column(table, 0),)
    calls = tuple(AggregateCall(f, number, f.name, distinct=True) for f in (A.AVG, A.SUM, A.COUNT))
    assert executor.evaluate(Aggregate(table, (), calls)) == {(1.5, 3.0, 2): 1}
    check(executor, Aggregate(table, (), calls))


def test_integer_sums_beyond_64_bits_are_null_and_do_not_wrap(executor: SparkExecutor) -> None:
    table = relation((1, 2**63 - 1), (1, 1), (2, 2**63 - 1), (2, 5), (2, -5), types="ii")
    total = AggregateCall(A.SUM, (column(table, 1),), "s")
    found = executor.evaluate(Aggregate(table, (0,), (total,)))
    assert found == {(1, None): 1, (2, 2**63 - 1): 1}


@pytest.mark.parametrize("function", [A.ARG_MIN, A.ARG_MAX])
@pytest.mark.parametrize("by", range(4))
@pytest.mark.parametrize("value", [0, 3])
def test_arguments_of_extremes_break_ties_by_least_value(
    executor: SparkExecutor, function: AggregateFunction, by: int, value: int
) -> None:
    table = Values(
        tuple(
            (i, d, t, b)
            for i, d, t, b in zip(
                [5, 5, -2, None, -2, 2**62],
                [0.0, -0.0, 0.5, None, -1e300, 0.5],
                ["a", "ab", "", None, "ab", "\uffee"],
                [True, None, False, True, False, True],
                strict=True,
            )
        ),
        Schema.of(("i", INT), ("d", D), ("t", T), ("b", B)),
    )
    call = AggregateCall(function, (column(table, value), column(table, by)), "x")
    check(executor, Aggregate(table, (), (call,)))


def test_nulls_never_join_but_group_together(executor: SparkExecutor) -> None:
    left = relation((1, None), (2, "a"), (None, "b"), types="it")
    right = relation((None, 7), ("a", 8), ("a", 8), types="ti")
    for kind in JoinKind:
        check(executor, Join(left, right, kind, ((1, 0),)))
        check(executor, Join(left, right, kind))
    counted = AggregateCall(A.COUNT_ALL, (), "n")
    check(executor, Aggregate(UnionAll((left, left)), (0,), (counted,)))


def test_a_table_joins_itself(executor: SparkExecutor) -> None:
    table = relation((1, 2), (2, 3), (2, 3), types="ii")
    check(
        executor,
        Join(Join(table, table, JoinKind.INNER, ((1, 0),)), table, JoinKind.LEFT, ((3, 0),)),
    )


def test_large_integers_join_doubles_exactly(executor: SparkExecutor) -> None:
    integers = relation((2**53,), (2**53 + 1,), (2**63 - 1,), (0,), types="i")
    doubles = relation((float(2**53),), (float(2**63),), (-0.0,), types="d")
    check(executor, Join(integers, doubles, JoinKind.INNER, ((0, 0),)))
    check(executor, Join(doubles, integers, JoinKind.LEFT, ((0, 0),)))


def test_rows_without_columns_are_counted(executor: SparkExecutor) -> None:
    empty = Project(relation((1,), (2,), (2,), types="i"), (), ())
    for plan in (empty, Distinct(empty), UnionAll((empty, empty))):
        check(executor, plan)
    for kind in JoinKind:
        check(executor, Join(empty, relation((1,), types="i"), kind))
        check(executor, Join(relation((1,), types="i"), empty, kind))
        check(executor, Join(empty, empty, kind))
    check(executor, Aggregate(empty, (), (AggregateCall(A.COUNT_ALL, (), "n"),)))
    check(executor, Aggregate(Filter(empty, Literal(False, B)), (), ()))


LINKS = Scan("links", SourceKind.LINK, Schema.of(("a", INT)))


@pytest.mark.parametrize(
    "plan",
    [
        LINKS,
        Distinct(RemoteSource("f1", Schema.of(("a", INT)))),
        Window(LINKS, WindowKind.NOW),
    ],
)
def test_what_belongs_into_the_stream_engine_is_refused(
    executor: SparkExecutor, plan: Plan
) -> None:
    with pytest.raises(UnsupportedError, match="the static engine has no streams"):
        executor.evaluate(plan)


def test_a_result_too_large_is_refused(spark: RunningSpark, tmp_path: Path) -> None:
    store = TableStore(Locations(tmp_path), tmp_path / "snapshots")
    executor = SparkExecutor(spark, store, max_result_rows=2)
    with pytest.raises(EvaluationError, match="more than 2 rows"):
        executor.evaluate(relation((1,), (2,), (3,), types="i"))
