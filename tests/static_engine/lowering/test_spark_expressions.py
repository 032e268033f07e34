"""Every scalar function on Spark against its definition, on values that tend to differ."""

from itertools import product

import pytest
from pyspark.sql import functions as fn

from static_engine.evaluation.static_executor import StaticExecutor
from static_engine.lowering.spark_expressions import SUPPORTED, lower_expression
from static_engine.sources.table_locations import Locations
from static_engine.spark.spark_executor import SparkExecutor
from static_engine.spark.spark_session import RunningSpark
from static_engine.tables.table_store import TableStore
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    expression_text,
    shifted,
)
from streamsql.algebra.operators import Project, Values
from streamsql.algebra.scalar_functions.scalar import FUNCTIONS, compile_row
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

B, INT, D, T = DataType.BOOLEAN, DataType.INTEGER, DataType.DOUBLE, DataType.TEXT
TS, IV, N = DataType.TIMESTAMP, DataType.INTERVAL, DataType.NULL
LARGE = 2**53

BOOLEANS: list[Value] = [True, False, None]
INTEGERS: list[Value] = [0, 1, -1, 7, -7, 3, LARGE, LARGE + 1, 2**63 - 1, None]
DOUBLES: list[Value] = [
    0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 7.0, 2.675, 1e-5, 0.1, 0.3, 1e16, 1e22, 1.5e300, -1.5e300,
    5e-324, 1.7976931348623157e308, float(LARGE), 2.0**63,
    -(2.0**63), None,
]  # fmt: skip
TEXTS: list[Value] = [
    "", "a", "A", "ab", "b", "aba", "Straße", "ΣΑΣ", "é", "e\u0301", "😀x", "\uffee", " a\t",
    "\u00a0b ", "a%c", "a_c", "abc", "a\\c", "a\nc", "7", " 7 ", "+7", "1_000", "7.0", "1e3", "nan",
    "true", "T", "2026-01-01T00:00:01Z", "2026-01-01", "9223372036854775808", "x", None,
]  # fmt: skip


def column(position: int, dtype: DataType) -> Column:
    return Column(position, f"c{position}", dtype)


def compare_on(
    executor: StaticExecutor, schema: Schema, rows: list[Row], expressions: list[Expression]
) -> None:
    """Evaluate all expressions over all rows, once by definition and once by the executor."""
    number = Schema.of(("n", INT)) + schema
    numbered = tuple((n, *row) for n, row in enumerate(rows))
    moved = tuple(shifted(e, 1) for e in expressions)
    project = Project(
        Values(numbered, number),
        (column(0, INT), *moved),
        tuple(str(i) for i in range(len(moved) + 1)),
    )
    make = compile_row(project.expressions)
    found = {row[0]: row for row in executor.evaluate(project)}
    assert len(found) == len(rows)
    wrong = []
    for row in numbered:
        expected = make(row)
        for expression, want, got in zip(expressions, expected[1:], found[row[0]][1:], strict=True):
            if not _same(want, got, expression.dtype):
                wrong.append(f"{expression_text(expression)} on {row[1:]}: {got!r}, not {want!r}")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:40])


def _same(want: Value, got: Value, dtype: DataType) -> bool:
    if isinstance(want, int) and not isinstance(want, bool) and not -(2**63) <= want < 2**63:
        return got is None  # no value of the type: NULL
    if want is None or got is None:
        return want is got
    if dtype == D:
        return float(want) == got and isinstance(got, float)
    return want == got and type(want) is type(got)


@pytest.fixture(scope="module")
def executor(spark: RunningSpark, tmp_path_factory: pytest.TempPathFactory) -> SparkExecutor:
    folder = tmp_path_factory.mktemp("tables")
    return SparkExecutor(spark, TableStore(Locations(folder), folder / "snapshots"))


def calls(names: str, dtype: DataType, *arguments: Expression) -> list[Expression]:
    return [Call(name, arguments, dtype) for name in names.split()]


