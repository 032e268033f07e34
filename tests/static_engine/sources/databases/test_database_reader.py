"""Tables in PostgreSQL, on a private server of this test."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

from static_engine.sources.databases.database_lookup import DatabaseLookup, LookupRequest
from static_engine.sources.table_errors import TableError, TableMissingError
from static_engine.sources.table_locations import Locations
from static_engine.sources.table_parts import Narrowed
from static_engine.sources.table_reader import read_table
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from tests.settable_clock import SettableClock
from tests.static_engine.cutting_proxy import CuttingProxy, cutting_proxy
from tests.static_engine.postgres_server import postgres_server

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.timeout(400),
    # The driver says so of each cursor whose connection was cut.
    pytest.mark.filterwarnings("ignore:.*ServerCursor:pytest.PytestUnraisableExceptionWarning"),
]

SCHEMA = Schema.of(
    ("id", DataType.INTEGER),
    ("name", DataType.TEXT),
    ("x", DataType.DOUBLE),
    ("seen", DataType.TIMESTAMP),
    ("took", DataType.INTERVAL),
    ("on", DataType.BOOLEAN),
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server("postgres") as url:
        fill(url)
        yield url


def fill(url: str) -> None:
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        for statement in (
            'CREATE TABLE "Desks" ("ID" numeric(9,0), name varchar(20), x real, seen timestamptz, '
            'took interval, "on" boolean, extra json)',
            "INSERT INTO \"Desks\" VALUES (1, 'é', 0.5, '2026-01-01 01:00:00.5+01', '2 s', true, "
            "'{}'), (2, NULL, NULL, NULL, NULL, NULL, NULL)",
            "CREATE SCHEMA floor",
            "CREATE TABLE floor.many AS SELECT n AS id, 'd' || n AS name, n / 4.0 AS x, "
            "timestamp '2026-01-01' AS seen, interval '1 us' AS took, false AS on "
            "FROM generate_series(1, 45000) AS n",
            "CREATE TABLE wrong AS SELECT 1.5 AS id, NULL AS name, 'NaN'::float8 AS x, "
            "NULL::timestamp AS seen, NULL::interval AS took, NULL::bool AS on",
        ):
            connection.execute(text(statement))
    engine.dispose()


def rows(url: str, name: str, schema: Schema = SCHEMA) -> list[Row]:
    options = (("source", "sql"), ("url", url), ("table", name))
    definition = SourceDefinition("desks", SourceKind.TABLE, schema, options=options)
    found: list[Row] = []
    for batch in read_table(definition, Locations(Path())):
        found.extend(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return found


def test_types(server: str) -> None:
    micros = 1_767_225_600_500_000
    assert rows(server, "Desks") == [
        (1, "é", 0.5, micros, 2_000_000, True),
        (2, None, None, None, None, None),
    ]


def test_the_short_scheme_and_several_batches(server: str) -> None:
    found = rows(server.replace("+psycopg", ""), "floor.many")
    assert len(found) == 45_000
    assert (7, "d7", 1.75, 1_767_225_600_000_000, 1, False) in found


def test_errors(server: str) -> None:
    with pytest.raises(TableMissingError, match="no table or view 'none'") as missing:
        rows(server, "none")
    assert "it has Desks, wrong" in missing.value.hint
    with pytest.raises(TableError, match=r"row 1, column id: 1\.5 is not a INTEGER"):
        rows(server, "wrong")
    with pytest.raises(TableError, match="row 1, column x: nan is not a DOUBLE"):
        rows(server, "wrong", SCHEMA.select((2,)))
    with pytest.raises(TableError, match="has no column size"):
        rows(server, "Desks", Schema.of(("size", DataType.TEXT)))
    with pytest.raises(TableError, match="does not answer") as absent:
        rows(server.replace("/postgres", "/none"), "Desks")
    assert 'database "none" does not exist' in absent.value.message
    assert "secret" not in str(absent.value)


def desks(url: str, name: str) -> SourceDefinition:
    options = (("source", "sql"), ("url", url), ("table", name))
    return SourceDefinition("desks", SourceKind.TABLE, SCHEMA, options=options)


@pytest.fixture
def proxied(server: str) -> Iterator[tuple[CuttingProxy, str]]:
    address = make_url(server)
    assert address.port is not None
    with cutting_proxy(address.port) as proxy:
        yield proxy, address.set(port=proxy.own_port).render_as_string(hide_password=False)
    gc.collect()  # cursors whose connection was cut, while their warnings are expected


def test_a_connection_that_is_cut_at_any_byte_keeps_the_version(
    proxied: tuple[CuttingProxy, str], tmp_path: Path
) -> None:
    proxy, url = proxied
    store = TableStore(Locations(tmp_path), tmp_path / "snapshots", memory_rows=10_000)
    proxy.left = 1 << 60
    store.load(desks(url, "floor.many"))
    whole = (1 << 60) - proxy.left
    before = store.find("desks")
    assert before is not None
    assert before.row_count == 45_000
    for sixteenth in range(0, 16, 2):
        proxy.left = whole * sixteenth // 16
        with pytest.raises(TableError) as cut:
            store.load(desks(url, "floor.many"))
        assert cut.value.message.startswith("table desks: database ")
        assert "does not answer" in cut.value.message
        assert "secret" not in str(cut.value)
        assert store.find("desks") is before
        assert len(list((tmp_path / "snapshots").iterdir())) == 1  # nothing half read is left
    proxy.left = None
    store.load(desks(url, "floor.many"))
    after = store.find("desks")
    assert after is not None
    assert after.row_count == 45_000


def test_a_server_that_ends_its_connections_is_read_again_when_it_is_back(
    server: str, tmp_path: Path
) -> None:
    clock = SettableClock(100.0)
    store = TableStore(Locations(tmp_path), tmp_path / "snapshots", memory_rows=100_000)
    watch = TableWatch(store, clock)
    watch.define((desks(server, "floor.many"),))
    used = frozenset({"desks"})
    watch.poll(used)
    assert watch.problem("desks") is None
    before = store.find("desks")
    engine = create_engine(server, poolclass=NullPool)
    reading = read_table(desks(server, "floor.many"), Locations(tmp_path))
    with engine.begin() as connection:
        next(iter(reading))
        connection.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> "
                 "pg_backend_pid() AND application_name = 'pando'")
        )  # fmt: skip
        connection.execute(text("ALTER TABLE floor.many RENAME TO away"))
        connection.execute(text("INSERT INTO floor.away SELECT 0, 'new', x, seen, took, false "
                                "FROM floor.away WHERE id = 1"))  # fmt: skip
    with pytest.raises(TableError, match="does not answer: terminating connection"):
        list(reading)
    watch.read_again("desks")
    watch.poll(used)
    problem = watch.problem("desks")
    assert problem is not None
    assert "no table or view 'many'" in problem.message
    assert store.find("desks") is before
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE floor.away RENAME TO many"))
    clock.now += 600
    watch.poll(used)
    assert watch.problem("desks") is None
    table = store.find("desks")
    assert table is not None
    assert table.row_count == 45_001
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM floor.many WHERE id = 0"))
    engine.dispose()


@pytest.mark.parametrize("left", [2_000, 50_000])
def test_a_lookup_that_is_cut_is_an_error_and_the_next_one_is_answered(
    proxied: tuple[CuttingProxy, str], left: int
) -> None:
    proxy, url = proxied
    ids = DataType.INTEGER
    request = LookupRequest((0,), (ids,), (), frozenset(range(len(SCHEMA))))

    def found() -> int:
        lookup = DatabaseLookup(desks(url, "floor.many"), make_url(url), "floor.many", request)
        return sum(batch.num_rows for batch in lookup.batches([(n,) for n in range(1, 4_001)]))

    proxy.left = left
    with pytest.raises(TableError, match="does not answer"):
        found()
    proxy.left, proxy.is_away = None, True
    with pytest.raises(TableError, match="does not answer"):
        found()
    proxy.is_away = False
    assert found() == 4_000


@pytest.mark.parametrize("sign", ["<", "=", "IN"])
def test_a_constant_may_be_larger_than_the_type_of_its_column(server: str, sign: str) -> None:
    """Column `id` of `floor.many` has 32 bits."""
    columns = (Column(0, "id", DataType.INTEGER), Literal(2**40, DataType.INTEGER))
    test = Call(sign, columns, DataType.BOOLEAN)
    definition = desks(server, "floor.many")
    part = Narrowed("desks", definition, (test,))
    found = sum(batch.num_rows for batch in read_table(definition, Locations(Path()), part))
    assert found == (45_000 if sign == "<" else 0)
