"""Outer joins become inner, or full ones left, exactly where their padded rows are dropped."""

import pytest

from federated_optimizer.rules import LOGICAL_RULES, run_rules
from federated_optimizer.rules.outer_to_inner import outer_to_inner
from streamsql.algebra.operators import AsOfJoin, Join, JoinKind, walk_plan
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE TABLE r (a INTEGER, b INTEGER, c TEXT, ts TIMESTAMP)",
    "CREATE TABLE s (x INTEGER, y INTEGER, f TEXT, ts TIMESTAMP)",
    "CREATE TABLE t (u INTEGER, v INTEGER)",
)
INNER, LEFT, FULL = JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL


def kinds(sql: str) -> list[JoinKind]:
    plan = run_rules(bound_query(sql, CATALOG).plan, LOGICAL_RULES)
    return [node.kind for node in walk_plan(plan) if isinstance(node, Join | AsOfJoin)]


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("s.y > 3", INNER),
        ("s.y IS NOT NULL", INNER),
        ("NOT s.y = 3", INNER),
        ("s.y + r.b > 3", INNER),
        ("s.f LIKE 'a%'", INNER),
        ("s.y IN (1, 2)", INNER),
        ("CAST(s.y AS TEXT) = '1'", INNER),
        ("COALESCE(s.x, s.y) = 1", INNER),
        ("s.y > 3 OR s.x = 4", INNER),
        ("(s.y > 3 AND r.a = 1) OR s.f = 'a'", INNER),
        ("s.y > 3 OR r.b = 4", LEFT),
        ("s.y IS NULL", LEFT),
        ("COALESCE(s.y, 1) = 1", LEFT),
        ("COALESCE(s.y, r.b) = 1", LEFT),
        ("CASE WHEN s.y > 3 THEN 1 ELSE 2 END = 2", LEFT),
        ("s.y IS NOT DISTINCT FROM r.b", LEFT),
        ("NOT (s.y = 3 AND r.b = 4)", LEFT),
        ("r.b IN (1, s.y)", LEFT),
        ("r.b > 3", LEFT),
    ],
)
def test_a_left_join_stays_where_padded_rows_may_pass(where: str, kind: JoinKind) -> None:
    assert kinds(f"SELECT r.a, s.y FROM r LEFT JOIN s ON r.a = s.x WHERE {where}") == [kind]


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("r.b > 3 AND s.y > 3", INNER),
        ("r.b > s.y", INNER),
        ("r.b > 3", LEFT),
        ("s.y > 3", LEFT),
        ("COALESCE(r.b, s.y) > 3", FULL),
        ("r.b > 3 OR s.y > 3", FULL),
    ],
)
def test_a_full_join_keeps_the_side_that_counts(where: str, kind: JoinKind) -> None:
    assert kinds(f"SELECT r.a, s.y FROM r FULL JOIN s ON r.a = s.x WHERE {where}") == [kind]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT v FROM r LEFT JOIN s ON r.a = s.x JOIN t ON t.u = s.y", [INNER, INNER]),
        ("SELECT v, y FROM r LEFT JOIN s ON r.a = s.x JOIN t ON t.u = r.b", [INNER, LEFT]),
        ("SELECT v, y FROM r LEFT JOIN s ON r.a = s.x LEFT JOIN t ON t.u = s.y", [LEFT, LEFT]),
        (
            "SELECT v, y FROM t LEFT JOIN (SELECT x, y FROM r LEFT JOIN s ON a = x) q ON u = y",
            [LEFT, INNER],
        ),
        (
            "SELECT n FROM (SELECT y, COUNT(a) AS n FROM r LEFT JOIN s ON a = x GROUP BY y) q"
            " WHERE y > 3",
            [INNER],
        ),
        (
            "SELECT n FROM (SELECT y, COUNT(a) AS n FROM r LEFT JOIN s ON a = x GROUP BY y) q"
            " WHERE n > 3",
            [LEFT],
        ),
        ("SELECT y FROM (SELECT DISTINCT a, y FROM r LEFT JOIN s ON a = x) q WHERE y > 3", [INNER]),
        (
            "SELECT y FROM (SELECT y, RANK() OVER (PARTITION BY b ORDER BY a) AS k"
            " FROM r LEFT JOIN s ON a = x) q WHERE y > 3",
            [LEFT],  # which rows are there decides the rank
        ),
        (
            "SELECT y FROM r LEFT JOIN s ON a = x"
            " WHERE EXISTS (SELECT 1 FROM t WHERE u = y) AND a > 0",
            [JoinKind.SEMI, INNER],
        ),
        (
            "SELECT a, y FROM r LEFT JOIN s ON a = x"
            " WHERE NOT EXISTS (SELECT 1 FROM t WHERE u = y) AND a > 0",
            [JoinKind.ANTI, LEFT],
        ),
    ],
)
def test_what_drops_rows_is_found_far_above(text: str, found: list[JoinKind]) -> None:
    assert kinds(text) == found


def test_an_exchanged_full_join_keeps_its_columns() -> None:
    bound = bound_query("SELECT * FROM r FULL JOIN s ON r.a = s.x WHERE s.y > 3", CATALOG).plan
    plan = run_rules(bound, LOGICAL_RULES)
    (join,) = [node for node in walk_plan(plan) if isinstance(node, Join)]
    assert plan.schema == bound.schema
    assert join.left.schema.names[:2] == ("x", "y")
    assert outer_to_inner(plan) == plan
