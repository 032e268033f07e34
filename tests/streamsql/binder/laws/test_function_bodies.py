"""Functions and aggregates whose body is an expression: what a call becomes, and what is refused.

`test_function_bodies_against_duckdb` compares their answers with macros of DuckDB.
"""

from contextlib import closing

import duckdb
import msgspec
import pytest

from streamsql.algebra.expressions import expression_text, walk
from streamsql.algebra.operators import Aggregate, Plan, Project, walk_plan
from streamsql.binder import define
from streamsql.binder.expressions.function_bodies import MAX_LEVELS, MAX_NESTING, MAX_PARTS
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.functions import FunctionDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import DataType, Row
from streamsql.errors import QueryError, QuerySyntaxError
from streamsql.reference import Database, evaluate
from streamsql.syntax import CreateFunction, parse_script, parse_statement
from tests import user_aggregates
from tests.streamsql.from_text import bound_query, catalog_of, unmarked

SCRIPT = """
CREATE TABLE t (k TEXT, x DOUBLE, w DOUBLE, n INTEGER);
CREATE FUNCTION fahrenheit(celsius DOUBLE) RETURNS DOUBLE AS (celsius * 1.8 + 32);
CREATE FUNCTION known(v DOUBLE, d DOUBLE) RETURNS DOUBLE CALLED ON NULL INPUT AS (COALESCE(v, d));
CREATE FUNCTION first_of(v DOUBLE, d DOUBLE) RETURNS DOUBLE AS (COALESCE(v, d));
CREATE AGGREGATE spread(value DOUBLE) RETURNS DOUBLE AS (MAX(value) - MIN(value));
CREATE AGGREGATE weighted_mean(value DOUBLE, weight DOUBLE) RETURNS DOUBLE AS
    (SUM(value * weight) / SUM(weight));
CREATE AGGREGATE rows_of(value DOUBLE) RETURNS INTEGER AS (COUNT(*));
CREATE AGGREGATE share(value DOUBLE) RETURNS DOUBLE AS
    (COUNT(*) FILTER (WHERE value > 2) * 1.0 / COUNT(*));
CREATE AGGREGATE every_row(value DOUBLE) RETURNS INTEGER CALLED ON NULL INPUT AS (COUNT(*));
CREATE AGGREGATE of_both(a DOUBLE, b DOUBLE) RETURNS INTEGER AS (COUNT(*));
CREATE AGGREGATE present(a DOUBLE) RETURNS INTEGER AS (COUNT(SQRT(a)));
CREATE AGGREGATE last_known(value DOUBLE, at INTEGER) RETURNS DOUBLE AS (ARG_MAX(value, at));
CREATE AGGREGATE middle(value DOUBLE) RETURNS DOUBLE AS (MEDIAN(value));
CREATE AGGREGATE added(value DOUBLE) RETURNS DOUBLE AS (SUM(value));
CREATE AGGREGATE hot(celsius DOUBLE) RETURNS DOUBLE AS
    (CASE WHEN rows_of(celsius) > 1 THEN fahrenheit(spread(celsius + 1)) END);
"""
ROWS: list[Row] = [
    ("a", 1.0, 2.0, 1),
    ("a", 3.0, None, 2),
    ("a", 3.0, 1.0, 3),
    ("a", None, 5.0, 4),
    ("b", 4.0, 0.5, 5),
    ("b", None, None, 6),
]
CATALOG = catalog_of(SCRIPT)
MAX_MIN_N = ["MAX(CASE(x > 1, n, NULL))", "MIN(CASE(x > 1, n, NULL))"]


def create(text: str, catalog: Catalog) -> FunctionDefinition:
    statement = parse_statement(f"CREATE {text}")
    assert isinstance(statement, CreateFunction)
    made = define(statement, catalog)
    assert isinstance(made, FunctionDefinition)
    catalog.define(made)
    return made


def refused(text: str, catalog: Catalog = CATALOG) -> QueryError:
    with pytest.raises(QueryError) as caught:
        bound_query(text, catalog)
    return caught.value


