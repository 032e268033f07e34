"""Wrong statements: which error, at which place, about which text, with which hint."""

import re

import pytest

from streamsql.binder import (
    NonTerminatingError,
    bind_delete,
    bind_insert,
    bind_query,
    define,
)
from streamsql.errors import BindingError, QueryError, QuerySyntaxError, UnsupportedError
from streamsql.syntax import CreateSource, CreateView, Delete, Insert, Query, parse_script
from tests.streamsql.from_text import catalog_of, unmarked

CATALOG = """
CREATE SOURCE seat (desk TEXT, room TEXT, weight DOUBLE, ts TIMESTAMP) WITH (ttl = '90 s');
CREATE SOURCE room (rid TEXT, status TEXT, temp DOUBLE, ts TIMESTAMP);
CREATE TABLE machines (mid TEXT PRIMARY KEY, room TEXT, level INTEGER);
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE) WITH (ttl = '90 s');
CREATE VIEW hot AS SELECT rid, temp FROM room WHERE temp > 27;
"""

STEP = "FROM r JOIN link l ON l.src = r.a"
COUNTED = f"WITH RECURSIVE r(a, n) AS (SELECT src, 1 FROM link UNION SELECT l.dst, r.n + 1 {STEP})"

# statement with the offending text between marks, part of the message, part of the hint
SYNTAX = [
    ("«SELEC» desk FROM seat", "expected a statement", "SELECT"),
    ("SELECT desk FORM «seat»", "unexpected 'seat'", "FROM instead of FORM"),
    ("SELECT desk FROM seat WERE «a» = 1", "unexpected", "WHERE instead of WERE"),
    ("SELECT desk FROM seat GRUOP «BY» desk", "unexpected", "GROUP instead of GRUOP"),
    ("SELECT desk«,» FROM seat", "after this comma", "remove the comma, or add the next element"),
    ("SELECT desk FROM seat«,»", "after this comma", "remove the comma, or add the next element"),
    ("SELECT desk FROM«»", "name of a source", "FROM name"),
    ("SELECT desk\nFROM seat\nWHERE«»", "WHERE is incomplete", "after WHERE"),
    ("SELECT desk FROM seat WHERE weight =«»", "= is incomplete", "value"),
    ("SELECT (desk «FROM» seat", "expected )", "close the bracket"),
    ("SELECT «'a FROM seat»", "no closing '", "''"),
    ('SELECT «"a FROM seat»', 'no closing "', '""'),
    ("SELECT 1 «/* one»", "no closing */", "*/"),
    ("SELECT desk FROM seat [RANGE«]»", "number in the window", "[RANGE 10"),
    ("SELECT desk FROM seat [RANGE 5 «PARSECS»]", "time unit", "[RANGE 10"),
    ("SELECT desk FROM seat [RANGE 10 «MINUTS»]", "time unit", "MINUTES"),
    ("SELECT desk FROM seat [ROWS «1.5»]", "whole number", ""),
    ("SELECT desk FROM seat [ROWS «0»]", "greater than 0", ""),
    ("SELECT desk FROM seat [«LAST» 5]", "RANGE, ROWS, NOW", "[ROWS 100]"),
    ("SELECT desk FROM seat [ROWS 5«»", "] to close the window", ""),
    ("SELECT a b «c» FROM seat", "unexpected 'c'", "comma"),
    ("WITH x AS (SELECT 1)«»", "a query must follow WITH", "SELECT"),
    ("WITH x AS «SELECT» 1", "expected (", ""),
    ("SELECT CASE WHEN TRUE THEN «1» FROM seat", "END after CASE", "CASE WHEN"),
    ("CREATE «SORCE» s (a TEXT)", "after CREATE", "SOURCE"),
    ("CREATE SOURCE s (a «TXT»)", "expected a type", "TEXT"),
    ("CREATE SOURCE s (a TEXT «b» TEXT)", "expected )", "commas"),
    ("CREATE SOURCE s (a TEXT) WITH (ttl «'5 s'»)", "expected =", "ttl = "),
    ("CREATE SOURCE s (a TEXT) WITH (ttl = '5 s', «ttl» = '6 s')", "twice", ""),
    (
        "CREATE SOURCE s (ts TIMESTAMP, WATERMARK FOR ts AS «at» - INTERVAL '5 s')",
        "must be computed from ts",
        "WATERMARK FOR ts AS ts",
    ),
    (
        "CREATE SOURCE s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL «'soon'»)",
        "not a duration",
        "'5 s'",
    ),
    ("CREATE VIEW v «SELECT» 1", "expected AS", "CREATE VIEW v AS"),
    ("INSERT «seat» VALUES (1)", "expected INTO", "INSERT INTO"),
    ("INSERT INTO seat VALUES («1»,)", "value is missing", "NULL"),
    ("INSERT INTO seat VALUES (1«»", "expected )", ""),
    ("DELETE «seat»", "expected FROM", "DELETE FROM"),
    ("DROP «SOURC» seat", "what to drop", "SOURCE"),
    ("SHOW «TABELS»", "what to show", "TABLES"),
    ("EXPLAIN«»", "statement to explain", ""),
    ("EXPLAIN «EXPLAIN» SELECT 1", "explain itself", "once"),
    ("EXPLAIN (TYPE «SPEED») SELECT 1", "a type", "LOGICAL"),
    ("SUBSCRIBE TO v WITH («SNAPSHT»)", "SNAPSHOT or PROGRESS", "SNAPSHOT"),
    ("ADVANCE TIME TO «'noon'»", "not a TIMESTAMP", "ADVANCE TIME TO"),
    ("ADVANCE TIME BY «'long'»", "not a duration", "ADVANCE TIME"),
    ("SELECT 1; «SELEKT» 2", "expected a statement", "SELECT"),
]

