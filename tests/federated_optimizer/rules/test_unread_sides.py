"""Sides of joins of which no column is read go where neither rows nor their copies change."""

import pytest

from federated_optimizer import Topology
from federated_optimizer.planning import normalize
from federated_optimizer.rules import LOGICAL_RULES, WIDTH_RULES, run_rules
from streamsql.algebra.operators import Join, JoinKind, Plan, Scan, walk_plan
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE TABLE r (a INTEGER, b INTEGER)",
    "CREATE TABLE s (x INTEGER, y INTEGER)",
    "CREATE TABLE p (k INTEGER PRIMARY KEY, v INTEGER)",
    "CREATE SOURCE q (i INTEGER, j INTEGER, w INTEGER, ts TIMESTAMP, KEY (i, j))",
)
TOPOLOGY = Topology({"gw": frozenset({"q"})})
INNER, LEFT, SEMI = JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI


def rewritten(sql: str) -> Plan:
    return run_rules(run_rules(bound_query(sql, CATALOG).plan, LOGICAL_RULES), WIDTH_RULES)


def shape(sql: str) -> tuple[list[JoinKind], list[str]]:
    nodes = list(walk_plan(rewritten(sql)))
    joins = [node.kind for node in nodes if isinstance(node, Join)]
    return joins, [node.source for node in nodes if isinstance(node, Scan)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT r.a FROM r LEFT JOIN p ON r.b = p.k",
        "SELECT r.a FROM r LEFT JOIN p ON r.b = p.k AND p.v > 3 AND r.a < p.v",
        "SELECT COUNT(*) AS n FROM r LEFT JOIN p ON r.b = p.k",
        "SELECT SUM(a) AS n FROM (SELECT r.a, p.v FROM r LEFT JOIN p ON r.b = p.k) z",
        "SELECT r.a FROM r LEFT JOIN q ON r.a = q.i AND r.b = q.j",
        "SELECT r.a FROM r LEFT JOIN (SELECT x, COUNT(*) AS n FROM s GROUP BY x) z ON z.x = r.b",
        "SELECT r.a FROM r LEFT JOIN (SELECT DISTINCT x FROM s) z ON z.x = r.b",
        "SELECT r.a FROM r LEFT JOIN (SELECT k FROM p LEFT JOIN q ON i = k AND j = v) z ON k = b",
        "SELECT DISTINCT r.a FROM r LEFT JOIN s ON r.b = s.x",
        "SELECT r.a, MAX(r.b) AS m FROM r LEFT JOIN s ON r.b = s.x GROUP BY r.a",
        "SELECT r.a, COUNT(DISTINCT r.b) AS m FROM r LEFT JOIN s ON r.b = s.x GROUP BY r.a",
    ],
)
def test_an_unread_side_goes(text: str) -> None:
    assert shape(text) == ([], ["r"])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT r.a FROM r LEFT JOIN s ON r.b = s.x",  # copies
        "SELECT r.a, p.v FROM r LEFT JOIN p ON r.b = p.k",
        "SELECT r.a FROM r LEFT JOIN p ON r.b = p.v",  # not its key
        "SELECT r.a FROM r LEFT JOIN p ON r.b < p.k",
        "SELECT r.a FROM r LEFT JOIN q ON r.a = q.i",  # half of its key
        "SELECT r.a FROM r LEFT JOIN p ON r.b = p.k WHERE p.v IS NULL",
        "SELECT r.a FROM r LEFT JOIN (SELECT k FROM p JOIN s ON x = v) z ON k = b",
        "SELECT r.a, COUNT(*) AS m FROM r LEFT JOIN s ON r.b = s.x GROUP BY r.a",
        "SELECT r.a, SUM(r.b) AS m FROM r LEFT JOIN s ON r.b = s.x GROUP BY r.a",
        "SELECT r.a FROM r LEFT JOIN s ON r.b = s.x UNION ALL SELECT a FROM r",
        "SELECT a, RANK() OVER (ORDER BY a) AS k FROM r LEFT JOIN s ON r.b = s.x",
    ],
)
def test_a_side_that_counts_stays(text: str) -> None:
    assert LEFT in shape(text)[0]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("SELECT DISTINCT r.a FROM r JOIN s ON r.b = s.x", [SEMI]),
        ("SELECT DISTINCT s.y FROM r JOIN s ON r.b = s.x AND r.a < s.y", [SEMI]),
        ("SELECT r.a, MIN(r.b) AS m FROM r JOIN s ON r.b = s.x GROUP BY r.a", [SEMI]),
        ("SELECT r.a FROM r JOIN s ON r.b = s.x INTERSECT SELECT a FROM r", [SEMI]),
        ("SELECT r.a FROM r JOIN s ON r.b = s.x", [INNER]),
        ("SELECT r.a FROM r JOIN p ON r.b = p.k", [INNER]),  # it may have no partner
        ("SELECT DISTINCT r.a, s.y FROM r JOIN s ON r.b = s.x", [INNER]),
        ("SELECT r.a, AVG(r.b) AS m FROM r JOIN s ON r.b = s.x GROUP BY r.a", [INNER]),
        ("SELECT DISTINCT r.a FROM r JOIN s ON r.b = s.x JOIN p ON s.y = p.k", [INNER, INNER]),
    ],
)
def test_a_join_below_distinct_only_asks_for_a_partner(text: str, kinds: list[JoinKind]) -> None:
    assert shape(text)[0] == kinds


def test_columns_of_the_side_that_comes_first_are_right() -> None:
    plan = rewritten("SELECT DISTINCT s.y FROM r JOIN s ON r.b = s.x AND r.a < s.y")
    (join,) = [node for node in walk_plan(plan) if isinstance(node, Join)]
    assert (join.left.schema.names, join.right.schema.names) == (("x", "y"), ("a", "b"))
    assert join.keys == ((0, 1),)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT r.a, s.y FROM r JOIN s ON r.b = s.x WHERE s.y > 3",
        "SELECT r.a FROM r WHERE EXISTS (SELECT x FROM s WHERE s.x = r.b)",
        "SELECT DISTINCT r.a, s.y FROM r JOIN s ON r.b = s.x",
    ],
)
def test_a_plan_without_unread_sides_is_normalized_once_for_both_ways(text: str) -> None:
    plan = bound_query(text, CATALOG).plan
    assert normalize(plan, TOPOLOGY, unread_sides=False) is normalize(plan, TOPOLOGY)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("SELECT DISTINCT r.a FROM r JOIN s ON r.b = s.x", [INNER]),
        ("SELECT DISTINCT r.a FROM r LEFT JOIN s ON r.b = s.x", [LEFT]),
    ],
)
def test_a_normalized_plan_keeps_unread_sides_where_it_is_asked_to(
    text: str, kinds: list[JoinKind]
) -> None:
    plan = bound_query(text, CATALOG).plan
    kept = normalize(plan, TOPOLOGY, unread_sides=False)
    assert [node.kind for node in walk_plan(kept) if isinstance(node, Join)] == kinds
    left_out = normalize(plan, TOPOLOGY)
    assert [n.kind for n in walk_plan(left_out) if isinstance(n, Join)] != kinds
