"""Filters on a column that a derivation keeps stand in the base branches of a recursion."""

import random
from collections import Counter

import duckdb
import pytest

from federated_optimizer.rules import LOGICAL_RULES, run_rules
from streamsql.algebra.operators import Filter, Fixpoint, Plan, walk_plan
from streamsql.data.delta import expand
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of("CREATE TABLE link (src TEXT, dst TEXT, cost INTEGER)")
FORWARD = (
    "WITH RECURSIVE r (src, dst) AS (SELECT src, dst FROM link UNION "
    "SELECT r.src, l.dst FROM r JOIN link l ON l.src = r.dst) "
)
BACKWARD = (
    "WITH RECURSIVE r (src, dst) AS (SELECT src, dst FROM link UNION "
    "SELECT l.src, r.dst FROM link l JOIN r ON l.dst = r.src) "
)
ALL_COPIES = (
    "WITH RECURSIVE r (src, dst, n) AS (SELECT src, dst, 1 FROM link UNION ALL "
    "SELECT r.src, l.dst, r.n + 1 FROM r JOIN link l ON l.src = r.dst WHERE r.n < 4) "
)
LOOP = (
    "WITH RECURSIVE r (src, dst) AS (SELECT src, dst FROM link UNION "
    "SELECT r.dst, r.src FROM r JOIN link l ON l.src = r.dst) "
)
TWICE = (
    "WITH RECURSIVE r (src, dst) AS (SELECT src, dst FROM link UNION "
    "SELECT a.src, b.dst FROM r a JOIN r b ON b.src = a.dst) "
)
SELECTED = "SELECT src, dst FROM r WHERE "


def normalized(text: str) -> tuple[Plan, Fixpoint, bool]:
    plan = run_rules(bound_query(text, CATALOG).plan, LOGICAL_RULES)
    (fixpoint,) = [node for node in walk_plan(plan) if isinstance(node, Fixpoint)]
    above = any(isinstance(n, Filter) and n.input is fixpoint for n in walk_plan(plan))
    return plan, fixpoint, above


@pytest.mark.parametrize(
    ("recursion", "predicate", "in_base", "above"),
    [
        (FORWARD, "src = 'a'", True, False),
        (FORWARD, "dst = 'a'", False, True),
        (BACKWARD, "dst = 'a'", True, False),
        (BACKWARD, "src = 'a'", False, True),
        (FORWARD, "src IN ('a', 'b') AND dst <> 'c'", True, True),
        (FORWARD, "src < dst", False, True),
        (ALL_COPIES, "src = 'a' AND n > 1", True, True),
        (LOOP, "src = 'a'", False, True),
        (TWICE, "src = 'a'", False, True),
    ],
)
def test_a_filter_goes_where_a_derivation_keeps_its_column(
    recursion: str, predicate: str, in_base: bool, above: bool
) -> None:
    text = f"{recursion}{SELECTED}{predicate}"
    plan, fixpoint, is_above = normalized(text)
    filters = [node for b in fixpoint.base for node in walk_plan(b) if isinstance(node, Filter)]
    assert (bool(filters), is_above) == (in_base, above)
    oracle = duckdb.connect()
    oracle.execute("CREATE TABLE link (src TEXT, dst TEXT, cost INTEGER)")
    for seed in range(8):
        chance, database = random.Random(seed), Database()
        oracle.execute("DELETE FROM link")
        for _ in range(chance.randrange(1, 9)):
            row = (chance.choice("abcd"), chance.choice("abcd"), chance.randrange(3))
            database.append("link", [SourceEvent(row, 0)])
            oracle.execute("INSERT INTO link VALUES (?, ?, ?)", row)
        found = Counter(expand(evaluate(plan, database, 0)))
        assert found == Counter(expand(evaluate(bound_query(text, CATALOG).plan, database, 0)))
        if recursion != TWICE:  # DuckDB joins the relation with its newest rows only
            assert found == Counter(oracle.execute(text).fetchall())


@pytest.mark.parametrize(
    ("group", "predicate", "in_base"),
    [("src, dst", "src = 'a'", True), ("dst", "src = 'a'", False)],
)
def test_of_best_rows_only_their_groups_are_stable(
    group: str, predicate: str, in_base: bool
) -> None:
    recursion = (
        "WITH RECURSIVE r (src, dst, cost) AS (SELECT src, dst, cost FROM link UNION "
        "SELECT r.src, l.dst, r.cost + l.cost FROM r JOIN link l ON l.src = r.dst) "
    )
    named = ", ".join(f"q.{name}" for name in group.split(", "))
    over = f"SELECT {group}, MIN(cost) AS best FROM r GROUP BY {group}"
    text = f"{recursion}SELECT {named}, q.best FROM ({over}) AS q"
    where = f" WHERE q.{predicate}" if in_base else ""
    _, fixpoint, _ = normalized(text + where)
    assert fixpoint.selection is not None
    filters = [node for b in fixpoint.base for node in walk_plan(b) if isinstance(node, Filter)]
    assert bool(filters) == in_base


@pytest.mark.parametrize(("more", "in_base"), [("RETURN", True), ("ERROR", False)])
def test_a_bound_that_stops_the_query_is_asked_of_all_rows(more: str, in_base: bool) -> None:
    recursion = FORWARD.replace("RECURSIVE", f"RECURSIVE (LIMIT 2 {more})")
    text = f"{recursion}{SELECTED}src = 'a'"
    plan, fixpoint, above = normalized(text)
    assert above != in_base
    assert fixpoint.rounds is not None
    database = Database()
    for ends in ("ab", "bc", "cd", "ba"):
        database.append("link", [SourceEvent((*ends, 1), 0)])
    if in_base:
        wanted = {("a", "b"), ("a", "a"), ("a", "c")}
        assert set(expand(evaluate(plan, database, 0))) == wanted


@pytest.mark.parametrize(
    ("rest", "in_base"),
    [
        ("SELECT src FROM r WHERE src = 'a' UNION ALL SELECT dst FROM r", False),
        ("SELECT src FROM r WHERE src = 'a' UNION ALL SELECT dst FROM r WHERE src = 'b'", False),
        ("SELECT src FROM r WHERE src = 'a' UNION ALL SELECT dst FROM r WHERE src = 'a'", True),
        (
            "SELECT src FROM r WHERE src = 'a' AND dst > 'b' "
            "UNION ALL SELECT dst FROM r WHERE src = 'a'",
            True,
        ),
    ],
)
def test_a_recursion_that_is_read_twice_stays_one(rest: str, in_base: bool) -> None:
    plan = run_rules(bound_query(FORWARD + rest, CATALOG).plan, LOGICAL_RULES)
    found = {node for node in walk_plan(plan) if isinstance(node, Fixpoint)}
    bases = [branch for fixpoint in found for branch in fixpoint.base]
    restricted = any(isinstance(node, Filter) for base in bases for node in walk_plan(base))
    assert (len(found), restricted) == (1, in_base)


def test_a_filter_goes_through_a_recursion_over_a_recursion() -> None:
    inner = FORWARD.removesuffix(" ")
    text = (
        f"{inner}, t (src, dst) AS (SELECT src, dst FROM r UNION "
        "SELECT t.src, l.dst FROM t JOIN link l ON l.src = t.dst) SELECT dst FROM t WHERE src = 'a'"
    )
    plan = run_rules(bound_query(text, CATALOG).plan, LOGICAL_RULES)
    (above,) = [n for n in walk_plan(plan) if isinstance(n, Filter)]
    assert not isinstance(above.input, Fixpoint)