BINDING = [
    (
        "CREATE SOURCE s (k TEXT, ts TIMESTAMP) WITH («idle» = '10 s')",
        "idle needs a watermark, but this source has none",
        "WATERMARK FOR ts",
    ),
    (
        "WITH RECURSIVE «r(a)» AS (SELECT s.a FROM s), s(a) AS (SELECT a FROM r) SELECT 1",
        "'r and s' has no base: every branch reads one of them",
        "start one of them",
    ),
    (
        "WITH RECURSIVE r(a, n) AS («SELECT src, 1 FROM link UNION SELECT b, m FROM s»), s(b, "
        "m) AS (SELECT a, 'x' FROM r) SELECT 1",
        "INTEGER in one branch and TEXT",
        "CAST",
    ),
    ("SELECT «dsk» FROM seat", "no column 'dsk'", "desk"),
    ("SELECT «s.dsk» FROM seat s", "no column 'dsk'", "desk"),
    ("SELECT «x».desk FROM seat s", "no relation 'x'", "known here: s"),
    ("SELECT «seat».desk FROM seat s", "no relation 'seat'", "s"),
    ("SELECT *\nFROM «seats»", "'seats'", "did you mean seat"),
    ("SELECT * FROM «nowhere»", "'nowhere'", "SHOW SOURCES"),
    ("SELECT «ts» FROM seat, room", "'ts' is ambiguous", "seat.ts, room.ts"),
    ("SELECT * FROM seat, «seat»", "appears twice", "AS other"),
    ("SELECT * FROM seat JOIN «room»", "needs ON or USING", "CROSS JOIN"),
    ("SELECT * FROM seat LEFT JOIN «room»", "LEFT JOIN needs ON", "ON a.x"),
    ("SELECT * FROM seat JOIN room USING («rm»)", "no column 'rm'", "room"),
    ("SELECT «*»", "needs a FROM", "SELECT * FROM"),
    ("«SELECT FROM seat»", "select list is empty", "SELECT *"),
    ("SELECT desk FROM seat WHERE «weight»", "WHERE needs a condition", "> 0"),
    ("SELECT weight > 1 AND «room» FROM seat", "AND needs a condition", ""),
    ("SELECT 1 FROM seat WHERE «room = 5»", "cannot be compared", "CAST"),
    ("SELECT 1 FROM seat WHERE «weight = '5'»", "compared", "without quotes"),
    ("SELECT 1 FROM seat WHERE «ts > 'noon'»", "not a TIMESTAMP", "2026"),
    ("SELECT «room + 1» FROM seat", "TEXT + INTEGER", "||"),
    ("SELECT «ts + 1» FROM seat", "TIMESTAMP + INTEGER", "INTERVAL"),
    ("SELECT -«room» FROM seat", "no negative", ""),
    ("SELECT «CAST('x' AS INTEGER)»", "not a INTEGER", ""),
    ("SELECT «99999999999999999999»", "not a number", "64 bits"),
    ("SELECT INTERVAL «'soon'»", "not a duration", "10 min"),
    ("SELECT «sqr(weight)» FROM seat", "no function 'sqr'", "SQRT"),
    ("SELECT «sqrt(room)» FROM seat", "does not take (TEXT)", "SQRT(number)"),
    ("SELECT «distance(1, 2, 3)»", "DISTANCE does not take", "x1, y1"),
    ("SELECT «CASE WHEN TRUE THEN 1 ELSE 'a' END»", "CASE mixes", "CAST"),
    ("SELECT 1 IN («'a'»)", "cannot be compared", ""),
    ("SELECT «desk», COUNT(*) FROM seat", "neither in GROUP BY", "GROUP BY"),
    ("SELECT room, «weight» FROM seat GROUP BY room", "neither", "MIN(weight)"),
    ("SELECT «*» FROM seat GROUP BY room", "'desk' is neither", "GROUP BY"),
    ("SELECT room FROM seat GROUP BY «2»", "GROUP BY 2", "from 1 to 1"),
    ("SELECT COUNT(*) AS n FROM seat GROUP BY «n»", "cannot contain an aggregate", ""),
    ("SELECT 1 FROM seat WHERE «COUNT(*)» > 1", "COUNT cannot stand here", "HAVING"),
    ("SELECT SUM(«MAX(weight)») FROM seat", "inside an aggregate", "FROM"),
    ("SELECT «SUM(room)» FROM seat", "SUM takes numbers", "COUNT"),
    ("SELECT «MIN(1, 2)» FROM seat", "MIN takes one value", "LEAST"),
    ("SELECT «ARG_MIN(desk)» FROM seat", "two values", "ARG_MIN(value, by)"),
    ("SELECT a FROM (SELECT 1, 2) AS «q(a)»", "1 column names for 2", "column1"),
    ("«SELECT 1 UNION SELECT 1, 2»", "2 columns", ""),
    ("«SELECT 1 UNION SELECT 'a'»", "INTEGER in one", "CAST"),
    (
        "SELECT * FROM (SELECT COUNT(*) FROM seat) AS q «[ROWS 5]»",
        "'q' is a query",
        "after the stream",
    ),
    ("SELECT * FROM machines «[NOW]»", "stored table", "remove the window"),
    ("SELECT * FROM (SELECT 1) AS q «[NOW]»", "'q' is a query", "inside"),
    ("WITH «x» AS (SELECT * FROM x) SELECT * FROM x", "itself", "WITH RECURSIVE"),
    ("WITH x AS (SELECT 1), «x» AS (SELECT 2) SELECT 1", "defined twice", "rename"),
    ("WITH RECURSIVE «r(a)» AS (SELECT a FROM r) SELECT 1", "no base", "does not read r"),
    ("CREATE SOURCE «seat» (a TEXT)", "already exists", "DROP SOURCE"),
    ("CREATE SOURCE s (a TEXT, «a» TEXT)", "defined twice", "rename"),
    ("CREATE SOURCE s (ab TEXT, KEY («ac»))", "no column 'ac'", "ab"),
    ("CREATE SOURCE s (a TEXT) WITH («ttl» = 'soon')", "not a duration", "90 s"),
    ("CREATE SOURCE s (a TEXT) WITH («ttl» = '0 s')", "longer than 0", ""),
    ("CREATE LINK SOURCE «s» (a TEXT)", "source and a destination", "src TEXT"),
    ("CREATE TABLE s (a TEXT) WITH («source» = 'cvs')", "'cvs'", "csv"),
    ("CREATE TABLE s (a TEXT) WITH («ttl» = '5 s')", "do not expire", "SOURCE"),
    ("CREATE SOURCE s (a TEXT, WATERMARK FOR «a» AS a)", "is TEXT", "TIMESTAMP"),
    ("CREATE VIEW «v» AS SELECT * FROM v", "reads itself", "RECURSIVE"),
    ("CREATE VIEW v (a) AS «SELECT 1, 2»", "1 column names", ""),
    ("CREATE VIEW v AS SELECT «dsk» FROM seat", "no column", "desk"),
    ("INSERT INTO «sat» VALUES (1)", "no source or table", "seat"),
    ("INSERT INTO «hot» VALUES (1)", "is a view", "sources"),
    ("INSERT INTO seat VALUES («1», 2)", "2 values for 4 columns", "desk TEXT"),
    ("INSERT INTO seat («dsk») VALUES ('a')", "no column 'dsk'", "desk"),
    ("INSERT INTO seat (desk, «desk») VALUES (1, 2)", "named twice", ""),
    ("INSERT INTO room (temp) VALUES («'warm'»)", "column 'temp'", "DOUBLE"),
    ("INSERT INTO room (rid) VALUES («lab»)", "'lab' is not a value", "quotes"),
    ("INSERT INTO room (ts) VALUES («'noon'»)", "not a TIMESTAMP", "2026"),
    ("DELETE FROM «rom»", "no source or table", "room"),
    ("DELETE FROM room WHERE «temperature» > 5", "no column", "temp"),
    (
        "SELECT («SELECT weight, desk FROM seat»)",
        "must have one column, but this one has 2",
        "SELECT x",
    ),
    (
        "SELECT 1 FROM room WHERE «rid IN (SELECT desk, room FROM seat)»",
        "1 value on the left, but the query has 2",
        "(a, b) IN",
    ),
    (
        "SELECT 1 FROM room r WHERE EXISTS (SELECT 1 FROM seat s WHERE s.room = «r.rd»)",
        "no column 'rd'",
        "rid",
    ),
    (
        "SELECT 1 FROM seat ASOF JOIN room ON «room = rid»",
        "compares one pair of times, but this one compares 0",
        "a.ts >= b.ts",
    ),
    ("SELECT «room».rid FROM seat SEMI JOIN room ON room = rid", "'room'", "seat"),
    ("SELECT 1 FROM machines NATURAL JOIN «link»", "same name on both", "ON a.x"),
    ("SELECT desk FROM seat ORDER BY «weight»", "the query does not have this column", "add LIMIT"),
    ("SELECT desk FROM seat ORDER BY «2»", "no such column", "from 1 to 1"),
    ("SELECT desk FROM seat LIMIT «1.5»", "whole number of rows", "LIMIT 10"),
    (
        "SELECT DISTINCT desk FROM seat ORDER BY «weight» LIMIT 3",
        "with DISTINCT, ORDER BY takes only columns of the select",
        "MIN or MAX",
    ),
    ("SELECT 1 FROM (VALUES (1, 2), («3»)) v", "1 values, the first one 2", "NULL"),
    ("SELECT 1 FROM (VALUES («1»), ('a')) v", "mixes INTEGER and TEXT", "CAST"),
    ("«SELECT 1 INTERSECT SELECT 1, 2»", "INTERSECT has 2 columns", "branch 1"),
    (
        "SELECT 1 FROM room WHERE (SELECT «COUNT(room.rid)») > 1",
        "belongs to the outer query",
        "an aggregate of the outer query is allowed in subqueries of",
    ),
    ("SELECT «COUNT»() FROM room", "COUNT takes one value", "COUNT(*)"),
    ("SELECT «COUNT(DISTINCT)» FROM room", "takes one value", "COUNT(*)"),
    ("SELECT «COUNT_IF(rid = 'a', rid)» FROM room", "takes one condition", "COUNT_IF(x > 3)"),
]

