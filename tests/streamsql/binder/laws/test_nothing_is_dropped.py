"""Nothing that sqlglot parses is silently dropped.

Every node of many queries is given, one at a time, each argument that its class may have and that
it has not: a clause of some other dialect, a word. The query must then be refused, or mean
something else; were it bound to the same plan, that clause would be ignored without a word.
"""

from collections.abc import Iterator
from random import Random

import pytest
from sqlglot import exp

from streamsql.algebra.operators import Plan
from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.errors import FederationError, QueryError
from streamsql.syntax import Query
from streamsql.syntax.parse import scan
from tests.docs.error_page import SCHEMA
from tests.streamsql.from_text import catalog_of, query_of

QUERIES = (
    "SELECT desk AS d, weight + 1, 'x' || room FROM seat AS s WHERE weight > 5 AND NOT room = 'r'",
    "SELECT DISTINCT room FROM seat [RANGE 10 MINUTES] WHERE ts IS NOT NULL",
    "SELECT DISTINCT ON (room) room, desk FROM seat ORDER BY room, weight DESC LIMIT 3 OFFSET 1",
    "SELECT room, COUNT(*) AS n, SUM(weight) FILTER (WHERE weight > 1), COUNT(DISTINCT desk), "
    "MIN(desk), ARG_MAX(desk, weight), STDDEV(weight), VAR_POP(weight), MEDIAN(weight), "
    "BOOL_OR(weight > 3), ARRAY_AGG(desk), STRING_AGG(desk, ','), MODE(desk), "
    "COUNT_IF(weight > 1), AVG(weight), MAX(ts) FROM seat GROUP BY room HAVING COUNT(*) > 1",
    "SELECT room, GROUPING(room), PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY weight), "
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY weight) FROM seat GROUP BY ROLLUP (room)",
    "SELECT COUNT(*) FROM seat GROUP BY GROUPING SETS (room, CUBE (desk), ())",
    "SELECT s.desk FROM seat s JOIN badge b ON s.room = b.room LEFT JOIN machines m "
    "ON m.room = b.room",
    "SELECT desk FROM seat LEFT JOIN machines USING (room)",
    "SELECT s.desk FROM seat s SEMI JOIN badge b ON s.room = b.room, log CROSS JOIN link",
    "SELECT s.desk FROM seat s ASOF LEFT JOIN badge b ON s.room = b.room AND s.ts >= b.ts",
    "SELECT desk FROM seat NATURAL JOIN badge",
    "SELECT q.n FROM (SELECT COUNT(*) AS n FROM seat) AS q, (VALUES (1, 'a'), (2, 'b')) AS v(x, y)",
    "SELECT desk FROM seat UNION ALL SELECT tag FROM badge EXCEPT SELECT mid FROM machines",
    "WITH a AS (SELECT room FROM seat), b(x) AS (SELECT room FROM a) SELECT x FROM b",
    "WITH RECURSIVE r(x) AS (SELECT src FROM link UNION SELECT dst FROM link, r WHERE src = x) "
    "SELECT x FROM r",
    "SELECT room FROM seat QUALIFY ROW_NUMBER() OVER (PARTITION BY room ORDER BY weight) <= 2",
    "SELECT room FROM seat WHERE weight IN (1, 2) OR weight BETWEEN 3 AND 4 OR room LIKE 'a%' "
    "OR room ILIKE 'b!%' ESCAPE '!' OR room ~ 'x' OR room SIMILAR TO 'y' OR (weight > 3) IS TRUE",
    "SELECT room FROM seat WHERE room IN (SELECT room FROM badge) AND EXISTS (SELECT 1 FROM log) "
    "AND weight > ANY (SELECT cost FROM link) AND weight = (SELECT MAX(cost) FROM link)",
    "SELECT CAST(weight AS INTEGER), weight::TEXT, CASE WHEN weight > 1 THEN 'a' ELSE 'b' END, "
    "CASE room WHEN 'r' THEN 1 END, COALESCE(room, desk), NULLIF(room, desk), -weight, NULL, TRUE, "
    "LEAST(weight, 2), GREATEST(weight, 2), CONCAT(room, desk), CONCAT_WS('-', room, desk) "
    "FROM seat",
    "SELECT EXTRACT(HOUR FROM ts), DATE_TRUNC('hour', ts), ts + INTERVAL '5 s', TRIM(room), "
    "TRIM(BOTH 'x' FROM room), LPAD(room, 3, 'x'), ROUND(weight, 1), SUBSTRING(room, 1, 2), "
    "POSITION('a' IN room), LOWER(room), ABS(weight), LN(weight), POWER(weight, 2), LEFT(room, 1), "
    "INITCAP(room), CHR(65), REPLACE(room, 'a', 'b'), SPLIT_PART(room, 'a', 1) FROM seat",
    "SELECT COUNT(*), window_end FROM TUMBLE(seat, ts, INTERVAL '1 minute') GROUP BY window_end",
    "SELECT COUNT(*) FROM HOP(seat [RANGE 1 HOUR], ts, INTERVAL '1 minute', INTERVAL '2 minutes')",
    "SELECT * FROM SESSION(seat, ts, INTERVAL '1 minute', room) AS w",
    "SELECT s.* FROM seat [PARTITION BY room ROWS 5] AS s ORDER BY weight NULLS FIRST LIMIT 5",
    "SELECT mid FROM machines WHERE level IS NOT DISTINCT FROM 3 FETCH FIRST 2 ROWS ONLY",
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return catalog_of(SCHEMA)


