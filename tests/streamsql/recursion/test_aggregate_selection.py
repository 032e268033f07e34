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
from streamsql.binder import NonTerminatingError, bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from streamsql.syntax import CreateSource, parse_script
from tests.streamsql.from_text import query_of

PATHS = """WITH RECURSIVE p(src, dst, n, path) AS (
  SELECT src, dst, {start}, src || '.' || dst FROM link UNION
  SELECT l.src, r.dst, {step}, l.src || '.' || r.path FROM link l JOIN p r ON l.dst = r.src) """
VALUES = """WITH RECURSIVE p(src, dst, n) AS (
  SELECT src, dst, {start} FROM link UNION
  SELECT l.src, r.dst, {step} FROM link l JOIN p r ON l.dst = r.src) """
DOUBLED = """WITH RECURSIVE p(src, dst, n, m, path) AS (
  SELECT src, dst, {start}, src || '.' || dst FROM link UNION
  SELECT x.src, y.dst, {step}, x.path || '.' || y.path FROM p x JOIN p y ON x.dst = y.src) """
SEVERAL = """WITH RECURSIVE p(src, dst, n, m, path) AS (
  SELECT src, dst, {start}, src || '.' || dst FROM link UNION
  SELECT l.src, r.dst, {step}, l.src || '.' || r.path FROM link l JOIN p r ON l.dst = r.src) """
