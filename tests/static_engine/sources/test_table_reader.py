"""Readers: values arrive in the declared types, errors say what, where and why."""

import json
import os
import sqlite3
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from static_engine.sources.table_errors import TableError, TableMissingError
from static_engine.sources.table_locations import Locations
from static_engine.sources.table_reader import read_table
from static_engine.sources.values.conversion import convert_batch
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, coerce

B, INT, D, T = DataType.BOOLEAN, DataType.INTEGER, DataType.DOUBLE, DataType.TEXT
TS, IV = DataType.TIMESTAMP, DataType.INTERVAL
PLAIN = Schema.of(("id", INT), ("name", T), ("x", D))


def table(schema: Schema = PLAIN, key: tuple[int, ...] = (), /, **options: str) -> SourceDefinition:
    return SourceDefinition("t", SourceKind.TABLE, schema, key, options=tuple(options.items()))


def rows(definition: SourceDefinition, folder: Path) -> list[Row]:
    found: list[Row] = []
    for batch in read_table(definition, Locations(folder)):
        columns = [column.to_pylist() for column in batch.columns]
        found.extend(zip(*columns, strict=True))
    return found


def csv(folder: Path, text: str | bytes, key: tuple[int, ...] = (), **options: str) -> list[Row]:
    content = text if isinstance(text, bytes) else text.encode()
    (folder / "t.csv").write_bytes(content)
    return rows(table(PLAIN, key, source="csv", path="t.csv", **options), folder)


def test_csv_finds_columns_by_name_and_tells_null_from_empty(tmp_path: Path) -> None:
    text = (
        '\ufeffX, ID ,other,Name\r\n1.5,1,?,a\r\n,2,?,\r\n"3",3,?,""\r\n\r\n'
        '1e3,4,?,"a,""b""\nc"\r\n'
    )
    assert csv(tmp_path, text) == [
        (1, "a", 1.5),
        (2, None, None),
        (3, "", 3.0),
        (4, 'a,"b"\nc', 1000.0),
    ]


def test_csv_takes_odd_values_that_the_language_takes(tmp_path: Path) -> None:
    assert csv(tmp_path, "id,name,x\n +7,NULL, 2.5 \n1_000,nan,-0\n") == [
        (7, "NULL", 2.5),
        (1000, "nan", 0.0),
    ]


def test_csv_without_header_and_with_another_delimiter(tmp_path: Path) -> None:
    assert csv(tmp_path, "1;a;2\n", header="false", delimiter=";") == [(1, "a", 2.0)]
    assert csv(tmp_path, "id\tname\tx\n1\ta\t2\n", delimiter="tab") == [(1, "a", 2.0)]


def test_csv_with_only_a_header_is_an_empty_table(tmp_path: Path) -> None:
    assert csv(tmp_path, "id,name,x\n") == []


