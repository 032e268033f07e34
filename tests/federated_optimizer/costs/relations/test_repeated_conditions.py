"""Conditions that follow from others do not change how many rows a join is expected to have."""

import pytest

from federated_optimizer.costs.relations.estimates import estimate
from federated_optimizer.rules import LOGICAL_RULES, run_rules
from federated_optimizer.statistics.planning_statistics import Passing, SourceFacts, Statistics
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE r (a INTEGER, b INTEGER, c TEXT)",
    "CREATE SOURCE s (x INTEGER, y INTEGER, f TEXT)",
    "CREATE SOURCE t (u INTEGER, v INTEGER, h TEXT)",
)
STATISTICS = Statistics(
    sources={name: SourceFacts(rows=10_000.0, changes=50.0) for name in ("r", "s", "t")}
)
EITHER = "(SELECT x FROM s UNION ALL SELECT u FROM t)"


def close(first: object, second: object) -> bool:
    return first == pytest.approx(second, rel=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 AS o FROM r JOIN s ON a = x",
        "SELECT 1 AS o FROM r JOIN s ON a = x WHERE a = 5",
        "SELECT 1 AS o FROM r JOIN s ON a = x WHERE x > 5",
        "SELECT 1 AS o FROM r JOIN s ON a = x AND a < y WHERE a > 5 AND a < 90",
        "SELECT 1 AS o FROM r JOIN s ON x < a AND a < y",
        "SELECT 1 AS o FROM s JOIN r ON x < a AND a < y",
        "SELECT 1 AS o FROM r JOIN s ON c = f WHERE c LIKE 'a%'",
        "SELECT 1 AS o FROM r JOIN s ON c = f AND f IN ('a', 'b')",
        "SELECT 1 AS o FROM r JOIN s ON 2 * a <= x WHERE a > 3",
        "SELECT 1 AS o FROM r JOIN s ON a = x WHERE a > 3 AND x > 5",
        "SELECT 1 AS o FROM r, s, t WHERE a = x AND x = u AND u = 5",
        "SELECT 1 AS o FROM r, s, t WHERE a = x AND y = v AND a > 5 AND v < 7",
        "SELECT 1 AS o FROM r JOIN (SELECT x + 1 AS n FROM s) q ON a = q.n WHERE a > 5",
        f"SELECT 1 AS o FROM r JOIN {EITHER} q ON a = q.x WHERE a > 5",
        f"SELECT 1 AS o FROM {EITHER} q JOIN r ON a = q.x WHERE a > 5",
        "SELECT 1 AS o FROM r LEFT JOIN s ON a = x WHERE a > 5",
        "SELECT 1 AS o FROM r LEFT JOIN s ON a = x AND a > 5",
        "SELECT 1 AS o FROM r FULL JOIN s ON a = x AND a > 5",
        "SELECT a FROM r WHERE a > 5 AND EXISTS (SELECT 1 FROM s WHERE x = a)",
        "SELECT a FROM r WHERE a > 5 AND NOT EXISTS (SELECT 1 FROM s WHERE x = a)",
    ],
)
def test_the_estimate_is_that_without_what_follows(text: str) -> None:
    bound = bound_query(text, CATALOG).plan
    others = [rule for rule in LOGICAL_RULES if rule.name != "transitive_predicates"]
    found = estimate(run_rules(bound, LOGICAL_RULES), STATISTICS)
    written = estimate(run_rules(bound, others), STATISTICS)
    assert close(found.rows, written.rows)
    assert close(found.inserts, written.inserts)
    assert close(found.deletes, written.deletes)


def test_a_semi_join_has_at_most_the_rows_of_its_filtered_left_side() -> None:
    text = "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE x = a AND x = 5)"
    plan = run_rules(bound_query(text, CATALOG).plan, LOGICAL_RULES)
    assert close(estimate(plan, STATISTICS).rows, 1_000.0)


def test_conditions_that_do_not_follow_count_on_both_sides() -> None:
    def rows(where: str) -> float:
        text = f"SELECT 1 AS o FROM r JOIN s ON a = x WHERE {where}"
        return estimate(run_rules(bound_query(text, CATALOG).plan, LOGICAL_RULES), STATISTICS).rows

    assert close(rows("a > 5 AND x < 9"), rows("a > 5") / 3)
    assert close(rows("a > 5 AND y = 9"), rows("a > 5") / 10)
    assert close(rows("b > 5 AND y > 5"), rows("b > 5") / 3)


def test_what_was_counted_of_one_side_counts_once() -> None:
    counted = Statistics(sources=STATISTICS.sources, passing={("r", "a > 5"): Passing(0.02, 0, 1)})
    text = "SELECT 1 AS o FROM r JOIN s ON a = x"
    every = estimate(run_rules(bound_query(text, CATALOG).plan, LOGICAL_RULES), counted).rows
    some = run_rules(bound_query(f"{text} WHERE x > 5", CATALOG).plan, LOGICAL_RULES)
    found = estimate(some, counted)
    assert close(found.rows, every * 0.02)
    assert any("x > 5" in words for words in found.assumed), "a price of s assumes it"
