"""CREATE FUNCTION and CREATE AGGREGATE: definition, calls, failure, and what may run where."""

import sys
import types
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from streamsql.algebra.aggregates import AggregateCall
from streamsql.algebra.aggregates import AggregateFunction as F
from streamsql.algebra.operators import Aggregate, Plan, walk_plan
from streamsql.algebra.user_functions import INSTALLED, UserFunctions, modules_of
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.functions import FunctionDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import DataType, Row
from streamsql.errors import BindingError, DeploymentError, QueryError, QuerySyntaxError
from streamsql.reference import Database, evaluate
from streamsql.syntax import CreateFunction, parse_statement
from tests import user_aggregates
from tests.streamsql.from_text import bound_query, catalog_of

MODULE = "readings_of_this_test"
CODE = """
def half(x):
    return x / 2

def or_zero(x):
    return 0 if x is None else x

def picky(x):
    if x > 2:
        raise RuntimeError("too large")
    return "text" if x == 0 else x

class Total:
    def init(self):
        return 0.0
    def step(self, state, x):
        return state + 6 / x
    def retract(self, state, x):
        return state - 6 / x
    def merge(self, state, other):
        return state + other
    def final(self, state):
        return state

class Rows(Total):
    def init(self):
        return []
    def step(self, state, x):
        return [*state, x]
    def final(self, state):
        return len(state)

class Partial:
    def init(self):
        return 0

from math import sqrt
"""
ROWS: list[Row] = [("a", 1), ("a", 3), ("a", None), ("b", 0), ("b", 2), ("b", 2)]


@pytest.fixture(autouse=True)
def _module() -> Iterator[None]:
    module = types.ModuleType(MODULE)
    exec(CODE, module.__dict__)  # noqa: S102  (stands for an installed file)
    sys.modules[MODULE] = module
    INSTALLED.allow([MODULE])
    yield
    INSTALLED.allow([])
    del sys.modules[MODULE]


@pytest.fixture
def catalog() -> Catalog:
    known = catalog_of("CREATE TABLE t (k TEXT, n INTEGER)")
    for name in ("half", "or_zero", "picky"):
        tail = " CALLED ON NULL INPUT" if name == "or_zero" else ""
        create(f"FUNCTION {name}(x INTEGER) RETURNS DOUBLE AS '{MODULE}:{name}'{tail}", known)
    create(f"AGGREGATE total(x DOUBLE) RETURNS DOUBLE AS '{MODULE}:Total'", known)
    create(
        f"AGGREGATE rows_of(x DOUBLE) RETURNS INTEGER CALLED ON NULL INPUT AS '{MODULE}:Rows'",
        known,
    )
    return known


def create(text: str, catalog: Catalog) -> FunctionDefinition:
    statement = parse_statement(f"CREATE {text}")
    assert isinstance(statement, CreateFunction)
    definition = define(statement, catalog)
    assert isinstance(definition, FunctionDefinition)
    catalog.define(definition)
    return definition


def answer(text: str, catalog: Catalog) -> list[Row]:
    database = Database()
    database.append("t", [SourceEvent(row, ts=0) for row in ROWS])
    found = evaluate(bound_query(f"SELECT {text}", catalog).plan, database, 0)
    return sorted((row for row, count in found.items() for _ in range(count)), key=repr)


def aggregates_of(plan: Plan) -> list[AggregateCall]:
    return [c for node in walk_plan(plan) if isinstance(node, Aggregate) for c in node.aggregates]


def failures_of(name: str) -> int:
    return sum(f.count for f in INSTALLED.failures() if f.implementation == f"{MODULE}:{name}")


def test_a_definition_keeps_what_was_written(catalog: Catalog) -> None:
    found = catalog.find("ROWS_OF")
    assert isinstance(found, FunctionDefinition)
    assert found.usage == "rows_of(x DOUBLE) RETURNS INTEGER"
    assert found.aggregate
    assert found.on_null
    assert [f.name for f in catalog.functions] == ["half", "or_zero", "picky", "total", "rows_of"]


def test_null_in_null_out_unless_called_on_null(catalog: Catalog) -> None:
    assert answer("half(n), or_zero(n) FROM t WHERE k = 'a'", catalog) == [
        (0.5, 1.0),
        (1.5, 3.0),
        (None, 0.0),
    ]


def test_failures_and_wrong_types_are_null_and_counted(catalog: Catalog) -> None:
    before = failures_of("picky")
    assert answer("picky(n) FROM t WHERE k = 'b' OR n = 3", catalog) == [
        (2.0,),
        (2.0,),
        (None,),
        (None,),
    ]
    assert failures_of("picky") == before + 2
    assert any("too large" in f.last or "text" in f.last for f in INSTALLED.failures())


def test_aggregates_skip_nulls_and_rows_that_fail(catalog: Catalog) -> None:
    assert answer("k, total(n), rows_of(n), total(DISTINCT n) FROM t GROUP BY k", catalog) == [
        ("a", 8.0, 3, 8.0),
        ("b", 6.0, 3, 3.0),
    ]