WORDS = {
    (exp.Join, "global_"), (exp.In, "is_global"), (exp.With, "recursive"),
    (exp.Column, "join_mark"), (exp.Order, "siblings"), (exp.Identifier, "temporary"),
    (exp.Identifier, "global_"),
    (exp.CTE, "scalar"), (exp.CTE, "materialized"), (exp.Between, "symmetric"), (exp.Is, "negate"),
    (exp.Distinct, "on"), (exp.Group, "totals"), (exp.Group, "all"), (exp.SetOperation, "by_name"),
    (exp.Table, "only"), (exp.Table, "ordinality"), (exp.DataType, "nullable"),
}  # fmt: skip
"""Flags that stand for words somebody wrote; all others are notes of sqlglot's dialects."""

MEANT_THE_SAME = {
    ("CTE", "materialized"): "a table that is read once is computed once anyway",
    ("Cast", "safe"): "a CAST that fails is NULL here anyway",
    ("Coalesce", "is_null"): "how it was spelt",
    ("Coalesce", "is_nvl"): "how it was spelt",
    ("ArrayAgg", "nulls_excluded"): "NULLs are left out here anyway",
    ("Mode", "deterministic"): "ties go to the least value here anyway",
    (
        "Distinct",
        "expressions",
    ): "only COUNT(DISTINCT …) has them; behind SELECT there is no syntax",
    ("Group", "all"): "GROUP BY ALL before a list is the standard's word for the default",
    ("Exists", "expression"): "there is no syntax: of functions over arrays",
    ("DataType", "kind"): "there is no syntax: of functions over objects",
    ("DataType", "values"): "there is no syntax: of enumerations, which are no types here",
    ("Interval", "fraction_in_string"): "how it was spelt",
    ("Identifier", "quoted"): "how it was spelt, unless letters are upper case",
    ("If", "false"): "a node of CASE WHEN, whose ELSE is of the CASE",
    ("In", "expressions"): "there is no syntax: beside a query",
    ("Order", "this"): "of ARRAY_AGG(x ORDER BY …); there is no syntax for it elsewhere",
    ("Ordered", "desc"): "of aggregates whose answer does not depend on the order",
    ("Ordered", "nulls_first"): "of aggregates that leave NULLs out",
    ("Literal", "is_string"): "a number in EXISTS (SELECT 1 …), of which nothing is read",
    ("Select", "distinct"): "in EXISTS, and in a branch of a recursion, which is a set",
    ("Select", "order"): "in EXISTS",
    ("Column", "db"): "in EXISTS (SELECT *)",
    ("Column", "catalog"): "in EXISTS (SELECT *)",
    ("Column", "shadow"): "a note of the optimizer of sqlglot",
    ("Subquery", "alias"): "of a query in an expression: PostgreSQL takes it, too",
    ("Subquery", "joins"): "there is no syntax in an expression",
    (
        "Table",
        "joins",
    ): "there is no syntax behind TUMBLE, HOP and SESSION: joins are of the SELECT",
    ("With", "recursive"): "WITH RECURSIVE of tables that do not read themselves",
    ("StrPosition", "clamp_position"): "a note of a dialect",
    ("DPipe", "safe"): "a note of a dialect",
    ("Concat", "coalesce"): "a note of a dialect",
    ("ConcatWs", "coalesce"): "a note of a dialect",
    ("ConcatWs", "flatten"): "a note of a dialect",
    ("DataType", "nested"): "a note of a dialect",
    ("DateTrunc", "input_type_preserved"): "a note of a dialect",
}
"""What changes no plan, by class and argument, and why nothing is lost."""