BOTH = "SELECT src, dst, MIN(n) AS n, {other} AS m FROM p GROUP BY src, dst"
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
    "the cheaper of two tariffs": VALUES.format(start="cost", step="LEAST(r.n + 9, r.n + l.cost)")
    + GROUPED.format(call="MIN"),
    "energy left": VALUES.format(start="100 - cost", step="r.n - l.cost")
    + GROUPED.format(call="MAX"),
    "label": VALUES.format(start="cost", step="r.n") + GROUPED.format(call="MIN"),
    "two steps": """WITH RECURSIVE p(a, n) AS (
        SELECT src, 0 FROM link UNION SELECT l.dst, r.n + l.cost FROM p r JOIN link l ON l.src = r.a
        UNION SELECT l.dst, r.n + 3 FROM p r JOIN link l ON l.src = r.a AND l.cost > 2)
        SELECT a, MIN(n) FROM p GROUP BY a""",
    "two aggregates": SEVERAL.format(start="1, cost", step="r.n + 1, r.m + l.cost")
    + BOTH.format(other="MIN(m)"),
    "two aggregates with paths": SEVERAL.format(start="1, cost", step="r.n + 1, r.m + l.cost")
    + BOTH.format(other="MIN(m), ARG_MIN(path, n), ARG_MIN(path, m)"),
    "least and greatest": SEVERAL.format(start="cost, 20 - cost", step="r.n + l.cost, r.m - l.cost")
    + BOTH.format(other="MAX(m), ARG_MAX(path, m)"),
    "least and greatest of a label": VALUES.format(start="cost", step="r.n")
    + "SELECT src, dst, MIN(n), MAX(n) FROM p GROUP BY src, dst",
    "non-linear": DOUBLED.format(start="cost, 1", step="x.n + y.n, 1") + GROUPED.format(call="MIN"),
    "non-linear with paths": DOUBLED.format(start="cost, 1", step="x.n + y.n, x.m + y.m")
    + BOTH.format(other="MIN(m), ARG_MIN(path, n)"),
    "non-linear width": """WITH RECURSIVE p(src, dst, n) AS (SELECT src, dst, cost FROM link UNION
        SELECT x.src, y.dst, LEAST(x.n, y.n) FROM p x JOIN p y ON x.dst = y.src) """
    + GROUPED.format(call="MAX"),
    "non-linear around a link": """WITH RECURSIVE p(src, dst, n) AS (SELECT src, dst, 0 FROM link
        UNION SELECT x.src, y.dst, x.n + l.cost + y.n
        FROM p x JOIN link l ON x.dst = l.src JOIN p y ON l.dst = y.src) """
    + GROUPED.format(call="MIN"),
    "test of the value": PATHS.format(start="cost", step="r.n + l.cost").replace(
        "ON l.dst = r.src", "ON l.dst = r.src AND r.n + 1 < 6"
    )
    + "SELECT src, dst, MIN(n), ARG_MIN(path, n) FROM p GROUP BY src, dst",
    "test of the greatest": VALUES.format(start="10 - cost", step="r.n - l.cost").replace(
        "ON l.dst = r.src", "ON l.dst = r.src AND 4 < r.n"
    )
    + GROUPED.format(call="MAX"),
    "non-linear test of the value": DOUBLED.format(start="cost, 1", step="x.n + y.n, 1").replace(
        "ON x.dst = y.src", "ON x.dst = y.src AND x.n + y.n < 7"
    )
    + GROUPED.format(call="MIN"),
    "joined back": PATHS.format(start="1", step="r.n + 1")
    + "SELECT p.src, p.dst, p.n, p.path FROM p JOIN "
    "(SELECT src, dst, MIN(n) AS n FROM p GROUP BY src, dst) AS m USING (src, dst, n)",
    "joined back, the other way round": PATHS.format(start="cost", step="r.n + l.cost")
    + "SELECT p.path FROM (SELECT dst, src, MIN(n) AS n FROM p WHERE dst <> 'c' GROUP BY src, dst) "
    "AS m, p WHERE m.n = p.n AND p.path <> 'a.b' AND p.dst = m.dst AND m.src = p.src",
    "two joined back": SEVERAL.format(start="1, cost", step="r.n + 1, r.m + l.cost")
    + "SELECT p.src, p.dst, p.path FROM p JOIN (SELECT src, dst, MIN(n) AS n, MIN(m) AS m FROM p "
    "GROUP BY src, dst) AS best USING (src, dst, m)",
    "one reading decides whether, the other what": """WITH RECURSIVE p(src, dst, n, path) AS (
        SELECT src, dst, cost, src FROM link UNION
        SELECT l.src, x.dst, x.n + l.cost, l.src || x.path
        FROM link l JOIN p x ON l.dst = x.src JOIN p y ON y.src = l.src AND y.dst = x.dst)
        SELECT src, dst, MIN(n), ARG_MIN(path, n) FROM p GROUP BY src, dst""",
}
KEPT = {
    "count": VALUES.format(start="1", step="1") + "SELECT src, COUNT(*) FROM p GROUP BY src",
    "no group": VALUES.format(start="1", step="l.cost") + "SELECT MIN(n) FROM p",
    "picks under LEAST": VALUES.format(start="cost", step="LEAST(r.n, l.cost)")
    + "SELECT src, dst, ARG_MAX(n, n), MAX(n) FROM p GROUP BY src, dst",
    "test of the value on the better side": VALUES.format(start="1", step="r.n + 1").replace(
        "ON l.dst = r.src", "ON l.dst = r.src AND r.n < 4 AND r.n > 1"
    )
    + GROUPED.format(call="MIN"),
    "test of one of two": """WITH RECURSIVE p(src, dst, n, m) AS (
        SELECT src, dst, 1, cost FROM link UNION SELECT l.src, r.dst, r.n + 1, r.m + l.cost
        FROM link l JOIN p r ON l.dst = r.src WHERE r.n < 3) """
    + BOTH.format(other="MIN(m)"),
    "filter on the value": VALUES.format(start="cost", step="l.cost")
    + "SELECT src, dst, MIN(n) FROM p WHERE n > 1 GROUP BY src, dst",
    "MIN and MAX": VALUES.format(start="cost", step="l.cost")
    + "SELECT src, dst, MIN(n), MAX(n) FROM p GROUP BY src, dst",
    "computed value": VALUES.format(start="cost", step="l.cost")
    + "SELECT src, dst, MIN(n + 1) FROM p GROUP BY src, dst",
    "computed group": VALUES.format(start="cost", step="l.cost")
    + "SELECT UPPER(src), dst, MIN(n) FROM p GROUP BY UPPER(src), dst",
    "a sum beside the least": VALUES.format(start="cost", step="r.n")
    + "SELECT src, dst, MIN(n), SUM(n) FROM p GROUP BY src, dst",
    "one of two that cannot be pushed": """WITH RECURSIVE p(src, dst, n, m) AS (
        SELECT src, dst, 1, cost FROM link UNION
        SELECT l.src, r.dst, l.cost, r.m FROM link l JOIN p r ON l.dst = r.src) """
    + BOTH.format(other="MAX(m)"),
    "other columns come from a reading without its value": """WITH RECURSIVE p(src, dst, n, m) AS (
        SELECT src, dst, cost, 1 FROM link WHERE cost > 2 UNION
        SELECT l.src, x.dst, x.n, y.m
        FROM link l JOIN p x ON l.dst = x.src JOIN p y ON y.src = l.src AND y.dst = x.dst)
        SELECT src, dst, MIN(n), ARG_MIN(m, n) FROM p GROUP BY src, dst""",
    "mutual": """WITH RECURSIVE p(src, dst, n) AS (SELECT src, dst, cost FROM link UNION
        SELECT * FROM q WHERE src > 'a'),
        q(src, dst, n) AS (SELECT src, dst, n FROM p WHERE dst > 'a') """
    + GROUPED.format(call="MIN"),
    "joined back without a column of the group": VALUES.format(start="cost", step="r.n")
    + "SELECT p.src, p.n FROM p JOIN (SELECT src, dst, MIN(n) AS n FROM p GROUP BY src, dst) AS m "
    "ON m.src = p.src AND m.n = p.n",
    "joined back with a filter on one side": VALUES.format(start="cost", step="r.n")
    + "SELECT p.src, p.n FROM p JOIN (SELECT dst, MIN(n) AS n FROM p WHERE src = 'a' GROUP BY dst) "
    "AS m ON m.dst = p.dst AND m.n = p.n",
    "the less of the value and another": VALUES.format(start="cost", step="LEAST(r.n, l.cost)")
    + GROUPED.format(call="MIN"),
    "the more of the value and a constant": VALUES.format(start="cost", step="GREATEST(2, r.n)")
    + GROUPED.format(call="MAX"),
    "the less of two readings": """WITH RECURSIVE p(src, dst, n) AS (SELECT src, dst, cost FROM link
        UNION SELECT x.src, y.dst, LEAST(x.n, y.n) FROM p x JOIN p y ON x.dst = y.src) """
    + GROUPED.format(call="MIN"),
    "rounded": VALUES.format(start="cost / 2.0", step="CAST(r.n AS INTEGER)")
    + GROUPED.format(call="MIN"),
    "joined back where ties rest on worse rows": VALUES.format(start="cost", step="LEAST(r.n, 3)")
    + "SELECT p.src, p.n FROM p JOIN (SELECT src, dst, MAX(n) AS n FROM p GROUP BY src, dst) AS m "
    "USING (src, dst, n)",
    "behind a join": VALUES.format(start="cost", step="l.cost")
    + "SELECT p.src, MIN(n) FROM p JOIN link ON link.src = p.dst GROUP BY p.src",
}


