"""A recursion grown at its other end is the same relation, and why others are not turned."""

import random

import pytest

from federated_optimizer import normalize
from federated_optimizer.alternatives.method import Refused
from federated_optimizer.alternatives.recursion.turned_recursions import Turned, turned
from federated_optimizer.network.topology import Topology
from federated_optimizer.rules.stable_columns import stable_columns
from streamsql.algebra.expressions import expression_text
from streamsql.algebra.operators import Fixpoint, Plan, Project, walk_plan, with_inputs
from streamsql.data.events import SourceEvent
from streamsql.data.types import Value
from streamsql.reference import Database, evaluate
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE TABLE link (src TEXT, dst TEXT, cost DOUBLE, n INTEGER);"
    "CREATE TABLE channel (src TEXT, dst TEXT, bandwidth DOUBLE);"
    "CREATE TABLE parent (child TEXT, ancestor TEXT);"
    "CREATE TABLE whole (src INTEGER, dst INTEGER);"
    "CREATE TABLE mixed (src INTEGER, dst DOUBLE);"
    "CREATE TABLE number (src DOUBLE, dst DOUBLE);",
    library=True,
)
CYCLE = [("e", "f", 0.0, 2**62), ("f", "e", 0.0, 2**62), ("f", "g", 0.0, 3), ("a", "e", 0.0, 7)]
TOPOLOGY = Topology({"gw-1": frozenset()})


def paths(first: str, added: str, links: str = "link") -> str:
    """Return paths of three links at most, with text that grows in front."""
    return (
        f"WITH RECURSIVE (LIMIT 3 RETURN) r (src, dst, p) AS (SELECT src, dst, {first} FROM link "
        f"UNION SELECT l.src, r.dst, {added} FROM {links} l JOIN r ON l.dst = r.src) "
        "SELECT src, dst, p FROM r"
    )


def doubles(function: str) -> str:
    """Return the least or greatest value of paths of three links at most."""
    return (
        "WITH RECURSIVE (LIMIT 3 RETURN) r (src, dst, v) AS (SELECT src, dst, cost FROM link "
        f"UNION SELECT r.src, l.dst, {function}(l.cost, r.v) FROM link l JOIN r ON l.src = r.dst) "
        "SELECT src, dst, v FROM r"
    )


def written(links: str) -> str:
    """Return paths over nodes that are numbers, as text."""
    return (
        "WITH RECURSIVE (LIMIT 3 RETURN) r (src, dst, p) AS (SELECT src, dst, "
        f"CAST(src AS TEXT) || '>' || CAST(dst AS TEXT) FROM {links} UNION SELECT l.src, r.dst, "
        f"CAST(l.src AS TEXT) || '>' || r.p FROM {links} l JOIN r ON l.dst = r.src) "
        "SELECT src, dst, p FROM r"
    )


def least(step: str, condition: str = "n >= 0", limit: str = "", best: str = "MIN") -> str:
    """Return paths of the least sum over some links, with text that grows behind."""
    links = f"(SELECT * FROM link WHERE {condition})"
    return (
        f"WITH RECURSIVE {limit} r (src, dst, v, p) AS "
        f"(SELECT src, dst, n, src || dst FROM {links} UNION "
        f"SELECT r.src, l.dst, {step}, r.p || l.dst FROM r JOIN {links} l ON l.src = r.dst) "
        f"SELECT src, dst, {best}(v) AS v, ARG_{best}(p, v) AS p FROM r GROUP BY src, dst"
    )


def plan_of(text: str) -> tuple[Plan, Fixpoint]:
    plan = normalize(bound_query(text, CATALOG).plan, TOPOLOGY)
    node = next(each for each in walk_plan(plan) if isinstance(each, Fixpoint))
    return plan, node


def replaced(plan: Plan, old: Fixpoint, new: Fixpoint) -> Plan:
    if plan == old:
        return new
    inputs = tuple(replaced(child, old, new) for child in plan.inputs)
    return plan if inputs == plan.inputs else with_inputs(plan, inputs)


SAME = {
    "reachable": "SELECT * FROM reachable",
    "shortest": "SELECT * FROM shortest_path",
    "ties": "SELECT * FROM shortest_paths",
    "radius": "SELECT * FROM within_radius",
    "widest": "SELECT * FROM widest_path",
    "height": "SELECT * FROM subtree_height",
    "text": paths("src || '.' || dst", "l.src || '.' || r.p"),
    "text of one end": paths("src", "l.src || '.' || r.p"),
    "text with brackets": paths("'<' || src || '><' || dst || '>'", "'<' || l.src || '>' || r.p"),
    "text of no node": paths("'.'", "'.' || r.p"),
    "a sum": least("r.v + l.n"),
    "a sum the other way round": least("l.n + r.v", "0 < n"),
    "text of whole numbers": written("whole"),
    "least of doubles": doubles("LEAST"),
    "greatest of doubles": doubles("GREATEST"),
}


