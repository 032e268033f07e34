"""Parts of Iceberg, Delta and managed tables: DuckDB's rows, and files without them stay shut."""

import io
import random
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import LongType

from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import tables_of
from static_engine.lake.lake_settings import LakeSettings
from static_engine.lake.managed_tables import ManagedTables, Rewritten
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from static_engine.tables.narrowed_tables import NarrowedTables
from static_engine.tables.table_sizes import TableSizes
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from tests.streamsql.from_text import bound_query

Rows = list[tuple[int, str | None, float | None, int | None]]
COLUMNS = Schema.of(
    ("id", DataType.INTEGER),
    ("name", DataType.TEXT),
    ("x", DataType.DOUBLE),
    ("size", DataType.INTEGER),
)
FILES, FILE_ROWS, GROUP_ROWS = 8, 40, 10
LONG = "é" + 80 * "q"
"""Statistics hold the beginning of long texts only."""
NAMES = (None, "a", "A", "ä", "a ", "b", LONG + "a", LONG + "b")


def rows_of_files(seed: int) -> list[Rows]:
    rng = random.Random(seed)
    files = []
    for file in range(FILES):
        own = rng.sample(NAMES, 3)
        files.append([
            (
                file * FILE_ROWS + n,
                rng.choice(own),
                rng.choice((None, 0.0, -0.0, 1.5)),
                # The first two were written before this column was there.
                None if file < 2 else rng.choice((None, -1, 0, file * 10 + n // 5)),
            )
            for n in range(FILE_ROWS)
        ])  # fmt: skip
    return files


def arrow(rows: Rows, kind: pa.DataType, *, old: bool) -> pa.Table:
    ids, names, xs, sizes = zip(*rows, strict=True)
    columns = {"size": pa.array(sizes, pa.int64()), "x": pa.array(xs, pa.float64())}
    columns |= {"name": pa.array(names, pa.string()), "id": pa.array(ids, kind)}
    made = pa.table(columns)
    return made.drop_columns("size") if old else made


def iceberg(folder: Path, files: list[Rows]) -> str:
    """Write a table whose columns grow, and whose later files are in partitions."""
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder / 'c.db'}", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    first = arrow(files[0], pa.int32(), old=True)
    properties = {"write.parquet.row-group-limit": str(GROUP_ROWS)}
    table = catalog.create_table(("n", "t"), schema=first.schema, properties=properties)
    table.append(first)
    table.append(arrow(files[1], pa.int32(), old=True))
    with table.update_schema() as schema:
        schema.update_column("id", LongType())
        schema.add_column("size", LongType())
    for number, rows in enumerate(files[2:]):
        if number == 4:
            with table.update_spec() as spec:
                spec.add_identity("name")
        table.append(arrow(rows, pa.int64(), old=False))
    return str(folder / "n" / "t")


def delta(folder: Path, files: list[Rows], partitions: list[str] | None = None) -> str:
    writing = deltalake.WriterProperties(max_row_group_size=GROUP_ROWS)
    for number, rows in enumerate(files):
        deltalake.write_deltalake(
            folder / "t", arrow(rows, pa.int32(), old=number < 2), mode="append",
            schema_mode="merge", writer_properties=writing, partition_by=partitions,
        )  # fmt: skip
    return "t"


def partitioned(folder: Path, files: list[Rows]) -> str:
    return delta(folder, files, ["name"])


def _outcome(outcome: Rewritten, _files: object) -> Rewritten:
    return outcome


def managed(folder: Path, files: list[Rows]) -> str:
    """Write a managed table whose last column was added later."""
    tables, options = lake_of(folder), definition("lake", "").options
    for number, rows in enumerate(files):
        schema = COLUMNS.select((0, 1, 2)) if number < 2 else COLUMNS
        declared = SourceDefinition("t", SourceKind.TABLE, schema, options=options)
        data = arrow(rows, pa.int64(), old=False).select(schema.names)
        outcome = Rewritten(added=[column.combine_chunks() for column in data.columns])
        tables.change(declared, f"c{number}", partial(_outcome, outcome))
    return ""


KINDS: dict[str, Callable[[Path, list[Rows]], str]] = {
    "iceberg": iceberg,
    "delta": delta,
    "delta in partitions": partitioned,
    "lake": managed,
}


def lake_of(folder: Path) -> ManagedTables:
    return ManagedTables(LakeSettings(f"sqlite:///{folder / 'lake.db'}", str(folder / "lake")))


def definition(source: str, path: str) -> SourceDefinition:
    options = (("source", source), *((("path", path),) if path else ()))
    return SourceDefinition("t", SourceKind.TABLE, COLUMNS, options=options)


class Reading:
    """One table, read in parts.

    Args:
        folder: It is in.
        table: Its definition.
        files: Its rows.
    """

    def __init__(self, folder: Path, table: SourceDefinition, files: list[Rows]) -> None:
        self.folder, self.table = folder, table
        self.locations = Locations(folder, managed=lake_of(folder))
        self.data = sorted(f for f in folder.rglob("*.parquet") if "snapshots" not in f.parts)
        self.oracle = duckdb.connect()
        self.oracle.execute("CREATE TABLE t (id BIGINT, name VARCHAR, x DOUBLE, size BIGINT)")
        for rows in files:
            self.oracle.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)

    def opened(self) -> tuple[TableStore, TableWatch]:
        store = TableStore(self.locations, self.folder / "snapshots", snapshots=False)
        watch = TableWatch(store)
        watch.define((self.table,))
        return store, watch

    def read(self, text: str) -> tuple[list[str], int]:
        """Return the rows of a query in words, and how many rows were read.

        Raises:
            TableError: The table cannot be read.
        """
        store, watch = self.opened()
        catalog = Catalog()
        catalog.define(self.table)
        plan = bound_query(text, catalog).plan
        plans, parts = NarrowedTables(watch.definition, dict).plans([plan])
        watch.narrow(parts)
        watch.poll(tables_of(plans[plan]))
        (name,) = parts or ("t",)
        if (problem := watch.problem(name)) is not None:
            raise problem
        found = LocalExecutor(store).evaluate(plans[plan])
        table = store.find(name)
        assert table is not None
        rows = [repr(row) for row, count in found.items() for _ in range(count)]
        return sorted(rows), table.row_count

    def expected(self, text: str) -> list[str]:
        return sorted(map(repr, self.oracle.execute(text).fetchall()))