def answer(text: str, catalog: Catalog = CATALOG) -> list[Row]:
    database = Database()
    database.append("t", [SourceEvent(row, ts=0) for row in ROWS])
    found = evaluate(bound_query(text, catalog).plan, database, 0)
    return sorted((row for row, count in found.items() for _ in range(count)), key=repr)


def parts(text: str) -> list[str]:
    """Return the aggregates that a query computes, as text."""
    calls = [c for n in walk_plan(plan_of(text)) if isinstance(n, Aggregate) for c in n.aggregates]
    words = [", ".join(map(expression_text, c.arguments)) for c in calls]
    return [
        f"{c.function.value}({'DISTINCT ' if c.distinct else ''}{w})"
        for c, w in zip(calls, words, strict=True)
    ]


def plan_of(text: str) -> Plan:
    return bound_query(text, CATALOG).plan


def test_a_definition_keeps_its_body() -> None:
    found = CATALOG.find("weighted_mean")
    assert isinstance(found, FunctionDefinition)
    assert found.usage == "weighted_mean(value DOUBLE, weight DOUBLE) RETURNS DOUBLE"
    assert found.code == "(SUM(value * weight) / SUM(weight))"
    assert found.implementation == ""
    found.check_installed()
    wire = msgspec.json.encode(found)
    assert msgspec.json.decode(wire, type=FunctionDefinition) == found
    commented = create("FUNCTION c(x DOUBLE) RETURNS DOUBLE AS (x -- as is\n + 1)", catalog_of())
    assert commented.code == "(x -- as is\n + 1)"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("spread(x)", ["MAX(x)", "MIN(x)"]),
        ("spread(x), MAX(x), spread(x) * 2", ["MAX(x)", "MIN(x)"]),
        ("AVG(x), rows_of(x)", ["AVG(x)", "COUNT(x)"]),
        ("weighted_mean(x, w)", ["SUM(x * w)", "SUM(CASE(x IS NOT NULL, w, NULL))"]),
        ("share(x)", ["COUNT(CASE(x > 2, 1, NULL))", "COUNT(x)"]),
        ("every_row(x)", ["COUNT(*)()"]),
        ("of_both(x, w)", ["COUNT(CASE(w IS NOT NULL, x, NULL))"]),
        ("last_known(x, n)", ["ARG_MAX(x, CASE(x IS NOT NULL, n, NULL))"]),
        ("spread(x) FILTER (WHERE n > 1)", [f"{f}(CASE(n > 1, x, NULL))" for f in ("MAX", "MIN")]),
        ("every_row(x) FILTER (WHERE n > 1)", ["COUNT(CASE(n > 1, 1, NULL))"]),
        (
            "share(x) FILTER (WHERE n > 1)",
            ["COUNT(CASE((n > 1) AND (x > 2), 1, NULL))", "COUNT(CASE(n > 1, x, NULL))"],
        ),
        ("spread(DISTINCT x)", ["MAX(x)", "MIN(x)"]),
        ("rows_of(DISTINCT x)", ["COUNT(DISTINCT x)"]),
        ("middle(DISTINCT x)", ["PERCENTILE_CONT(DISTINCT x)"]),
        ("present(DISTINCT x)", ["COUNT(DISTINCT CASE(SQRT(x) IS NOT NULL, x, NULL))"]),
        ("hot(x)", ["COUNT(x)", "MAX(x + 1)", "MIN(x + 1)"]),
        ("spread(n), MAX(n)", ["MAX(n)", "MIN(n)"]),
        ("spread(n) FILTER (WHERE x > 1), rows_of(n)", [*MAX_MIN_N, "COUNT(n)"]),
        ("added(n)", ["SUM(CAST(n AS DOUBLE))"]),
        ("middle(n)", ["PERCENTILE_CONT(CAST(n AS DOUBLE))"]),
    ],
)
def test_a_call_becomes_plain_aggregates(call: str, expected: list[str]) -> None:
    """Conditions stand only where rows would not be skipped anyway, so others share the parts."""
    assert parts(f"SELECT {call} FROM t") == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("fahrenheit(x)", "(x * 1.8) + 32"),
        ("fahrenheit(n)", "(CAST(n AS DOUBLE) * 1.8) + 32"),
        ("known(x, w)", "COALESCE(x, w)"),
        ("first_of(x, w)", "CASE(x IS NOT NULL AND w IS NOT NULL, COALESCE(x, w), NULL)"),
        ("first_of(x, 1)", "CASE(x IS NOT NULL, COALESCE(x, 1.0), NULL)"),
        ("first_of(x, x)", "CASE(x IS NOT NULL, COALESCE(x, x), NULL)"),
        ("first_of(x, NULL)", "NULL"),
        ("fahrenheit(fahrenheit(x))", "(((x * 1.8) + 32) * 1.8) + 32"),
    ],
)
def test_a_function_is_its_body_over_the_arguments(call: str, expected: str) -> None:
    plan = plan_of(f"SELECT {call} AS c FROM t")
    assert isinstance(plan, Project)
    assert expression_text(plan.expressions[0]) == expected
    assert plan.schema.fields[0].dtype == DataType.DOUBLE


