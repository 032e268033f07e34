"""Nodes with more functions: their old columns stay, and the wanted groups come from them."""

import pytest

from federated_optimizer.sharing.rules import coarser_groups, more_functions, same
from streamsql.algebra.operators import Plan
from tests.federated_optimizer.sharing.readings_shop import checked, normalized

NODE = "SELECT b, COUNT(*) AS n, a FROM r GROUP BY a, b"
WIDENED = (
    ("SELECT a, AVG(d) AS m, SUM(d) AS t FROM r GROUP BY a", NODE),
    ("SELECT STDDEV(d) AS m, VAR_POP(x) AS v FROM r WHERE a > 1", NODE),
    ("SELECT a, b, AVG(d) AS m, MEDIAN(x) AS p FROM r GROUP BY a, b", NODE),
    ("SELECT a, SUM(x) AS t, AVG(x) AS m FROM r GROUP BY a", NODE),
    (
        "SELECT a, SUM(x) AS t FROM r WHERE b > 1 GROUP BY a",
        "SELECT a, SUM(x) AS t FROM r GROUP BY a, b",
    ),
    ("SELECT AVG(d) AS m FROM r WHERE a = 1 AND b = 1", NODE),
    ("SELECT a, COUNT(*) AS n FROM r GROUP BY a", "SELECT DISTINCT a, b FROM r"),
    ("SELECT a, ARG_MAX(s, x) AS m FROM r GROUP BY a", NODE),
    (
        "SELECT a, b, COUNT(*) AS n FROM r GROUP BY a, b",
        "SELECT COUNT(*) AS n FROM r GROUP BY a, b",
    ),
)
KEPT = (
    ("SELECT a, MEDIAN(d) AS m FROM r GROUP BY a", NODE, "a median has no parts"),
    ("SELECT s, COUNT(*) AS n FROM r GROUP BY s", NODE, "other keys"),
    ("SELECT a, SUM(x) AS t FROM r WHERE x > 1 GROUP BY a", NODE, "other rows"),
    ("SELECT a, COUNT(*) AS n FROM r GROUP BY a", NODE, "nothing is missing"),
)


def _either(wanted: Plan, offered: Plan, leaf: Plan) -> Plan | None:
    found = same.answer(wanted, offered, leaf)
    return found or coarser_groups.answer(wanted, offered, leaf)


@pytest.mark.parametrize(("wanted", "offered"), WIDENED)
def test_a_node_is_widened_by_what_it_lacks(wanted: str, offered: str) -> None:
    ours, theirs = normalized(wanted), normalized(offered)
    assert coarser_groups.answer(ours, theirs, theirs) is None
    plan = more_functions.widened(ours, theirs)
    assert plan is not None
    width = len(theirs.schema)
    assert plan.schema.fields[:width] == theirs.schema.fields
    assert len(plan.schema) > width
    assert checked(coarser_groups.answer, ours, plan) is not None
    assert checked(_either, theirs, plan) is not None


@pytest.mark.parametrize(("wanted", "offered", "why"), KEPT)
def test_other_nodes_stay(wanted: str, offered: str, why: str) -> None:
    assert more_functions.widened(normalized(wanted), normalized(offered)) is None, why


def test_a_node_for_a_query_also_has_the_parts_of_its_functions() -> None:
    text = (
        "SELECT a, b, SUM(x) + 1 AS t, MEDIAN(d) AS p FROM r WHERE f GROUP BY a, b "
        "HAVING MIN(x) > 0"
    )
    ours = normalized(text)
    plan = more_functions.groups_to_share(ours)
    assert plan is not None
    assert checked(coarser_groups.answer, ours, plan) is not None
    coarser = normalized("SELECT b, SUM(x) AS t, MIN(x) AS m FROM r WHERE f GROUP BY b")
    assert checked(coarser_groups.answer, coarser, plan) is not None
    assert more_functions.groups_to_share(normalized("SELECT a FROM r")) is None