@pytest.mark.parametrize("name", SAME)
def test_the_turned_recursion_has_the_same_rows(name: str) -> None:
    plan, node = plan_of(SAME[name])
    found = turned(node)
    assert isinstance(found, Turned)
    assert found.condition is None
    before, after = stable_columns(node), stable_columns(found.recursion)
    assert before
    assert after
    assert before.isdisjoint(after)
    other = replaced(plan, node, found.recursion)
    back = turned(found.recursion)
    assert isinstance(back, Turned)
    rows = 0
    for seed in range(25):
        chance, database = random.Random(seed), Database()
        for _ in range(chance.randrange(1, 12)):
            ends = chance.choice("abcde"), chance.choice((*"abcde", None))
            number = chance.randrange(1, 5)
            database.append("link", [SourceEvent((*ends, float(number), number), 0)])
            nodes = chance.randrange(5), chance.choice((0, 1, 2, None))
            database.append("whole", [SourceEvent(nodes, 0)])
            database.append("channel", [SourceEvent((*ends, float(number)), 0)])
            if str(ends[0]) < (ends[1] or ""):
                database.append("parent", [SourceEvent(ends, 0)])
        wanted = evaluate(plan, database, 0)
        assert evaluate(other, database, 0) == wanted
        assert evaluate(replaced(plan, node, back.recursion), database, 0) == wanted
        rows += len(wanted)
    assert rows > 30


def test_a_path_grows_by_what_is_behind_the_node_that_it_has() -> None:
    _, node = plan_of("SELECT * FROM shortest_path")
    found = turned(node)
    assert isinstance(found, Turned)
    (step,) = found.recursion.step
    assert isinstance(step, Project)
    assert expression_text(step.expressions[-1]) == "(path || '.') || dst"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT * FROM cheapest_path", "cost would be added up in another order"),
        (least("r.v + l.n", "n <> 0"), "sums of v may overflow on the way"),
        (least("r.v + l.n", "n >= -1"), "sums of v may overflow on the way"),
        (least("r.v + l.n", "cost >= 0"), "sums of v may overflow on the way"),
        (least("r.v + l.n", limit="(LIMIT 4 RETURN)"), "sums of v may overflow on the way"),
        (written("mixed"), "computes p in a way that has an order"),
        (written("number"), "computes p in a way that has an order"),
        ("SELECT * FROM resilience", "not a join by equal columns alone"),
        ("SELECT * FROM same_generation", "more than once, or not right below a join"),
        (paths("src || dst", "l.src || r.p || l.src"), "computes p in a way that has an order"),
        (paths("src || dst", "l.dst || r.p"), "computes p in a way that has an order"),
        (paths("dst", "l.src || r.p"), "computes p in a way that has an order"),
        (paths("src", "r.src || r.p"), "computes p in a way that has an order"),
        (paths("src", "l.src || r.p", "(SELECT * FROM link WHERE n > 1)"), "over the same links"),
        (
            "WITH RECURSIVE r (a, b) AS (SELECT src, dst FROM link UNION SELECT l.src, r.b "
            "FROM link l JOIN r ON l.dst = r.a WHERE r.b <> 'a') SELECT * FROM r",
            "its step has a condition on b",
        ),
        (
            "WITH RECURSIVE (LIMIT 3 RETURN) r (a, b) AS (SELECT src, dst FROM link UNION ALL "
            "SELECT l.src, r.b FROM link l JOIN r ON l.dst = r.a) SELECT * FROM r",
            "UNION ALL counts copies",
        ),
        (
            "WITH RECURSIVE r (a, b, n) AS (SELECT src, dst, 1 FROM link UNION SELECT l.src, r.b, "
            "r.n + 1 FROM link l JOIN r ON l.dst = r.a) SELECT a, MIN(n) AS n FROM r GROUP BY a",
            "groups without b",
        ),
        (
            "WITH RECURSIVE r (src) AS (SELECT src FROM link UNION SELECT l.dst "
            "FROM r JOIN link l ON l.src = r.src) SELECT * FROM r",
            "joins by src, which is no end of links",
        ),
    ],
)
def test_others_are_refused_in_words(text: str, reason: str) -> None:
    _, node = plan_of(text)
    found = turned(node)
    assert isinstance(found, Refused)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("text", "table", "rows"),
    [
        (written("mixed"), "mixed", [(1, 2.0), (2, 3.0), (3, 4.0)]),
        (written("number"), "number", [(1.0, 0.0), (-0.0, 2.0)]),
        (
            least("r.v + l.n", "n <> 0", "(LIMIT 4 RETURN)"),
            "link",
            [("a", "b", 0.0, 2**63 - 1), ("b", "c", 0.0, 1), ("c", "d", 0.0, -5)],
        ),
        (
            least("r.v + l.n"),
            "link",
            [("a", "b", 0.0, 2**63 - 1), ("b", "c", 0.0, 0), ("c", "d", 0.0, 1), *CYCLE],
        ),
        (
            doubles("LEAST"),
            "link",
            [("a", "b", 0.0, 1), ("b", "c", -0.0, 1), ("c", "d", None, 1), ("b", "d", 0.0, 1)],
        ),
    ],
)
def test_equal_numbers_that_differ_and_sums_out_of_range_change_no_rows(
    text: str, table: str, rows: list[tuple[Value, ...]]
) -> None:
    plan, node = plan_of(text)
    found = turned(node)
    taken = found.recursion if isinstance(found, Turned) else node
    database = Database()
    database.append(table, [SourceEvent(row, 0) for row in rows])
    wanted = evaluate(plan, database, 0)
    assert sorted(map(repr, evaluate(replaced(plan, node, taken), database, 0))) == sorted(
        map(repr, wanted)
    )
