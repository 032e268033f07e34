"""Library views and recursive scripts answer as DuckDB does on the same random data.

DuckDB follows every path, so recursions that only aggregate selection ends are compared on data
without circles; the binder says which these are.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamsql.algebra.operators import Fixpoint, Plan, walk_plan
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.library import library_views
from streamsql.recursion.growth import growths
from streamsql.reference import Database, evaluate
from tests.conformance.duckdb_peer import Peer, rounded
from tests.streamsql.from_text import bound_query, catalog_of
from tests.streamsql.library_relations import TABLES

SCRIPT = f"""{TABLES}
CREATE TABLE link (src TEXT, dst TEXT, cost DOUBLE, bandwidth DOUBLE);
CREATE VIEW channel AS SELECT src, dst, bandwidth FROM link;
CREATE VIEW triggered AS
  SELECT s.sensor, s.x, s.y, s.level FROM sensors s JOIN reading r ON r.sensor = s.sensor
  WHERE r.celsius > 27.0;
CREATE VIEW node_reading AS SELECT sensor AS node, celsius FROM reading;
"""
WINDOWED = {"last_sighting", "radio_map_position", "strongest_room", "weighted_centroid"}
"""DuckDB has no windows over time; tests/streamsql/library compares these with numpy."""
MODELS = "brick_"
"""Begins views of models of buildings, whose tables are read with a library of their own."""
LIBRARY = tuple(
    view
    for view in library_views()
    if view.name not in WINDOWED and not view.name.startswith(MODELS)
)
VIEWS = [view.name for view in LIBRARY]
NODES = "abcde"
MACHINES = ["m1", "m2", "m3"]

SCRIPTS = {
    "right linear": "WITH RECURSIVE r(src, dst) AS (SELECT src, dst FROM link UNION "
    "SELECT l.src, r.dst FROM link l JOIN r ON l.dst = r.src) SELECT * FROM r",
    "left linear, filtered": "WITH RECURSIVE r(src, dst) AS (SELECT src, dst FROM link UNION "
    "SELECT r.src, l.dst FROM r JOIN link l ON r.dst = l.src) SELECT dst FROM r WHERE src = 'a'",
    "two steps": "WITH RECURSIVE r(n, side) AS (SELECT src, 0 FROM link WHERE src < 'c' UNION "
    "SELECT l.dst, r.side FROM r JOIN link l ON l.src = r.n UNION "
    "SELECT l.src, (r.side + 1) % 2 FROM r JOIN link l ON l.dst = r.n WHERE l.cost > 1.5) "
    "SELECT n, COUNT(*), MAX(side) FROM r GROUP BY n",
    "counter": "WITH RECURSIVE r(n, hops) AS (SELECT src, 0 FROM link UNION "
    "SELECT l.dst, r.hops + 1 FROM r JOIN link l ON l.src = r.n WHERE r.hops < 3) SELECT * FROM r",
    "loop check": "WITH RECURSIVE r(src, dst, path) AS ("
    "SELECT src, dst, src || '.' || dst FROM link WHERE src <> dst UNION "
    "SELECT r.src, l.dst, r.path || '.' || l.dst FROM r JOIN link l ON l.src = r.dst "
    "WHERE POSITION(l.dst IN r.path) = 0) SELECT * FROM r",
    "after another": "WITH RECURSIVE r(n) AS (SELECT 'a' UNION "
    "SELECT l.dst FROM r JOIN link l ON l.src = r.n), s(n) AS (SELECT r.n FROM r UNION "
    "SELECT p.child FROM s JOIN parent p ON p.ancestor = s.n) SELECT * FROM s",
    "least cost": "WITH RECURSIVE r(src, dst, cost) AS (SELECT src, dst, cost FROM link UNION "
    "SELECT l.src, r.dst, l.cost + r.cost FROM link l JOIN r ON l.dst = r.src) "
    "SELECT src, dst, MIN(cost) FROM r WHERE src < dst GROUP BY src, dst "
    "HAVING MIN(cost) < 6.0",
    "several aggregates": "WITH RECURSIVE r(src, dst, hops, cost) AS ("
    "SELECT src, dst, 1, cost FROM link UNION SELECT l.src, r.dst, r.hops + 1, l.cost + r.cost "
    "FROM link l JOIN r ON l.dst = r.src) "
    "SELECT src, dst, MIN(hops), MIN(cost) FROM r GROUP BY src, dst",
    "non-linear": "WITH RECURSIVE r(src, dst) AS (SELECT src, dst FROM link UNION "
    "SELECT a.src, b.dst FROM r a JOIN r b ON a.dst = b.src) SELECT * FROM r",
    "non-linear, limited sum": "WITH RECURSIVE r(src, dst, hops) AS ("
    "SELECT src, dst, 1 FROM link UNION SELECT a.src, b.dst, a.hops + b.hops "
    "FROM r a JOIN r b ON a.dst = b.src WHERE a.hops + b.hops <= 3) SELECT * FROM r",
    "non-linear, greatest": "WITH RECURSIVE r(src, dst, wide) AS (SELECT src, dst, bandwidth "
    "FROM link UNION SELECT a.src, b.dst, LEAST(a.wide, b.wide) FROM r a JOIN r b "
    "ON a.dst = b.src) SELECT src, dst, MAX(wide) FROM r GROUP BY src, dst",
    "three readings": "WITH RECURSIVE r(src, dst) AS (SELECT src, dst FROM link UNION "
    "SELECT a.src, c.dst FROM r a JOIN r b ON a.dst = b.src JOIN r c ON b.dst = c.src) "
    "SELECT * FROM r",
    "mutual": "WITH RECURSIVE even(n, m) AS (SELECT src, src FROM link UNION "
    "SELECT o.n, l.dst FROM odd o JOIN link l ON l.src = o.m), odd(n, m) AS ("
    "SELECT e.n, l.dst FROM even e JOIN link l ON l.src = e.m) "
    "SELECT even.n, even.m FROM even JOIN odd ON even.n = odd.n AND even.m = odd.m",
    "mutual, three, other columns": "WITH RECURSIVE a(x, hops) AS (SELECT src, 0 FROM link UNION "
    "SELECT c.y, c.n + 1 FROM c WHERE c.n < 2), b(y, x) AS (SELECT l.cost, l.dst FROM a "
    "JOIN link l ON l.src = a.x), c(y, n) AS (SELECT b.x, a.hops FROM b JOIN a ON a.x = b.x) "
    "SELECT a.x, a.hops, b.y FROM a JOIN b ON b.x = a.x",
    "defined after its use": "WITH RECURSIVE a(n) AS (SELECT n FROM b WHERE n > 'a'), b(n) AS ("
    "SELECT src FROM link UNION SELECT l.dst FROM b JOIN link l ON l.src = b.n) SELECT * FROM a",
}


def texts(values: list[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(values)


def few(*columns: st.SearchStrategy[object], size: int = 5) -> st.SearchStrategy[list[Row]]:
    return st.lists(st.tuples(*columns), max_size=size, unique_by=lambda row: row[:2])


node = texts(list(NODES))
points = texts(["p", "q", "r", "s"])
numbers = st.sampled_from([1.0, 2.0, 2.5, 5.0])
rows = st.fixed_dictionaries(
    {
        "link": few(node, node, numbers, numbers, size=7),
        "sensors": few(texts(list("stuvab")), numbers.map(lambda n: n * 10), numbers, st.just(0)),
        "reading": st.dictionaries(texts(list("stuvab")), st.sampled_from([20.0, 28.0, 30.5])).map(
            lambda found: list(found.items())
        ),
        "region_seed": few(texts(["north", "south"]), texts(list("stuv"))),
        "parent": st.tuples(*(st.sampled_from(NODES[:n]) for n in range(1, 5))).map(
            lambda above: list(zip(NODES[1:], above, strict=True))
        ),
        "visitorposition": few(texts(["badge-1", "badge-2"]), points, size=2),
        "routingpoint": few(points, points, numbers),
        "freemachines": few(texts(MACHINES), points, size=3),
        "machines": st.just([(mid,) for mid in MACHINES]),
        "machinesoftware": few(texts(MACHINES), texts(["Word", "LaTeX"])),
        "seatsensor": few(texts(MACHINES), texts(["r1", "r2"]), st.sampled_from([0.0, 70.0])),
        "roomsensor": few(
            texts(["r1", "r2"]), texts(["open", "closed"]), st.sampled_from([1.0, 300.0]), size=2
        ),
        "machineload": few(texts(MACHINES), numbers, size=3),
    }
)
Tables = dict[str, list[Row]]
EXAMPLES = settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def without_circles(tables: Tables) -> Tables:
    return {
        name: [row for row in found if str(row[0]) < str(row[1])]
        if name in ("link", "routingpoint")
        else found
        for name, found in tables.items()
    }


KNOWN = catalog_of(SCRIPT, library=True)


def plan_of(text: str) -> Plan:
    return bound_query(text, KNOWN).plan


PLANS = {
    text: plan_of(text) for text in (*(f"SELECT * FROM {v}" for v in VIEWS), *SCRIPTS.values())
}


def is_endless(plan: Plan) -> bool:
    """Whether a recursion of the plan ends only because just its best rows are followed."""
    recursions = [node for node in walk_plan(plan) if isinstance(node, Fixpoint)]
    return any(growths(msgspec.structs.replace(node, selection=None)) for node in recursions)


ENDLESS = [text for text, plan in PLANS.items() if is_endless(plan)]
FINITE = [text for text in PLANS if text not in ENDLESS]


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with contextlib.closing(Peer(SCRIPT, LIBRARY)) as made:
        yield made


def compare(queries: list[str], tables: Tables, peer: Peer) -> int:
    database = Database()
    for name, found in tables.items():
        peer.fill(name, found)
        database.append(name, [SourceEvent(row, ts=0) for row in found])
    seen = 0
    for text in queries:
        ours: Counter[Row] = Counter()
        for row, weight in evaluate(PLANS[text], database, now=0).items():
            ours[rounded(row)] += weight
        assert ours == peer.answer(text), text
        seen += len(ours)
    return seen


@EXAMPLES
@given(tables=rows)
def test_finite_queries(peer: Peer, tables: Tables) -> None:
    compare(FINITE, tables, peer)


@EXAMPLES
@given(tables=rows)
def test_queries_that_only_follow_the_best(peer: Peer, tables: Tables) -> None:
    compare(ENDLESS, without_circles(tables), peer)


def test_all_library_views_are_compared_and_have_rows(peer: Peer) -> None:
    tables: Tables = {
        "link": [("a", "b", 1.0, 5.0), ("b", "c", 2.0, 2.0), ("a", "c", 5.0, 1.0)],
        "sensors": [("s", 0.0, 0.0, 0), ("t", 10.0, 0.0, 0), ("u", 25.0, 0.0, 0)],
        "reading": [("s", 30.0), ("t", 28.0), ("u", 20.0), ("c", 21.0)],
        "region_seed": [("north", "s")],
        "parent": [("b", "a"), ("c", "a"), ("d", "b")],
        "visitorposition": [("badge-1", "p")],
        "routingpoint": [("p", "q", 1.0), ("q", "r", 1.0)],
        "freemachines": [("m1", "r")],
        "machines": [("m1",), ("m2",)],
        "machinesoftware": [("m1", "Word")],
        "seatsensor": [("m1", "r1", 0.0), ("m2", "r1", 70.0)],
        "roomsensor": [("r1", "open", 300.0)],
        "machineload": [("m2", 40.0)],
    }
    circle: Tables = {**tables, "link": [*tables["link"], ("c", "a", 1.0, 5.0)]}
    for name in VIEWS:
        text = f"SELECT * FROM {name}"
        assert compare([text], tables if text in ENDLESS else circle, peer) > 0, name
    assert {f"SELECT * FROM {name}" for name in VIEWS} <= {*FINITE, *ENDLESS}
    assert len(ENDLESS) == 8
