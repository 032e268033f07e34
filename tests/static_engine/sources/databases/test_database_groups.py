"""Groups that a database computes are those of the reference and of the database's own SQL."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import tables_of
from static_engine.sources.databases.database_groups import compared_columns
from static_engine.sources.table_errors import TableError, TableMissingError
from static_engine.sources.table_locations import Locations, database_url
from static_engine.sources.table_reader import read_table
from static_engine.tables.narrowed_tables import NarrowedTables
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import Aggregate, Plan, SourceKind, walk_plan
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from tests.static_engine.postgres_server import postgres_server
from tests.streamsql.from_text import bound_query

pytestmark = pytest.mark.timeout(400)

COLUMNS = Schema.of(
    ("id", DataType.INTEGER),
    ("kind", DataType.INTEGER),
    ("name", DataType.TEXT),
    ("flag", DataType.BOOLEAN),
    ("big", DataType.INTEGER),
    ("x", DataType.DOUBLE),
)
NAMES = (None, "", "a", "A", "a ", "ä", "Ä", "it's %")
"""Some are equal where case does not count."""
LARGEST = 2**63 - 1


def rows_of_table(seed: int = 1) -> list[Row]:
    rng = random.Random(seed)
    return [
        (
            n,
            rng.choice((None, -3, 0, 1, 32_767)),
            rng.choice(NAMES),
            rng.choice((None, False, True)),
            rng.choice((None, 0, -1, LARGEST // 100, -LARGEST // 100)),
            rng.choice((None, 0.5)),
        )
        for n in range(300)
    ]


TABLES = {
    # Of the database: the type of texts in table t, and in the oracle's o; what comes before.
    "sqlite": ("TEXT COLLATE NOCASE", "TEXT", ""),
    "postgresql": (
        'varchar(20) COLLATE "caseless"', 'text COLLATE "C"',
        "CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', "
        "deterministic = false)",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Server:
    """A database with table t, and o with the same rows whose texts are equal as ours are."""

    url: str
    folder: Path
    schema: Schema = COLUMNS
    table: str = "t"

    def execute(self, statement: str, rows: list[Row] | None = None) -> list[Row]:
        engine = create_engine(self.url, poolclass=NullPool)
        with engine.begin() as connection:
            if rows is not None:
                marks = ", ".join(f":v{n}" for n in range(len(rows[0])))
                given = [{f"v{n}": value for n, value in enumerate(row)} for row in rows]
                connection.execute(text(f"{statement} VALUES ({marks})"), given)
                return []
            found = connection.execute(text(statement))
            return [tuple(row) for row in found] if found.returns_rows else []

    def definition(self) -> SourceDefinition:
        options = (("source", "sql"), ("url", self.url), ("table", self.table))
        return SourceDefinition("t", SourceKind.TABLE, self.schema, options=options)

    def compared(self) -> frozenset[int]:
        url = database_url(self.url, Locations(self.folder))
        return compared_columns(self.definition(), url, self.table)


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("groups")
    if request.param == "sqlite":
        yield filled(Server(f"sqlite:///{folder}/rows.db", folder), "sqlite")
        return
    with postgres_server("groups") as url:
        yield filled(Server(url, folder), "postgresql")


def filled(server: Server, kind: str) -> Server:
    inexact, exact, before = TABLES[kind]
    if before:
        server.execute(before)
    real = "REAL" if kind == "sqlite" else "float8"
    for name, letters in (("t", inexact), ("o", exact)):
        server.execute(
            f"CREATE TABLE {name} (id integer, kind smallint, name {letters}, flag boolean, "
            f"big bigint, x {real})"
        )
        server.execute(f"INSERT INTO {name}", rows_of_table())
    return server


@dataclass(frozen=True)
class Answer:
    """Rows of a query, by groups of the database or by its rows, and how many were read."""

    grouped: Counter[Row]
    by_rows: Counter[Row]
    read: list[int]
    plan: Plan
    problem: TableError | None = None


@cache
def columns_of(server: Server) -> frozenset[int]:
    return server.compared()


def stored(server: Server) -> tuple[TableStore, TableWatch]:
    store = TableStore(Locations(server.folder), server.folder / "snapshots", snapshots=False)
    watch = TableWatch(store)
    watch.define((server.definition(),))
    return store, watch


def asked(server: Server, query: str, whole: TableStore | None = None) -> Answer:
    """Ask a query in both ways; `whole` has all rows, where they were read before."""
    definition = server.definition()
    catalog = Catalog()
    catalog.define(definition)
    plan = bound_query(query, catalog).plan
    store, watch = stored(server)
    used = frozenset({"t"} if whole is None else ())

    def compared() -> dict[str, frozenset[int]]:
        return {"t": columns_of(server)} if watch.is_grouped("t") else {}

    narrowed = NarrowedTables(watch.definition, dict, compared)
    plans, parts = narrowed.plans([plan])
    watch.narrow(parts)
    watch.poll(tables_of(plans[plan]) | used)
    if not watch.is_grouped("t"):  # the database has refused: once more, over rows
        plans, parts = narrowed.plans([plan])
        watch.narrow(parts)
        watch.poll(tables_of(plans[plan]) | used)
    for problem in filter(None, map(watch.problem, parts or ("t",))):
        return Answer(Counter(), Counter(), [], plans[plan], problem)
    executor = LocalExecutor(store)
    read = [t.row_count for name in parts if (t := store.find(name)) is not None]
    whole = whole or store
    by_rows = LocalExecutor(whole).evaluate(plan) if whole.find("t") is not None else {}
    return Answer(Counter(executor.evaluate(plans[plan])), Counter(by_rows), read, plans[plan])


def is_grouped(plan: Plan) -> bool:
    return not any(isinstance(node, Aggregate) for node in walk_plan(plan))


def query(rng: random.Random) -> tuple[str, str]:
    """Return a query in our language and in that of the oracle."""
    keys = rng.sample(("kind", "name", "flag"), rng.randrange(4))
    calls = rng.sample(
        (
            "COUNT(*)", "COUNT(name)", "COUNT(DISTINCT name)", "COUNT(flag)", "SUM(big)",
            "SUM(kind)", "SUM(DISTINCT kind)", "MIN(kind)", "MAX(big)", "AVG(kind)",
            "AVG(DISTINCT id)", "COUNT(DISTINCT kind)",
        ),
        rng.randrange(0 if keys else 1, 4),
    )  # fmt: skip
    columns = ", ".join([*keys, *(f"{call} AS c{n}" for n, call in enumerate(calls))])
    where = f" WHERE {condition(rng)}" if rng.random() < 0.8 else ""
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    theirs = columns
    for name in ("kind", "DISTINCT id"):
        plain = f"CAST(SUM({name}) AS {{real}}) / COUNT({name})"
        theirs = theirs.replace(f"AVG({name})", plain)
    return f"SELECT {columns} FROM t{where}{by}", f"SELECT {theirs} FROM o{where}{by}"


def condition(rng: random.Random, depth: int = 2) -> str:
    if depth and rng.random() < 0.6:
        word = rng.choice((" AND ", " OR "))
        return "(" + word.join(condition(rng, depth - 1) for _ in range(2)) + ")"
    sign, number = rng.choice(("=", "<>", "<", "<=", ">", ">=")), rng.choice((-3, 0, 99, 2**40))
    name = (rng.choice(NAMES) or "").replace("'", "''")
    return rng.choice(
        (
            f"id {sign} {rng.randrange(300)}",
            f"kind {sign} {number}",
            f"{number} {sign} big",
            f"kind {sign} big",
            f"kind IN ({number}, 1)",
            f"name = '{name}'",
            f"name IN ('A', '{name}')",
            "flag",
            rng.choice(("kind", "name", "flag")) + rng.choice((" IS NULL", " IS NOT NULL")),
        )
    )


@pytest.mark.parametrize("seed", range(2))
def test_the_groups_are_those_of_the_database_and_of_the_reference(
    server: Server, seed: int
) -> None:
    rng = random.Random(seed)
    real = "REAL" if server.url.startswith("sqlite") else "float8"
    whole, watch = stored(server)
    watch.poll(frozenset({"t"}))
    for _ in range(25):
        ours, theirs = query(rng)
        answer = asked(server, ours, whole)
        assert is_grouped(answer.plan), ours
        assert answer.grouped == answer.by_rows, ours
        oracle = Counter(map(plain, server.execute(theirs.replace("{real}", real))))
        assert answer.grouped == oracle, ours
        assert answer.read == [oracle.total()], ours


def plain(row: Row) -> Row:
    """Return a row of the oracle in our types: sums of PostgreSQL are decimal numbers."""
    return tuple(
        int(value) if value is not None and not isinstance(value, str | bool | float) else value
        for value in row
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name, MIN(name) AS m FROM t GROUP BY name",
        "SELECT kind, SUM(x) AS s FROM t GROUP BY kind",
        "SELECT x, COUNT(*) AS n FROM t GROUP BY x",
        "SELECT COUNT(*) AS n FROM t WHERE name < 'b'",
        "SELECT COUNT(*) AS n FROM t WHERE name <> 'a'",
        "SELECT COUNT(*) AS n FROM t WHERE kind > 0 AND x > 0.1",
        "SELECT COUNT(*) AS n FROM t WHERE kind > 0 OR x > 0.1",
        "SELECT k, COUNT(*) AS n FROM (SELECT kind + 1 AS k FROM t) AS q GROUP BY k",
        "SELECT kind, SUM(id + 1) AS s FROM t GROUP BY kind",
        "SELECT kind, ARRAY_AGG(id) AS a FROM t GROUP BY kind",
    ],
)
def test_what_may_mean_something_else_is_computed_from_rows(server: Server, query: str) -> None:
    answer = asked(server, query)
    assert not is_grouped(answer.plan)
    assert answer.grouped == answer.by_rows


def test_a_sum_beyond_64_bits_is_null_as_everywhere(server: Server) -> None:
    """SQLite cannot compute it and says so; then rows are read."""
    large = replace(
        server, schema=Schema.of(("k", DataType.INTEGER), ("v", DataType.INTEGER)), table="large"
    )
    server.execute("DROP TABLE IF EXISTS large")
    server.execute("CREATE TABLE large (k integer, v bigint)")
    server.execute("INSERT INTO large", [(1, LARGEST), (1, 1), (2, LARGEST), (2, -5)])
    answer = asked(large, "SELECT k, SUM(v) AS s, AVG(v) AS a FROM t GROUP BY k")
    assert answer.grouped == answer.by_rows
    assert {row[:2] for row in answer.grouped} == {(1, None), (2, LARGEST - 5)}
    assert is_grouped(answer.plan) == (not server.url.startswith("sqlite"))


TYPES = {
    "sqlite": {
        "integer": 0,
        "char(5)": None,
        "text": 1,
        "varchar(9)": 1,
        "boolean": 2,
        "real": None,
        "nvarchar(9)": None,
    },
    "postgresql": {
        "smallint": 0,
        "bigint": 0,
        "numeric": None,
        "char(5)": None,
        "text": 1,
        "varchar": 1,
        "boolean": 2,
        "name": None,
        '"char"': None,
        "mood": None,
        "letters": None,
    },
}


def test_types_that_compare_otherwise_are_not_grouped(server: Server) -> None:
    kind = make_url(server.url).get_backend_name()
    if kind == "postgresql":
        server.execute("CREATE TYPE mood AS ENUM ('a', 'b')")
        server.execute("CREATE DOMAIN letters AS text")
    types = TYPES[kind]
    columns = ", ".join(f"c{n} {type_}" for n, type_ in enumerate(types))
    server.execute(f"CREATE TABLE typed ({columns})")
    for declared in range(4):
        dtype = (DataType.INTEGER, DataType.TEXT, DataType.BOOLEAN, DataType.DOUBLE)[declared]
        schema = Schema.of(*((f"c{n}", dtype) for n in range(len(types))))
        found = replace(server, schema=schema, table="typed").compared()
        assert found == {n for n, place in enumerate(types.values()) if place == declared}


def test_values_that_are_not_of_their_column_are_found(tmp_path: Path) -> None:
    """SQLite keeps any value in any column: the error is that of reading rows."""
    server = filled(Server(f"sqlite:///{tmp_path}/rows.db", tmp_path), "sqlite")
    good = asked(server, "SELECT kind, COUNT(*) AS n FROM t WHERE id < 100 GROUP BY kind")
    assert is_grouped(good.plan)
    server.execute("UPDATE t SET kind = 'many' WHERE id = 7")
    other = asked(server, "SELECT kind, COUNT(*) AS n FROM t WHERE id > 7 GROUP BY kind")
    assert is_grouped(other.plan)
    for text_ in (
        "SELECT kind, COUNT(*) AS n FROM t WHERE id < 100 GROUP BY kind",
        "SELECT COUNT(*) AS n FROM t WHERE kind > 0",
        "SELECT flag, MAX(kind) AS n FROM t GROUP BY flag",
    ):
        answer = asked(server, text_)
        assert not is_grouped(answer.plan)
        assert answer.problem is not None
        assert "'many'" in answer.problem.message
    server.execute("UPDATE t SET kind = 1, flag = 2 WHERE id = 7")
    answer = asked(server, "SELECT flag, COUNT(*) AS n FROM t GROUP BY flag")
    assert answer.problem is not None


@pytest.mark.parametrize("condition", ["flag", "flag OR id = 1", "NOT flag", "flag IS NULL"])
def test_truth_of_another_type_is_not_left_out(condition: str, tmp_path: Path) -> None:
    server = filled(Server(f"sqlite:///{tmp_path}/rows.db", tmp_path), "sqlite")
    server.execute("UPDATE t SET flag = 'true' WHERE id IN (5, 7)")
    answer = asked(server, f"SELECT COUNT(*) AS n FROM t WHERE {condition}")
    assert not is_grouped(answer.plan)
    texts = "CASE WHEN flag = 'true' THEN 1 ELSE flag END"
    expected = server.execute(
        f"SELECT COUNT(*) FROM (SELECT id, {texts} AS flag FROM t) AS t WHERE {condition}"
    )
    assert answer.problem is None
    assert answer.by_rows == answer.grouped == Counter(expected)


def test_a_table_that_refused_is_read_until_it_is_defined_anew(tmp_path: Path) -> None:
    server = filled(Server(f"sqlite:///{tmp_path}/rows.db", tmp_path), "sqlite")
    server.execute("UPDATE t SET kind = 'many' WHERE id = 7")
    store = TableStore(Locations(tmp_path), tmp_path / "snapshots", snapshots=False)
    watch = TableWatch(store)
    watch.define((server.definition(),))
    catalog = Catalog()
    catalog.define(server.definition())
    plan = bound_query("SELECT COUNT(kind) AS n FROM t", catalog).plan
    narrowed = NarrowedTables(watch.definition, dict, lambda: {"t": server.compared()})
    _, parts = narrowed.plans([plan])
    watch.narrow(parts)
    assert watch.is_grouped("t")
    watch.poll(frozenset(parts))
    assert not watch.is_grouped("t")
    watch.define((server.definition(),))
    assert not watch.is_grouped("t")
    watch.define((replace(server, schema=COLUMNS.select((1, 2))).definition(),))
    assert watch.is_grouped("t")


def test_a_column_or_table_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    server = filled(Server(f"sqlite:///{tmp_path}/rows.db", tmp_path), "sqlite")
    part_of = NarrowedTables(
        lambda _name: server.definition(), dict, lambda: {"t": frozenset(range(6))}
    )
    catalog = Catalog()
    catalog.define(server.definition())
    plan = bound_query("SELECT COUNT(kind) AS n FROM t", catalog).plan
    (part,) = part_of.plans([plan])[1].values()
    server.execute("ALTER TABLE t RENAME COLUMN kind TO sort")
    with pytest.raises(TableError, match="has no column kind"):
        list(read_table(part.definition, Locations(tmp_path), part))
    server.execute("DROP TABLE t")
    with pytest.raises(TableMissingError, match="no table or view 't'"):
        list(read_table(part.definition, Locations(tmp_path), part))