def condition(rng: random.Random, depth: int = 2) -> str:
    if depth and rng.random() < 0.6:
        word = rng.choice((" AND ", " OR "))
        return "(" + word.join(condition(rng, depth - 1) for _ in range(2)) + ")"
    if depth and rng.random() < 0.2:
        return f"NOT {condition(rng, 0)}"
    number, sign = rng.choice((-1, 0, 33, 2**40)), rng.choice(("=", "<>", "<", "<=", ">", ">="))
    name = rng.choice(NAMES) or "none"
    return rng.choice(
        (
            f"id {sign} {rng.randrange(FILES * FILE_ROWS)}",
            f"size {sign} {number}",
            f"{number} {sign} size",
            f"id IN ({rng.randrange(FILES * FILE_ROWS)}, {number})",
            f"size IN ({number}, 25, NULL)",
            f"name {sign} '{name}'",
            f"name IN ('a', '{name}')",
            f"x {sign} {rng.choice(('0.0', '1.5'))}",
            rng.choice(("name", "size", "x")) + rng.choice((" IS NULL", " IS NOT NULL")),
        )
    )


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Reading]:
    """Return one table of each kind."""

    @cache
    def made(kind: str) -> Reading:
        folder, files = tmp_path_factory.mktemp("t"), rows_of_files(1)
        path = KINDS[kind](folder, files)
        return Reading(folder, definition(kind.partition(" ")[0], path), files)

    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_the_rows_are_those_of_duckdb(
    readings: Callable[[str], Reading], kind: str, seed: int
) -> None:
    rng, reading = random.Random(f"{kind} {seed}"), readings(kind)
    for _ in range(15):
        text = f"SELECT id, name, x FROM t WHERE {condition(rng)}"
        found, _ = reading.read(text)
        assert found == reading.expected(text), text


def damaged(data: bytes, groups: set[int]) -> bytes:
    """Return a Parquet file of which some row groups are lost, or all of it."""
    metadata = pq.read_metadata(io.BytesIO(data))
    if len(groups) == metadata.num_row_groups:
        return b"lost"
    broken = bytearray(data)
    for group in groups:
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            broken[start : start + chunk.total_compressed_size] = (
                b"\xff" * chunk.total_compressed_size
            )
    return bytes(broken)