def test_every_function_is_lowered() -> None:
    assert set(FUNCTIONS) <= SUPPORTED


def test_numbers_in_pairs(executor: SparkExecutor) -> None:
    rows: list[Row] = list(product(INTEGERS, DOUBLES))
    i, d = column(0, INT), column(1, D)
    expressions: list[Expression] = []
    for left, right in ((i, d), (d, i), (d, Literal(3, INT)), (Literal(LARGE + 1, INT), d)):
        expressions += calls("= <> < <= > >=", B, left, right)
        expressions += calls("+ - * / %", D, left, right)
        expressions += calls("LEAST GREATEST POWER", D, left, right)
    expressions += calls("DISTANCE", D, i, d, d, i)
    expressions += calls("DISTANCE", D, i, d, i, d, i, Literal(0.1, D))
    expressions += [Call("IN", (i, d, Literal(7, INT), Literal(None, N)), B)]
    expressions += [Call("IN", (i, Literal(1, INT), Literal(7, INT)), B)]
    expressions += [Call("IN", (d, Literal(0.5, D), Literal(None, D)), B)]
    expressions += [Call("IN", (Literal(None, N), i), B)]
    expressions += [Call("COALESCE", (i, d), D), Call("COALESCE", (Literal(None, N), i), INT)]
    expressions += [Call("+", (i, Literal(None, N)), INT)]
    compare_on(executor, Schema.of(("i", INT), ("d", D)), rows, expressions)


def test_integers_and_times(executor: SparkExecutor) -> None:
    edge = [*INTEGERS, 2**63 - 1, -(2**63), 1_767_225_601_000_000]
    rows: list[Row] = list(product(edge, edge))
    a, b = column(0, INT), column(1, INT)
    expressions = calls("= <> < <= > >=", B, a, b) + calls("+ - * / %", INT, a, b)
    expressions += calls("LEAST GREATEST", INT, a, b) + calls("||", T, a, b)
    for one in (a, b):
        expressions += calls("NEGATE ABS", INT, one) + calls("ROUND FLOOR CEIL SQRT", D, one)
        expressions += [Call("CAST", (one,), t) for t in (B, INT, D, T, TS, IV)]
        expressions += [Call("IS NULL", (one,), B)]
    t, v = column(0, TS), column(1, IV)
    expressions += [*calls("+ -", TS, t, v), Call("-", (t, column(1, TS)), IV)]
    expressions += [
        Call("/", (v, a), IV),
        Call("*", (v, a), IV),
        Call("/", (v, column(0, IV)), INT),
    ]
    expressions += [Call("CAST", (x,), to) for x in (t, v) for to in (INT, D, T, TS, IV)]
    compare_on(executor, Schema.of(("a", INT), ("b", INT)), rows, expressions)


def test_doubles_alone(executor: SparkExecutor) -> None:
    d = column(0, D)
    expressions = calls("NEGATE ABS ROUND FLOOR CEIL SQRT", D, d)
    expressions += [Call("ROUND", (d, Literal(n, INT)), D) for n in (-2, 0, 1, 2, 5)]
    expressions += [Call("CAST", (d,), t) for t in (B, INT, D, T, TS, IV)]
    expressions += calls("||", T, d, Literal("!", T))
    compare_on(executor, Schema.of(("d", D)), [(v,) for v in DOUBLES], expressions)


def test_texts(executor: SparkExecutor) -> None:
    t = column(0, T)
    expressions = calls("LOWER UPPER TRIM", T, t) + calls("LENGTH", INT, t)
    expressions += [Call("IS NOT NULL", (t,), B)]
    expressions += [Call("CAST", (t,), to) for to in (B, INT, D, T, TS, IV)]
    for start in (-2, 0, 1, 2, 9, 2**40, -(2**40), None):
        expressions.append(Call("SUBSTRING", (t, Literal(start, INT)), T))
        for length in (-1, 0, 1, 3, 2**40, None):
            expressions.append(Call("SUBSTRING", (t, Literal(start, INT), Literal(length, INT)), T))
    patterns = ("%", "", "a%", "%c", "a_c", "a\\c", "a\\%c", "\\", "_", "%ß%", "a.c", "A", "_x")
    expressions += [Call("LIKE", (t, Literal(p, T)), B) for p in patterns]
    compare_on(executor, Schema.of(("t", T)), [(v,) for v in TEXTS], expressions)


