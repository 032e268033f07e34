"""Managed tables: UPDATE and MERGE are those of SQLite, one commit each, whatever comes between."""

import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from static_engine.changing.change_table import change_table
from static_engine.lake import managed_tables
from static_engine.lake.lake import Lake
from static_engine.lake.lake_settings import LakeSettings
from static_engine.lake.managed_tables import ManagedTables
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from streamsql.catalog.definitions import SourceDefinition
from tests.static_engine.changing.changes import change_of, locations_of, rows_of, run, table

COLUMNS = "k INTEGER PRIMARY KEY, a TEXT, n INTEGER"
LAKE = "source = 'lake'"

ROWS = st.lists(
    st.tuples(st.integers(0, 8), st.sampled_from(["x", "y", "z"]), st.integers(-5, 5)),
    min_size=1, max_size=6, unique_by=lambda row: row[0],
)  # fmt: skip
STATEMENT = st.sampled_from(
    [
        "UPDATE desks SET n = n + 1",
        "UPDATE desks SET n = k * 2, a = 'u' WHERE a = 'x'",
        "UPDATE desks SET a = NULL WHERE n > 2",
        "UPDATE desks SET k = k + 100 WHERE n < 0",
        "DELETE FROM desks WHERE n = 0",
    ]
)


@settings(max_examples=8, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(steps=st.lists(ROWS | STATEMENT, min_size=2, max_size=6))
def test_updates_and_merges_are_those_of_sqlite(
    steps: list[list[tuple[int, str, int]] | str],
) -> None:
    oracle = sqlite3.connect(":memory:")
    oracle.execute(f"CREATE TABLE desks ({COLUMNS})")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        definition = table(COLUMNS, LAKE)
        for step in steps:
            if isinstance(step, str):
                oracle.execute(step)
                run(folder, definition, step)
            else:
                given_rows = ", ".join(f"({k}, '{a}', {n})" for k, a, n in step)
                oracle.execute(
                    f"INSERT INTO desks VALUES {given_rows} "
                    "ON CONFLICT (k) DO UPDATE SET a = excluded.a, n = n + excluded.n"
                )
                run(
                    folder, definition,
                    f"MERGE INTO desks USING (VALUES {given_rows}) AS s (k, a, n) ON desks.k = s.k "
                    "WHEN MATCHED THEN UPDATE SET a = s.a, n = desks.n + s.n "
                    "WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.a, s.n)",
                )  # fmt: skip
            found = sorted(rows_of(folder, definition), key=str)
            assert found == sorted(oracle.execute("SELECT * FROM desks").fetchall(), key=str)


def test_the_first_branch_that_fits_is_done(tmp_path: Path) -> None:
    definition = table(COLUMNS, LAKE)
    run(tmp_path, definition, "INSERT INTO desks VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
    done = run(
        tmp_path, definition,
        "MERGE INTO desks USING (VALUES (1, 0), (2, 20), (3, 9), (4, 0), (5, 5)) AS s (k, n) "
        "ON s.k = desks.k WHEN MATCHED AND s.n = 0 THEN DELETE "
        "WHEN MATCHED AND s.n < 10 THEN DO NOTHING WHEN MATCHED THEN UPDATE SET n = s.n "
        "WHEN NOT MATCHED AND s.n = 0 THEN DO NOTHING "
        "WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, s.n + 1)",
    )  # fmt: skip
    assert done == 3
    assert sorted(rows_of(tmp_path, definition)) == [(2, "b", 20), (3, "c", 3), (5, None, 6)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("UPDATE desks SET k = 1", "duplicate_key"),
        ("UPDATE desks SET k = NULL WHERE k = 2", "duplicate_key"),
        (
            "MERGE INTO desks USING (VALUES (1, 1), (1, 2)) AS s (k, n) ON desks.k = s.k "
            "WHEN MATCHED THEN UPDATE SET n = s.n",
            "change_failed",
        ),
        (
            "MERGE INTO desks USING (VALUES (9, 1), (9, 2)) AS s (k, n) ON desks.k = s.k "
            "WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, s.n)",
            "duplicate_key",
        ),
    ],
)
def test_a_refused_statement_changes_nothing(text: str, code: str, tmp_path: Path) -> None:
    definition = table(COLUMNS, LAKE)
    before = [(1, "a", 1), (2, "b", 2)]
    run(tmp_path, definition, "INSERT INTO desks VALUES (1, 'a', 1), (2, 'b', 2)")
    with pytest.raises(TableError) as refusal:
        run(tmp_path, definition, text)
    assert refusal.value.code == code
    assert sorted(rows_of(tmp_path, definition)) == before


def test_a_new_column_is_null_in_older_rows_and_old_ones_stay(tmp_path: Path) -> None:
    first = table("k INTEGER, a TEXT", LAKE)
    run(tmp_path, first, "INSERT INTO desks VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    second = table("k INTEGER, b DOUBLE", LAKE)
    run(tmp_path, second, "INSERT INTO desks VALUES (4, 0.5)")
    run(tmp_path, second, "DELETE FROM desks WHERE k = 2")
    assert sorted(rows_of(tmp_path, second)) == [(1, None), (3, None), (4, 0.5)]
    assert sorted(rows_of(tmp_path, first)) == [(1, "a"), (3, "c"), (4, None)]


def test_two_engines_at_a_time_lose_no_row(tmp_path: Path) -> None:
    definition = table(COLUMNS, LAKE)
    settings_ = LakeSettings(f"sqlite:///{tmp_path / 'lake.db'}", str(tmp_path / "lake"))
    run(tmp_path, definition, "INSERT INTO desks VALUES (1, 'a', 0)")
    tables = ManagedTables(settings_)
    between: list[int] = []
    real = managed_tables._commit

    def commit(*arguments: object) -> None:
        if not between:
            between.append(0)
            between.append(run(tmp_path, definition, "UPDATE desks SET n = n + 1"))
        real(*arguments)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(managed_tables, "_commit", commit)
        locations = Locations(tmp_path, managed=tables)
        assert change_table(change_of(definition, "UPDATE desks SET n = n + 1"), locations) == 1
    assert rows_of(tmp_path, definition) == [(1, "a", 2)]


def test_many_small_files_become_one(tmp_path: Path) -> None:
    definition = table(COLUMNS, LAKE)
    locations = locations_of(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(managed_tables, "MAX_SMALL_FILES", 3)
        for k in range(6):
            change = change_of(definition, f"INSERT INTO desks VALUES ({k}, 'a', 0)")
            change_table(change, locations)
    lake = Lake(LakeSettings(f"sqlite:///{tmp_path / 'lake.db'}", str(tmp_path / "lake")))
    assert len(list(lake.table("desks", "tables").scan().plan_files())) == 2
    assert sorted(rows_of(tmp_path, definition)) == [(k, "a", 0) for k in range(6)]


@pytest.mark.parametrize("name", ["../../outside", "a/b", "a.b", "ü ß"])
def test_a_name_never_leaves_the_warehouse(name: str, tmp_path: Path) -> None:
    plain = table(COLUMNS, LAKE)
    definition = SourceDefinition(name, plain.kind, plain.schema, plain.key, options=plain.options)
    change = change_of(plain, "INSERT INTO desks VALUES (1, 'a', 0)")
    lake = locations_of(tmp_path)
    assert change_table(type(change)("c", 1, definition, change.rows), lake) == 1
    assert {p.name for p in tmp_path.iterdir()} == {"lake", "lake.db"}
    assert {p.name for p in (tmp_path / "lake").iterdir()} == {"tables"}


def test_without_a_lake_it_is_said_what_to_do(tmp_path: Path) -> None:
    definition = table(COLUMNS, LAKE)
    with pytest.raises(TableError, match="managed table of the lake") as refusal:
        change_table(change_of(definition, "INSERT INTO desks (k) VALUES (1)"), Locations(tmp_path))
    assert "setting lake" in (refusal.value.hint or "")


@pytest.mark.parametrize("source", ["csv", "json", "parquet"])
def test_files_are_not_written(source: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("k,a,n\n")
    definition = table(COLUMNS, f"source = '{source}', path = 't'")
    for text in ("INSERT INTO desks (k) VALUES (1)", "DELETE FROM desks", "UPDATE desks SET n = 1"):
        with pytest.raises(TableError, match="does not write into files") as refusal:
            run(tmp_path, definition, text)
        assert refusal.value.code == "not_writable"
    assert (tmp_path / "t").read_text() == "k,a,n\n"
