"""Selections, projections and joins over offers that are no stronger: exactly the same rows."""

from itertools import product

import pytest

from federated_optimizer.sharing.rules import same, select_project_join
from streamsql.algebra.operators import Plan, RemoteSource
from tests.federated_optimizer.sharing.small_shop import bag, normalized, rows_of

JOINED = "SELECT a.x, a.y, a.s, b.y AS by, b.s AS bs FROM t a, u b WHERE a.x = b.x"
SELF = "SELECT a.x, a.y, b.y AS by, a.d, b.d AS bd FROM t a, t b WHERE a.x = b.x"
ANSWERED = (
    ("SELECT x FROM t WHERE y > 2", "SELECT x, y FROM t WHERE y > 1"),
    ("SELECT x FROM t WHERE y > 2", "SELECT * FROM t"),
    ("SELECT x + y AS n FROM t WHERE y IS NOT NULL", "SELECT y, x FROM t"),
    ("SELECT x + y AS n FROM t", "SELECT x + y AS m FROM t"),
    ("SELECT CAST(d AS TEXT) AS c FROM t", "SELECT d FROM t"),
    ("SELECT a.s FROM t a, u b WHERE a.x = b.x AND a.y < b.y", JOINED),
    ("SELECT q.s, b.x FROM u b, t q WHERE q.x = b.x AND q.y = 2 AND b.y = 3", JOINED),
    ("SELECT a.s FROM t a, u b WHERE a.x = 2 AND b.x = 2", JOINED),
    ("SELECT a.s, b.y FROM u b, t a WHERE 1 = b.x AND a.x = 1 AND a.y < b.y", JOINED),
    ("SELECT a.x FROM t a, t b WHERE a.x = b.x AND a.y < b.y", SELF),
    ("SELECT b.x FROM t a, t b WHERE a.x = b.x AND b.y < a.y AND a.d = b.d", SELF),
    (
        "SELECT a.x FROM t a JOIN (SELECT x, COUNT(*) AS n FROM u GROUP BY x) g ON g.x = a.x",
        "SELECT a.x, n FROM t a, (SELECT COUNT(*) AS n, x, SUM(y) FROM u GROUP BY x) g "
        "WHERE g.x = a.x",
    ),
)
REFUSED = (
    ("SELECT x FROM t WHERE y > 1", "SELECT x, y FROM t WHERE y > 2", "stronger"),
    ("SELECT x FROM t WHERE y > 2", "SELECT x FROM t WHERE y > 1", "y is not shown"),
    ("SELECT x FROM u", "SELECT x FROM t", "another source"),
    ("SELECT a.x FROM t a, u b WHERE a.y = b.y", JOINED, "another join"),
    ("SELECT a.s FROM t a, u b WHERE a.x = 2 AND b.x = 3", JOINED, "they are not equal"),
    ("SELECT a.d FROM t a, u b WHERE a.x = b.x", JOINED, "d is not shown"),
    ("SELECT DISTINCT x FROM t", "SELECT x FROM t", "rows once"),
    ("SELECT x FROM t", "SELECT DISTINCT x, y FROM t", "rows are missing"),
    (
        "SELECT a.d FROM t a, u b WHERE a.d = b.d",
        "SELECT a.x, b.d FROM t a, u b WHERE a.d = b.d",
        "0 and -0 are equal and not the same",
    ),
)


def answered(wanted: str, offered: str) -> Plan | None:
    plan = normalized(offered)
    leaf = RemoteSource("@q1/f0", plan.schema)
    ours = normalized(wanted)
    found = same.answer(ours, plan, leaf) or select_project_join.answer(ours, plan, leaf)
    if found is not None:
        assert found.schema == ours.schema
        assert bag(found, {"@q1/f0": rows_of(plan)}) == bag(ours)
    return found


@pytest.mark.parametrize(("wanted", "offered"), ANSWERED)
def test_weaker_offers_answer(wanted: str, offered: str) -> None:
    assert answered(wanted, offered) is not None


@pytest.mark.parametrize(("wanted", "offered", "why"), REFUSED)
def test_others_do_not(wanted: str, offered: str, why: str) -> None:
    assert answered(wanted, offered) is None, why


CONDITIONS = (
    "a.x = b.x",
    "a.x = b.x AND a.y > 1",
    "a.x = b.x AND a.y >= 2 AND b.s = 'a'",
    "b.x = a.x AND (a.y > 1 OR b.y > 1)",
    "a.x = b.x AND a.y < b.y",
    "a.x = 1 AND b.x = 1",
    "a.x = b.x AND a.y <= b.y",
    "a.d = b.d",
    "a.d = b.d AND a.d > 0.5",
    "a.y = b.y AND a.x = b.x",
    "a.x < b.x",
)


@pytest.mark.parametrize("second", ["t", "u"])
def test_every_answer_is_right(second: str) -> None:
    found = 0
    for wanted, offered in product(CONDITIONS, CONDITIONS):
        ours = f"SELECT a.x, b.y FROM t a, {second} b WHERE {wanted}"
        theirs = f"SELECT a.*, b.x AS bx, b.y AS bwhy, b.d AS bd, b.s AS bs FROM t a, {second} b"
        found += answered(ours, f"{theirs} WHERE {offered}") is not None
    assert found >= 20, "every condition is answered by itself, and by weaker ones"