def additions(node: exp.Expr) -> Iterator[tuple[str, object]]:
    """Yield arguments that a node may have and has not."""
    words = {key for kind, key in WORDS if isinstance(node, kind)}
    for key in node.arg_types:
        if node.args.get(key):
            continue
        if key in words:
            yield key, True
        else:
            marker = exp.Identifier(this="marker", quoted=True)
            yield key, [marker] if key.endswith("s") or key == "using" else marker


def bound(query: Query, catalog: Catalog) -> Plan | None:
    """Return the plan, or None where the tree is refused or is none that any text has."""
    try:
        return bind_query(query, catalog).plan
    except (FederationError, AttributeError, TypeError, ValueError):
        return None


@pytest.mark.parametrize("text", QUERIES, ids=[text[:45] for text in QUERIES])
def test_every_argument_is_read_or_refused(text: str, catalog: Catalog) -> None:
    query = query_of(text)
    plan = bind_query(query, catalog).plan
    dropped = set()
    for node in list(query.tree.walk()):
        for key, value in additions(node):
            node.set(key, value)
            if bound(query, catalog) == plan:
                dropped.add((type(node).__name__, key))
            node.args.pop(key, None)
    assert dropped <= set(MEANT_THE_SAME)
    assert bind_query(query, catalog).plan == plan


INSERTED = (
    "AS", "ALL", "DISTINCT", "ONLY", "OUTER", "LEFT", "NATURAL", "CROSS", "BY", "ON", "USING",
    "NOT", "NULL", "NULLS", "FIRST", "DESC", "ROWS", "RANGE", "WITH", "TIES", "FROM", "WHERE",
    "GROUP BY", "ORDER BY", "PARTITION BY", "LIMIT", "OFFSET", "FETCH", "UNION", "EXCEPT",
    "EXCLUDE", "SYMMETRIC", "ESCAPE", "IS", "IN", "LIKE", "BETWEEN", "AND", "CASE", "WHEN", "END",
    "INTERVAL", "TIMESTAMP", "INTEGER", "x", "'x'", "1", "1.5", "(", ")", "()", "[", "]", "{", "}",
    ",", ".", "..", "@x", "@", "#", ":", "::", "?", "$1", "+", "-", "/", "%", "||", "|", "&", "^",
    "~", "!", "=", "<", "=>", "->", ":=", "FILTER", "OVER", "WINDOW", "RECURSIVE", "MATERIALIZED",
    "LATERAL", "VALUES", "TABLE", "EXISTS", "ANY", "COLLATE", "AT TIME ZONE", "FOR UPDATE",
    "TABLESAMPLE", "PIVOT", "IGNORE NULLS", "WITHIN GROUP", "SELECT", "INTO", "FINAL", "SEMI",
    "ASOF", "GLOBAL", "HASH", "ROLLUP", "PRECEDING", "UNBOUNDED", "EXCLUDE", "TOP", "PERCENT",
    "QUALIFY", "SAMPLE", "PRECISION", "VERSION", "CONNECT BY", "ARRAY", "MAP", "CONSTRAINT",
    "PRIMARY KEY", "VARYING",
)  # fmt: skip
SAID_ALREADY = {"ALL", "ASC", "ROWS", "INNER", "OUTER", "AS", "DISTINCT", "PRECISION"}
"""Words that say what holds without them: SELECT ALL, UNION DISTINCT, LEFT OUTER JOIN, b AS x."""


