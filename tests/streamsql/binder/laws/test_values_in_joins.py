"""Joins whose ON asks VALUES or other subqueries answer as DuckDB does, in engine and reference."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import duckdb
import pytest

from deploy.session import LocalSession

TABLES = (
    "CREATE TABLE l (k INTEGER, a INTEGER)",
    "CREATE TABLE r (k INTEGER, b INTEGER)",
    "INSERT INTO l VALUES (0, 1), (0, 1), (0, 2), (1, 0), (1, NULL), (2, 3), (NULL, 1)",
    "INSERT INTO r VALUES (0, 2), (0, NULL), (1, 3), (1, 0), (2, 1), (NULL, 2)",
)
CHANGES = (
    "DELETE FROM l WHERE k = 2",
    "DELETE FROM r WHERE b IS NULL",
    "INSERT INTO l VALUES (2, 1), (NULL, NULL)",
    "INSERT INTO r VALUES (0, 3), (NULL, NULL)",
)
CONDITIONS = (
    "l.a IN (VALUES (1), (2))",
    "r.b IN (VALUES (1), (2))",
    "l.a NOT IN (VALUES (1), (2))",
    "r.b NOT IN (VALUES (1), (NULL))",
    "NOT l.a IN (VALUES (1), (NULL))",
    "l.a + r.b NOT IN (VALUES (1), (2))",
    "(l.a, r.b) IN (VALUES (1, 2), (0, 3))",
    "(l.a, r.b) NOT IN (VALUES (1, 2), (0, NULL))",
    "l.a = ANY (VALUES (1), (NULL))",
    "l.a > SOME (VALUES (1), (0))",
    "l.a > ALL (VALUES (1), (0))",
    "r.b >= ALL (VALUES (1), (NULL))",
    "EXISTS (VALUES (1))",
    "l.a = (VALUES (1))",
    "(l.a IN (VALUES (1), (2)) OR r.b = 3)",
    "(l.a IN (VALUES (1), (NULL))) IS NOT TRUE",
    "l.a IN (VALUES (1)) AND r.b IN (VALUES (2))",
    "CASE WHEN l.a IN (VALUES (1)) THEN r.b = 2 ELSE r.b = 3 END",
    "l.a IN (VALUES (1) UNION VALUES (2))",
    "l.a IN (WITH w AS (VALUES (1)) SELECT * FROM w)",
    "EXISTS (SELECT 1 FROM (VALUES (1), (2)) v(x) WHERE x = l.a AND x < r.b)",
    "l.a NOT IN (SELECT b FROM r i WHERE i.k = l.k)",
)


@pytest.fixture(scope="module")
def peer() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        for name, statements in (("before", TABLES), ("after", (*TABLES, *CHANGES))):
            connection.execute(f"CREATE SCHEMA {name}")
            connection.execute(f"SET schema = '{name}'")
            for statement in statements:
                connection.execute(statement)
        yield connection


@pytest.fixture(scope="module", params=[("stream", 1), ("stream", 2), ("reference", 1)])
def sessions(request: pytest.FixtureRequest) -> Iterator[dict[str, LocalSession]]:
    """Sessions whose tables are as filled, and as changed afterwards."""
    engine, sites = request.param
    opened = (closing(LocalSession(engine, sites)) for _ in range(2))
    with next(opened) as before, next(opened) as after:
        for session, statements in ((before, TABLES), (after, (*TABLES, *CHANGES))):
            for statement in statements:
                session.run(statement)
        yield {"before": before, "after": after}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("kind", ["INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"])
def test_a_join_tests_it_per_pair(
    kind: str,
    condition: str,
    peer: duckdb.DuckDBPyConnection,
    sessions: dict[str, LocalSession],
) -> None:
    columns = "l.k, l.a" if kind in ("SEMI", "ANTI") else "l.k, l.a, r.k, r.b"
    for on in (condition, f"l.k = r.k AND {condition}"):
        query = f"SELECT {columns} FROM l {kind} JOIN r ON {on}"
        for state, session in sessions.items():
            peer.execute(f"SET schema = '{state}'")
            (result,) = session.run(query)
            assert Counter(result.rows) == Counter(peer.execute(query).fetchall()), (state, query)
