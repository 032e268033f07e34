"""INSERT … SELECT and MERGE on managed tables: random ones do what they do in PostgreSQL.

Duplicates and NULL in keys are frequent: what PostgreSQL refuses is refused, and changes nothing.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psycopg
import pytest
import sqlalchemy as sa

from federated_optimizer.coordinator.tables.table_change_requests import bound_change
from federated_optimizer.network.topology import Topology
from static_engine.changing.change_table import change_table
from static_engine.evaluation.changing_queries import ChangingQueries
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.history.past_readings import PastReadings
from static_engine.sources.table_errors import TableError
from static_engine.tables.narrowed_tables import NarrowedTables
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row
from streamsql.syntax import CreateSource, Delete, Insert, Merge, Update, parse_statement
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.stored_tables.table_changes import TableChange
from tests.static_engine.changing.changes import locations_of, rows_of
from tests.static_engine.postgres_server import postgres_server

pytestmark = pytest.mark.postgres

TABLES = (
    "CREATE TABLE desks (k INTEGER PRIMARY KEY, a TEXT, n INTEGER)",
    "CREATE TABLE moved (k INTEGER, a TEXT, n INTEGER)",
)
STATEMENTS = 30
REFUSED = {"21000": "change_failed", "23505": "duplicate_key", "23502": "duplicate_key"}
"""What PostgreSQL refuses, and our codes for it."""
SOURCES = (
    "moved AS s",
    "(SELECT k, a, n FROM moved WHERE n > {x}) AS s",
    "(SELECT k, MAX(a) AS a, COUNT(*) AS n FROM moved GROUP BY k) AS s",
    "(SELECT DISTINCT k, 'm' AS a, {x} AS n FROM moved WHERE k IS NOT NULL) AS s",
    "(SELECT m.k, t.a, m.n FROM moved AS m LEFT JOIN desks AS t ON t.k = m.n) AS s",
    "(SELECT k + {x} AS k, a, n FROM desks UNION ALL SELECT k, a, n FROM moved) AS s",
)
ON = ("d.k = s.k", "d.k = s.k AND d.n <> s.n", "d.a = s.a AND d.k = s.k")
MATCHED = (
    "WHEN MATCHED AND s.n > {x} THEN DELETE ",
    "WHEN MATCHED AND d.n = s.n THEN DO NOTHING ",
    "WHEN MATCHED AND s.a IS NULL THEN UPDATE SET n = d.n + 1, a = 'none' ",
)
OTHERS = (
    "WHEN NOT MATCHED AND s.k IS NULL THEN DO NOTHING ",
    "WHEN NOT MATCHED AND s.n > {x} THEN INSERT (k, n) VALUES (s.k, s.n * 2) ",
)
INSERTS = (
    "INSERT INTO desks SELECT * FROM moved WHERE n = {x}",
    "INSERT INTO desks (n, k) SELECT COUNT(*), k FROM moved WHERE k > {x} GROUP BY k",
    "INSERT INTO desks SELECT k + 100, a, n FROM desks WHERE n < {x}",
    "INSERT INTO desks (k, a) SELECT DISTINCT k, 'new' FROM moved AS m WHERE k IS NOT NULL "
    "AND NOT EXISTS (SELECT 1 FROM desks AS d WHERE d.k = m.k)",
    "INSERT INTO moved SELECT k, a, n FROM moved WHERE n = {x} "
    "UNION SELECT NULL, a, {x} FROM desks",
)


def random_statement(chance: random.Random) -> str:
    x = chance.randrange(5)
    kind = chance.random()
    if kind < 0.1:
        return f"DELETE FROM moved WHERE n > {x} OR k IS NULL"
    if kind < 0.2:
        return f"DELETE FROM desks WHERE k > {x + 8}"
    if kind < 0.45:
        return chance.choice(INSERTS).format(x=x)
    matched = chance.sample(MATCHED, chance.randrange(3))
    others = chance.sample(OTHERS, chance.randrange(3))
    if chance.random() < 0.7:
        matched.append("WHEN MATCHED THEN UPDATE SET a = s.a, n = s.n ")
    if chance.random() < 0.7 or not matched + others:
        others.append("WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.a, s.n) ")
    source, on = chance.choice(SOURCES), chance.choice(ON)
    return f"MERGE INTO desks AS d USING {source} ON {on} {''.join(matched + others)}".format(x=x)


def random_rows(chance: random.Random, count: int) -> str:
    def value() -> str:
        key = "NULL" if chance.random() < 0.1 else str(chance.randrange(12))
        text = chance.choice(["NULL", "'x'", "'y'"])
        return f"({key}, {text}, {chance.randrange(5)})"

    return ", ".join(value() for _ in range(count))


class NoViews:
    names: frozenset[str] = frozenset()


class Ours:
    """The same tables in a lake, changed as the static engine does it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.locations, self.catalog = folder, locations_of(folder), Catalog()
        for text in TABLES:
            statement = parse_statement(text)
            assert isinstance(statement, CreateSource)
            self.catalog.define(define(statement, self.catalog))
        self.store = TableStore(self.locations, folder / "snapshots", snapshots=False)
        self.watch = TableWatch(self.store, pause=lambda _: None)
        self.watch.define(tuple(self.catalog.tables))
        executor = LocalExecutor(self.store)
        self.querying = ChangingQueries(
            self.store, self.watch, PastReadings(None), NoViews(), lambda _: executor, self._compute
        )
        self.count = 0

    def say(self, text: str) -> None:
        statement = parse_statement(text)
        assert isinstance(statement, Insert | Delete | Merge | Update)
        change, _ = bound_change(statement, self.catalog, Topology({}, ("base",), "static"), 0)
        self.count += change.query is not None
        sent = decode_packed(encode_packed(change), TableChange)
        if sent.query is not None:
            assert asyncio.run(self.querying.rows(sent, 30.0)) is None
            narrowed = NarrowedTables(self.watch.definition, dict)  # however small they are
            self.watch.narrow(self.querying.narrow(narrowed, frozenset()))
            self.watch.poll(self.querying.tables())
            self.querying.polled()
            rows = asyncio.run(self.querying.rows(sent, 30.0))
            assert rows is not None
            sent = msgspec.structs.replace(sent, rows=rows, query=None)
        change_table(sent, self.locations)

    def rows(self, name: str) -> list[Row]:
        found = self.catalog.find(name)
        assert isinstance(found, SourceDefinition)
        return sorted(rows_of(self.folder, found), key=repr)

    @staticmethod
    async def _compute(work: Callable[[], None]) -> bool:
        work()
        return True


