"""The same statements in PostgreSQL, on a server of the test's own."""

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg

from streamsql.data.types import Row
from tests.conformance.duckdb_peer import rounded
from tests.static_engine.postgres_server import postgres_server

REFUSED = psycopg.errors.Error


class PostgresPeer:
    """A connection whose tables are temporary; what it is asked is bounded in time."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
        self._connection.execute("SET statement_timeout = '20 s'")

    def close(self) -> None:
        """Leave it."""
        self._connection.close()

    def begin(self) -> None:
        """Drop all tables and views."""
        self._connection.execute("DISCARD TEMP")

    def run(self, text: str) -> None:
        """Run a statement that defines or fills something, as it is written in StreamSQL."""
        made = re.sub(r"^CREATE (SOURCE|TABLE)\b", "CREATE TEMP TABLE", text)
        made = re.sub(r"^CREATE VIEW\b", "CREATE TEMP VIEW", made)
        self._connection.execute(re.sub(r"\bDOUBLE\b", "DOUBLE PRECISION", made))

    def fill(self, table: str, rows: list[Row]) -> None:
        """Replace a table's rows."""
        self._connection.execute(f'DELETE FROM "{table}"')
        if rows:
            marks = ", ".join("%s" for _ in rows[0])
            with self._connection.cursor() as cursor:
                cursor.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows)

    def answer(self, text: str) -> Counter[Row]:
        """Return the bag of rows of a query, comparable with `rounded` rows."""
        rows = self._connection.execute(text).fetchall()
        return Counter(rounded(tuple(map(_plain, row))) for row in rows)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


@contextlib.contextmanager
def postgres_peer(name: str) -> Iterator[PostgresPeer]:
    """Run a server, connected."""
    with postgres_server(name) as url, contextlib.closing(PostgresPeer(url)) as peer:
        yield peer
