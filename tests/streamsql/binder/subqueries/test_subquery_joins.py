"""What subqueries, joins and ordered rows become: keys, and outer values only where needed."""

import pytest

from streamsql.algebra.operators import (
    AsOfJoin,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    RecursiveReference,
    SortKey,
    TopN,
    transform_up,
    walk_plan,
)
from streamsql.algebra.operators.orders import in_order
from streamsql.binder import BoundQuery
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from streamsql.wire.codec import decode_packed, encode_packed
from tests.streamsql.from_text import bound_query, catalog_of

SCHEMA = """
CREATE TABLE t (a INTEGER, b INTEGER, c TEXT);
CREATE TABLE u (a INTEGER, d INTEGER, e TEXT);
CREATE TABLE v (k INTEGER PRIMARY KEY, f INTEGER, c TEXT);
CREATE LINK SOURCE link (src TEXT, dst TEXT);
"""
SHAPES = [
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.d > t.b)",
    "SELECT a FROM t WHERE a NOT IN (SELECT d FROM u WHERE u.a < t.b)",
    "SELECT (SELECT COUNT(*) FROM u WHERE u.d < t.b) FROM t",
    "SELECT a, SUM(b), (SELECT COUNT(*) FROM u WHERE u.a > t.a) FROM t GROUP BY a",
    "SELECT a FROM t WHERE a IN (SELECT d FROM u WHERE u.d <> t.b ORDER BY d LIMIT 1)",
    "SELECT b >= ALL (SELECT d FROM u WHERE u.a < t.a) FROM t FULL JOIN v ON t.a = v.k",
    "SELECT t.a FROM t ASOF LEFT JOIN v ON t.a = v.f AND t.b >= v.k ORDER BY 1 LIMIT 2",
    "SELECT a FROM t EXCEPT ALL SELECT d FROM u QUALIFY ROW_NUMBER() OVER (ORDER BY d) < 3",
]


def bound(text: str) -> BoundQuery:
    catalog = catalog_of(SCHEMA)
    return bound_query(text, catalog)


def joins(text: str, kind: JoinKind) -> list[Join]:
    plan = bound(text).plan
    return [node for node in walk_plan(plan) if isinstance(node, Join) and node.kind == kind]


@pytest.mark.parametrize("text", SHAPES)
def test_plans_are_closed_and_travel(text: str) -> None:
    plan = bound(text).plan
    assert not any(isinstance(node, RecursiveReference) for node in walk_plan(plan))
    assert transform_up(plan, lambda node: node) == plan
    kind: type[Plan] = Plan  # type: ignore[assignment]
    assert decode_packed(encode_packed(plan), kind) == plan


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", JoinKind.SEMI),
        ("NOT EXISTS (SELECT 1 FROM u WHERE t.a = u.a)", JoinKind.ANTI),
        ("a IN (SELECT a FROM u)", JoinKind.SEMI),
        ("a + 1 IN (SELECT a FROM u)", JoinKind.SEMI),
        ("NOT (a NOT IN (SELECT d FROM u))", JoinKind.SEMI),
        ("a NOT IN (SELECT a FROM u)", JoinKind.ANTI),
        ("b > (SELECT SUM(d) FROM u WHERE u.a = t.a)", JoinKind.LEFT),
        ("b = (SELECT MAX(d) FROM u)", JoinKind.INNER),
        ("EXISTS (SELECT 1 FROM u WHERE u.a = t.a + 1)", JoinKind.SEMI),
    ],
)
def test_equalities_become_keys(condition: str, kind: JoinKind) -> None:
    (join,) = (j for j in joins(f"SELECT b FROM t WHERE {condition}", kind) if j.keys)
    assert join.residual is None
    assert len(join.keys) == 1


def test_theta_conditions_of_exists_stay_beside_its_keys() -> None:
    text = "SELECT b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.d > t.b)"
    (join,) = joins(text, JoinKind.SEMI)
    assert len(join.keys) == 1
    assert join.residual is not None


def test_an_equality_needs_no_relation_of_outer_values() -> None:
    text = "SELECT (SELECT SUM(u.d + t.a) FROM u WHERE u.a = t.a) FROM t"
    assert bound(text).plan.inputs
    assert len(joins(text, JoinKind.LEFT)) == 1
    assert not joins(text, JoinKind.INNER)