@pytest.mark.parametrize(
    ("kind", "test", "files", "groups"),
    [
        # How many data files and row groups are needed; the others are lost.
        ("iceberg", "id >= 100 AND id < 110", 1, 1),
        ("iceberg", "id IN (3, 130, 1099511627776)", 2, 2),
        ("iceberg", f"id >= 240 AND name = '{LONG}b'", 1, 2),
        ("delta", "id >= 100 AND id < 110", 1, 1),
        ("delta", "id < 5 OR id = 319", 2, 2),
        ("delta in partitions", f"name = '{LONG}a'", 2, 3),
        ("delta in partitions", "name IS NULL AND id < 200", 3, 6),
        ("lake", "id >= 100 AND id < 110", 1, 1),
        ("lake", "size > 69 AND id >= 80", 1, 1),
    ],
)
def test_what_holds_no_row_is_not_read(
    readings: Callable[[str], Reading], kind: str, test: str, files: int, groups: int
) -> None:
    reading = readings(kind)
    text = f"SELECT id, name FROM t WHERE {test}"
    expected = reading.expected(text)
    wanted = {id_ for (id_,) in reading.oracle.execute(f"SELECT id FROM t WHERE {test}").fetchall()}
    whole = {file: file.read_bytes() for file in reading.data}
    needed: dict[Path, set[int]] = {}
    try:
        for file, data in whole.items():
            parquet = pq.ParquetFile(io.BytesIO(data))
            every = set(range(parquet.num_row_groups))
            held = {
                group
                for group in every
                if wanted & set(parquet.read_row_group(group, ["id"]).column("id").to_pylist())
            }
            needed |= {file: held} if held else {}
            if every - held:
                file.write_bytes(damaged(data, every - held))
        assert (len(needed), sum(map(len, needed.values()))) == (files, groups)
        assert len(needed) < len(whole)
        assert reading.read(text) == (expected, len(wanted))
        with pytest.raises(TableError):
            reading.read("SELECT id, name FROM t")
    finally:
        for file, data in whole.items():
            file.write_bytes(data)


def test_delta_files_without_statistics_are_read(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2], "name": ["a", None], "x": [0.5, None], "size": [7, None]})
    indexed = "delta.dataSkippingNumIndexedCols"
    deltalake.write_deltalake(tmp_path / "t", data, configuration={indexed: "1"})
    deltalake.DeltaTable(tmp_path / "t").alter.set_table_properties({indexed: "-1"})
    deltalake.write_deltalake(tmp_path / "t", data, mode="append")
    reading = Reading(tmp_path, definition("delta", "t"), [])
    assert reading.read("SELECT id FROM t WHERE size = 7")[0] == ["(1,)"] * 2
    assert reading.read("SELECT id FROM t WHERE size IS NULL AND id < 3")[0] == ["(2,)"] * 2


def test_a_part_of_a_managed_table_loses_rows_at_once_that_pando_deletes(tmp_path: Path) -> None:
    rows: Rows = [(n, "a", 0.5, n) for n in range(1_200)]
    tables, table = lake_of(tmp_path), definition("lake", "")
    whole = [
        c.combine_chunks() for c in arrow(rows, pa.int64(), old=False).select(COLUMNS.names).columns
    ]
    tables.change(table, "c1", lambda _files: Rewritten(added=whole))
    store, watch = Reading(tmp_path, table, [rows]).opened()
    catalog = Catalog()
    catalog.define(table)
    plan = bound_query("SELECT id FROM t", catalog).plan
    plans, parts = NarrowedTables(watch.definition, dict).plans([plan])
    watch.narrow(parts)
    (name,) = parts
    watch.poll(frozenset(parts))
    left = [column.slice(7, 1) for column in whole]
    tables.change(table, "c2", lambda _files: Rewritten(files={0: (left, [7])}))
    watch.changed("t")
    watch.poll(frozenset(parts))
    assert watch.problem(name) is None
    assert LocalExecutor(store).evaluate(plans[plan]) == {(7,): 1}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_counted_without_reading_them(
    readings: Callable[[str], Reading], kind: str
) -> None:
    reading = readings(kind)
    store, watch = reading.opened()
    sizes = TableSizes(store, watch)
    whole = {file: file.read_bytes() for file in reading.data}
    try:
        for file in whole:
            file.write_bytes(b"lost")
        sizes.poll()
        assert sizes.rows() == {"t": FILES * FILE_ROWS}
    finally:
        for file, data in whole.items():
            file.write_bytes(data)
