"""Sources of columns, and what stored tables are joined with."""

from federated_optimizer.costs.relations.column_sources import ColumnSources, finding
from streamsql.algebra.operators import Join, Plan, walk_plan
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE r (k TEXT, v INTEGER, KEY (k)); CREATE SOURCE s (k TEXT, w INTEGER, KEY (k));"
    "CREATE TABLE t (k TEXT, name TEXT);"
)


def joined(text: str) -> Plan:
    plan = bound_query(text, CATALOG).plan
    return next(node for node in walk_plan(plan) if isinstance(node, Join))


def test_each_column_has_its_source() -> None:
    leaves, origins = ColumnSources().of(joined("SELECT * FROM r JOIN s ON r.k = s.k"))
    assert list(leaves) == ["r", "s"]
    assert origins == (("r", 0), ("r", 1), ("s", 0), ("s", 1))


def test_a_plan_is_looked_through_once() -> None:
    sources, plan = ColumnSources(), joined("SELECT * FROM r JOIN s ON r.k = s.k")
    assert sources.of(plan) is sources.of(plan)


def test_a_stored_table_is_found_by_columns_of_the_stream() -> None:
    plan = joined("SELECT r.k, t.name FROM r JOIN t ON r.k = t.k")
    assert isinstance(plan, Join)
    stream = next(side for side in plan.inputs if "r" in ColumnSources().of(side).leaves)
    assert finding(plan, "t") == (stream, (0,))
    assert finding(plan, "r") is None
