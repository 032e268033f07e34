"""Random changes of a table of every kind are those of a relation."""

import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from static_engine.changing.change_table import change_table
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from streamsql.algebra.scalar import compile_predicate
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.table_options import TABLE_OPTIONS
from streamsql.data.types import Row
from tests.static_engine.changing.changes import change_of, insert, rows_of, run, table

COLUMNS = "k INTEGER PRIMARY KEY, a TEXT, b INTEGER, c DOUBLE, d TIMESTAMP, e BOOLEAN, f INTERVAL"


def _csv(folder: Path) -> str:
    (folder / "t.csv").write_text("f,a,k,b,c,d,e\n")
    return "source = 'csv', path = 't.csv'"


def _json(folder: Path) -> str:
    (folder / "t.jsonl").write_bytes(b"")
    return "source = 'json', path = 't.jsonl'"


def _empty(file: Path) -> None:
    schema = pa.schema(
        [("f", pa.int64()), ("a", pa.string()), ("k", pa.int64()), ("b", pa.int64()),
         ("c", pa.float64()), ("d", pa.timestamp("us")), ("e", pa.bool_())]
    )  # fmt: skip
    pq.write_table(schema.empty_table(), file)


def _parquet(folder: Path) -> str:
    _empty(folder / "t.parquet")
    return "source = 'parquet', path = 't.parquet'"


def _sqlite(columns: str) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        connection = sqlite3.connect(folder / "t.db")
        connection.execute(f"CREATE TABLE t ({columns}")
        connection.close()
        return "source = 'sql', url = 'sqlite:///t.db', table = 't'"

    return make


KINDS = {
    "csv": _csv,
    "json": _json,
    "parquet": _parquet,
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
    source = kind if kind in TABLE_OPTIONS else "sql"
    others = tuple(name for name in TABLE_OPTIONS if name != source)
    with pytest.raises(
        TableError, match=f"read from {source}, which INSERT and DELETE may not"
    ) as refusal:
        change_table(change, Locations(tmp_path, changed=others))
    assert refusal.value.code == "not_writable"
    assert rows_of(tmp_path, definition) == []
    assert change_table(change, Locations(tmp_path, changed=(source,))) == 1


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
@settings(max_examples=12, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(steps=STEPS)
def test_a_table_is_the_relation_that_its_changes_make(
    kind: str, steps: list[list[Row] | str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _check(folder, table(COLUMNS, KINDS[kind](folder)), steps)
