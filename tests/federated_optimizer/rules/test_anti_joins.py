"""A left join that is asked for rows without partner becomes an anti join, and only then."""

import pytest

from federated_optimizer.rules import LOGICAL_RULES, WIDTH_RULES, run_rules
from streamsql.algebra.operators import Join, JoinKind, walk_plan
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE TABLE r (a INTEGER, b INTEGER)",
    "CREATE TABLE s (x INTEGER, y INTEGER, z INTEGER)",
    "CREATE TABLE t (u INTEGER, v INTEGER)",
)
ANTI, LEFT = JoinKind.ANTI, JoinKind.LEFT


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("SELECT a FROM r LEFT JOIN s ON a = x WHERE x IS NULL", [ANTI]),
        ("SELECT a, y FROM r LEFT JOIN s ON a = x WHERE x IS NULL", [ANTI]),
        ("SELECT a FROM r LEFT JOIN s ON a = x WHERE x IS NULL AND b > 1", [ANTI]),
        ("SELECT a FROM r LEFT JOIN s ON a = x WHERE x IS NULL AND y IS NULL", [ANTI]),
        ("SELECT a FROM r LEFT JOIN s ON a = x WHERE x IS NULL AND COALESCE(z, a) = 1", [ANTI]),
        ("SELECT a FROM r LEFT JOIN s ON a = x AND b < y WHERE y IS NULL", [ANTI]),
        ("SELECT a FROM s RIGHT JOIN r ON a = x WHERE x IS NULL", [ANTI]),
        ("SELECT a FROM r FULL JOIN s ON a = x WHERE x IS NULL AND a > 0", [ANTI]),
        ("SELECT a FROM (SELECT a, x FROM r LEFT JOIN s ON a = x) q WHERE x IS NULL", [ANTI]),
        ("SELECT a FROM r LEFT JOIN s ON a = x LEFT JOIN t ON u = a WHERE x IS NULL", [LEFT, ANTI]),
        ("SELECT a FROM r LEFT JOIN s ON a = x WHERE y IS NULL", [LEFT]),
        ("SELECT a FROM r LEFT JOIN s ON a = x AND y IS NULL WHERE y IS NULL", [LEFT]),
        ("SELECT a FROM r LEFT JOIN s ON a = x WHERE a IS NULL", [LEFT]),
        ("SELECT a FROM r LEFT JOIN s ON a = x WHERE x IS NULL OR b = 1", [LEFT]),
        ("SELECT a FROM r LEFT JOIN s ON COALESCE(x, a) = 1 WHERE x IS NULL", [LEFT]),
        ("SELECT a FROM r FULL JOIN s ON a = x WHERE x IS NULL", [JoinKind.FULL]),
    ],
)
def test_the_kind_of_the_join(text: str, kinds: list[JoinKind]) -> None:
    bound = bound_query(text, CATALOG).plan
    plan = run_rules(run_rules(bound, LOGICAL_RULES), WIDTH_RULES)
    assert plan.schema == bound.schema
    assert [node.kind for node in walk_plan(plan) if isinstance(node, Join)] == kinds


def test_only_keys_are_read_of_the_right_side() -> None:
    text = "SELECT a, y FROM r LEFT JOIN s ON a = x WHERE x IS NULL"
    plan = run_rules(run_rules(bound_query(text, CATALOG).plan, LOGICAL_RULES), WIDTH_RULES)
    (join,) = [node for node in walk_plan(plan) if isinstance(node, Join)]
    assert join.right.schema.names == ("x",)