def test_hostile_patterns_end(executor: SparkExecutor) -> None:
    """A matcher that backtracks takes 10**20 steps for the first pattern."""
    t, pattern = column(0, T), column(1, T)
    hostile = ["%a%a%a%a%a%a%a%ab", "a%" * 100 + "b", "%_a%_a%_a%_a%_a%_a%b%a", "%ab%ab%a%"]
    hostile.append("%" + "a" * 2_000 + "b%")
    rows: list[Row] = [(text, p) for text in ("a" * 5_000, "ab" * 2_500) for p in hostile]
    expressions: list[Expression] = [Call("LIKE", (t, Literal(p, T)), B) for p in hostile]
    expressions.append(Call("LIKE", (t, pattern), B))
    compare_on(executor, Schema.of(("t", T), ("p", T)), rows, expressions)


def test_texts_do_not_grow_without_bound(executor: SparkExecutor) -> None:
    t, n = column(0, T), column(1, INT)
    long = Call("REPEAT", (t, n), T)
    sizes = [
        Call("||", (long, long), T),
        Call("REPLACE", (long, Literal("a", T), Literal("bb", T)), T),
        Call("REPLACE", (long, t, Literal("bb", T)), T),
        Call("REPLACE", (long, Literal("", T), t), T),
        Call("REPLACE", (t, long, long), T),
    ]
    rows: list[Row] = [("a", 1), ("a", 500_000), ("a", 500_001), ("ab", 400_000), ("", 1)]
    expressions: list[Expression] = [Call("LENGTH", (size,), INT) for size in sizes]
    compare_on(executor, Schema.of(("t", T), ("n", INT)), rows, expressions)


def nested(name: str, leaf: Column, times: int, *more: Expression) -> Expression:
    """Return a call of a call of a call …: `leaf + leaf + leaf`."""
    expression: Expression = leaf
    for _ in range(times):
        expression = Call(name, (expression, *more, leaf), leaf.dtype)
    return expression


def test_calls_within_calls_do_not_double(executor: SparkExecutor) -> None:
    """Each mention of an argument would otherwise be a copy of all that is within."""
    t, x, n = column(0, T), column(1, D), column(2, INT)
    deep = [nested(name, x, 24) for name in ("+", "*", "-", "LEAST")]
    deep += [nested(name, n, 60) for name in ("+", "-")]
    deep += [nested("||", t, 60), nested("REPLACE", t, 10, Literal("x", T))]
    upper: Expression = t
    for _ in range(12):
        upper = Call("UPPER", (Call("||", (upper, t), T),), T)
    rows: list[Row] = [("ax", 1.5, 3), ("", -0.25, -7), (None, None, None), ("xx", 1e300, 2**61)]
    schema = Schema.of(("t", T), ("x", D), ("n", INT))
    compare_on(executor, schema, rows, [*deep, upper])
    size = len(str(lower_expression(nested("REPLACE", t, 20, Literal("x", T)), [fn.col("t")])))
    assert size < 100_000


def test_texts_in_pairs(executor: SparkExecutor) -> None:
    rows: list[Row] = list(product(TEXTS, TEXTS))
    a, b = column(0, T), column(1, T)
    expressions = calls("= <> < <= > >=", B, a, b) + calls("|| LEAST GREATEST", T, a, b)
    expressions += calls("POSITION", INT, a, b) + calls("LIKE", B, a, b)
    for old, new in ((a, b), (Literal("a", T), b), (a, Literal("-", T)), (Literal("", T), b)):
        expressions.append(Call("REPLACE", (b, old, new), T))
        expressions.append(Call("REPLACE", (a, old, new), T))
    expressions.append(Call("IN", (a, b, Literal("a", T)), B))
    compare_on(executor, Schema.of(("a", T), ("b", T)), rows, expressions)


