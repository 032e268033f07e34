"""Joins, set operations, ordered rows and subqueries answer as DuckDB does on the same tables.

Each text is bound, run by the reference evaluator and written in DuckDB's dialect; the tables are
random, small, and full of NULLs and repetitions, which is where decorrelated subqueries go wrong.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamsql.algebra.operators import Plan
from streamsql.binder import bind_query
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from streamsql.syntax import Query
from tests.streamsql.from_text import catalog_of, query_of

TABLES = {
    "t": ("a INTEGER", "b INTEGER", "c TEXT"),
    "u": ("a INTEGER", "d INTEGER", "e TEXT"),
    "v": ("k INTEGER", "f INTEGER", "c TEXT"),
}
SCHEMA = """
CREATE TABLE t (a INTEGER, b INTEGER, c TEXT);
CREATE TABLE u (a INTEGER, d INTEGER, e TEXT);
CREATE TABLE v (k INTEGER PRIMARY KEY, f INTEGER, c TEXT);
"""

JOINS = [
    "SELECT t.a, t.b, u.d FROM t RIGHT JOIN u ON t.a = u.a AND t.b < u.d",
    "SELECT t.a, t.b, u.a, u.d FROM t FULL JOIN u ON t.a = u.a",
    "SELECT t.b, u.d FROM t FULL OUTER JOIN u ON t.a = u.a AND t.b > u.d WHERE t.b IS NULL",
    "SELECT a, b, d FROM t FULL JOIN u USING (a)",
    "SELECT * FROM t FULL JOIN u USING (a) WHERE a > 0",
    "SELECT a, COUNT(*), SUM(b) FROM t FULL JOIN u USING (a) GROUP BY a",
    "SELECT x.b, y.d, z.f FROM t x FULL JOIN u y ON x.a = y.a FULL JOIN v z ON z.k = x.b",
    "SELECT x.b, y.d, z.f FROM t x FULL JOIN u y ON x.a = y.a JOIN v z ON z.f = y.d",
    "SELECT x.a, y.d FROM t x JOIN u y ON x.a = y.a FULL JOIN v z ON z.k = x.b WHERE x.b = 1",
    "SELECT y.a, z.f FROM t x RIGHT JOIN u y ON x.a = y.a JOIN v z ON z.k = y.a AND x.b = 1",
    "SELECT x.b, y.d, z.f FROM t x, u y FULL JOIN v z ON z.k = y.d WHERE x.a = 1",
    "SELECT a, b FROM t SEMI JOIN u ON t.a = u.a",
    "SELECT a, b FROM t SEMI JOIN u USING (a) WHERE b > 0",
    "SELECT a, b FROM t ANTI JOIN u ON t.a = u.a AND t.b < u.d",
    "SELECT t.a, v.f FROM t ANTI JOIN u ON t.a = u.a JOIN v ON v.k = t.b",
    "SELECT t.a, v.f FROM t JOIN v ON v.k = t.b SEMI JOIN u ON u.a = v.f",
    "SELECT * FROM t NATURAL JOIN u",
    "SELECT * FROM t NATURAL LEFT JOIN u",
    "SELECT t.a, u.d FROM t CROSS JOIN u",
    "SELECT t.a, u.d FROM t JOIN u ON t.a < u.a AND t.b <> u.d",
    "SELECT t.a, u.d, v.f FROM t LEFT JOIN (u JOIN v ON u.a = v.k) ON t.a = u.a",
    "SELECT t.a, u.d, v.f FROM (t FULL JOIN u ON t.a = u.a) JOIN v ON v.k = t.b",
    "SELECT x, y FROM (VALUES (1, 'a'), (2, NULL), (1, 'a')) AS w(x, y)",
    "SELECT t.a, w.y FROM t JOIN (VALUES (1, 'one'), (2, 'two')) AS w(x, y) ON w.x = t.a",
]
ASOF = [
    "SELECT t.a, t.b, v.k, v.f FROM t ASOF JOIN v ON t.a = v.f AND t.b >= v.k",
    "SELECT t.a, t.b, v.k FROM t ASOF LEFT JOIN v ON v.k <= t.b",
    "SELECT t.a, t.b, v.k FROM t ASOF LEFT JOIN v ON t.a = v.f AND t.b > v.k WHERE t.b > 0",
]
SETS = [
    "SELECT a FROM t INTERSECT SELECT a FROM u",
    "SELECT a, b FROM t INTERSECT ALL SELECT a, d FROM u",
    "SELECT a FROM t EXCEPT SELECT a FROM u",
    "SELECT a FROM t EXCEPT ALL SELECT a FROM u",
    "SELECT a FROM t UNION SELECT a FROM u INTERSECT SELECT k FROM v",
    "SELECT a FROM t UNION ALL SELECT a FROM u EXCEPT SELECT k FROM v",
    "SELECT a FROM t EXCEPT (SELECT a FROM u UNION SELECT k FROM v)",
    "(SELECT a FROM t UNION ALL SELECT d FROM u) INTERSECT ALL (SELECT k FROM v UNION ALL "
    "SELECT a FROM u)",
    "SELECT a, c FROM t EXCEPT ALL SELECT d, e FROM u EXCEPT SELECT k, c FROM v",
    "SELECT a FROM t UNION SELECT d FROM u ORDER BY 1 DESC LIMIT 2",
    "SELECT a FROM (SELECT a FROM t INTERSECT SELECT a FROM u) AS q WHERE a > 0",
]
ORDERED = [
    "SELECT a, b, c FROM t ORDER BY a, b, c LIMIT 2",
    "SELECT a, b, c FROM t ORDER BY b DESC, a DESC NULLS LAST, c LIMIT 2 OFFSET 1",
    "SELECT a, b, c FROM t ORDER BY a NULLS FIRST, 2 DESC, c OFFSET 2",
    "SELECT b + 1 AS n FROM t ORDER BY n LIMIT 3",
    "SELECT b FROM t ORDER BY b * b, b LIMIT 2",
    "SELECT DISTINCT b FROM t ORDER BY b DESC LIMIT 1",
    "SELECT a, SUM(b) AS s FROM t GROUP BY a ORDER BY COUNT(*) DESC, a FETCH FIRST 2 ROWS ONLY",
    "SELECT SUM(b) FROM (SELECT b FROM t ORDER BY b LIMIT 3) AS q",
    "SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b DESC",
    "SELECT DISTINCT ON (a) a, b, c FROM t ORDER BY a, b, c",
    "SELECT a, b, c FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC, c) AS n "
    "FROM t) AS q WHERE n <= 2",
    "SELECT q.a, q.b, q.n FROM (SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS n "
    "FROM t) AS q WHERE q.n = 1 AND q.a > 0",
    "SELECT b FROM (SELECT b, ROW_NUMBER() OVER (ORDER BY b) AS n FROM t) AS q "
    "WHERE 2 <= n AND n < 4",
    "WITH w AS (SELECT a, d, ROW_NUMBER() OVER (PARTITION BY a ORDER BY d DESC) AS n FROM u) "
    "SELECT t.a, t.b, w.d FROM t LEFT JOIN w ON w.a = t.a AND w.n = 1",
    "SELECT a, b FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) <= 2",
    "SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS n FROM t WHERE a > 0 "
    "QUALIFY n = 1",
    "SELECT * FROM t WHERE b IN (SELECT d FROM u WHERE u.a = t.a "
    "QUALIFY ROW_NUMBER() OVER (ORDER BY d) = 1)",
    "SELECT a, s FROM (SELECT a, SUM(b) AS s, ROW_NUMBER() OVER (ORDER BY SUM(b) DESC, a) AS n "
    "FROM t GROUP BY a) AS q WHERE n BETWEEN 1 AND 2",
]
FILTERS = [
    "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
    "SELECT * FROM t WHERE NOT EXISTS (SELECT * FROM u WHERE u.a = t.a AND u.d > t.b)",
    "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE d > 1)",
    "SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE d > 2)",
    "SELECT * FROM t WHERE EXISTS (SELECT u.a FROM u JOIN v ON v.k = u.d WHERE v.f = t.b)",
    "SELECT * FROM t WHERE EXISTS (SELECT a FROM u WHERE u.a = t.a GROUP BY a HAVING COUNT(*) > 1)",
    "SELECT * FROM t WHERE EXISTS (SELECT COUNT(*) FROM u WHERE u.a = t.a)",
    "SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a HAVING COUNT(*) > 1)",
    "SELECT * FROM t WHERE a IN (SELECT a FROM u)",
    "SELECT * FROM t WHERE a NOT IN (SELECT a FROM u)",
    "SELECT * FROM t WHERE a NOT IN (SELECT a FROM u WHERE a IS NOT NULL)",
    "SELECT * FROM t WHERE a NOT IN (SELECT d FROM u WHERE u.a = t.b)",
    "SELECT * FROM t WHERE NOT (a IN (SELECT d FROM u WHERE u.d < t.b))",
    "SELECT * FROM t WHERE (a, b) IN (SELECT a, d FROM u)",
    "SELECT * FROM t WHERE (a, b) NOT IN (SELECT a, d FROM u)",
    "SELECT * FROM t WHERE a = ANY (SELECT a FROM u) AND b <> ALL (SELECT d FROM u)",
    "SELECT * FROM t WHERE b > ANY (SELECT d FROM u)",
    "SELECT * FROM t WHERE b > ALL (SELECT d FROM u WHERE u.a = t.a)",
    "SELECT * FROM t WHERE b <= ALL (SELECT d FROM u) OR a = 0",
    "SELECT * FROM t WHERE NOT (b < ANY (SELECT d FROM u WHERE u.a > t.a))",
    "SELECT * FROM t WHERE a IN (SELECT a FROM u) OR EXISTS (SELECT 1 FROM v WHERE v.k = t.b)",
    "SELECT * FROM t WHERE a IN (SELECT MAX(a) FROM u)",
    "SELECT * FROM t WHERE b NOT IN (SELECT COUNT(*) FROM u WHERE u.a = t.a)",
    "SELECT * FROM t WHERE a IN (VALUES (1), (2))",
    "SELECT * FROM t WHERE a IN (SELECT a FROM u UNION SELECT k FROM v)",
    "SELECT * FROM t WHERE a IN (SELECT a FROM u ORDER BY d, a LIMIT 2)",
    "SELECT * FROM t WHERE b = (SELECT MAX(d) FROM u)",
    "SELECT * FROM t WHERE b >= (SELECT AVG(d) FROM u WHERE u.a = t.a)",
    "SELECT * FROM t WHERE 0 = (SELECT COUNT(*) FROM u WHERE u.a = t.a)",
    "SELECT * FROM t WHERE (SELECT COUNT(*) FROM u WHERE u.a < t.a) > 1",
    "SELECT * FROM t WHERE b < (SELECT SUM(u.d + t.a) FROM u WHERE u.a = t.a OR u.d = t.b)",
    "SELECT * FROM t JOIN v ON v.k = t.a AND v.f IN (SELECT d FROM u)",
    "SELECT * FROM t LEFT JOIN v ON v.k = t.a WHERE EXISTS (SELECT 1 FROM u WHERE u.d = v.f)",
    "SELECT * FROM t RIGHT JOIN v ON v.k = t.a WHERE v.f NOT IN (SELECT d FROM u WHERE d > 0)",
    "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND "
    "NOT EXISTS (SELECT 1 FROM v WHERE v.k = u.d))",
    "SELECT * FROM t WHERE a IN (SELECT a FROM u WHERE d IN (SELECT k FROM v WHERE v.f = u.a))",
    "SELECT * FROM t WHERE EXISTS (WITH w AS (SELECT a FROM u WHERE d > 0) "
    "SELECT 1 FROM w WHERE w.a = t.a)",
    "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u LEFT JOIN v ON v.k = u.d "
    "WHERE v.f IS NULL AND u.a = t.a)",
]
VALUES_ = [
    "SELECT a, (SELECT COUNT(*) FROM u WHERE u.a = t.a) AS n FROM t",
    "SELECT a, (SELECT COUNT(*) + t.b FROM u WHERE u.a = t.a) AS n FROM t",
    "SELECT a, (SELECT COALESCE(SUM(d), -1) FROM u WHERE u.a = t.a AND d > t.b) AS n FROM t",
    "SELECT a, (SELECT SUM(d) FROM u WHERE u.a = t.a HAVING COUNT(*) > 1) AS n FROM t",
    "SELECT a, (SELECT COUNT(*) FROM u WHERE u.a = t.a HAVING COUNT(*) < 2) AS n FROM t",
    "SELECT a, (SELECT MAX(d) FROM u) AS n, (SELECT MIN(k) FROM v) AS m FROM t",
    "SELECT a, (SELECT f FROM v WHERE v.k = t.a) AS n FROM t",
    "SELECT a, (SELECT f + t.b FROM v WHERE v.k = t.a) AS n FROM t",
    "SELECT a, (SELECT d FROM u WHERE u.a = t.a ORDER BY d DESC LIMIT 1) AS n FROM t",
    "SELECT a, (SELECT d FROM u WHERE u.d > t.b ORDER BY d LIMIT 1) AS n FROM t",
    "SELECT a, (SELECT MAX(d) FROM u WHERE u.a = t.a GROUP BY u.a) AS n FROM t",
    "SELECT a, (SELECT COUNT(DISTINCT d) FROM u WHERE u.a >= t.a AND u.d <> t.b) AS n FROM t",
    "SELECT a, (SELECT COUNT(*) FROM u WHERE u.a IS NOT DISTINCT FROM t.a) AS n FROM t",
    "SELECT a, (SELECT COUNT(*) FROM u WHERE t.a IS NULL) AS n FROM t",
    "SELECT a, EXISTS (SELECT 1 FROM u WHERE u.a = t.a) AS e FROM t",
    "SELECT a, EXISTS (SELECT 1 FROM u WHERE u.a > t.a) AS e FROM t",
    "SELECT a, NOT EXISTS (SELECT 1 FROM u WHERE d > 1) AS e FROM t",
    "SELECT a, a IN (SELECT a FROM u) AS e FROM t",
    "SELECT a, a NOT IN (SELECT d FROM u WHERE u.a = t.b) AS e FROM t",
    "SELECT a, b = ANY (SELECT d FROM u WHERE u.a < t.a) AS e FROM t",
    "SELECT b, b > ALL (SELECT d FROM u) AS e, b < ANY (SELECT d FROM u) AS f FROM t",
    "SELECT b, b >= ANY (SELECT d FROM u WHERE u.a = t.a) AS e FROM t",
    "SELECT b, b <> ANY (SELECT d FROM u) AS e, b = ALL (SELECT d FROM u) AS f FROM t",
    "SELECT CASE WHEN a IN (SELECT k FROM v) THEN 'in' WHEN EXISTS (SELECT 1 FROM u "
    "WHERE u.a = t.a) THEN 'u' ELSE 'out' END AS w FROM t",
    "SELECT a, SUM(b) AS s FROM t GROUP BY a HAVING SUM(b) > (SELECT AVG(d) FROM u)",
    "SELECT a, COUNT(*) AS n FROM t GROUP BY a HAVING a IN (SELECT a FROM u) AND COUNT(*) > 0",
    "SELECT a, COUNT(*) AS n FROM t GROUP BY a HAVING NOT EXISTS (SELECT 1 FROM u "
    "WHERE u.a = t.a AND u.d > 1)",
    "SELECT a, SUM(b) AS s, (SELECT COUNT(*) FROM u WHERE u.a = t.a) AS n FROM t GROUP BY a",
    "SELECT COUNT(*) AS n, (SELECT MAX(d) FROM u) AS m FROM t HAVING COUNT(*) > 1 OR MAX(a) = 1",
    "SELECT a FROM t GROUP BY a HAVING SUM(b) + MIN(b) * 2 > COUNT(c) AND NOT MAX(b) = 0",
    "SELECT a, b FROM t ORDER BY (SELECT COUNT(*) FROM u WHERE u.a = t.a), a, b LIMIT 2",
    "SELECT (SELECT MAX(a) FROM t) AS m, (SELECT COUNT(*) FROM u) AS n",
    "SELECT q.n FROM (SELECT (SELECT COUNT(*) FROM u WHERE u.a = t.a) AS n FROM t) AS q "
    "WHERE q.n > 0",
]
GROUPINGS = [
    "SELECT a, GROUPING(a) AS g, SUM(b) AS s FROM t GROUP BY ROLLUP (a)",
    "SELECT a, c, GROUPING(a) AS g, GROUPING(c) AS h, COUNT(*) AS n FROM t GROUP BY CUBE (a, c)",
    # A value that is NULL in every group is no bit of GROUPING, though each stands for a MIN.
    "SELECT a, GROUPING(a) AS g, MIN(CAST(NULL AS INTEGER)) AS m FROM t GROUP BY ROLLUP (a)",
    "SELECT a, MIN(CAST(NULL AS INTEGER)) AS m, GROUPING(a) AS g FROM t GROUP BY ROLLUP (a)",
]
TEXTS = [*JOINS, *ASOF, *SETS, *ORDERED, *FILTERS, *VALUES_, *GROUPINGS]

numbers = st.sampled_from([None, 0, 1, 1, 2])
texts = st.sampled_from([None, "a", "b"])
rows = st.lists(st.tuples(numbers, numbers, texts), max_size=5)
keyed = st.lists(
    st.tuples(st.integers(0, 3), numbers, texts), max_size=4, unique_by=lambda row: row[0]
)
Tables = dict[str, list[Row]]
tables = st.fixed_dictionaries({"t": rows, "u": rows, "v": keyed})


CATALOG = catalog_of(SCHEMA)
QUERIES: dict[str, Query] = {}
PLANS: dict[str, Plan] = {}
TRANSLATED: dict[str, str] = {}


def parsed(text: str) -> Query:
    if text not in QUERIES:
        query = query_of(text)
        QUERIES[text] = query
    return QUERIES[text]


def ours(text: str, contents: Tables) -> Counter[Row]:
    if text not in PLANS:
        PLANS[text] = bind_query(parsed(text), CATALOG).plan
    database = Database()
    for name, table in contents.items():
        database.append(name, [SourceEvent(row, ts=0) for row in table])
    relation = evaluate(PLANS[text], database, now=0)
    result: Counter[Row] = Counter()
    for row, weight in relation.items():
        result[rounded(row)] += weight
    return result


def rounded(row: tuple[Any, ...]) -> Row:
    return tuple(
        value if value is None or isinstance(value, str) else round(float(value), 9) + 0.0
        for value in row
    )


def connected(contents: Tables) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        if contents[name]:
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", contents[name])
    return connection


def theirs(text: str, connection: duckdb.DuckDBPyConnection) -> Counter[Row]:
    if text not in TRANSLATED:
        TRANSLATED[text] = parsed(text).tree.sql(dialect="duckdb", identify=True)
    answer = connection.execute(TRANSLATED[text]).fetchall()
    return Counter(rounded(row) for row in answer)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(contents=tables)
def test_every_text_answers_as_duckdb(contents: Tables) -> None:
    connection = connected(contents)
    try:
        for text in TEXTS:
            assert ours(text, contents) == theirs(text, connection), text
    finally:
        connection.close()


FULL: Tables = {
    "t": [(0, 1, "a"), (1, 2, None), (1, 2, None), (None, 1, "b"), (2, None, "a"), (2, 0, "b")],
    "u": [(0, 1, "a"), (1, 1, "a"), (1, 3, None), (None, 2, "b"), (3, None, "a")],
    "v": [(0, 1, "a"), (1, 0, "b"), (2, 2, None), (3, None, "a")],
}
EMPTY: Tables = {"t": FULL["t"], "u": [], "v": []}


@pytest.fixture(scope="module")
def peers() -> Iterator[dict[str, duckdb.DuckDBPyConnection]]:
    found = {"full": connected(FULL), "empty": connected(EMPTY)}
    yield found
    for connection in found.values():
        connection.close()


@pytest.mark.parametrize("text", TEXTS, ids=[text[:70] for text in TEXTS])
def test_on_chosen_rows(text: str, peers: dict[str, duckdb.DuckDBPyConnection]) -> None:
    assert ours(text, FULL) == theirs(text, peers["full"])
    assert ours(text, EMPTY) == theirs(text, peers["empty"])


def test_there_are_enough_texts() -> None:
    assert len(TEXTS) >= 60
    assert len(set(TEXTS)) == len(TEXTS)