@pytest.fixture(scope="module")
def database() -> Iterator[sa.Engine]:
    with postgres_server("rows-of-queries") as url:
        engine = sa.create_engine(url)
        yield engine
        engine.dispose()


def asked(database: sa.Engine, text: str) -> str:
    """Run a statement; return the code with which PostgreSQL refuses it, or nothing."""
    try:
        with database.begin() as connection:
            connection.execute(sa.text(text))
    except sa.exc.DBAPIError as error:
        refusal = error.orig
    else:
        return ""
    assert isinstance(refusal, psycopg.Error)
    return str(refusal.sqlstate)


@pytest.mark.parametrize("seed", range(1))
def test_random_statements_change_tables_as_in_postgres(
    tmp_path: Path, database: sa.Engine, seed: int
) -> None:
    chance, ours = random.Random(seed), Ours(tmp_path)
    asked(database, "DROP TABLE IF EXISTS desks, moved")
    for text in TABLES:
        assert asked(database, text) == ""
    refused, changed = 0, 0
    before: list[list[Row]] = [[], []]
    for number in range(STATEMENTS):
        if number % 5 == 0:
            filled = f"INSERT INTO moved VALUES {random_rows(chance, 4)}"
            assert asked(database, filled) == ""
            ours.say(filled)
        text = random_statement(chance)
        code = asked(database, text)
        assert code in {"", *REFUSED}, text
        if code:
            refused += 1
            with pytest.raises(TableError) as refusal:
                ours.say(text)
            # Where a MERGE is wrong in two ways, PostgreSQL names the one that it meets first.
            expected = set(REFUSED.values()) if text.startswith("MERGE") else {REFUSED[code]}
            assert refusal.value.code in expected, (text, refusal.value)
        else:
            ours.say(text)
        for name in ("desks", "moved"):
            with database.connect() as connection:
                theirs = [tuple(r) for r in connection.execute(sa.text(f"SELECT * FROM {name}"))]
            assert ours.rows(name) == sorted(theirs, key=repr), text
        after = [ours.rows("desks"), ours.rows("moved")]
        changed, before = changed + (after != before), after
    assert refused >= 5
    assert changed >= 10
    assert ours.count >= STATEMENTS // 2