def test_long_lists(executor: SparkExecutor) -> None:
    i, d, t = column(0, INT), column(1, D), column(2, T)
    rows: list[Row] = list(product([0, 7, 29_999, -1, None], [0.5, 2.0, None], ["x7", "y", None]))
    numbers = [Literal(n, INT) for n in range(30_000)]
    expressions: list[Expression] = [
        Call("IN", (i, *numbers), B),
        Call("IN", (d, *[Literal(n / 2, D) for n in range(1_000)]), B),
        Call("IN", (t, *[Literal(f"x{n}", T) for n in range(1_000)]), B),
        Call("IN", (i, *numbers[:300], Literal(None, INT)), B),
        Call("IN", (d, *numbers[:300]), B),
    ]
    compare_on(executor, Schema.of(("i", INT), ("d", D), ("t", T)), rows, expressions)


def test_three_valued_logic(executor: SparkExecutor) -> None:
    rows: list[Row] = list(product(BOOLEANS, BOOLEANS, [1, None]))
    a, b, i = column(0, B), column(1, B), column(2, INT)
    expressions = calls("AND OR = <> < <= > >= LEAST GREATEST", B, a, b)
    expressions += [Call("AND", (a, Literal(None, N)), B), Call("OR", (a, b, Literal(None, N)), B)]
    expressions += [*calls("NOT", B, a), Call("NOT", (Literal(None, N),), B)]
    expressions += [Call("CAST", (a,), t) for t in (B, INT, D, T, TS, IV)]
    expressions += calls("||", T, a, i)
    zero, null = Literal(0, INT), Literal(None, N)
    expressions += [
        Call("CASE", (a, i, b, zero, null), INT),
        Call("CASE", (null, i, Call("=", (i, zero), B), null, Literal(2.5, D)), D),
        Call("COALESCE", (a, b, Literal(True, B)), B),
        Call("CASE", (a, Call("/", (i, zero), INT), i), INT),
    ]
    compare_on(executor, Schema.of(("a", B), ("b", B), ("i", INT)), rows, expressions)


def test_functions_that_python_workers_run(executor: SparkExecutor) -> None:
    rows: list[Row] = list(product([-3, 0, 2, None], [-2.5, 0.5, 3.0, None], ["", "ab-b", None]))
    i, d, t = column(0, INT), column(1, D), column(2, T)
    at = Call("TO_TIMESTAMP", (d,), TS)
    expressions = calls("LN LOG EXP CBRT SIN COS TAN COT ASIN ATANH ACOSH DEGREES TRUNC", D, d)
    expressions += [*calls("SIGN", INT, i), *calls("SIGN", D, d), *calls("ATAN2 LOG", D, d, i)]
    expressions += calls("LTRIM RTRIM REVERSE INITCAP", T, t) + calls("ASCII OCTET_LENGTH", INT, t)
    expressions += calls("LEFT RIGHT REPEAT LPAD RPAD", T, t, i) + calls("BTRIM", T, t, t)
    expressions += [Call("SPLIT_PART", (t, Literal("-", T), i), T)]
    expressions += calls("STARTS_WITH ENDS_WITH", B, t, Literal("a", T))
    expressions += [Call("LIKE ESCAPE", (t, Literal("a!b%", T), Literal("!", T)), B)]
    expressions += [at, Call("TIMESTAMP TEXT", (at,), T)]
    expressions += [Call("EXTRACT", (Literal("SECOND", T), at), D)]
    expressions += [Call("EXTRACT", (Literal("DOW", T), at), INT)]
    expressions += [Call("DATE_TRUNC", (Literal("WEEK", T), at), TS)]
    expressions += [Call("DATE_BIN", (Literal(5_000_000, IV), at), TS)]
    compare_on(executor, Schema.of(("i", INT), ("d", D), ("t", T)), rows, expressions)
