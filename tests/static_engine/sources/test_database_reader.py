"""Tables in PostgreSQL, on a private server of this test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from static_engine.sources.table_errors import TableError, TableMissingError
from static_engine.sources.table_locations import Locations
from static_engine.sources.table_reader import read_table
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from tests.static_engine.postgres_server import postgres_server

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(400)]

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
