"""What is known to have no rows is not joined, and its partners are not read."""

import pytest

from federated_optimizer.rules import LOGICAL_RULES, WIDTH_RULES, run_rules
from streamsql.algebra.operators import Scan, Values, walk_plan
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE TABLE r (a INTEGER, b INTEGER)",
    "CREATE TABLE s (x INTEGER, y INTEGER)",
    "CREATE TABLE link (src INTEGER, dst INTEGER)",
)
NOTHING = "(SELECT x, y FROM s WHERE x > 5 AND x < 3) z"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (f"SELECT a FROM r JOIN {NOTHING} ON a = x", []),
        (f"SELECT a FROM {NOTHING} LEFT JOIN r ON a = x", []),
        (f"SELECT a, y FROM r LEFT JOIN {NOTHING} ON a = x", ["r"]),
        (f"SELECT a, y FROM r FULL JOIN {NOTHING} ON a = x", ["r"]),
        (f"SELECT a, y FROM {NOTHING} FULL JOIN r ON a = x", ["r"]),
        (f"SELECT a FROM r WHERE EXISTS (SELECT 1 FROM {NOTHING} WHERE a = x)", []),
        (f"SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM {NOTHING} WHERE a = x)", ["r"]),
        (f"SELECT x FROM {NOTHING} UNION ALL SELECT a FROM r", ["r"]),
        (f"SELECT x FROM {NOTHING} UNION SELECT a FROM r", ["r"]),
        (f"SELECT x FROM {NOTHING} UNION ALL SELECT y FROM {NOTHING}", []),
        (f"SELECT a FROM r INTERSECT SELECT x FROM {NOTHING}", []),
        (f"SELECT a FROM r EXCEPT SELECT x FROM {NOTHING}", ["r"]),
        (f"SELECT x FROM {NOTHING} EXCEPT ALL SELECT a FROM r", []),
        (f"SELECT x, COUNT(*) AS n FROM r JOIN {NOTHING} ON a = x GROUP BY x", []),
        (f"SELECT x FROM {NOTHING} ORDER BY x LIMIT 3", []),
        ("SELECT a FROM r, s WHERE a < x AND x < a", []),
        ("SELECT a FROM r LEFT JOIN s ON a < x AND x < a", ["r"]),
    ],
)
def test_only_what_has_an_effect_is_read(text: str, read: list[str]) -> None:
    bound = bound_query(text, CATALOG).plan
    plan = run_rules(run_rules(bound, LOGICAL_RULES), WIDTH_RULES)
    assert [node.source for node in walk_plan(plan) if isinstance(node, Scan)] == read
    assert plan.schema == bound.schema


def test_a_count_of_nothing_has_a_row() -> None:
    text = f"SELECT COUNT(*) AS n FROM r JOIN {NOTHING} ON a = x"
    plan = run_rules(bound_query(text, CATALOG).plan, LOGICAL_RULES)
    assert not isinstance(plan, Values)
    assert not any(isinstance(node, Scan) for node in walk_plan(plan))


def test_a_recursion_keeps_reading_itself() -> None:
    text = (
        "WITH RECURSIVE reach (s, d) AS (SELECT src, dst FROM link UNION SELECT r.s, l.dst"
        " FROM reach r JOIN (SELECT * FROM link WHERE src > 5 AND src < 3) l ON l.src = r.d)"
        " SELECT s FROM reach"
    )
    plan = run_rules(bound_query(text, CATALOG).plan, LOGICAL_RULES)
    assert any(type(node).__name__ == "RecursiveReference" for node in walk_plan(plan))