def test_arguments_keep_the_names_of_the_caller() -> None:
    """A parameter may be called as a column, and an argument as another parameter."""
    catalog = catalog_of("CREATE TABLE t (k TEXT, x DOUBLE, w DOUBLE, n INTEGER)")
    create("FUNCTION minus(x DOUBLE, w DOUBLE) RETURNS DOUBLE AS (x - w)", catalog)
    create("AGGREGATE apart(x DOUBLE, w DOUBLE) RETURNS DOUBLE AS (MAX(x) - MAX(w))", catalog)
    assert answer("SELECT minus(w, x) FROM t WHERE n = 1", catalog) == [(1.0,)]
    assert answer("SELECT minus(minus(w, x), n) FROM t WHERE n = 1", catalog) == [(0.0,)]
    assert answer("SELECT apart(w, x) FROM t WHERE k = 'a'", catalog) == [(-1.0,)]
    inner = "(SELECT MAX(minus(u.x, t.x)) FROM t u WHERE u.k = t.k)"
    assert answer(f"SELECT {inner} FROM t WHERE n = 1", catalog) == [(2.0,)]


def test_over_no_rows_and_in_correlated_subqueries() -> None:
    query = "SELECT t.n, (SELECT rows_of(u.x) + 1 FROM t u WHERE u.n > t.n) FROM t WHERE n > 4"
    assert answer(query) == [(5, 1), (6, 1)]
    assert answer("SELECT spread(x), rows_of(x) FROM t WHERE k = 'z'") == [(None, 0)]
    assert answer("SELECT n FROM t WHERE x > (SELECT spread(u.x) FROM t u WHERE u.k = t.k)") == [
        (2,),
        (3,),
        (5,),
    ]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            "SELECT n, spread(x) OVER (PARTITION BY k) FROM t",
            "SELECT n, MAX(x) OVER (PARTITION BY k) - MIN(x) OVER (PARTITION BY k) FROM t",
        ),
        (
            "SELECT n, weighted_mean(x, w) OVER (ORDER BY n ROWS 2 PRECEDING) AS m FROM t",
            "SELECT n, SUM(x * w) OVER z / SUM(w) FILTER (WHERE x IS NOT NULL) OVER z FROM t "
            "WINDOW z AS (ORDER BY n ROWS 2 PRECEDING)",
        ),
        (
            "SELECT n, share(x) FILTER (WHERE n <> 2) OVER (ORDER BY n) AS m FROM t",
            "SELECT n, COUNT(*) FILTER (WHERE x > 2 AND n <> 2) OVER (ORDER BY n) * 1.0 / "
            "COUNT(*) FILTER (WHERE x IS NOT NULL AND n <> 2) OVER (ORDER BY n) FROM t",
        ),
        (
            "SELECT k, spread(n), spread(n) OVER () FROM t GROUP BY k, n",
            "SELECT k, MAX(n) - MIN(n) + 0.0, MAX(n) OVER () - MIN(n) OVER () + 0.0 FROM t "
            "GROUP BY k, n",
        ),
        (
            "SELECT k, spread(SUM(x)) OVER () FROM t GROUP BY k",
            "SELECT k, MAX(SUM(x)) OVER () - MIN(SUM(x)) OVER () FROM t GROUP BY k",
        ),
        (
            "SELECT n FROM t QUALIFY spread(w) OVER (PARTITION BY k) > 2",
            "SELECT n FROM t QUALIFY MAX(w) OVER (PARTITION BY k) - MIN(w) OVER (PARTITION BY k) "
            "> 2",
        ),
        (
            "SELECT k, spread(x) AS s FROM t GROUP BY k ORDER BY spread(x) DESC LIMIT 1",
            "SELECT k, MAX(x) - MIN(x) AS s FROM t GROUP BY k ORDER BY s DESC LIMIT 1",
        ),
        (
            "SELECT k, spread(x) FROM t GROUP BY ROLLUP (k) HAVING spread(x) > 1",
            "SELECT k, MAX(x) - MIN(x) FROM t GROUP BY ROLLUP (k) HAVING MAX(x) - MIN(x) > 1",
        ),
        (
            "SELECT fahrenheit(x) AS f, COUNT(*) FROM t WHERE fahrenheit(x) > 34 GROUP BY f",
            "SELECT x * 1.8 + 32 AS f, COUNT(*) FROM t WHERE x * 1.8 + 32 > 34 GROUP BY f",
        ),
    ],
)
def test_calls_stand_where_aggregates_do(ours: str, theirs: str) -> None:
    with closing(duckdb.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (k TEXT, x DOUBLE, w DOUBLE, n BIGINT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
        expected = connection.execute(theirs).fetchall()

    def rounded(rows: list[Row]) -> list[Row]:
        done = (tuple(round(v, 9) if isinstance(v, float) else v for v in r) for r in rows)
        return sorted(done, key=repr)

    assert len(expected) > 0
    assert rounded(answer(ours)) == rounded(expected)


@pytest.mark.parametrize(
    ("text", "message", "code"),
    [
        ("FUNCTION f(x DOUBLE) RETURNS DOUBLE AS (x + «y»)", "no parameter 'y'", "unknown_column"),
        ("FUNCTION f(x DOUBLE) RETURNS DOUBLE AS («t.x»)", "nothing but its p", "bad_body"),
        ("FUNCTION f(x DOUBLE) RETURNS DOUBLE AS (1 + «SUM(x)»)", "an aggregate", "bad_body"),
        ("FUNCTION f(x DOUBLE) RETURNS DOUBLE AS («spread(x)»)", "an aggregate", "bad_body"),
        ("FUNCTION f(x DOUBLE) RETURNS DOUBLE AS («SELECT x FROM t»)", "not a query", "bad_body"),
        (
            "FUNCTION f(x DOUBLE) RETURNS DOUBLE AS (x + («SELECT MAX(x) FROM t»))",
            "cannot contain a query",
            "bad_body",
        ),
        (
            "FUNCTION f(x DOUBLE) RETURNS DOUBLE AS («ROW_NUMBER() OVER ()»)",
            "a window function",
            "bad_body",
        ),
        ("FUNCTION f(x DOUBLE) RETURNS DOUBLE AS («f(x)» + 1)", "cannot call itself", "bad_body"),
        ("FUNCTION f(x DOUBLE) RETURNS DOUBLE AS («g(x)»)", "no function 'g'", "unknown_function"),
        (
            "FUNCTION f(x DOUBLE) RETURNS INTEGER AS («x + 1»)",
            "the body is DOUBLE, but f returns INTEGER",
            "type_mismatch",
        ),
        ("FUNCTION f(x TEXT) RETURNS TEXT AS («ABS(x)»)", "does not take (TEXT)", "wrong_arg"),
        ("AGGREGATE f(x DOUBLE) RETURNS DOUBLE AS («x» + SUM(x))", "outside an agg", "bad_body"),
        ("AGGREGATE f(x DOUBLE) RETURNS DOUBLE AS («1 + 1»)", "needs an aggregate", "bad_body"),
        ("AGGREGATE f(x DOUBLE) RETURNS DOUBLE AS (SUM(«MAX(x)»))", "inside an agg", "nested_agg"),
        (
            "AGGREGATE f(x DOUBLE) RETURNS DOUBLE AS (MAX(«spread(x)»))",
            "inside an aggregate",
            "nested_aggregate",
        ),
        ("AGGREGATE f(x DOUBLE) RETURNS DOUBLE AS («SUM(x) OVER ()»)", "a window", "bad_body"),
        (
            "AGGREGATE f(x DOUBLE) RETURNS DOUBLE MERGED BY «MAX» AS (MAX(x))",
            "MERGED BY is for aggregates of Python",
            "bad_merge",
        ),
        (
            "AGGREGATE f(x DOUBLE, p DOUBLE) RETURNS DOUBLE AS (QUANTILE_CONT(x, «p»))",
            "needs a constant",
            "bad_fraction",
        ),
        ("FUNCTION «abs»(x DOUBLE) RETURNS DOUBLE AS (x)", "of the language", "reserved_name"),
        (
            "AGGREGATE «kurtosis»(x DOUBLE) RETURNS DOUBLE AS (MAX(x))",
            "KURTOSIS means something else in SQL, so this could not be called",
            "reserved_name",
        ),
        ("FUNCTION «all»(x DOUBLE) RETURNS DOUBLE AS (x + 1)", "ALL means some", "reserved_name"),
        ("FUNCTION «session»(x DOUBLE) RETURNS DOUBLE AS (x)", "SESSION means", "reserved_name"),
        (
            "FUNCTION «time_bucket»(x DOUBLE) RETURNS DOUBLE AS (x)",
            "TIME_BUCKET is a function of the language",
            "reserved_name",
        ),
        ("FUNCTION «f»() RETURNS DOUBLE AS (1.0)", "has no parameters", "missing_columns"),
    ],
)
def test_what_a_body_may_not_be_is_said_with_its_place(text: str, message: str, code: str) -> None:
    """The place is that of the script, whatever stands before the statement."""
    plain, (line, column, words) = unmarked(f"SHOW VIEWS;\nCREATE {text}")
    with pytest.raises(QueryError) as caught:
        define(parse_script(plain)[1], CATALOG.scratch())  # type: ignore[arg-type]
    error = caught.value
    assert message in error.message
    assert error.code.startswith(code)
    assert error.hint
    assert error.span is not None
    assert (error.span.line, error.span.column, error.span.text) == (line, column, words)


@pytest.mark.parametrize(
    "body", ["()", "x + 1", "(x", "(x, x)", "(x AS y)", "(x +)", "(x)(x)", "(x FROM t)", "(x;x)"]
)
def test_malformed_bodies(body: str) -> None:
    with pytest.raises(QuerySyntaxError):
        parse_script(f"CREATE FUNCTION f(x DOUBLE) RETURNS DOUBLE AS {body}")


@pytest.mark.parametrize(
    ("text", "message", "code"),
    [
        ("SELECT «spread('a')» FROM t", "spread does not take (TEXT)", "wrong_arguments"),
        ("SELECT «spread(x, w)» FROM t", "does not take (DOUBLE, DOUBLE)", "wrong_arguments"),
        ("SELECT «fahrenheit(k)» FROM t", "does not take (TEXT)", "wrong_arguments"),
        ("SELECT spread(«SUM(x)») FROM t", "inside an aggregate", "nested_aggregate"),
        ("SELECT n FROM t WHERE «spread(x)» > 1", "cannot stand here", "misplaced_aggregate"),
        ("SELECT spread(«z») FROM t", "there is no column 'z'", "unknown_column"),
        ("SELECT «k», spread(x) FROM t", "neither in GROUP BY", "not_grouped"),
        (
            "SELECT «weighted_mean(DISTINCT x, w)» FROM t",
            "weighted_mean cannot take DISTINCT: its SUM is not over one parameter alone",
            "unsupported_aggregate",
        ),
        (
            "SELECT «every_row(DISTINCT x)» FROM t",
            "every_row cannot take DISTINCT: its COUNT(*) is not over its parameter alone",
            "unsupported_aggregate",
        ),
        (
            "SELECT «middle(x) OVER ()» FROM t",
            "PERCENTILE_CONT, which middle calls, is not supported before OVER",
            "unsupported_window",
        ),
        ("SELECT «spread(DISTINCT x) OVER ()» FROM t", "DISTINCT is not s", "unsupported_window"),
        ("SELECT * FROM «spread»", "'spread' is an aggregate", "not_a_relation"),
    ],
)
def test_errors_of_a_call_point_at_the_call(text: str, message: str, code: str) -> None:
    plain, place = unmarked(text)
    error = refused(plain)
    assert message in error.message
    assert error.code == code
    assert error.hint
    assert error.span is not None
    assert (error.span.line, error.span.column, error.span.text) == place


def test_aggregates_of_python_stand_in_bodies() -> None:
    with user_aggregates.installed():
        name = user_aggregates.MODULE
        catalog = catalog_of(
            "CREATE TABLE t (k TEXT, x DOUBLE, w DOUBLE, n INTEGER)",
            f"CREATE AGGREGATE peak(v DOUBLE) RETURNS DOUBLE AS '{user_aggregates.SAMPLE}:Peak'",
            f"CREATE AGGREGATE all_of(v DOUBLE) RETURNS DOUBLE CALLED ON NULL INPUT AS "
            f"'{name}:Last'",
        )
        create("AGGREGATE g(a DOUBLE, b DOUBLE) RETURNS DOUBLE AS (peak(a) + MAX(b))", catalog)
        assert answer("SELECT g(x, w) FROM t WHERE k = 'a'", catalog) == [(5.0,)]
        with pytest.raises(QueryError, match="all_of accepts NULLs, so FILTER cannot skip rows"):
            create("AGGREGATE h(a DOUBLE) RETURNS DOUBLE AS (all_of(a))", catalog)
        create("AGGREGATE h(a DOUBLE) RETURNS DOUBLE CALLED ON NULL INPUT AS (all_of(a))", catalog)
        error = refused("SELECT h(x) FILTER (WHERE n > 1) FROM t", catalog)
        assert error.code == "unsupported_aggregate"


def chain(catalog: Catalog, text: str) -> tuple[int, QueryError]:
    """Create functions that each call the one before, until one is refused; return the last."""
    for n in range(1, 100):
        try:
            create(text.format(n=n, m=n - 1), catalog)
        except QueryError as error:
            return n - 1, error
    pytest.fail("none was refused")


def test_doubling_chains_end_with_an_error() -> None:
    """f1 = f0 + f0, f2 = f1 + f1, …: what a call stands for has at most 1,000 parts."""
    catalog = catalog_of("CREATE TABLE t (x DOUBLE)")
    create("FUNCTION f0(x DOUBLE) RETURNS DOUBLE AS (x + x)", catalog)
    create("AGGREGATE a0(x DOUBLE) RETURNS DOUBLE AS (MAX(x) + MIN(x))", catalog)
    made, error = chain(catalog, "FUNCTION f{n}(x DOUBLE) RETURNS DOUBLE AS (f{m}(x) + f{m}(x))")
    assert error.code == "limit_exceeded"
    assert 6 <= made <= 9
    largest = bound_query(f"SELECT f{made}(x) FROM t", catalog).plan
    assert isinstance(largest, Project)
    assert 500 < sum(1 for _ in walk(largest.expressions[0])) <= MAX_PARTS
    assert refused(f"SELECT f{made}(f{made}(x)) FROM t", catalog).code == "limit_exceeded"
    made, error = chain(catalog, "AGGREGATE a{n}(x DOUBLE) RETURNS DOUBLE AS (a{m}(x) + a{m}(x))")
    assert error.code == "limit_exceeded"
    assert 6 <= made <= 9


def test_parameters_that_are_only_guarded_do_not_grow_either() -> None:
    catalog = catalog_of("CREATE TABLE t (x DOUBLE)")
    create("FUNCTION one(a DOUBLE, b DOUBLE) RETURNS DOUBLE AS (1.0)", catalog)
    create("FUNCTION f0(x DOUBLE) RETURNS DOUBLE AS (one(x, x + 1))", catalog)
    body = "one(f{m}(x), f{m}(x + 1))"
    made, error = chain(catalog, f"FUNCTION f{{n}}(x DOUBLE) RETURNS DOUBLE AS ({body})")
    assert error.code == "limit_exceeded"
    assert made < MAX_NESTING - 2


def test_deep_chains_end_with_an_error() -> None:
    catalog = catalog_of("CREATE TABLE t (x DOUBLE)")
    create("FUNCTION f0(x DOUBLE) RETURNS DOUBLE AS (x)", catalog)
    made, error = chain(catalog, "FUNCTION f{n}(x DOUBLE) RETURNS DOUBLE AS (f{m}(x))")
    assert error.code == "limit_exceeded"
    assert f"more than {MAX_NESTING} levels" in error.message
    assert made == MAX_NESTING - 1
    create("FUNCTION deep(x DOUBLE) RETURNS DOUBLE AS (" + "-(" * 40 + "x" + ")" * 41, catalog)
    twice, thrice = "deep(deep(x))", "deep(deep(deep(x)))"
    database = Database()
    database.append("t", [SourceEvent((3.0,), ts=0)])
    plan = bound_query(f"SELECT {'-(' * 30}{twice}{')' * 30} FROM t", catalog).plan
    assert list(evaluate(plan, database, 0)) == [(3.0,)]
    error = refused(f"SELECT {thrice} FROM t", catalog)
    assert error.code == "limit_exceeded"
    assert f"more than {MAX_LEVELS} levels" in error.message


def test_a_function_that_lost_what_it_calls_says_so_where_it_is_called() -> None:
    """DROP refuses that; a catalog may be changed by hand."""
    catalog = catalog_of(SCRIPT)
    assert answer("SELECT hot(x) FROM t WHERE k = 'a'", catalog) == [(35.6,)]
    spread = catalog.drop("spread")
    error = refused("SELECT n,\n hot(x) FROM t", catalog)
    assert "hot can no longer be called: there is no function 'spread'" in error.message
    assert error.code == "unknown_function"
    assert error.span is not None
    assert (error.span.line, error.span.text) == (2, "hot(x)")
    catalog.define(spread)
    assert answer("SELECT hot(x) FROM t WHERE k = 'a'", catalog) == [(35.6,)]
    catalog.drop("spread")
    create("AGGREGATE spread(value DOUBLE) RETURNS DOUBLE AS (MAX(value))", catalog)
    assert answer("SELECT hot(x) FROM t WHERE k = 'a'", catalog) == [(39.2,)]


def test_functions_that_call_each_other_in_a_circle_end_with_an_error() -> None:
    catalog = catalog_of("CREATE TABLE t (x DOUBLE)")
    create("FUNCTION a(x DOUBLE) RETURNS DOUBLE AS (x)", catalog)
    create("FUNCTION b(x DOUBLE) RETURNS DOUBLE AS (a(x))", catalog)
    catalog.drop("a")
    text = "CREATE FUNCTION a(x DOUBLE) RETURNS DOUBLE AS (b(x))"
    one = DataType.DOUBLE
    schema = catalog.functions[0].parameters
    catalog.define(FunctionDefinition("a", False, schema, one, "", text=text, body="b(x)"))
    assert refused("SELECT b(x) FROM t", catalog).code == "limit_exceeded"
