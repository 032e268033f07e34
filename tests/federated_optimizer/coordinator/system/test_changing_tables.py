"""Tables that know what has changed: their changes give the rows that all of them give."""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer.coordinator.system import changing_tables
from federated_optimizer.coordinator.system.changing_tables import (
    ChangedRows,
    changes_of,
    is_linear,
)
from streamsql.algebra.operators import Plan
from streamsql.binder import bind_query
from streamsql.data.delta import Delta, accumulate, from_rows
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from streamsql.syntax import Query, parse_statement
from tests.streamsql.from_text import catalog_of

CATALOG = catalog_of("CREATE TABLE nodes (node TEXT PRIMARY KEY, kind TEXT, resting INTEGER);")
TEXTS = (
    "SELECT * FROM nodes",
    "SELECT kind FROM nodes",
    "SELECT node, resting + 1 AS more FROM nodes WHERE resting > 1 AND kind <> 'join'",
)
CHANGES = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.none() | st.tuples(st.sampled_from(("join", "rows")), st.none() | st.integers(0, 3)),
        st.booleans(),
    ),
    max_size=30,
)


def plan_of(text: str) -> Plan:
    query = parse_statement(text)
    assert isinstance(query, Query)
    return bind_query(query, CATALOG).plan


def rows_of(plan: Plan, rows: tuple[Row, ...]) -> Delta:
    database = Database()
    database.append("nodes", [SourceEvent(row, 1) for row in rows])
    return evaluate(plan, database, 1)


@given(CHANGES, st.sampled_from(TEXTS), st.integers(1, 8))
def test_the_changes_of_a_plan_are_those_of_its_rows(
    changes: list[tuple[str, tuple[str, int | None] | None, bool]], text: str, logged: int
) -> None:
    plan = plan_of(text)
    assert is_linear(plan)
    with patch.object(changing_tables, "MOST_LOGGED", logged):
        table = ChangedRows()
    shown: Delta = {}
    version = 0
    for key, cells, looks in changes:
        table.put(key, None if cells is None else (key, *cells))
        if not looks:
            continue
        changed = table.since(version)
        if changed is None:
            shown = rows_of(plan, table.all())
        else:
            accumulate(shown, changes_of(plan, {"nodes": changed}, 1))
        version = table.version
        assert shown == rows_of(plan, table.all())
        assert table.since(version) == {}
    keys = dict.fromkeys(key for key, _cells, _looks in changes)
    assert set(table.keys()) <= set(keys)


def test_what_is_put_again_is_no_change() -> None:
    table = ChangedRows()
    table.put("a", ("a", 1))
    version, rows = table.version, table.all()
    table.put("a", ("a", 1))
    table.put("b", None)
    assert (table.version, table.all()) == (version, rows)
    assert table.all() is rows
    table.put("a", ("a", 2))
    assert table.since(version) == {("a", 1): -1, ("a", 2): 1}
    assert table.since(0) == from_rows([("a", 2)])


def test_who_has_missed_changes_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changing_tables, "MOST_LOGGED", 4)
    table = ChangedRows()
    for number in range(6):
        table.put("a", ("a", number))
    assert table.since(0) is None
    assert table.since(table.version - 1) == {("a", 4): -1, ("a", 5): 1}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT kind, COUNT(*) AS n FROM nodes GROUP BY kind",
        "SELECT DISTINCT kind FROM nodes",
        "SELECT a.node FROM nodes a JOIN nodes b ON a.kind = b.kind",
        "SELECT kind FROM nodes UNION ALL SELECT kind FROM nodes",
    ],
)
def test_only_filters_and_columns_are_linear(text: str) -> None:
    assert not is_linear(plan_of(text))