def test_aggregates_take_filter_and_having(catalog: Catalog) -> None:
    query = "k, total(n) FILTER (WHERE n < 3) AS s FROM t GROUP BY k HAVING total(n) > 7"
    assert answer(query, catalog) == [("a", 6.0)]


def test_an_aggregate_of_no_rows_is_that_of_the_empty_group(catalog: Catalog) -> None:
    assert answer("total(n) FROM t WHERE k = 'c'", catalog) == [(0.0,)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("half('a') FROM t", "half does not take (TEXT)"),
        ("half() FROM t", "half does not take ()"),
        ("total(n, n) FROM t", "total does not take (INTEGER, INTEGER)"),
        ("rows_of(n) FILTER (WHERE n > 1) FROM t", "accepts NULLs, so FILTER cannot skip rows"),
        ("k FROM t WHERE total(n) > 1", "the aggregate total cannot stand here"),
        ("total(total(n)) FROM t", "an aggregate is not allowed inside an aggregate"),
        ("* FROM half", "'half' is a function"),
        ("halve(n) FROM t", "there is no function 'halve'"),
    ],
)
def test_calls_that_do_not_fit(text: str, message: str, catalog: Catalog) -> None:
    with pytest.raises(QueryError) as caught:
        answer(text, catalog)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("FUNCTION abs(x DOUBLE) RETURNS DOUBLE AS 'a:b'", "function of the language"),
        ("FUNCTION f(x DOUBLE) RETURNS DOUBLE AS 'os.system'", "names no implementation"),
        ("FUNCTION f(x DOUBLE) RETURNS DOUBLE AS 'a:b.c'", "names no implementation"),
        ("FUNCTION f(x DOUBLE, x TEXT) RETURNS DOUBLE AS 'a:b'", "defined twice"),
        ("AGGREGATE f() RETURNS DOUBLE AS 'a:b'", "has no parameters"),
        ("FUNCTION half(x DOUBLE) RETURNS DOUBLE AS 'a:b'", "already exists"),
    ],
)
def test_definitions_that_are_refused(text: str, message: str, catalog: Catalog) -> None:
    with pytest.raises(BindingError) as caught:
        create(text, catalog)
    assert message in caught.value.message
    assert caught.value.span is not None


@pytest.mark.parametrize(
    "text",
    [
        "FUNCTION f(x DOUBLE) RETURNS DOUBLE",
        "FUNCTION f(x) RETURNS DOUBLE AS 'a:b'",
        "FUNCTION f(x DOUBLE) AS 'a:b'",
        "FUNCTION f(x DOUBLE) RETURNS DOUBLE AS a",
        "FUNCTION f(x DOUBLE) RETURNS DOUBLE CALLED ON AS 'a:b'",
        "FUNCTION f(x DOUBLE) RETURNS DOUBLE AS 'a:b' LANGUAGE python",
        "FUNCTION f(x DOUBLE) RETURNS DOUBLE MERGED BY MAX AS 'a:b'",
        "AGGREGATE f(x DOUBLE) RETURNS DOUBLE MERGED MAX AS 'a:b'",
        "AGGREGATE f(x DOUBLE) RETURNS DOUBLE MERGED BY AS 'a:b'",
        "AGGREGATE f(x DOUBLE) RETURNS DOUBLE MERGED BY MAX MERGED BY MIN AS 'a:b'",
    ],
)
def test_malformed_statements(text: str) -> None:
    with pytest.raises(QuerySyntaxError):
        parse_statement(f"CREATE {text}")


_HEAD = "AGGREGATE f(x DOUBLE) RETURNS"


