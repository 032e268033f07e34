"""What a pushed MIN leaves out is known, and told by EXPLAIN."""

import pytest

from streamsql.algebra.operators import Fixpoint, Plan, walk_plan
from streamsql.binder.statements.nullable import left_out, value_may_be_null
from tests.streamsql.from_text import bound_query, catalog_of

SELECT = " SELECT src, dst, MIN(v) AS v FROM p GROUP BY src, dst"


def plan_of(base: str, step: str, select: str = SELECT) -> Plan:
    catalog = catalog_of("CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, n INT)")
    text = f"WITH RECURSIVE p (src, dst, v) AS ({base} UNION {step}){select}"
    return bound_query(text, catalog).plan


@pytest.mark.parametrize(
    ("base", "added", "nullable"),
    [
        ("SELECT src, dst, 1 FROM link", "p.v + 1", False),
        ("SELECT src, dst, NULL FROM link", "p.v + 1", True),
        ("SELECT src, dst, cost FROM link", "p.v + l.cost", True),
        ("SELECT src, dst, 1.0 FROM link", "p.v + l.cost", True),
        ("SELECT src, dst, COALESCE(cost, 1.0) FROM link", "p.v + COALESCE(l.cost, 1.0)", False),
        ("SELECT src, dst, cost FROM link WHERE cost > 0", "p.v + 1.0", False),
        ("SELECT src, dst, cost FROM link WHERE cost IS NOT NULL", "p.v + l.n", True),
        ("SELECT src, dst, cost FROM link WHERE n > 0", "p.v + 1.0", True),
        ("SELECT src, dst, 1.0 / n FROM link", "p.v + 1.0", True),
        ("SELECT src, dst, 1 FROM link UNION SELECT src, dst, n FROM link", "p.v + 1", True),
    ],
)
def test_values_that_may_be_null(base: str, added: str, nullable: bool) -> None:
    plan = plan_of(base, f"SELECT l.src, p.dst, {added} FROM link l JOIN p ON l.dst = p.src")
    (fixpoint,) = {node for node in walk_plan(plan) if isinstance(node, Fixpoint)}
    assert fixpoint.selection is not None
    assert value_may_be_null(fixpoint, 2) == nullable
    told = "recursion p keeps only the best rows: it skips rows without v"
    assert [text.startswith(told) for text in left_out(plan)] == [True] * nullable


def test_a_filter_in_the_step_counts() -> None:
    step = "SELECT l.src, p.dst, p.v + l.cost FROM link l JOIN p ON l.dst = p.src"
    base = "SELECT src, dst, cost FROM link WHERE cost >= 0"
    assert left_out(plan_of(base, step)) != ()
    assert left_out(plan_of(base, f"{step} WHERE l.cost >= 0")) == ()


def test_what_is_not_pushed_leaves_nothing_out() -> None:
    step = "SELECT l.src, p.dst, p.v + 1 FROM link l JOIN p ON l.dst = p.src WHERE p.v < 5"
    plan = plan_of("SELECT src, dst, 1 FROM link", step, " SELECT src, dst, v FROM p")
    assert left_out(plan) == ()
