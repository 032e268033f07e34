"""Statements whose meaning is easily mistaken answer as PostgreSQL does."""

import contextlib
from collections import Counter
from collections.abc import Iterator

import pytest

from deploy.session import LocalSession
from streamsql.data.types import Row
from tests.conformance.duckdb_peer import rounded
from tests.conformance.postgres_peer import PostgresPeer, postgres_peer

pytestmark = pytest.mark.postgres

TABLES = (
    "CREATE TABLE o (x INTEGER, y INTEGER)",
    "INSERT INTO o VALUES (1, 1), (2, 7), (NULL, 3)",
    "CREATE TABLE p (a INTEGER, b INTEGER)",
    "INSERT INTO p VALUES (1, 5), (1, 7), (2, 2), (NULL, 3)",
    "CREATE TABLE s (v INTEGER, up BOOLEAN)",
    "INSERT INTO s VALUES (1, TRUE), (2, TRUE), (9, FALSE), (8, TRUE)",
    "CREATE TABLE l (w TEXT)",
    r"INSERT INTO l VALUES ('m_1'), ('mx1'), ('m\_1'), ('a%b'), ('A%'), ('\'), (NULL), ('a\')",
    "CREATE TABLE a (x INTEGER, k INTEGER, j TEXT)",
    "INSERT INTO a VALUES (1, 1, 'p'), (2, 2, 'q'), (3, NULL, 'r'), (5, 3, 's')",
    "CREATE TABLE b (y INTEGER, j TEXT, k INTEGER)",
    "INSERT INTO b VALUES (10, 'p', 1), (20, 'q', 3), (30, 'z', 9), (40, NULL, NULL)",
    "CREATE TABLE c (k DOUBLE, z INTEGER)",
    "INSERT INTO c VALUES (1.0, 7), (3.0, 8), (4.5, 9), (NULL, 1)",
)
MANY = "SELECT MAX(b) FROM p WHERE p.a = o.x HAVING COUNT(*) > 1"
NONE = "SELECT MAX(b) FROM p WHERE p.a = o.x AND b > 100"
HAVING = (
    f"SELECT x FROM o WHERE x NOT IN ({MANY})",
    f"SELECT x FROM o WHERE x IN ({MANY})",
    f"SELECT x, x IN ({MANY}), x NOT IN ({MANY}) FROM o",
    f"SELECT x FROM o WHERE x > ALL ({MANY})",
    f"SELECT x FROM o WHERE x < ANY ({MANY})",
    f"SELECT x, x <> ALL ({MANY}), x = ANY ({MANY}), x <= ALL ({MANY}) FROM o",
    f"SELECT x FROM o WHERE EXISTS ({MANY})",
    f"SELECT x FROM o WHERE NOT EXISTS ({MANY})",
    f"SELECT x, ({MANY}) FROM o",
    f"SELECT x FROM o WHERE EXISTS ({NONE} HAVING COUNT(*) > -1)",
    f"SELECT x, EXISTS ({NONE} HAVING COUNT(*) = 0) FROM o",
    f"SELECT x, EXISTS ({NONE} HAVING MAX(b) > 0) FROM o",
    f"SELECT x FROM o WHERE x NOT IN ({NONE})",
    f"SELECT x FROM o WHERE x NOT IN ({NONE} HAVING COUNT(*) = 0)",
    "SELECT x, (SELECT COUNT(b) FROM p WHERE p.a = o.x AND b > 100 HAVING COUNT(*) = 0) FROM o",
    "SELECT x FROM o WHERE x NOT IN (SELECT MAX(b) FROM p HAVING COUNT(*) > 5)",
    "SELECT x FROM o WHERE x = ALL (SELECT MAX(b) FROM p HAVING COUNT(*) > 5)",
    "SELECT x FROM o WHERE EXISTS (SELECT MAX(b) FROM p HAVING COUNT(*) > 5)",
    "SELECT x FROM o WHERE x NOT IN (SELECT MAX(b) FROM p WHERE p.a < o.x HAVING COUNT(*) > 1)",
    "SELECT x FROM o WHERE x NOT IN (SELECT MAX(b) FROM p WHERE p.a = o.x HAVING COUNT(*) > o.x)",
    f"SELECT x FROM o WHERE x NOT IN ({MANY} ORDER BY 1 LIMIT 1)",
    f"SELECT x FROM o WHERE x NOT IN ({NONE} LIMIT 0)",
    f"SELECT x FROM o WHERE EXISTS ({NONE} OFFSET 1)",
    "SELECT x FROM o WHERE (SELECT COUNT(*) FROM p WHERE p.a = o.x LIMIT 0) IS NULL",
    "SELECT x FROM o WHERE (SELECT COUNT(*) FROM p WHERE p.a = o.x OFFSET 1) IS NULL",
    "SELECT x, (SELECT DISTINCT COUNT(b) FROM p WHERE p.a = o.x HAVING COUNT(*) > 0) FROM o",
)
NESTED = (
    "SELECT x FROM o WHERE EXISTS (SELECT 1 FROM p WHERE o.x IN (SELECT a FROM p))",
    "SELECT x FROM o WHERE EXISTS (SELECT 1 FROM p WHERE o.x = ANY (SELECT b FROM p))",
    "SELECT x FROM o WHERE EXISTS (SELECT 1 FROM p WHERE o.x NOT IN (SELECT b FROM p))",
    "SELECT x FROM o WHERE EXISTS (SELECT 1 FROM p WHERE o.x < ALL (SELECT b FROM p p2))",
    "SELECT x FROM o WHERE x IN (SELECT a FROM p WHERE o.x IN (SELECT b FROM p))",
    "SELECT x FROM o WHERE x NOT IN (SELECT a FROM p WHERE o.x IN (SELECT b FROM p))",
    "SELECT x, (SELECT MAX(b) FROM p WHERE o.x IN (SELECT b FROM p)) FROM o",
    "SELECT x, (SELECT MAX(b) FROM p WHERE p.a = o.x AND o.x IN (SELECT b FROM p)) FROM o",
    "SELECT x FROM o WHERE EXISTS (SELECT 1 FROM p WHERE o.x + p.a IN (SELECT b FROM p))",
    "SELECT x FROM o WHERE EXISTS (SELECT 1 FROM p WHERE (o.x, p.a) IN (SELECT a, b FROM p))",
    "SELECT x FROM o WHERE EXISTS (SELECT 1 FROM p WHERE p.a = o.x AND (o.x IN (SELECT b FROM p p2)"
    " OR p.b = 5))",
    "SELECT x FROM o WHERE EXISTS (SELECT 1 FROM p WHERE o.x = (SELECT MIN(b) FROM p p2 WHERE "
    "p2.a = p.a) AND o.y IN (SELECT b FROM p p3))",
    "SELECT x FROM o WHERE EXISTS (SELECT 1 FROM p WHERE o.x IN (SELECT b FROM p p3) AND "
    "o.x = (SELECT MIN(b) FROM p p2 WHERE p2.a = p.a))",
    "SELECT x FROM o WHERE EXISTS (SELECT 1 FROM p JOIN p q ON p.a = q.a AND o.x IN "
    "(SELECT b FROM p))",
    "SELECT x FROM o WHERE EXISTS (SELECT a FROM p GROUP BY a HAVING o.x IN (SELECT a FROM p p2) "
    "AND COUNT(*) > 1)",
)
TWO_LEVELS = (
    "SELECT x FROM o WHERE EXISTS (SELECT 1 FROM p WHERE EXISTS (SELECT 1 FROM p p2 WHERE "
    "p2.a = o.x))",
    "SELECT x FROM o WHERE EXISTS (SELECT 1 FROM p WHERE EXISTS (SELECT 1 FROM p p2 WHERE "
    "p2.a = x AND p2.b = p.b))",
    "SELECT x FROM o WHERE NOT EXISTS (SELECT 1 FROM p WHERE o.x NOT IN (SELECT b FROM p p3 WHERE "
    "p3.a = o.x))",
    "SELECT x, (SELECT COUNT(*) FROM p WHERE p.b > (SELECT COUNT(*) FROM p p2 WHERE p2.a < o.x)) "
    "FROM o",
    "SELECT x FROM o WHERE EXISTS (SELECT 1 FROM p WHERE EXISTS (SELECT 1 FROM p p2 WHERE EXISTS "
    "(SELECT 1 FROM p p3 WHERE p3.a = o.x AND p3.b = p2.b AND p3.b = p.b)))",
    "SELECT x, y FROM o WHERE x IN (SELECT a FROM p WHERE y IN (SELECT b FROM p p2 WHERE "
    "p2.a = p.a AND x > 0))",
    "SELECT x FROM o WHERE EXISTS (SELECT a FROM p GROUP BY a HAVING a IN (SELECT a FROM p p2 "
    "WHERE p2.b > o.y) AND COUNT(*) > 1)",
    "SELECT x, (SELECT b FROM p WHERE p.a = o.x ORDER BY (SELECT COUNT(*) FROM p p2 WHERE "
    "p2.a = o.x AND p2.b > p.b) LIMIT 1) FROM o",
    "SELECT x, CASE WHEN o.x IN (SELECT a FROM p WHERE EXISTS (SELECT 1 FROM p p2 WHERE "
    "p2.b = o.y)) THEN 1 ELSE 0 END FROM o",
)
AGGREGATES_OF_THE_QUERY_AROUND = (
    "SELECT (SELECT COUNT(s.v)) FROM s",
    "SELECT (SELECT COUNT(v)) FROM s",
    "SELECT (SELECT COUNT(s.v) + 1) AS n, SUM(v) FROM s",
    "SELECT up, (SELECT COUNT(s.v)) FROM s GROUP BY up",
    "SELECT up, (SELECT SUM(p.b) FROM p WHERE p.b > COUNT(s.v)) FROM s GROUP BY up",
    "SELECT x FROM o GROUP BY x HAVING EXISTS (SELECT 1 FROM p WHERE p.b = MAX(o.y))",
    "SELECT x FROM o GROUP BY x HAVING x IN (SELECT MAX(p.a) FROM p WHERE p.b = MAX(o.y))",
    "SELECT x FROM o GROUP BY x HAVING SUM(y) > (SELECT MIN(p.b) FROM p WHERE "
    "p.b <> SUM(o.y) FILTER (WHERE o.y > 2))",
    "SELECT (SELECT (SELECT COUNT(s.v))) FROM s",
    "SELECT (SELECT MAX(p.b + s.v) FROM p) FROM s",
    "SELECT (SELECT MAX(p.b + s.v) FROM p) FROM s GROUP BY v",
)
FILTERED = (
    "SELECT COUNT(*) FILTER (WHERE up), SUM(v) FILTER (WHERE up), BOOL_OR(v > 8) FILTER (WHERE "
    "up), COUNT(DISTINCT v) FILTER (WHERE up), SUM(DISTINCT v) FILTER (WHERE up) FROM s",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY v) FILTER (WHERE up) FROM s",
    "SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY v DESC) FILTER (WHERE up) FROM s",
    "SELECT MODE() WITHIN GROUP (ORDER BY v) FILTER (WHERE up) FROM s",
    "SELECT STRING_AGG(DISTINCT CAST(v AS TEXT), ',') FILTER (WHERE up) FROM s",
    "SELECT SUM(v) FILTER (WHERE up) OVER (ORDER BY v) FROM s",
)
CONSTANTS_IN_WINDOWS = (
    "SELECT ROW_NUMBER() OVER (PARTITION BY NULL) FROM s",
    "SELECT SUM(v) OVER (PARTITION BY NULL), NULL AS x, up FROM s",
    "SELECT SUM(v) OVER (ORDER BY NULL) FROM s",
    "SELECT SUM(v) OVER (PARTITION BY NULL, up ORDER BY NULL, v) FROM s",
    "SELECT n, v FROM (SELECT ROW_NUMBER() OVER (PARTITION BY 1, 0, NULL ORDER BY v) AS n, v, "
    "1 AS o, 0 AS z FROM s) AS q WHERE n <= 2",
)

