"""Results of this process as Arrow columns: the rows of the reference evaluator."""

from pathlib import Path

import pytest

from static_engine.evaluation import local_executor
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import EvaluationError
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_store import TableStore
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import Filter, Plan, Project, SourceKind, UnionAll, Values
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

INT, D, T, B = DataType.INTEGER, DataType.DOUBLE, DataType.TEXT, DataType.BOOLEAN
TABLE = SourceDefinition(
    "t",
    SourceKind.TABLE,
    Schema.of(("id", INT), ("x", D), ("name", T), ("ok", B)),
    options=(("source", "csv"), ("path", "t.csv")),
)
ROWS: Delta = {(1, 0.5, "a", True): 2, (2, None, None, None): 1, (3, -1.0, "é", False): 1}


def project(plan: Plan, *expressions: Expression) -> Plan:
    return Project(plan, expressions, tuple(f"e{n}" for n in range(len(expressions))))


def at(position: int, dtype: DataType) -> Expression:
    return Column(position, "c", dtype)


SWAPPED = project(TABLE.scan(), at(2, T), at(0, INT), at(0, INT), Literal(None, D))
COLUMNS = {
    "table": TABLE.scan(),
    "columns": SWAPPED,
    "columns of columns": project(SWAPPED, at(3, D), at(1, INT), Literal(None, B)),
}
OTHERS = {
    "value": project(TABLE.scan(), Literal(7, INT), at(1, D)),
    "filter": Filter(TABLE.scan(), Call("=", (at(0, INT), Literal(1, INT)), B)),
    "columns of a filter": project(
        Filter(TABLE.scan(), Call("=", (at(0, INT), Literal(1, INT)), B)), at(2, T)
    ),
    "no columns": project(TABLE.scan()),
    "numbers of two types": UnionAll(
        (project(TABLE.scan(), at(1, D)), Values(((2**60,),), Schema.of(("e0", D))))
    ),
}


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    text = "id,x,name,ok\n1,0.5,a,true\n2,,,\n1,0.5,a,true\n3,-1,é,false\n"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    store = TableStore(Locations(tmp_path), tmp_path / "tables")
    store.load(TABLE)
    return store


@pytest.mark.parametrize("name", [*COLUMNS, *OTHERS])
def test_the_rows_are_those_of_the_reference(store: TableStore, name: str) -> None:
    plan, executor = (COLUMNS | OTHERS)[name], LocalExecutor(store)
    found = executor.collect(plan)
    assert found.schema == plan.schema
    assert found.delta() == executor.evaluate(plan)
    assert found.total == sum(executor.evaluate(plan).values())


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_a_table_become_no_python_objects(
    store: TableStore, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_executor, "rows_in", lambda *_: pytest.fail("rows were made"))
    assert LocalExecutor(store).collect(COLUMNS[name]).total == sum(ROWS.values())


def test_a_table_with_more_rows_than_allowed_is_refused(store: TableStore) -> None:
    with pytest.raises(EvaluationError, match="more than 3 rows"):
        LocalExecutor(store, max_result_rows=3).collect(TABLE.scan())


@pytest.mark.parametrize(("number", "dtype"), [(2**70, INT), (10**400, D)])
def test_a_number_that_no_column_can_hold_is_an_error(
    store: TableStore, number: int, dtype: DataType
) -> None:
    values = Values(((number,),), Schema.of(("n", dtype)))
    with pytest.raises(EvaluationError, match=r"column n: .*too (large|big)"):
        LocalExecutor(store).collect(values)