UNSUPPORTED = [
    ("SELECT «APPROX_DISTINCT(desk)» FROM seat", "APPROX_DISTINCT is not supported", "ARRAY_AGG"),
    (
        "SELECT desk FROM seat WHERE «RANK() OVER (ORDER BY desk)» < 3",
        "window functions are allowed only in the select list, ORDER",
        "QUALIFY",
    ),
    ("SELECT * FROM (SELECT 1 AS a ORDER BY «a») AS q", "ORDER BY", "remove it"),
    ("SELECT «MEDIAN(weight) OVER ()» FROM seat", "not supported before OVER", "ROW_NUMBER"),
    ("SELECT «COUNT(DISTINCT desk) OVER ()» FROM seat", "DISTINCT is not supported", "ROW_NUMBER"),
    (
        "SELECT «LAG(desk) IGNORE NULLS OVER (ORDER BY ts)» FROM seat",
        "IGNORE NULLS is not supported",
        "LAG",
    ),
    ("SELECT «CORR(weight, 1)» FROM seat", "CORR", "AVG"),
    ("SELECT «now»()", "current time", "RANGE"),
    ("SELECT «desk[1]» FROM seat", "not arrays", ""),
    ("SELECT 1 FROM «a».seat", "schemas are not supported", "without a dot"),
    (
        "SELECT 1 FROM seat [PARTITION BY «room» RANGE 5 SECONDS]",
        "PARTITION BY has an effect only with ROWS",
        "",
    ),
    ("SELECT «IF(TRUE, 1, 2)»", "IF", "CASE"),
    ("SELECT «CAST(ts AS INTEGER)» FROM seat", "cannot be cast", "EPOCH"),
    ("«TRUNCATE» seat", "not a StreamSQL statement", "DELETE FROM"),
    ("«ALTER» TABLE t ADD a TEXT", "not a StreamSQL statement", "DROP"),
    ("CREATE OR REPLACE «VIEW» v AS SELECT 1", "only for sources", "DROP"),
    ("CREATE SOURCE s (a TEXT «NOT» NULL)", "NOT NULL", "IS NOT NULL"),
    ("CREATE SOURCE s (a VARCHAR«(»20))", "no length", "TEXT"),
    ("CREATE «INDEX» i ON s (a)", "Pando creates the indexes that it needs", ""),
    ("INSERT INTO seat «SELECT» * FROM seat", "but seat is a stream", "FOR SYSTEM_TIME AS OF"),
    (
        "WITH RECURSIVE r(a) AS (SELECT src FROM link UNION SELECT x.a FROM «r x» LEFT JOIN r y "
        "ON x.a = y.a) SELECT 1",
        "outer join over the recursive",
        "LEFT JOIN",
    ),
    (
        "WITH RECURSIVE r(a) AS (SELECT src FROM link UNION SELECT s.a FROM s), s(a) AS (SELECT "
        "MAX(a) FROM «r») SELECT 1",
        "'r' contains an aggregate over the recursive relation inside its own definition",
        "finished r",
    ),
    (
        "WITH RECURSIVE r(a) AS (SELECT src FROM link UNION SELECT b FROM s), s(b) AS («SELECT "
        "a FROM r UNION ALL SELECT dst FROM link») SELECT 1",
        "UNION ALL in 's', which is defined together with others",
        "write UNION",
    ),
    (
        "WITH RECURSIVE r(a) AS (SELECT src FROM link UNION SELECT MIN(l.dst) FROM «r» JOIN "
        "link l ON l.src = r.a) SELECT 1",
        "aggregate over the recursive",
        "after WITH",
    ),
    (
        "WITH RECURSIVE r(a) AS (SELECT src FROM link UNION SELECT l.dst FROM link l LEFT JOIN "
        "«r» ON l.src = r.a) SELECT 1",
        "outer join over the recursive",
        "LEFT JOIN",
    ),
    (
        "WITH RECURSIVE r(a) AS (SELECT src FROM link UNION SELECT l.dst FROM (SELECT DISTINCT "
        "a FROM «r») AS q JOIN link l ON l.src = q.a) SELECT 1",
        "DISTINCT over the recursive",
        "remove it",
    ),
    # --- subqueries, joins, ordered rows ---
    (
        "SELECT («SELECT weight FROM seat») FROM room",
        "this query is used as a value but could return more than one",
        "LIMIT 1",
    ),
    (
        "SELECT 1 FROM room WHERE EXISTS (SELECT (SELECT COUNT(*) FROM machines m WHERE m.room "
        "= «rid») FROM seat LIMIT 1)",
        "cannot be read here",
        "write its relation: table",
    ),
    (
        "SELECT («PERCENTILE_CONT(0.75)) WITHIN GROUP (ORDER BY weight») FROM seat",
        "is not supported",
        "write PERCENTILE_CONT(0.5)",
    ),
    (
        "SELECT 1 FROM room WHERE EXISTS (SELECT 1 FROM (SELECT 1 FROM seat WHERE room = «rid») q)",
        "a query in FROM cannot read it",
        "WHERE of a subquery",
    ),
    (
        "SELECT 1 FROM room r WHERE EXISTS (SELECT 1 FROM seat WHERE room = «r.rid» UNION "
        "SELECT 2)",
        "the queries of a UNION, INTERSECT or EXCEPT cannot read it",
        "WHERE of a subquery",
    ),
    (
        "SELECT 1 FROM room r WHERE EXISTS (WITH w AS (SELECT 1 FROM seat WHERE room = «r.rid») "
        "SELECT 1 FROM w)",
        "a query in WITH cannot read it",
        "join the queries in FROM",
    ),
    (
        "SELECT 1 FROM room r WHERE EXISTS (SELECT 1 FROM seat s LEFT JOIN hot h ON h.rid = "
        "«r.rid»)",
        "the ON of a LEFT JOIN cannot read it",
        "WHERE",
    ),
    (
        "SELECT 1 FROM room r WHERE EXISTS (SELECT 1 FROM seat s JOIN hot h ON s.rid IN (SELECT "
        "«r.rid») FULL JOIN room q ON q.rid = h.rid)",
        "belongs to the outer query",
        "WHERE",
    ),
    (
        "SELECT SUM((«SELECT MAX(weight) FROM seat»)) FROM room",
        "arguments of aggregates",
        "query in FROM",
    ),
    (
        "SELECT 1 FROM seat ASOF JOIN room ON «seat.ts <= room.ts»",
        "one comparison of times",
        "a.ts >= b.ts",
    ),
    ("SELECT 1 FROM seat RIGHT SEMI JOIN «room ON TRUE»", "RIGHT SEMI", "LEFT"),
    ("SELECT 1 FROM seat QUALIFY «1 > ANY (ARRAY[1])»", "without a window function", "QUALIFY"),
    ("SELECT 1 > ANY (ARRAY[«1]»)", "ANY and ALL take a query", "IN ("),
    ("SELECT desk FROM seat LIMIT 5 «PERCENT»", "number of rows", "LIMIT 10"),
]