def test_csv_larger_than_a_block(tmp_path: Path) -> None:
    text = "id,name,x\n" + "".join(f"{n},{'n' * 200},{n}.5\n" for n in range(50_000))
    found = csv(tmp_path, text)
    assert len(found) == 50_000
    assert found[-1] == (49_999, "n" * 200, 49_999.5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "t.csv is empty"),
        ("id,name\n1,a\n", "has no column x; it has id, name, declared are id, name, x"),
        ("id,name,x,ID\n", "has 2 columns 'id'"),
        ("id,name,x\n1,a,2\n2,b\n", "row 2 has 2 fields, expected 3: '2,b'"),
        ("id,name,x\n1,a,2\n2,b,c,3\n", "row 2 has 4 fields, expected 3"),
        ("id,name,x\n1,a,2\n\n2.5,b,3\n", "row 2, column id: '2.5' is not a INTEGER"),
        ("id,name,x\n9223372036854775808,b,3\n", "row 1, column id"),
        ("id,name,x\n0x10,b,3\n", "row 1, column id: '0x10' is not a INTEGER"),
        ("id,name,x\n1,b,inf\n", "row 1, column x: 'inf' is not a DOUBLE: it is not finite"),
        ("id,name,x\n1,b,1e999\n", "row 1, column x"),
        (b"id,name,x\n1,a,2\n1,\xff\xfe,2\n", "line 3 is not UTF-8"),
        (b"\xff\xfei\0d\0", "line 1 is not UTF-8"),
    ],
)
def test_csv_errors(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(TableError) as caught:
        csv(tmp_path, text)
    assert said in str(caught.value)
    assert "table t" in str(caught.value)


def test_a_row_number_counts_on_over_blocks(tmp_path: Path) -> None:
    text = "id,name,x\n" + "".join(f"{n},{'n' * 200},1\n" for n in range(50_000)) + "oops,a,1\n"
    with pytest.raises(TableError, match="row 50001, column id: 'oops'"):
        csv(tmp_path, text)


def test_a_folder_is_one_table(tmp_path: Path) -> None:
    for number in (2, 1):
        pq.write_table(
            pa.table({"id": [number], "name": ["a"], "x": [0.5]}), tmp_path / f"{number}.parquet"
        )
    assert rows(table(source="parquet", path="."), tmp_path) == [(1, "a", 0.5), (2, "a", 0.5)]


def test_parquet_types(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 1, 0, 0, 1, 5, UTC)
    columns = {
        "b": pa.array([True, None]),
        "i": pa.array([7, None], pa.uint8()),
        "d": pa.array([0.1, None], pa.float32()),
        "n": pa.array([3, None], pa.int16()),
        "m": pa.array([Decimal("2.5"), None]),
        "t": pa.array(["a", None]).dictionary_encode(),
        "ts": pa.array([moment, None], pa.timestamp("ns", "Europe/Madrid")),
        "local": pa.array([moment.replace(tzinfo=None), None], pa.timestamp("ms")),
        "day": pa.array([moment.date(), None]),
        "iv": pa.array([timedelta(seconds=2), None], pa.duration("s")),
        "text": pa.array([5, None]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    schema = Schema.of(
        ("b", B), ("i", INT), ("d", D), ("n", D), ("m", D), ("t", T), ("ts", TS), ("local", TS),
        ("day", TS), ("iv", IV), ("text", T),
    )  # fmt: skip
    first, second = rows(table(schema, source="parquet", path="t.parquet"), tmp_path)
    micros = 1_767_225_601_000_005
    assert first == (
        True, 7, 0.10000000149011612, 3.0, 2.5, "a", micros, micros - 5, 1_767_225_600_000_000,
        2_000_000, "5",
    )  # fmt: skip
    assert second == (None,) * 11


@pytest.mark.parametrize(
    ("array", "dtype", "said"),
    [
        (
            pa.array([1.5, float("nan")]),
            D,
            "row 2, column v: nan is not a DOUBLE: it is not finite",
        ),
        (pa.array([1.5]), INT, "row 1, column v: 1.5 is not a INTEGER: it has a fraction"),
        (pa.array([2**63], pa.uint64()), INT, "row 1, column v: 9223372036854775808"),
        (pa.array([[1]]), INT, "column v of t.parquet is list"),
        (pa.array([b"a"]), T, "column v of t.parquet is binary"),
        (pa.array(["a", "1"]), INT, "row 1, column v: 'a' is not a INTEGER"),
    ],
)
def test_parquet_errors(tmp_path: Path, array: pa.Array, dtype: DataType, said: str) -> None:
    pq.write_table(pa.table({"v": array}), tmp_path / "t.parquet")
    with pytest.raises(TableError) as caught:
        rows(table(Schema.of(("v", dtype)), source="parquet", path="t.parquet"), tmp_path)
    assert said in str(caught.value)


def test_what_is_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_text("id,name,x\n")
    with pytest.raises(TableError, match="not readable Parquet"):
        rows(table(source="parquet", path="t.parquet"), tmp_path)


OBJECTS = [{"ID": 1, "name": "a", "x": 2}, {"id": 2, "more": [1]}, {"id": 3, "x": 0.5}]


@pytest.mark.parametrize("lines", [True, False])
def test_json(tmp_path: Path, lines: bool) -> None:
    text = "\n\n".join(map(json.dumps, OBJECTS)) if lines else "\ufeff" + json.dumps(OBJECTS)
    (tmp_path / "t.json").write_text(text)
    assert rows(table(source="json", path="t.json"), tmp_path) == [
        (1, "a", 2.0),
        (2, None, None),
        (3, None, 0.5),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"id": 1}\n{"id": 2', "line 2: "),
        ('[{"id": 1}, 5]', "Expected `object`"),
        ('{"id": 1, "name": "a"}\n', "has no column x"),
        ('{"id": "one", "name": "a", "x": 1}\n', "row 1, column id: 'one'"),
        ('{"id": 1, "name": {"a": 1}, "x": 1}\n', "row 1, column name"),
        ('{"id": true, "name": "a", "x": 1}\n', "row 1, column id: True is not a INTEGER"),
        ("[" * 100_000, "t.json"),
    ],
)
def test_json_errors(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(TableError) as caught:
        rows(table(source="json", path="t.json"), tmp_path)
    assert said in str(caught.value)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute('CREATE TABLE "My Rooms" (Id INTEGER, NAME TEXT, x, other TEXT)')
        connection.execute("INSERT INTO \"My Rooms\" VALUES (1, 'a', 2, '?'), (2, NULL, 0.5, '?')")
        connection.execute("CREATE TABLE bad (id, name, x)")
        connection.execute("INSERT INTO bad VALUES (1, 'a', 1), ('many', 'a', 1)")
        connection.execute('CREATE VIEW few AS SELECT * FROM "My Rooms" WHERE id = 1')
    connection.close()
    return tmp_path


def test_sqlite(database: Path) -> None:
    options = {"source": "sql", "url": "sqlite:///t.db"}
    assert rows(table(table="My Rooms", **options), database) == [(1, "a", 2.0), (2, None, 0.5)]
    assert rows(table(table="few", **options), database) == [(1, "a", 2.0)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"url": "sqlite:///t.db", "table": "rooms"},
            "no table or view 'rooms'\nhint: it has My Rooms",
        ),
        ({"url": "sqlite:///t.db", "table": "bad"}, "row 2, column id: 'many'"),
        ({"url": "sqlite:///none.db", "table": "t"}, "file 'none.db' (looked for in"),
        (
            {"url": "sqlite:////etc/t.db", "table": "t"},
            "is outside the folders that are open to tables",
        ),
        (
            {"url": "sqlite:///../t.db", "table": "t"},
            "is outside the folders that are open to tables",
        ),
        ({"url": "sqlite://", "table": "t"}, "only a file"),
        ({"url": "mysql://u:secret@h/d", "table": "t"}, "'mysql' are not allowed"),
        ({"url": "secret", "table": "t"}, "not a database address"),
        ({"url": "postgresql://u:secret@127.0.0.1:1/d", "table": "t"}, "does not answer"),
    ],
)
def test_database_errors(database: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(TableError) as caught:
        rows(table(source="sql", **options), database)
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_what_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "t.db").write_bytes(b"nonsense" * 1000)
    with pytest.raises(TableError, match="does not answer: file is not a database"):
        rows(table(source="sql", url="sqlite:///t.db", table="t"), tmp_path)