KINDS = ("", "LEFT", "RIGHT", "FULL")
USING = (
    *(f"SELECT * FROM a {kind} JOIN b USING (k)" for kind in KINDS),
    *(f"SELECT * FROM a {kind} JOIN b USING (j, k)" for kind in KINDS),
    *(f"SELECT * FROM b NATURAL {kind} JOIN a" for kind in KINDS),
    *(f"SELECT k, a.k, k / 2, a.*, c.* FROM a {kind} JOIN c USING (k)" for kind in KINDS),
    *(
        f"SELECT * FROM a {kind} JOIN b USING (k) {other} JOIN c USING (k)"
        for kind in KINDS
        for other in KINDS
    ),
    *(f"SELECT * FROM (a FULL JOIN b USING (k)) {kind} JOIN c USING (k)" for kind in KINDS),
    "SELECT * FROM c JOIN (a RIGHT JOIN b USING (k)) USING (k)",
    "SELECT * FROM a, b NATURAL FULL JOIN c",
    "SELECT * FROM a, b LEFT JOIN c USING (k), c AS d",
    "SELECT * FROM a JOIN b USING (k), b AS e NATURAL RIGHT JOIN c",
    "SELECT k, COUNT(*) FROM a FULL JOIN b USING (k) GROUP BY k",
    "SELECT k FROM a LEFT JOIN c USING (k) ORDER BY k LIMIT 2",
)

