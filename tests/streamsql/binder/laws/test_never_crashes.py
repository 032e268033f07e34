"""Whatever the text, only our own errors come out, with a place."""

import re

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from streamsql.binder import (
    bind_confidence,
    bind_delete,
    bind_deletions,
    bind_insert,
    bind_query,
    bind_what_if,
    bind_why,
    define,
)
from streamsql.errors import QueryError
from streamsql.syntax import (
    CreateFunction,
    CreateSource,
    CreateView,
    Delete,
    Explain,
    ExplainConfidence,
    ExplainWhatIf,
    ExplainWhy,
    Insert,
    Query,
    Statement,
    Subscribe,
    parse_script,
)
from tests.streamsql.from_text import catalog_of

SOURCES = """
CREATE SOURCE seat (desk TEXT, room TEXT, weight DOUBLE, ts TIMESTAMP) WITH (ttl = '90 s');
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, bandwidth DOUBLE);
CREATE TABLE machines (mid TEXT PRIMARY KEY, room TEXT, level INTEGER);
CREATE FUNCTION halved(v DOUBLE, by DOUBLE) RETURNS DOUBLE AS (v / by);
CREATE AGGREGATE apart(v DOUBLE) RETURNS DOUBLE AS (halved(MAX(v) - MIN(v), 2));
"""
VALID = [
    "SELECT room, AVG(weight) AS m FROM seat [RANGE 10 MINUTES] GROUP BY room HAVING COUNT(*) > 2",
    "SELECT s.desk, m.mid FROM seat s LEFT JOIN machines m ON s.desk = m.mid WHERE m.mid IS NULL",
    "SELECT DISTINCT room FROM seat [PARTITION BY room ROWS 5] s UNION SELECT room FROM machines",
    "SELECT CASE room WHEN 'a' THEN 1 ELSE 2.5 END, COALESCE(weight, 0), weight::TEXT FROM seat "
    "WHERE room LIKE 'a%' AND weight BETWEEN 1 AND 2 OR NOT room IN ('a', 'b')",
    "SELECT ARG_MAX(room, weight), COUNT(DISTINCT room), POSITION('a' IN MAX(room)) FROM seat",
    "SELECT ts - INTERVAL '5 s' AS t FROM seat WHERE ts > '2026-01-01' AND weight IS NOT NULL",
    "WITH RECURSIVE (LIMIT 1000) r(a, n) AS (SELECT src, 1 FROM link UNION SELECT l.dst, r.n + 1 "
    "FROM r JOIN link l ON l.src = r.a WHERE r.n < 10) SELECT a, MIN(n) FROM r GROUP BY a",
    "SELECT * FROM shortest_path JOIN cheapest_path USING (src, dst)",
    "WITH a AS (SELECT 1 AS x), b(y) AS (SELECT x FROM a) SELECT * FROM a, b WHERE x = y",
    "CREATE SOURCE s (a TEXT, ts TIMESTAMP, KEY (a), WATERMARK FOR ts AS ts - INTERVAL '5 s') "
    "WITH (ttl = '90 s')",
    "CREATE RECURSIVE VIEW v (a, b) AS SELECT src, dst FROM link UNION "
    "SELECT l.src, v.b FROM link l JOIN v ON l.dst = v.a",
    "INSERT INTO seat (desk, weight) VALUES ('a', -1.5), ('b', 1 + 2), (NULL, NULL)",
    "DELETE FROM machines WHERE level > 2 AND distance(1, 2, 3, 4) < 5",
    "SUBSCRIBE TO reachable WITH (SNAPSHOT, PROGRESS)",
    "EXPLAIN ANALYZE (TYPE FEDERATED, FORMAT JSON) ISTREAM(SELECT desk FROM seat)",
    "WITH RECURSIVE a(x, n) AS (SELECT src, 1 FROM link UNION SELECT b.y, b.m + 1 FROM b), "
    "b(y, m) AS (SELECT l.dst, a.n FROM a JOIN link l ON l.src = a.x WHERE a.n < 4) "
    "SELECT x, MIN(n) FROM a GROUP BY x WITH (strategy = 'ranked', ship = '250 ms', width = 64)",
    "CREATE RECURSIVE VIEW w (a, b) AS SELECT src, dst FROM link UNION "
    "SELECT x.a, y.b FROM w x JOIN w y ON x.b = y.a WITH (order = 'dfs', compiled = TRUE)",
    "EXPLAIN (FORMAT JSON) WHY (SELECT src, hops FROM within_radius) ROW ('a', 1) "
    "WITH (limit = 10, confidence = 'link.cost')",
    "EXPLAIN WHAT IF DELETE link('a', *), link(NULL, 'b', 1.5) FOR (SELECT * FROM reachable)",
    "EXPLAIN CONFIDENCE reachable USING link.cost LIMIT 5",
    "SELECT a, (SELECT COUNT(*) FROM seat WHERE seat.desk = q.a AND weight > q.b) FROM (VALUES "
    "('x', 1), ('y', NULL)) AS q(a, b) WHERE a NOT IN (SELECT mid FROM machines) ORDER BY 2, b "
    "DESC NULLS LAST LIMIT 3 OFFSET 1",
    "SELECT desk FROM seat s FULL JOIN machines m USING (room) WHERE EXISTS (SELECT 1 FROM link "
    "WHERE src = desk AND cost > ALL (SELECT level FROM machines WHERE mid = src)) INTERSECT ALL "
    "SELECT mid FROM machines EXCEPT SELECT src FROM link ANTI JOIN machines ON mid = dst",
    "WITH w AS (SELECT desk, weight, ROW_NUMBER() OVER (PARTITION BY room ORDER BY ts DESC) AS n "
    "FROM seat) SELECT w.desk, x.level FROM w ASOF LEFT JOIN machines x ON w.desk = x.mid AND "
    "w.desk >= x.room WHERE n <= 3 AND w.weight IN (SELECT MAX(cost) FROM link GROUP BY src)",
    "CREATE FUNCTION f(a DOUBLE, b TEXT) RETURNS DOUBLE AS (CASE WHEN b LIKE 'a%' THEN "
    "halved(a, 3) ELSE COALESCE(a, 0) END)",
    "CREATE AGGREGATE g(a DOUBLE, b DOUBLE) RETURNS DOUBLE CALLED ON NULL INPUT AS (SUM(a * b) / "
    "COUNT(*) FILTER (WHERE b > 1) + apart(b))",
    "SELECT room, apart(DISTINCT weight) FILTER (WHERE halved(weight, 2) > 1) AS a, "
    "apart(SUM(weight)) OVER (ORDER BY room) AS b FROM seat GROUP BY room HAVING apart(weight) > 1",
    "SHOW SOURCES; DESCRIBE seat; DROP VIEW IF EXISTS v; ADVANCE TIME BY '10 s'",
]
STRANGE_TEXT = r"""
[ ] ( ) { } , . ; : :: -> ->> || <=> := => ** // == != <> ! # ~ ^ & | ? @x :a $1 ' " \ ` /* */ --
1e999 99999999999999999999 0x1F x'ab' b'1' e'a' 'a' "a" NULL * ALL ANY FILTER QUALIFY WINDOW ROLLUP
FOR UPDATE TOP FULL NATURAL ASOF LATERAL OVER EXISTS PIVOT UNNEST VALUES INTERSECT EXCEPT LIMIT
OFFSET ORDER TABLESAMPLE STRUCT ARRAY MAP DATE EXTRACT IF TRY_CAST XMLTABLE JSON_TABLE
MATCH_RECOGNIZE
"""
USUAL = {word for text in VALID for word in re.findall(r"\w+|'[^']*'|[^\w\s]", text)}
WORDS = sorted(USUAL | set(STRANGE_TEXT.split()))

