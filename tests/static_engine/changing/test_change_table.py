"""Random changes of a table of every kind are those of a relation."""

import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from static_engine.changing.change_table import change_table
from static_engine.sources.table_errors import TableError
from streamsql.algebra.scalar_functions.scalar import compile_predicate
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.table_options import CHANGED_SOURCES
from streamsql.data.types import Row
from tests.static_engine.changing.changes import (
    change_of,
    insert,
    locations_of,
    rows_of,
    run,
    table,
)

COLUMNS = "k INTEGER PRIMARY KEY, a TEXT, b INTEGER, c DOUBLE, d TIMESTAMP, e BOOLEAN, f INTERVAL"


def _lake(_folder: Path) -> str:
    return "source = 'lake'"


def _sqlite(columns: str) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        connection = sqlite3.connect(folder / "t.db")
        connection.execute(f"CREATE TABLE t ({columns}")
        connection.close()
        return "source = 'sql', url = 'sqlite:///t.db', table = 't'"

    return make


KINDS = {
    "lake": _lake,
    "sqlite": _sqlite("k INTEGER PRIMARY KEY, a TEXT, b INT, c REAL, d TEXT, e BOOLEAN, f INT)"),
    "sqlite without rowid": _sqlite(
        "k BIGINT PRIMARY KEY, a TEXT, b INT, c REAL, d TEXT, e BOOLEAN, f INT) WITHOUT ROWID"
    ),
    "sqlite without types": _sqlite("e, f, a, k, b, c, d)"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_that_may_not_be_changed_is_not(kind: str, tmp_path: Path) -> None:
    definition = table(COLUMNS, KINDS[kind](tmp_path))
    change = change_of(definition, "INSERT INTO desks (k) VALUES (1)")
    source = kind if kind in CHANGED_SOURCES else "sql"
    others = tuple(name for name in CHANGED_SOURCES if name != source)
    with pytest.raises(
        TableError, match=f"read from {source}, which statements may not change here"
    ) as refusal:
        change_table(change, locations_of(tmp_path, changed=others))
    assert refusal.value.code == "not_writable"
    assert rows_of(tmp_path, definition) == []
    assert change_table(change, locations_of(tmp_path, changed=(source,))) == 1


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
ROW = st.tuples(
    st.integers(0, 12) | st.none(),
    st.none() | TEXT,
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.integers(0, 2**50),
    st.none() | st.booleans(),
    st.none() | st.integers(-(2**50), 2**50),
)
CONDITION = st.sampled_from(
    ["", "WHERE k < 5", "WHERE b = 2", "WHERE b IS NULL OR e", "WHERE NOT e", "WHERE c > 0.0",
     "WHERE a = '' OR a LIKE 'a%'", "WHERE d > '1970-01-02T00:00:00Z'", "WHERE k % 3 = b",
     "WHERE f < INTERVAL '1 s'", "WHERE b / 0 = 1"]
)  # fmt: skip
STEPS = st.lists(st.lists(ROW, min_size=1, max_size=4) | CONDITION, min_size=1, max_size=8)


def _is_refused(rows: list[Row], added: list[Row]) -> bool:
    keys = [row[0] for row in (*rows, *added)]
    return None in keys or len(set(keys)) < len(keys)


def _check(folder: Path, definition: SourceDefinition, steps: list[list[Row] | str]) -> None:
    expected: list[Row] = []
    for number, step in enumerate(steps):
        if isinstance(step, str):
            text = f"DELETE FROM desks {step}"
            predicate = change_of(definition, text).predicate
            goes = compile_predicate(predicate) if predicate is not None else lambda _row: True
            kept = [row for row in expected if not goes(row)]
            assert run(folder, definition, text) == len(expected) - len(kept)
            expected = kept
        elif _is_refused(expected, step):
            with pytest.raises(TableError) as refusal:
                insert(folder, definition, *step)
            assert refusal.value.code == "duplicate_key"
        else:
            assert insert(folder, definition, *step, number=f"c{number}") == len(step)
            expected += step
        assert sorted(rows_of(folder, definition)) == sorted(expected)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(steps=STEPS)
def test_a_table_is_the_relation_that_its_changes_make(
    kind: str, steps: list[list[Row] | str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _check(folder, table(COLUMNS, KINDS[kind](folder)), steps)