LIKE = (
    r"SELECT w FROM l WHERE w LIKE 'm\_1'",
    r"SELECT w FROM l WHERE w ILIKE 'M\_1'",
    r"SELECT w FROM l WHERE w NOT LIKE 'a\%%'",
    r"SELECT w FROM l WHERE w LIKE '\\'",
    r"SELECT w FROM l WHERE w LIKE 'm\_1' ESCAPE '!'",
    r"SELECT w FROM l WHERE w LIKE 'm\_1' ESCAPE ''",
    r"SELECT w FROM l WHERE w SIMILAR TO 'm\_1'",
    r"SELECT w, w LIKE w FROM l WHERE w NOT LIKE '%\\'",
    r"SELECT w LIKE 'm' || '\_1' FROM l",
)


@pytest.fixture(scope="module")
def peer() -> Iterator[PostgresPeer]:
    with postgres_peer("binder") as running:
        for text in TABLES:
            running.run(text)
        yield running


@pytest.fixture(scope="module")
def sessions() -> Iterator[tuple[LocalSession, ...]]:
    with contextlib.ExitStack() as stack:
        made = [
            stack.enter_context(contextlib.closing(LocalSession(engine)))
            for engine in ("reference", "stream")
        ]
        for text in TABLES:
            for session in made:
                session.run(text)
        yield tuple(made)


