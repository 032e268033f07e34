"""Keys looked up in databases: what PostgreSQL finds is at least what the language finds."""

import itertools
from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

from static_engine.sources.databases.database_lookup import (
    DatabaseLookup,
    LookupRequest,
    NoLookupError,
)
from static_engine.sources.databases.database_sizes import estimated_rows
from static_engine.sources.values.conversion import rows_in
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import Filter, SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.reference import Database, evaluate
from tests.static_engine.postgres_server import postgres_server

INTEGER, TEXT, BOOLEAN = DataType.INTEGER, DataType.TEXT, DataType.BOOLEAN
SCHEMA = Schema.of(("id", INTEGER), ("name", TEXT), ("size", INTEGER))
IDS = (None, -1, 0, 1, 2**62)
NAMES = (None, "", "a", "A", "a ", "ä", "%", "'")
ROWS = [
    (i, n, s) for (i, n), s in zip(itertools.product(IDS, NAMES), itertools.cycle((None, 0, 7)))
]


def fill(url: str) -> None:
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        for kinds in ("bigint|text", "bigint|char(4)", "numeric|text"):
            whole, letters = kinds.split("|")
            name = f'"{kinds}"'
            connection.execute(
                text(f"CREATE TABLE {name} (ID {whole}, name {letters}, size bigint)")
            )
            for row in ROWS:
                values = dict(zip(("i", "n", "s"), row, strict=True))
                connection.execute(text(f"INSERT INTO {name} VALUES (:i, :n, :s)"), values)
    engine.dispose()


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "sqlite":
        made = f"sqlite:///{tmp_path_factory.mktemp('lookup')}/rows.db"
        fill(made)
        yield made
        return
    with postgres_server("lookup") as made:
        fill(made)
        yield made


def definition(url: str, kinds: str) -> SourceDefinition:
    options = (("source", "sql"), ("url", url), ("table", kinds))
    return SourceDefinition("t", SourceKind.TABLE, SCHEMA, options=options)


def found(url: str, kinds: str, request: LookupRequest, keys: list[Row]) -> list[Row]:
    lookup = DatabaseLookup(definition(url, kinds), make_url(url), kinds, request)
    return list(rows_in(*lookup.batches(keys)))


@pytest.mark.timeout(400)
@pytest.mark.parametrize("columns", [(0,), (1,), (0, 1)])
def test_the_rows_of_keys_are_found(url: str, columns: tuple[int, ...]) -> None:
    values: list[Row] = [IDS[1:], (*NAMES[1:], "no\0such")]
    keys: list[Row] = list(itertools.product(*(values[c] for c in columns)))
    request = LookupRequest(
        columns, tuple(SCHEMA.dtypes[c] for c in columns), columns=frozenset(range(3))
    )
    chosen = keys[::2]
    got = found(url, "bigint|text", request, chosen)
    assert sorted(got, key=repr) == sorted(
        (row for row in ROWS if tuple(row[c] for c in columns) in chosen), key=repr
    )


@pytest.mark.timeout(400)
def test_many_keys_and_columns_that_nobody_reads(url: str) -> None:
    request = LookupRequest((0,), (INTEGER,))
    keys: list[Row] = [(n,) for n in range(12_000)]
    got = found(url, "bigint|text", request, keys)
    assert got == [(row[0], None, None) for row in ROWS if row[0] in (0, 1)]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("kinds", "column"), [("bigint|char(4)", 1), ("numeric|text", 0)])
def test_types_that_compare_otherwise_are_not_asked(url: str, kinds: str, column: int) -> None:
    request = LookupRequest((column,), (SCHEMA.dtypes[column],))
    with pytest.raises(NoLookupError):
        found(url, kinds, request, [(1,) if column == 0 else ("a",)])


def column(position: int) -> Column:
    return Column(position, SCHEMA.names[position], SCHEMA.dtypes[position])


def call(name: str, *arguments: Expression) -> Call:
    return Call(name, arguments, BOOLEAN)


ONE, SMALL_A, NOTHING = Literal(1, INTEGER), Literal("a", TEXT), Literal(None, INTEGER)
CONDITIONS = {
    "id > 1": (call(">", column(0), ONE), True),
    "1 <= id": (call("<=", ONE, column(0)), True),
    "id <> size": (call("<>", column(0), column(2)), True),
    "name = 'a'": (call("=", column(1), SMALL_A), True),
    "name < 'a'": (call("<", column(1), SMALL_A), False),
    "name <> 'a'": (call("<>", column(1), SMALL_A), False),
    "name IS NULL": (call("IS NULL", column(1)), True),
    "size IS NOT NULL": (call("IS NOT NULL", column(2)), True),
    "id = NULL": (call("=", column(0), NOTHING), False),
    "id IN (1, NULL)": (call("IN", column(0), ONE, NOTHING), True),
    "name IN ('a', name)": (call("IN", column(1), SMALL_A, column(1)), False),
    "id = 1 AND name < 'a'": (
        call("AND", call("=", column(0), ONE), call("<", column(1), SMALL_A)),
        True,
    ),
    "id = 1 OR name < 'a'": (
        call("OR", call("=", column(0), ONE), call("<", column(1), SMALL_A)),
        False,
    ),
    "id = 1 OR name = 'a'": (
        call("OR", call("=", column(0), ONE), call("=", column(1), SMALL_A)),
        True,
    ),
    "NOT id = 1": (call("NOT", call("=", column(0), ONE)), False),
}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_pushed_condition_loses_no_row(url: str, name: str) -> None:
    """The oracle is the reference evaluator over all rows."""
    condition, is_pushed = CONDITIONS[name]
    keys: list[Row] = [(i,) for i in IDS[1:]]
    request = LookupRequest((0,), (INTEGER,), (condition,), frozenset(range(3)))
    lookup = DatabaseLookup(definition(url, "bigint|text"), make_url(url), "bigint|text", request)
    got = list(rows_in(*lookup.batches(keys)))
    assert (lookup.conditions == (condition,)) == is_pushed
    plan = Filter(definition(url, "bigint|text").scan(), condition)
    asked = [row for row in ROWS if row[0] is not None]

    def kept(rows: list[Row]) -> object:
        database = Database()
        database.append("t", [SourceEvent(row, 0) for row in rows])
        return evaluate(plan, database, 0)

    assert kept(got) == kept(list(asked))
    if is_pushed:
        assert len(got) < len(asked)


@pytest.mark.timeout(400)
def test_a_database_knows_about_how_many_rows_there_are(url: str) -> None:
    rows = estimated_rows(make_url(url), "bigint|text")
    assert rows is not None
    assert len(ROWS) / 2 <= rows <= 10 * len(ROWS)
    assert estimated_rows(make_url(url), "none") is None