def test_without_an_equality_outer_values_are_joined_in() -> None:
    text = "SELECT (SELECT SUM(u.d) FROM u WHERE u.a < t.a) FROM t"
    (left,) = joins(text, JoinKind.LEFT)
    assert len(left.keys) == 2, "NULL finds NULL by two keys"
    assert len(joins(text, JoinKind.INNER)) == 1


def test_row_number_becomes_top_rows_of_a_partition() -> None:
    plan = bound(
        "SELECT b FROM (SELECT b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS n FROM t) "
        "AS q WHERE n > 1 AND n <= 3"
    ).plan
    (top,) = (node for node in walk_plan(plan) if isinstance(node, TopN))
    assert (top.limit, top.offset, len(top.partition)) == (2, 1, 1)
    assert top.order[0].descending


def test_as_of_join_in_any_spelling() -> None:
    plans = {
        bound(f"SELECT t.a FROM t ASOF JOIN v ON {on}").plan
        for on in ("t.a = v.f AND t.b > v.k", "v.k < t.b AND v.f = t.a")
    }
    (plan,) = plans
    (join,) = (node for node in walk_plan(plan) if isinstance(node, AsOfJoin))
    assert join.strict
    assert join.keys == ((0, 1),)


@pytest.mark.parametrize(
    ("clause", "order"),
    [
        ("", ()),
        ("ORDER BY a", (SortKey(0),)),
        ("ORDER BY t.b DESC, 1", (SortKey(1, descending=True, nulls_first=True), SortKey(0))),
        ("ORDER BY b DESC NULLS LAST LIMIT 3", (SortKey(1, descending=True),)),
        ("ORDER BY a NULLS FIRST OFFSET 1", (SortKey(0, nulls_first=True),)),
        ("ORDER BY c LIMIT 3", ()),
    ],
)
def test_how_a_result_is_shown(clause: str, order: tuple[SortKey, ...]) -> None:
    query = bound(f"SELECT a, b FROM t {clause}")
    assert query.order == order
    assert any(isinstance(n, TopN) for n in walk_plan(query.plan)) == (
        "LIMIT" in clause or "OFFSET" in clause
    )


def test_rows_in_order() -> None:
    rows = [(1, "b"), (None, "a"), (2, "a"), (1, "a")]
    shown = in_order(rows, (SortKey(0, descending=True, nulls_first=True),))
    assert shown == ((None, "a"), (2, "a"), (1, "a"), (1, "b"))


def test_a_semi_join_over_a_recursion_is_a_join_in_it() -> None:
    texts = [
        "WITH RECURSIVE r(a) AS (SELECT src FROM link WHERE src = 'a' UNION SELECT dst FROM link "
        f"{rest}) SELECT a FROM r"
        for rest in (
            "JOIN r ON r.a = src",
            "WHERE src IN (SELECT a FROM r)",
            "WHERE EXISTS (SELECT 1 FROM r WHERE r.a = src)",
            "SEMI JOIN r ON r.a = src",
        )
    ]
    database = Database()
    rows = [("a", "b"), ("b", "c"), ("c", "a"), ("x", "y"), ("b", "d")]
    database.append("link", [SourceEvent(row, ts=0) for row in rows])
    plans = [bound(text).plan for text in texts]
    answers = [evaluate(plan, database, now=0) for plan in plans]
    assert answers == [{("a",): 1, ("b",): 1, ("c",): 1, ("d",): 1}] * len(texts)
    for plan in plans:
        (fixpoint,) = (node for node in walk_plan(plan) if isinstance(node, Fixpoint))
        inside = [node for step in fixpoint.step for node in walk_plan(step)]
        assert all(node.kind == JoinKind.INNER for node in inside if isinstance(node, Join))


def test_what_is_selected_orders_and_divides_without_a_copy() -> None:
    text = "SELECT c, a FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY t.a, c ORDER BY b, a) <= 2"
    (top,) = {node for node in walk_plan(bound(text).plan) if isinstance(node, TopN)}
    assert top.input.schema.names == ("c", "a", "order_1", "order_2")
    assert top.partition == (2, 0)
    assert [key.position for key in top.order] == [3, 1]
