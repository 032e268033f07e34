"""PostgreSQL as oracle: reads what the generator wrote, by a parser and binder of its own."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import psycopg
from psycopg import errors
from typing_extensions import override

from streamsql.data.types import Row
from tests.conformance.duckdb_peer import rounded
from tests.random_queries.oracles import Held, Oracle, Tally
from tests.random_queries.postgres_dialect import DECLARATIONS, SCHEMA, kind_of, translated
from tests.random_queries.queries import Case
from tests.random_queries.schemas import SECOND, Batch, Relation
from tests.random_queries.scopes import postgres
from tests.static_engine.postgres_server import postgres_server

TIMEOUT = "10 s"
EMPTY = -1
"""Step of tables without rows, over which a query is only planned."""
NOT_JUDGED = (
    errors.FeatureNotSupported,
    errors.DataException,
    errors.CardinalityViolation,
    errors.QueryCanceled,
)
"""What may keep it from an answer; by any other error it refuses what we answer."""

Loaded = tuple[tuple[Relation, ...], tuple[Batch, ...]]


class Postgres(Oracle):
    """A connection on which many queries are asked of the same rows.

    Every batch has a schema of its own with the rows that are held after it: they are loaded once.
    """

    name = "PostgreSQL"

    def __init__(self, url: str) -> None:
        address = url.replace("+psycopg", "")
        # A prepared statement would outlive the tables it was prepared for.
        self._connection = psycopg.connect(address, autocommit=True, prepare_threshold=None)
        for text in (f"SET statement_timeout = '{TIMEOUT}'", "SET jit = off", *DECLARATIONS):
            self._connection.execute(text.encode())
        self._loaded: Loaded = ((), ())
        self._filled: set[int] = set()

    def close(self) -> None:
        """Leave it."""
        self._connection.close()

    @override
    def open(self, case: Case, tally: Tally) -> bool:
        # The tables of the case before stay where they are the same.
        assert not case.views
        assert not case.windows
        wanted = case.relations, case.batches
        if wanted != self._loaded:
            for step in self._filled:
                self._run(f"DROP SCHEMA {_schema(step)} CASCADE")
            self._filled.clear()
            self._loaded = wanted
        return True

    @override
    def answer(self, case: Case, step: int, held: Held, tally: Tally) -> Counter[Row] | None:
        if step not in self._filled:
            self._fill(case, step, held)
        self._run(f"SET search_path = {SCHEMA}, {_schema(step)}, pg_catalog")
        try:
            found = self._connection.execute(asked(case).encode()).fetchall()
        except NOT_JUDGED as error:
            message = str(error).split("\n", maxsplit=1)[0]
            tally.skipped[f"PostgreSQL: {message[:80]}"] += 1
            return None
        return Counter(rounded(tuple(map(_plain, row))) for row in found)

    @override
    def refuses(self, case: Case) -> bool:
        self.open(case, Tally())
        if EMPTY not in self._filled:
            self._fill(case, EMPTY, lambda _: [])
        self._run(f"SET search_path = {SCHEMA}, {_schema(EMPTY)}, pg_catalog")
        try:
            self._run(f"EXPLAIN {asked(case)}")
        except psycopg.Error:
            return True
        return False

    def _fill(self, case: Case, step: int, held: Held) -> None:
        schema = _schema(step)
        self._run(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")
        for relation in case.relations:
            listed = ", ".join(f"{name} {kind_of(kind)}" for name, kind in relation.columns)
            table = f"{schema}.{relation.name}"
            self._run(f"CREATE TABLE {table} ({listed})")
            marks = ", ".join("%s" for _ in relation.columns)
            rows = [_sent(relation, row) for row in held(relation.name)]
            with self._connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {table} VALUES ({marks})".encode(), rows)
        self._filled.add(step)

    def _run(self, text: str) -> None:
        self._connection.execute(text.encode())


def asked(case: Case) -> str:
    """Return the query as PostgreSQL is asked it."""
    return translated(postgres(case.query))


def _schema(step: int) -> str:
    return f"held_{step}" if step != EMPTY else "held_never"


def _sent(relation: Relation, row: Row) -> list[Any]:
    return [
        datetime.fromtimestamp(value / SECOND, UTC).replace(tzinfo=None)
        if kind == "TIMESTAMP" and isinstance(value, int)
        else value
        for value, (_, kind) in zip(row, relation.columns, strict=True)
    ]


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return round(value.replace(tzinfo=UTC).timestamp() * SECOND)
        case Decimal():
            return float(value)
        case _:
            return value


@contextlib.contextmanager
def postgres_oracle(name: str) -> Iterator[Postgres]:
    """Run a server, connected."""
    with postgres_server(name) as url, contextlib.closing(Postgres(url)) as oracle:
        yield oracle