def answer(session: LocalSession, text: str) -> Counter[Row]:
    (result,) = session.run(text)
    return Counter(map(rounded, result.rows))


@pytest.mark.parametrize(
    "text",
    [
        *HAVING,
        *NESTED,
        *TWO_LEVELS,
        *AGGREGATES_OF_THE_QUERY_AROUND,
        *FILTERED,
        *CONSTANTS_IN_WINDOWS,
        *USING,
        *LIKE,
    ],
)
def test_answers_are_those_of_postgres(
    text: str, peer: PostgresPeer, sessions: tuple[LocalSession, ...]
) -> None:
    expected = peer.answer(text)
    for session in sessions:
        assert answer(session, text) == expected


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("COUNT_IF(v > 3) FILTER (WHERE up)", "COUNT(*) FILTER (WHERE up AND v > 3)"),
        ("COUNT_IF(v > 3)", "COUNT(*) FILTER (WHERE v > 3)"),
        (
            "COUNT_IF(v > 3) FILTER (WHERE up) OVER ()",
            "COUNT(*) FILTER (WHERE up AND v > 3) OVER ()",
        ),
        (
            "QUANTILE_CONT(v, 0.5) FILTER (WHERE up)",
            "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY v) FILTER (WHERE up)",
        ),
        (
            "MEDIAN(v) FILTER (WHERE up)",
            "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY v) FILTER (WHERE up)",
        ),
    ],
)
def test_aggregates_of_other_names_filter_alike(
    ours: str, theirs: str, peer: PostgresPeer, sessions: tuple[LocalSession, ...]
) -> None:
    expected = peer.answer(f"SELECT {theirs} FROM s")
    for session in sessions:
        assert answer(session, f"SELECT {ours} FROM s") == expected