RECURSION = [
    (
        "WITH RECURSIVE r(a) AS (SELECT src FROM link UNION SELECT l.dst FROM r [NOW] "
        "JOIN link l ON l.src = r.a) SELECT 1",
        BindingError,
        "is a recursive relation",
        "after the stream",
    ),
    (
        f"{COUNTED} SELECT * FROM r",
        NonTerminatingError,
        "n as n + 1, and nothing bounds it",
        "hops < 12",
    ),
    (
        "WITH RECURSIVE r(a, n) AS (SELECT src, 1 FROM link UNION SELECT l.dst, r.n + 1 "
        f"{STEP} WHERE r.n > 12) SELECT * FROM r",
        NonTerminatingError,
        "does not bound it",
        "hops < 12",
    ),
    (
        "WITH RECURSIVE r(a, c) AS (SELECT src, 0 FROM link UNION SELECT l.dst, r.c + l.cost "
        f"{STEP} WHERE r.c + l.cost <= 100) SELECT * FROM r",
        NonTerminatingError,
        "the test of c does not bound it",
        "MIN(c)",
    ),
    (
        "WITH RECURSIVE r(a, p) AS (SELECT src, src FROM link UNION "
        f"SELECT l.dst, r.p || l.dst {STEP}) SELECT * FROM r",
        NonTerminatingError,
        "p as p || dst, and nothing bounds it",
        "POSITION",
    ),
    (
        "WITH RECURSIVE r(a, p) AS (SELECT src, src FROM link UNION SELECT l.dst, r.p || l.dst "
        f"{STEP} WHERE POSITION(l.src IN r.p) = 0) SELECT * FROM r",
        NonTerminatingError,
        "does not check the appended part",
        "POSITION",
    ),
    (
        f"{COUNTED} SELECT a, MAX(n) FROM r GROUP BY a",
        NonTerminatingError,
        "MAX would never end",
        "",
    ),
    (
        "WITH RECURSIVE r(a, c) AS (SELECT src, 0 FROM link UNION SELECT l.dst, r.c - l.cost "
        f"{STEP}) SELECT a, MIN(c) FROM r GROUP BY a",
        NonTerminatingError,
        "MIN would never end",
        "",
    ),
    (
        f"{COUNTED} SELECT MIN(n) FROM r",
        NonTerminatingError,
        "step 1 tests a, which is not in GROUP BY",
        "",
    ),
    (
        f"{COUNTED} SELECT a, COUNT(*) FROM r GROUP BY a",
        NonTerminatingError,
        "COUNT(*) needs all rows",
        "",
    ),
    (
        f"{COUNTED} SELECT a, MIN(n) FROM r WHERE n > 2 GROUP BY a",
        NonTerminatingError,
        "a filter reads n",
        "",
    ),
    (
        "WITH RECURSIVE r(a, n) AS (SELECT src, 1 FROM link UNION SELECT b, m + 1 FROM s), "
        "s(b, m) AS (SELECT a, n FROM r) SELECT * FROM s",
        NonTerminatingError,
        "a step of 'r' computes n as m + 1, and nothing bounds it",
        "hops < 12",
    ),
    (
        "WITH RECURSIVE r(a, n) AS (SELECT src, 1 FROM link UNION SELECT b, m + 1 FROM s), "
        "s(b, m) AS (SELECT a, n FROM r) SELECT b, MIN(m) FROM s GROUP BY b",
        NonTerminatingError,
        "several mutually recursive relations share columns",
        "",
    ),
    (
        "WITH RECURSIVE r(a, b, n) AS (SELECT src, dst, 1 FROM link UNION "
        "SELECT x.a, y.b, x.n + y.n FROM r x JOIN r y ON x.b = y.a WHERE x.n < 5) SELECT * FROM r",
        NonTerminatingError,
        "computes n as x.n + y.n",
        "",
    ),
    (
        "WITH RECURSIVE r(a, b, n) AS (SELECT src, dst, 1 FROM link UNION "
        "SELECT x.a, y.b, x.n - y.n FROM r x JOIN r y ON x.b = y.a) "
        "SELECT a, b, MIN(n) FROM r GROUP BY a, b",
        NonTerminatingError,
        "in a way that can make a better value worse",
        "",
    ),
    (
        "WITH RECURSIVE r(a, b, n) AS (SELECT src, dst, 1 FROM link UNION "
        "SELECT x.a, y.b, x.n + y.n FROM r x JOIN r y ON x.b = y.a) "
        "SELECT a, b, MIN(n), COUNT(*) FROM r GROUP BY a, b",
        NonTerminatingError,
        "COUNT(*) next to MIN or MAX needs all rows",
        "",
    ),
    (
        "WITH RECURSIVE r(a, n, m) AS (SELECT src, 1, 1 FROM link UNION "
        f"SELECT l.dst, r.n + 1, r.m * 2 {STEP}) SELECT a, MIN(n), MIN(m) FROM r GROUP BY a",
        NonTerminatingError,
        "computes m in a way that can make a better value worse",
        "",
    ),
    (
        "WITH RECURSIVE r(a, n) AS (SELECT src, 1 FROM link UNION "
        f"SELECT l.dst, 10 - r.n {STEP}) SELECT a, MIN(n) FROM r GROUP BY a",
        NonTerminatingError,
        "in a way that can make a better value worse",
        "",
    ),
    (
        "WITH RECURSIVE r(a, w, p) AS (SELECT src, cost, src FROM link UNION "
        f"SELECT l.dst, LEAST(r.w, l.cost), r.p || l.dst {STEP}) "
        "SELECT a, MAX(w), ARG_MAX(p, w) FROM r GROUP BY a",
        NonTerminatingError,
        "would depend on pruned rows",
        "",
    ),
    (
        "WITH RECURSIVE r(a, c, p) AS (SELECT src, cost, src FROM link UNION "
        f"SELECT l.dst, r.c, r.p || l.dst {STEP}) SELECT a, MIN(c) FROM r GROUP BY a",
        NonTerminatingError,
        "leaves c unchanged while p grows",
        "",
    ),
    (
        "WITH RECURSIVE r(a) AS (SELECT src FROM link UNION SELECT dst FROM link "
        "WHERE src NOT IN (SELECT a FROM r)) SELECT 1",
        UnsupportedError,
        "NOT EXISTS, NOT IN or ANTI JOIN over it",
        "finished r",
    ),
    (
        "WITH RECURSIVE r(a) AS (SELECT src FROM link UNION SELECT a FROM r "
        "WHERE NOT EXISTS (SELECT 1 FROM link WHERE dst = r.a)) SELECT 1",
        UnsupportedError,
        "NOT EXISTS, NOT IN or ANTI JOIN over it",
        "a table before it",
    ),
    (
        "WITH RECURSIVE r(a) AS (SELECT src FROM link UNION SELECT dst FROM link "
        "WHERE (SELECT COUNT(*) FROM r WHERE r.a = src) > 3) SELECT 1",
        UnsupportedError,
        "recursive relation",
        "finished",
    ),
    (
        "WITH RECURSIVE r(a) AS (SELECT src FROM link UNION (SELECT a FROM r EXCEPT "
        "SELECT dst FROM link)) SELECT 1",
        UnsupportedError,
        "EXCEPT over the recursive relation",
        "finished r",
    ),
    (
        "WITH RECURSIVE r(a) AS (SELECT src FROM link UNION SELECT q.a FROM "
        "(SELECT a FROM r ORDER BY a LIMIT 3) AS q) SELECT 1",
        UnsupportedError,
        "LIMIT or ROW_NUMBER() over the recursive relation",
        "finished r",
    ),
    (
        "WITH RECURSIVE r(a) AS (SELECT src FROM link UNION SELECT a FROM r FULL JOIN link "
        "ON link.dst = r.a) SELECT 1",
        UnsupportedError,
        "an outer join over the recursive relation",
        "LEFT JOIN",
    ),
]

