"""Joins whose ON holds subqueries answer as PostgreSQL does, also after rows have come and gone."""

import contextlib
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest

from deploy.session import LocalSession
from streamsql.data.types import Row
from tests.conformance.duckdb_peer import rounded
from tests.conformance.postgres_peer import PostgresPeer, postgres_peer

pytestmark = pytest.mark.postgres

TABLES = (
    "CREATE TABLE l (k INTEGER, a INTEGER)",
    "INSERT INTO l VALUES (0, 1), (0, 1), (0, 2), (1, 0), (1, NULL), (2, 3), (NULL, 1), (3, 2), "
    "(3, 3), (2, 0), (NULL, NULL), (1, 2)",
    "CREATE TABLE r (k INTEGER, b INTEGER)",
    "INSERT INTO r VALUES (0, 2), (0, 2), (0, NULL), (1, 3), (1, 0), (2, 1), (NULL, 2), (3, 0), "
    "(3, 1), (1, 1), (NULL, NULL), (2, 2)",
    "CREATE TABLE t (k INTEGER, x INTEGER, y INTEGER)",
    "INSERT INTO t VALUES (0, 1, 2), (1, 2, 0), (1, 0, 3), (2, NULL, 1), (3, 3, NULL), (NULL, 1, 1)"
    ", (0, 2, 2)",
)
CHANGES = (
    "DELETE FROM t WHERE y = 2",
    "DELETE FROM l WHERE k = 0",
    "INSERT INTO t VALUES (2, 2, 1), (1, 1, 1)",
    "DELETE FROM r WHERE b IS NULL",
    "DELETE FROM t WHERE x IS NULL OR y IS NULL",
)
OF_ONE_SIDE = (
    "EXISTS (SELECT 1 FROM t WHERE t.x = l.a)",
    "EXISTS (SELECT 1 FROM t WHERE t.x = r.b)",
    "l.a IN (SELECT x FROM t)",
    "l.a NOT IN (SELECT x FROM t)",
    "r.b NOT IN (SELECT x FROM t WHERE x IS NOT NULL)",
    "l.a > (SELECT MIN(x) FROM t)",
    "r.b >= (SELECT AVG(x) FROM t WHERE t.k = l.k)",
    "(EXISTS (SELECT 1 FROM t WHERE t.x = l.a) OR l.a IS NULL)",
    "(r.b IN (SELECT x FROM t WHERE t.k = r.k) OR l.a = 1)",
    "(SELECT MAX(y) FROM t WHERE t.x = l.a) > 1",
    "l.a IN (SELECT x FROM t) IS NOT TRUE",
    "r.b IN (SELECT t.x FROM t WHERE t.y IN (SELECT k FROM l l2 WHERE l2.a = t.k))",
)
OF_BOTH = (
    "NOT EXISTS (SELECT 1 FROM t WHERE t.x = l.a AND t.y = r.b)",
    "EXISTS (SELECT 1 FROM t WHERE t.x < l.a AND t.y > r.b)",
    "r.b NOT IN (SELECT x FROM t WHERE t.y = l.a)",
    "(l.a, r.b) IN (SELECT x, y FROM t)",
    "(l.a, r.b) NOT IN (SELECT x, y FROM t)",
    "l.a + r.b < (SELECT SUM(x) FROM t WHERE t.k = l.k AND t.y <> r.b)",
    "l.a = (SELECT COUNT(*) FROM t WHERE t.x = r.b)",
    "l.a <= ALL (SELECT x FROM t WHERE x > r.b)",
    "COALESCE((SELECT MAX(y) FROM t WHERE t.x = r.b AND t.k = l.k), 1) > 0",
)
OF_NONE = (
    "EXISTS (SELECT 1 FROM t)",
    "EXISTS (SELECT 1 FROM t WHERE x > 100)",
    "NOT EXISTS (SELECT 1 FROM t WHERE x > 100)",
)
HELD = (*OF_ONE_SIDE, *OF_BOTH, *OF_NONE)
CHAINS = tuple(
    query
    for held in (*OF_ONE_SIDE[:4], *OF_BOTH[:4], OF_NONE[0])
    for query in (
        f"SELECT l.k, l.a, r.b, z.x FROM l JOIN r ON l.k = r.k AND {held} FULL JOIN t z "
        "ON z.k = r.k",
        f"SELECT l.k, l.a, r.b, z.x FROM l LEFT JOIN r ON l.k = r.k AND {held} RIGHT JOIN t z "
        "ON z.k = l.k AND EXISTS (SELECT 1 FROM l i WHERE i.a = z.x AND i.k = r.k) "
        "WHERE z.y IN (SELECT b FROM r)",
        f"SELECT x.k, x.n FROM (SELECT l.k, COUNT(r.k) AS n FROM l LEFT JOIN r ON {held} "
        "GROUP BY l.k) x WHERE x.n > 0",
    )
)


@pytest.fixture(scope="module")
def peer() -> Iterator[PostgresPeer]:
    with postgres_peer("subqueries-in-joins") as found:
        yield found


@pytest.fixture(scope="module")
def states(peer: PostgresPeer) -> Iterator[list[tuple[LocalSession, str]]]:
    """Sessions before the changes and after, and the schema of PostgreSQL with the same rows."""
    made = []
    for schema, statements in (("before", TABLES), ("after", (*TABLES, *CHANGES))):
        session = LocalSession("stream")
        peer._connection.execute(f"CREATE SCHEMA {schema}; SET search_path = {schema}")
        for statement in statements:
            session.run(statement)
            peer._connection.execute(statement)
        made.append((session, schema))
    with contextlib.ExitStack() as closing:
        for session, _ in made:
            closing.callback(session.close)
        yield made


def _answer(peer: PostgresPeer, query: str) -> Counter[Row]:
    """Return the answer; PostgreSQL joins FULL by equalities only, so that is put together."""
    try:
        return peer.answer(query)
    except psycopg.errors.FeatureNotSupported:
        left, right = (peer.answer(query.replace("FULL", side)) for side in ("LEFT", "RIGHT"))
        both = left + right
        both.subtract(peer.answer(query.replace("FULL JOIN", "JOIN")))
        return +both


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
def test_an_outer_join_keeps_what_has_no_partner(
    kind: str, held: str, peer: PostgresPeer, states: list[tuple[LocalSession, str]]
) -> None:
    also = HELD[(HELD.index(held) + 5) % len(HELD)]
    for on in (held, f"l.k = r.k AND {held} AND {also}"):
        query = f"SELECT l.k, l.a, r.k, r.b FROM l {kind} JOIN r ON {on}"
        _check(query, peer, states)


@pytest.mark.parametrize("query", CHAINS)
def test_joins_before_and_behind_it_see_its_rows(
    query: str, peer: PostgresPeer, states: list[tuple[LocalSession, str]]
) -> None:
    _check(query, peer, states)


def _check(query: str, peer: PostgresPeer, states: list[tuple[LocalSession, str]]) -> None:
    for session, schema in states:
        peer._connection.execute(f"SET search_path = {schema}")
        (result,) = session.run(query)
        assert Counter(map(rounded, result.rows)) == _answer(peer, query), (schema, query)