CATALOG = catalog_of(SOURCES, library=True)


def run(text: str) -> None:
    """Parse and bind everything in a text."""
    for statement in parse_script(text):
        bind(statement)


def bind(statement: Statement) -> None:
    match statement:
        case Explain(inner=inner):
            bind(inner)
        case Subscribe(inner=query):
            bind_query(query, CATALOG)
        case Query():
            bind_query(statement, CATALOG)
        case CreateSource() | CreateView() | CreateFunction():
            define(statement, CATALOG)
        case Insert():
            bind_insert(statement, CATALOG)
        case Delete():
            bind_delete(statement, CATALOG)
        case ExplainWhy():
            bind_why(statement, CATALOG)
        case ExplainWhatIf():
            bind_deletions(statement, CATALOG)
            bind_what_if(statement, CATALOG)
        case ExplainConfidence():
            bind_confidence(statement, CATALOG)
        case _:
            pass


def survives(text: str) -> None:
    error = refusal(text)
    if error is not None:
        assert error.span is not None, error.message
        assert error.span.line >= 1
        assert error.span.column >= 1
        assert not any(word in str(error) for word in ("Traceback", "sqlglot", "<class"))


def refusal(text: str) -> QueryError | None:
    try:
        run(text)
    except QueryError as error:
        return error
    return None


def test_valid_statements_bind() -> None:
    for text in VALID:
        run(text)


@st.composite
def mutations(draw: st.DrawFn) -> str:
    tokens = re.findall(r"\s+|\w+|'[^']*'|[^\w\s]", draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(len(tokens) - 1, 0)))
        word = f" {draw(st.sampled_from(WORDS))} "
        match draw(st.integers(0, 3)):
            case 0:
                del tokens[place : place + 1]
            case 1:
                tokens.insert(place, word)
            case 2:
                tokens[place : place + 1] = [word]
            case _:
                other = draw(st.integers(0, max(len(tokens) - 1, 0)))
                if tokens:
                    tokens[place], tokens[other] = tokens[other], tokens[place]
    return "".join(tokens)


FUZZ = settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)


@FUZZ
@given(mutations())
@example("SELECT 1 FROM seat [")
@example("SELECT EXTRACT(year FROM ts) FROM seat")
@example("SELECT {'a': 1} FROM seat")
@example("DELETE FROM machines WHERE IF level < 5")
@example("SELECT 1 UNION RIGHT SELECT 2")
@example("SELECT * EXCEPT (a) FROM seat")
@example("SELECT desk -> 'a', desk ->> '$.b' FROM seat")
@example("CREATE VIEW v AS SELECT desk EXCEPT FROM seat")
def test_mutated_statements(text: str) -> None:
    survives(text)


@FUZZ
@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join))
def test_token_soup(text: str) -> None:
    survives(text)
    survives(f"SELECT {text}")


@FUZZ
@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    survives(text)
    survives(f"SELECT {text} FROM seat")


@FUZZ
@given(st.sampled_from(VALID), st.data())
def test_characters_lost_or_added(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 4))
    added = data.draw(st.text(max_size=3))
    survives(text[:place] + added + text[place + length :])