def test_primary_keys_are_checked(tmp_path: Path) -> None:
    assert len(csv(tmp_path, "id,name,x\n1,a,\n1,b,\n", key=(0, 1))) == 2
    with pytest.raises(TableError, match=r"rows 1 and 3 have the same primary key \(id\) = \(1\)"):
        csv(tmp_path, "id,name,x\n1,a,\n2,a,\n1,b,\n", key=(0,))
    with pytest.raises(TableError, match="row 2 has NULL in its primary key"):
        csv(tmp_path, "id,name,x\n1,a,\n,a,\n", key=(0,))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../t.csv", "is outside the folders that are open to tables"),
        ("a/../../t.csv", "is outside the folders that are open to tables"),
        ("link/t.csv", "is outside the folders that are open to tables"),
        ("/etc/passwd", "is outside the folders that are open to tables"),
        ("no.csv", "file 'no.csv' (looked for in"),
        ("empty", "folder 'empty'"),
        ("pipe", "is not a regular file"),
        ("a\0b", "is not a path"),
        ("loop", "loop"),
    ],
)
def test_files_outside_the_base_folder_are_refused(tmp_path: Path, path: str, said: str) -> None:
    base = tmp_path / "base"
    (base / "empty").mkdir(parents=True)
    (tmp_path / "t.csv").write_text("id,name,x\n")
    (base / "link").symlink_to(tmp_path)
    (base / "loop").symlink_to(base / "loop")
    os.mkfifo(base / "pipe")
    with pytest.raises(TableError) as caught:
        rows(table(source="csv", path=path), base)
    assert said in str(caught.value)