@pytest.mark.parametrize("text", QUERIES, ids=[text[:45] for text in QUERIES])
def test_no_word_or_sign_is_passed_over(text: str) -> None:
    _, tokens = scan(text)
    before = query_of(text)
    random = Random(text)
    for _ in range(120):
        at, word = random.choice(tokens).start, random.choice(INSERTED)
        changed = f"{text[:at]} {word} {text[at:]}"
        try:
            after = query_of(changed)
        except FederationError:
            continue
        same = after.tree == before.tree and after.options == before.options
        assert not same or word in SAID_ALREADY, changed


ACCIDENTS = (
    ("SELECT desk FROM seat LIMIT 5, 10", "bad_limit"),
    ("SELECT desk FROM seat LIMIT 10 PERCENT", "unsupported_clause"),
    ("SELECT desk FROM seat LIMIT 1 BY room", "unsupported_clause"),
    ("SELECT desk FROM seat FETCH FIRST 5 ROWS WITH TIES", "bad_limit"),
    ("SELECT desk FROM seat GLOBAL JOIN badge USING (room)", "unexpected_token"),
    ("SELECT desk FROM seat ANY JOIN badge USING (room)", "unexpected_token"),
    ("SELECT desk FROM seat FINAL", "unexpected_token"),
    ("SELECT desk FROM seat FINAL WHERE desk = 'a'", "unexpected_token"),
    ("SELECT desk FROM seat OUTER JOIN badge ON seat.room = badge.room", "unsupported_join"),
    ("SELECT desk FROM seat CROSS JOIN badge ON seat.room = badge.room", "unsupported_join"),
    ("SELECT desk FROM seat NATURAL JOIN badge ON seat.ts > badge.ts", "unsupported_join"),
    ("SELECT desk FROM seat TABLESAMPLE (10)", "unsupported_clause"),
    ("SELECT /*+ BROADCAST(seat) */ desk FROM seat", "unsupported_clause"),
    ("SELECT desk FROM seat FOR UPDATE", "unsupported_clause"),
    ("SELECT desk FROM seat WHERE weight = ((SELECT MAX(cost) FROM link) LIMIT 0)",
     "unsupported_clause"),
    ("SELECT desk FROM seat WHERE room IN ((SELECT room FROM log) LIMIT 1)", "unsupported_clause"),
    ("SELECT CAST(ts AS TEXT FORMAT 'YYYY') FROM seat", "unsupported_clause"),
    ("SELECT CHR(65 USING utf8) FROM seat", "unsupported_clause"),
    ("SELECT COUNT(*, room) FROM seat", "wrong_arguments"),
    ("SELECT COUNT(* EXCEPT (room)) FROM seat", "unsupported_clause"),
    ("SELECT room, COUNT(*) FROM seat GROUP BY DISTINCT room", "unsupported_clause"),
    ("SELECT room, COUNT(*) FROM seat GROUP BY room WITH ROLLUP", "unsupported_clause"),
    ("SELECT desk FROM seat WHERE ! (room = 'a')", "unexpected_token"),
    ("SELECT 1_000 FROM seat", "unexpected_token"),
    ("SELECT 0x1F FROM seat", "unexpected_token"),
    ("SELECT * FROM link@x", "unexpected_token"),
    ("SELECT seat.room.* FROM seat AS room", "bad_column_name"),
    ("SELECT k FROM (SELECT 1 AS k, 2 AS k) AS q", "ambiguous_column"),
    ("SELECT q.k FROM (SELECT * FROM (SELECT 1 AS k, 2 AS k) AS p) AS q", "ambiguous_column"),
    ("WITH q AS (SELECT 1 AS k, 2 AS k) SELECT k FROM q", "ambiguous_column"),
    ("SELECT room FROM (SELECT * FROM seat JOIN badge ON TRUE) AS q", "ambiguous_column"),
    ("SELECT k FROM (SELECT 1 AS k, 2 AS k UNION SELECT 3, 4) AS q", "ambiguous_column"),
    ("SELECT a FROM (VALUES (1, 2)) AS q(a INTEGER, b TEXT)", "unclosed_bracket"),
    ("WITH c(a INTEGER) AS (SELECT 1) SELECT a FROM c", "unclosed_bracket"),
    ("SELECT COUNT(*) FROM seat GROUP BY", "unexpected_end"),
    ("SELECT room FROM seat GROUP BY ALL, room", "unexpected_token"),
    ("SELECT COUNT(*) FROM seat GROUP BY HAVING COUNT(*) > 1", "unexpected_token"),
    ("SELECT SUM(weight) OVER (PARTITION BY) FROM seat", "unexpected_token"),
    ("SELECT SUM(weight) OVER w FROM seat WINDOW w AS", "unexpected_end"),
    ("SELECT DISTINCT ON () room FROM seat", "wrong_arguments"),
    ("SELECT DISTINCT ON (room), room FROM seat", "unexpected_token"),
    ("SELECT room FROM seat AS", "unexpected_end"),
    ("SELECT room FROM seat OFFSET", "unexpected_token"),
    ("SELECT AS room FROM seat", "unexpected_token"),
    ("SELECT MAX(, weight) FROM seat", "unexpected_token"),
    ("SELECT room FROM . seat", "unexpected_token"),
    ("SELECT room FROM seat JOIN badge USING", "unexpected_end"),
    ("SELECT room FROM seat LIMIT 5 BY", "unexpected_end"),
    ("SELECT COUNT(ALL *) FROM seat", "unexpected_token"),
    ("SELECT GREATEST(ALL weight, 2) FROM seat", "unexpected_token"),
    ("SELECT INTERVAL '1' DAY TO SECOND", "unsupported_expression"),
    ("SELECT INTERVAL '1 day' HOUR", "unexpected_token"),
    ("SELECT + room FROM seat", "type_mismatch"),
    ("SELECT weight IS UNKNOWN FROM seat", "not_a_condition"),
    ("SELECT room FROM seat WHERE weight IN [1, 2]", "unexpected_token"),
    ("SELECT room FROM seat WHERE weight BETWEEN 1 2", "unexpected_token"),
    ("SELECT room FROM seat WHERE weight < 1 < 2", "unexpected_token"),
    ("SELECT room FROM seat JOIN badge USING (room, room)", "duplicate_name"),
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "SELECT room FROM seat OFFSET 3",
        "SELECT 'asof' AS asof FROM seat WHERE room <> 'asof'",
        "SELECT weight * replace FROM (SELECT weight, weight AS replace FROM seat) AS q",
    ],
)
def test_a_word_of_another_dialect_is_a_name_and_a_value(text: str, catalog: Catalog) -> None:
    assert bind_query(query_of(text), catalog).schema.names


@pytest.mark.parametrize(("text", "code"), ACCIDENTS)
def test_a_word_of_another_dialect_is_refused(text: str, code: str, catalog: Catalog) -> None:
    with pytest.raises(QueryError) as caught:
        bind_query(query_of(text), catalog)
    assert caught.value.code == code
    assert caught.value.hint
    assert caught.value.span is not None