PLACED = [
    *((QuerySyntaxError, *case) for case in SYNTAX),
    *((BindingError, *case) for case in BINDING),
    *((UnsupportedError, *case) for case in UNSUPPORTED),
]


def bind_all(text: str) -> None:
    known = catalog_of(CATALOG)
    for statement in parse_script(text):
        match statement:
            case CreateSource() | CreateView():
                define(statement, known)
            case Insert():
                bind_insert(statement, known)
            case Delete():
                bind_delete(statement, known)
            case Query():
                bind_query(statement, known)
            case _:
                pytest.fail("this statement is not bound")


def refusal(text: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        bind_all(text)
    return caught.value


@pytest.mark.parametrize(
    ("kind", "marked", "message", "hint"),
    PLACED,
    ids=[re.sub(r"\W+", "-", unmarked(case[1])[0])[:60] for case in PLACED],
)
def test_place_and_hint(kind: type[QueryError], marked: str, message: str, hint: str) -> None:
    text, place = unmarked(marked)
    error = refusal(text)
    assert error.span is not None
    assert (error.span.line, error.span.column, error.span.text) == place
    assert type(error) is kind
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize(("text", "kind", "message", "hint"), RECURSION)
def test_recursion_refused(text: str, kind: type[QueryError], message: str, hint: str) -> None:
    error = refusal(text)
    assert type(error) is kind
    assert message in error.message
    assert hint in error.hint
    assert error.span is not None


def test_non_terminating_has_its_own_code() -> None:
    assert refusal(RECURSION[1][0]).code == "non_terminating"


def test_enough_cases() -> None:
    assert len(PLACED) + len(RECURSION) >= 150
