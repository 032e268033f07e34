"""Row groups of Parquet files are left out only if none of their rows passes."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import tables_of
from static_engine.sources.parquet_file import counted_rows
from static_engine.sources.table_locations import Locations
from static_engine.tables import narrowed_tables
from static_engine.tables.narrowed_tables import NarrowedTables
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from tests.streamsql.from_text import bound_query

T = SourceDefinition(
    "t",
    SourceKind.TABLE,
    Schema.of(
        ("id", DataType.INTEGER),
        ("name", DataType.TEXT),
        ("x", DataType.DOUBLE),
        ("size", DataType.INTEGER),
    ),
    options=(("source", "parquet"), ("path", "t.parquet")),
)
NAMES = (None, "", "a", "A", "ä", "a ", "b")
NUMBERS = (None, 0.0, -0.0, 1.5, -2e9)


def fill(folder: Path, rows: int, seed: int) -> None:
    rng = random.Random(seed)
    data = pa.table(
        {
            "size": pa.array([rng.choice((None, -1, 0, n // 40)) for n in range(rows)], pa.int16()),
            "id": pa.array(range(rows), pa.int32()),
            "name": [NAMES[n // 30 % len(NAMES)] for n in range(rows)],
            "x": [rng.choice(NUMBERS) for _ in range(rows)],
        }
    )
    pq.write_table(data, folder / "t.parquet", row_group_size=10)


def condition(rng: random.Random, depth: int = 2) -> str:
    if depth and rng.random() < 0.6:
        word = rng.choice((" AND ", " OR "))
        return "(" + word.join(condition(rng, depth - 1) for _ in range(2)) + ")"
    if depth and rng.random() < 0.2:
        return f"NOT {condition(rng, 0)}"
    number, sign = rng.choice((-5, 0, 3, 90, 2**40)), rng.choice(("=", "<>", "<", "<=", ">", ">="))
    return rng.choice(
        (
            f"id {sign} {rng.randrange(200)}",
            f"size {sign} {number}",
            f"{number} {sign} size",
            f"id IN ({rng.randrange(200)}, {number})",
            f"name {sign} '{rng.choice(NAMES) or ''}'",
            f"name IN ('', '{rng.choice(NAMES) or ''}')",
            f"x {sign} {rng.choice(('0.0', '1.5'))}",
            rng.choice(("name", "size", "x")) + rng.choice((" IS NULL", " IS NOT NULL")),
        )
    )


def read(folder: Path, text: str) -> tuple[list[str], list[str], int]:
    """Return the rows of the narrowed and of the whole query in words, and the rows read."""
    catalog = Catalog()
    catalog.define(T)
    store = TableStore(Locations(folder), folder / "snapshots", snapshots=False)
    watch = TableWatch(store)
    watch.define((T,))
    plan = bound_query(text, catalog).plan
    plans, parts = NarrowedTables(watch.definition, dict).plans([plan])
    watch.narrow(parts)
    watch.poll(tables_of(plans[plan]) | {"t"})
    assert [watch.problem(name) for name in parts] == [None] * len(parts)
    executor = LocalExecutor(store)
    found, whole = executor.evaluate(plans[plan]), executor.evaluate(plan)
    (count,) = [t.row_count for name in parts or ("t",) if (t := store.find(name)) is not None]
    return sorted(map(repr, found.items())), sorted(map(repr, whole.items())), count


@pytest.mark.parametrize("seed", range(24))
def test_the_rows_are_those_of_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(narrowed_tables, "SMALL_ROWS", 10)
    fill(tmp_path, 200, seed)
    found, whole, _ = read(
        tmp_path, f"SELECT id, name, x FROM t WHERE {condition(random.Random(seed))}"
    )
    assert found == whole


@pytest.mark.parametrize(
    ("test", "rows"),
    [
        ("id < 25", 30),
        ("id = 199 OR id IN (0, 3)", 20),
        ("id > 1099511627776", 0),
        ("size > 100", 200),  # Arrow keeps row groups that have a NULL beside different values
        ("name = 'A' AND x > 1", 30),
        ("name IS NULL AND id < 40", 30),
        ("name < 'b'", 200),
        ("x > 1e9", 200),
    ],
)
def test_row_groups_without_a_row_are_not_read(tmp_path: Path, test: str, rows: int) -> None:
    fill(tmp_path, 200, 1)
    found, whole, count = read(tmp_path, f"SELECT id FROM t WHERE {test}")
    assert (found, count) == (whole, rows)


def test_rows_are_counted_by_footers(tmp_path: Path) -> None:
    fill(tmp_path, 200, 1)
    assert counted_rows((tmp_path / "t.parquet",) * 2) == 400
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    assert counted_rows((tmp_path / "broken.parquet",)) is None