def plan_of(text: str) -> Plan:
    (source,) = parse_script("CREATE LINK SOURCE link (src TEXT, dst TEXT, cost INTEGER)")
    assert isinstance(source, CreateSource)
    statement = query_of(text)
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
    found = selections(plan_of(text))
    assert found
    assert found[0] is not None
    assert len(set(found)) == 1


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_not_pushed(text: str) -> None:
    if "AS m" not in text:
        assert selections(plan_of(text)) == [None]
    else:
        assert None in selections(plan_of(text))


@pytest.mark.parametrize("text", PUSHED.values(), ids=PUSHED.keys())
@given(links=acyclic)
def test_same_answer_with_and_without(text: str, links: list[tuple[str, str, int]]) -> None:
    database = Database()
    database.append("link", [SourceEvent(link, ts=0) for link in links])
    plan = plan_of(text)
    assert evaluate(plan, database, 0) == evaluate(without_selection(plan), database, 0)


@pytest.mark.parametrize("call", ["MIN", "MAX"])
@given(links=st.lists(st.tuples(*[st.sampled_from("abcd")] * 2, st.integers(1, 4)), max_size=8))
def test_non_linear_is_as_linear_on_circles(call: str, links: list[tuple[str, str, int]]) -> None:
    """Any path is one link and a path, or two paths."""
    database = Database()
    database.append("link", [SourceEvent(link, ts=0) for link in links])
    step = "r.n + l.cost" if call == "MIN" else "LEAST(r.n, l.cost)"
    linear = VALUES.format(start="cost", step=step) + GROUPED.format(call=call)
    doubled = step.replace("r.n", "x.n").replace("l.cost", "y.n")
    non_linear = f"""WITH RECURSIVE p(src, dst, n) AS (SELECT src, dst, cost FROM link UNION
        SELECT x.src, y.dst, {doubled} FROM p x JOIN p y ON x.dst = y.src) """
    plan = plan_of(non_linear + GROUPED.format(call=call))
    assert evaluate(plan, database, 0) == evaluate(plan_of(linear), database, 0)


def test_several_in_the_order_written() -> None:
    (selection,) = selections(plan_of(PUSHED["least and greatest"]))
    assert selection == AggregateSelection(group=(0, 1), bests=(Best(2), Best(3, minimum=False)))
    (selection,) = selections(plan_of(PUSHED["least and greatest of a label"]))
    assert selection == AggregateSelection(group=(0, 1), bests=(Best(2), Best(2, minimum=False)))


@pytest.mark.parametrize("step", ["GREATEST(r.n + 1, l.cost)", "r.n - l.cost + 1"])
def test_what_may_grow_without_end_is_not_pushed_under_max(step: str) -> None:
    text = VALUES.format(start="cost", step=step) + GROUPED.format(call="MAX")
    with pytest.raises(NonTerminatingError, match="can make n larger at every step"):
        plan_of(text)


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