@pytest.mark.parametrize(
    ("text", "merged_by"),
    [
        (f"{_HEAD} INTEGER MERGED BY SUM AS 'a:b'", F.SUM),
        (f"{_HEAD} TEXT MERGED BY min AS 'a:b'", F.MIN),
        (f"{_HEAD} TIMESTAMP MERGED BY MAX CALLED ON NULL INPUT AS 'a:b'", F.MAX),
        (f"{_HEAD} BOOLEAN CALLED ON NULL INPUT MERGED BY BOOL_AND AS 'a:b'", F.BOOL_AND),
        (f"{_HEAD} BOOLEAN AS 'a:b' MERGED BY BOOL_OR", F.BOOL_OR),
        (f"{_HEAD} DOUBLE MERGED BY F AS 'a:b'", F.USER),
        (f"{_HEAD} DOUBLE AS 'a:b'", None),
    ],
)
def test_results_of_parts_are_merged_as_declared(
    text: str, merged_by: F | None, catalog: Catalog
) -> None:
    found = create(text, catalog)
    assert found.merged_by == merged_by
    assert found.on_null == ("CALLED" in text)
    (call,) = aggregates_of(bound_query("SELECT f(n) FROM t", catalog).plan)
    assert call.merged_by == (UNSET if merged_by is None else merged_by)
    names = {F.USER: "f", None: ""}
    assert found.merge_name == names.get(merged_by, str(merged_by))
    assert f" MERGED BY {found.merge_name}" in f"{found.usage} MERGED BY "
    wire = msgspec.json.encode(found)
    assert msgspec.json.decode(wire, type=FunctionDefinition) == found


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        (f"{_HEAD} DOUBLE MERGED BY SUM AS 'a:b'", "for results of INTEGER, but 'f' ret", "SUM"),
        (f"{_HEAD} TEXT MERGED BY BOOL_OR AS 'a:b'", "for results of BOOLEAN", "BOOL_OR"),
        (f"{_HEAD} DOUBLE MERGED BY AVG AS 'a:b'", "AVG does not merge", "AVG"),
        (f"{_HEAD} DOUBLE MERGED BY maxi AS 'a:b'", "MAXI does not merge", "maxi"),
        (f"{_HEAD} INTEGER MERGED BY f AS 'a:b'", "does not take one INTEGER", "f"),
        (
            "AGGREGATE f(x DOUBLE, y DOUBLE) RETURNS DOUBLE MERGED BY f AS 'a:b'",
            "does not take one DOUBLE",
            "f",
        ),
        (f"{_HEAD} DOUBLE CALLED ON NULL INPUT MERGED BY f AS 'a:b'", "called with NULL", "f"),
    ],
)
def test_what_cannot_merge_is_said_with_its_place(
    text: str, message: str, place: str, catalog: Catalog
) -> None:
    with pytest.raises(BindingError) as caught:
        create(text, catalog)
    assert message in caught.value.message
    assert caught.value.code == "bad_merge"
    assert caught.value.span is not None
    assert caught.value.span.text == place


def test_the_nearest_function_that_merges_is_named(catalog: Catalog) -> None:
    with pytest.raises(BindingError, match="did you mean MAX"):
        create(f"{_HEAD} DOUBLE MERGED BY maxx AS 'a:b'", catalog)


def test_a_part_without_rows_has_no_result_that_merges(catalog: Catalog) -> None:
    zero = create(f"{_HEAD} DOUBLE MERGED BY MAX AS '{MODULE}:Total'", catalog)
    with pytest.raises(DeploymentError, match=r"final\(init\(\)\) is 0.0") as caught:
        zero.check_installed()
    assert caught.value.code == "bad_merge"
    create(f"AGGREGATE g(x DOUBLE) RETURNS DOUBLE AS '{MODULE}:Total'", catalog).check_installed()
    with user_aggregates.installed():
        none = (
            f"AGGREGATE h(x DOUBLE) RETURNS DOUBLE MERGED BY MAX AS '{user_aggregates.SAMPLE}:Peak'"
        )
        create(none, catalog).check_installed()


def test_which_zero_an_aggregate_gives_does_not_show() -> None:
    with user_aggregates.installed():
        name = f"{user_aggregates.MODULE}:Last"
        aggregate = INSTALLED.aggregate(name, DataType.DOUBLE)
        assert str(aggregate.over([(-0.0,)])) == "0.0"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("os:system", "module 'os' is none of the modules"),
        (f"{MODULE}:missing", "is missing from module"),
        (f"{MODULE}:sqrt", "is not defined in module"),
        (f"{MODULE}:MODULE", "is missing from module"),
    ],
)
def test_only_what_the_operator_lists_may_run(name: str, message: str) -> None:
    with pytest.raises(DeploymentError) as caught:
        INSTALLED.function(name, DataType.DOUBLE)
    assert message in caught.value.message


def test_a_module_that_is_not_there_is_named() -> None:
    functions = UserFunctions()
    functions.allow(["nowhere.to_be_found"])
    with pytest.raises(DeploymentError, match="listed in PANDO_FUNCTIONS"):
        functions.function("nowhere.to_be_found:f", DataType.DOUBLE)


@pytest.mark.parametrize(
    ("name", "message"),
    [("Partial", "it has no step, retract, merge, final"), ("half", "it has no init")],
)
def test_an_aggregate_needs_its_methods(name: str, message: str) -> None:
    with pytest.raises(DeploymentError) as caught:
        INSTALLED.aggregate(f"{MODULE}:{name}", DataType.DOUBLE)
    assert message in caught.value.message


def test_what_was_stepped_can_be_retracted_and_merged() -> None:
    aggregate = INSTALLED.aggregate(f"{MODULE}:Total", DataType.DOUBLE)
    state: Any = aggregate.init()
    state, taken = aggregate.step(state, (2.0,))
    assert taken
    state, taken = aggregate.step(state, (0.0,))
    assert not taken
    other, _ = aggregate.step(aggregate.init(), (3.0,))
    state, _ = aggregate.merge(state, other)
    assert aggregate.final(state) == 5.0
    state, _ = aggregate.retract(state, (2.0,))
    assert aggregate.final(state) == 2.0


def test_the_setting_lists_modules() -> None:
    assert modules_of(" a.b, c\n") == ("a.b", "c")
    with pytest.raises(DeploymentError, match="is not the name of a Python module"):
        UserFunctions().allow(["a-b"])
