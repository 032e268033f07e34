"""A MIN or MAX pushed into a recursion gives the answer of the recursion that keeps every row.

On acyclic graphs both end, so they can be compared, picked rows included.
"""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.algebra.operators import (
    Aggregate,
    AggregateSelection,
    Best,
    Fixpoint,
    Plan,
    transform_up,
    walk_plan,
)
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from streamsql.syntax import CreateSource, Query, parse_script, parse_statement

PATHS = """WITH RECURSIVE p(src, dst, n, path) AS (
  SELECT src, dst, {start}, src || '.' || dst FROM link UNION
  SELECT l.src, r.dst, {step}, l.src || '.' || r.path FROM link l JOIN p r ON l.dst = r.src) """
VALUES = """WITH RECURSIVE p(src, dst, n) AS (
  SELECT src, dst, {start} FROM link UNION
  SELECT l.src, r.dst, {step} FROM link l JOIN p r ON l.dst = r.src) """
GROUPED = "SELECT src, dst, {call}(n) AS n FROM p GROUP BY src, dst"

PUSHED = {
    "cost": PATHS.format(start="cost", step="r.n + l.cost") + GROUPED.format(call="MIN"),
    "cost and path": PATHS.format(start="cost", step="l.cost + r.n")
    + "SELECT src, dst, MIN(n), ARG_MIN(path, n) FROM p GROUP BY src, dst",
    "hops and path": PATHS.format(start="1", step="r.n + 1")
    + "SELECT src, dst, ARG_MIN(path, n) FROM p GROUP BY src, dst",
    "constant start": PATHS.format(start="0", step="r.n + l.cost + 1") + GROUPED.format(call="MIN"),
    "one source": PATHS.format(start="cost", step="r.n + l.cost")
    + "SELECT dst, MIN(n) FROM p WHERE src = 'a' GROUP BY dst",
    "some targets": PATHS.format(start="cost", step="r.n + l.cost")
    + "SELECT src, dst, MIN(n) FROM p WHERE dst > 'b' GROUP BY src, dst",
    "only the start is grouped": VALUES.format(start="cost", step="r.n + l.cost")
    + "SELECT src, MIN(n) FROM p GROUP BY src",
    "width": VALUES.format(start="cost", step="LEAST(r.n, l.cost)") + GROUPED.format(call="MAX"),
    "least bottleneck": VALUES.format(start="cost", step="GREATEST(l.cost, r.n)")
    + GROUPED.format(call="MIN"),
    "energy left": VALUES.format(start="100 - cost", step="r.n - l.cost")
    + GROUPED.format(call="MAX"),
    "label": VALUES.format(start="cost", step="r.n") + GROUPED.format(call="MIN"),
    "two steps": """WITH RECURSIVE p(a, n) AS (
        SELECT src, 0 FROM link UNION SELECT l.dst, r.n + l.cost FROM p r JOIN link l ON l.src = r.a
        UNION SELECT l.dst, r.n + 3 FROM p r JOIN link l ON l.src = r.a AND l.cost > 2)
        SELECT a, MIN(n) FROM p GROUP BY a""",
}
KEPT = {
    "count": VALUES.format(start="1", step="1") + "SELECT src, COUNT(*) FROM p GROUP BY src",
    "no group": VALUES.format(start="1", step="l.cost") + "SELECT MIN(n) FROM p",
    "picks under LEAST": VALUES.format(start="cost", step="LEAST(r.n, l.cost)")
    + "SELECT src, dst, ARG_MAX(n, n), MAX(n) FROM p GROUP BY src, dst",
    "test of the value": VALUES.format(start="1", step="r.n + 1").replace(
        "ON l.dst = r.src", "ON l.dst = r.src AND r.n < 4"
    )
    + GROUPED.format(call="MIN"),
    "filter on the value": VALUES.format(start="cost", step="l.cost")
    + "SELECT src, dst, MIN(n) FROM p WHERE n > 1 GROUP BY src, dst",
    "MIN and MAX": VALUES.format(start="cost", step="l.cost")
    + "SELECT src, dst, MIN(n), MAX(n) FROM p GROUP BY src, dst",
    "computed value": VALUES.format(start="cost", step="l.cost")
    + "SELECT src, dst, MIN(n + 1) FROM p GROUP BY src, dst",
    "computed group": VALUES.format(start="cost", step="l.cost")
    + "SELECT UPPER(src), dst, MIN(n) FROM p GROUP BY UPPER(src), dst",
    "behind a join": VALUES.format(start="cost", step="l.cost")
    + "SELECT p.src, MIN(n) FROM p JOIN link ON link.src = p.dst GROUP BY p.src",
}


def plan_of(text: str) -> Plan:
    (source,) = parse_script("CREATE LINK SOURCE link (src TEXT, dst TEXT, cost INTEGER)")
    assert isinstance(source, CreateSource)
    statement = parse_statement(text)
    assert isinstance(statement, Query)
    return bind_query(statement, Catalog((define(source, Catalog()),))).plan


def selections(plan: Plan) -> list[AggregateSelection | None]:
    return [node.selection for node in walk_plan(plan) if isinstance(node, Fixpoint)]


def without_selection(plan: Plan) -> Plan:
    return transform_up(
        plan,
        lambda node: (
            msgspec.structs.replace(node, selection=None) if isinstance(node, Fixpoint) else node
        ),
    )


acyclic = st.lists(
    st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde"), st.integers(1, 4)).filter(
        lambda link: link[0] < link[1]
    ),
    max_size=9,
    unique_by=lambda link: link[:2],
)


@pytest.mark.parametrize("text", PUSHED.values(), ids=PUSHED.keys())
def test_pushed(text: str) -> None:
    (selection,) = selections(plan_of(text))
    assert selection is not None


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_not_pushed(text: str) -> None:
    assert selections(plan_of(text)) == [None]


@pytest.mark.parametrize("text", PUSHED.values(), ids=PUSHED.keys())
@given(links=acyclic)
def test_same_answer_with_and_without(text: str, links: list[tuple[str, str, int]]) -> None:
    database = Database()
    database.append("link", [SourceEvent(link, ts=0) for link in links])
    plan = plan_of(text)
    assert evaluate(plan, database, 0) == evaluate(without_selection(plan), database, 0)


def test_group_value_and_direction() -> None:
    (selection,) = selections(plan_of(PUSHED["one source"]))
    assert selection == AggregateSelection(group=(0, 1), bests=(Best(2),))
    (selection,) = selections(plan_of(PUSHED["width"]))
    assert selection == AggregateSelection(group=(0, 1), bests=(Best(2, minimum=False),))


def test_each_reader_of_a_recursion_decides_for_itself() -> None:
    text = (
        VALUES.format(start="cost", step="LEAST(r.n, l.cost)")
        + "SELECT src, dst, MAX(n) AS n FROM p GROUP BY src, dst UNION ALL SELECT * FROM p"
    )
    plan = plan_of(text)
    assert [s is not None for s in selections(plan)] == [True, False]
    assert isinstance(next(n for n in walk_plan(plan) if isinstance(n, Aggregate)).input, Fixpoint)