def test_absolute_paths_into_open_folders(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,name,x\n1,a,2\n")
    definition = table(source="csv", path=str(tmp_path / "t.csv"))
    locations = Locations(tmp_path / "elsewhere", (tmp_path,))
    assert sum(b.num_rows for b in read_table(definition, locations)) == 1


def test_a_closed_folder_within_an_open_one_stays_closed(tmp_path: Path) -> None:
    """As with `pando up`: its data directory is in the folder it was started in."""
    data = tmp_path / "pando-data"
    (data / "tables").mkdir(parents=True)
    (data / "run").mkdir()
    (tmp_path / "links").mkdir()
    for folder in (tmp_path, data / "tables", data / "run"):
        (folder / "t.csv").write_text("id,name,x\n1,a,2\n")
    (tmp_path / "links" / "a.csv").symlink_to(data / "run" / "t.csv")
    (tmp_path / "to_run").symlink_to(data / "run")
    locations = Locations(data / "tables", (tmp_path,), (data,))

    def count(path: str) -> int:
        definition = table(source="csv", path=path)
        return sum(batch.num_rows for batch in read_table(definition, locations))

    assert [count(path) for path in ("t.csv", str(tmp_path / "t.csv"), "../../t.csv")] == [1, 1, 1]
    outside = tmp_path.parent / f"{tmp_path.name}-not" / "t.csv"  # begins like an open folder
    for path in (
        "../run/t.csv",
        str(data / "run" / "t.csv"),
        str(tmp_path / "to_run" / "t.csv"),
        str(tmp_path / "to_run"),
        str(tmp_path / "links" / "a.csv"),
        str(tmp_path / "links"),
        str(outside),
        str(data / "tables" / ".." / "run" / "t.csv"),
    ):
        with pytest.raises(
            TableError, match="is outside the folders that are open to tables"
        ) as caught:
            count(path)
        assert caught.value.code == "outside_folders"


@pytest.mark.parametrize(
    "path", ["file:///etc/passwd", "file:/etc/passwd", "*.csv", "~/x.csv", "$HOME/x.csv", "[t].csv"]
)
def test_addresses_and_patterns_are_names_of_files_like_any_other(
    tmp_path: Path, path: str
) -> None:
    (tmp_path / "t.csv").write_text("id,name,x\n")
    with pytest.raises(TableMissingError):
        rows(table(source="csv", path=path), tmp_path)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////etc/passwd",
        "sqlite:///../t.db",
        "sqlite+pysqlite:////etc/passwd",
        "sqlite:///link/t.db",
        "postgresql://u@h/d?sslkey=/etc/passwd",
        "postgresql://u@h/d?sslrootcert=../../etc/passwd",
        "postgresql://u@h/d?passfile=/etc/.pgpass",
        "postgresql://u@h/d?sslcert=link/t.db",
    ],
)
def test_addresses_of_databases_name_files_of_open_folders_only(tmp_path: Path, url: str) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (tmp_path / "t.db").write_bytes(b"")
    (base / "link").symlink_to(tmp_path)
    with pytest.raises(TableError, match="is outside the folders that are open to tables"):
        rows(table(source="sql", url=url, table="t"), base)


@pytest.mark.parametrize(
    "url", ["jdbc:sqlite:/etc/passwd", "jdbc:postgresql://h/d", "sqlite:///file:/etc/x?uri=true"]
)
def test_addresses_of_other_kinds_are_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(TableError, match=r"not a database address|not allowed|only a file"):
        rows(table(source="sql", url=url, table="t"), tmp_path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "has no source, so it is a managed table"),
        (
            {"source": "excel", "path": "a"},
            "hint: WITH (source = '…'), one of csv",
        ),
        ({"source": "csv"}, "needs the option path"),
        ({"source": "sql", "url": "sqlite:///t.db"}, "needs the option table"),
        ({"source": "csv", "path": "a", "delimter": ";"}, "did you mean delimiter?"),
        ({"source": "csv", "path": "a", "delimiter": "::"}, "not one ASCII character"),
        ({"source": "csv", "path": "a", "header": "maybe"}, "not true or false"),
        ({"source": "csv", "path": "a", "refresh": "often"}, "'often' is not a duration such as"),
        ({"source": "csv", "path": "a", "refresh": "0.1 s"}, "shorter than 1 s"),
        ({"source": "parquet", "path": "a", "header": "true"}, "no option 'header'"),
    ],
)
def test_options_are_checked(tmp_path: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(TableError) as caught:
        rows(table(**options), tmp_path)
    assert said in str(caught.value)


def test_missing_is_told_from_broken(tmp_path: Path) -> None:
    with pytest.raises(TableMissingError) as caught:
        rows(table(source="csv", path="t.csv"), tmp_path)
    assert caught.value.code == "table_missing"


TEXTS = st.one_of(
    st.text(max_size=6),
    st.from_regex(r"\A[-+ ]?[0-9_xX]{0,19}(\.[0-9]{0,4})?([eE][-+]?[0-9]{1,3})?\Z"),
    st.sampled_from(["true", "FALSE", "t", "1", "0", "nan", "inf", "2026-01-01", "1e400"]),
)


@given(values=st.lists(TEXTS, max_size=6), dtype=st.sampled_from([B, INT, D, T, TS, IV]))
def test_whole_columns_convert_as_single_values_do(values: list[str], dtype: DataType) -> None:
    definition = table(Schema.of(("v", dtype)))
    try:
        expected = [coerce(value, dtype) for value in values]
    except ValueError:
        with pytest.raises(TableError, match=r"row 1[0-9], column v"):
            convert_batch(definition, [pa.array(values, pa.string())], 10, "table t")
    else:
        batch = convert_batch(definition, [pa.array(values, pa.string())], 10, "table t")
        assert batch.column(0).to_pylist() == expected
