"""Library views against answers computed in another way, on random graphs."""

import itertools
import math
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from streamsql.algebra.operators import Plan
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from tests.streamsql.from_text import bound_query, catalog_of
from tests.streamsql.library_relations import TABLES

SOURCES = f"""{TABLES}
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, bandwidth DOUBLE);
CREATE VIEW channel AS SELECT src, dst, bandwidth FROM link;
CREATE TABLE node_reading (node TEXT, celsius DOUBLE);
CREATE TABLE triggered (sensor TEXT, x DOUBLE, y DOUBLE, level INTEGER);
"""
NODES = "abcd"
Link = tuple[str, str, float, float]

links = st.lists(
    st.tuples(
        st.sampled_from(NODES),
        st.sampled_from(NODES),
        st.sampled_from([1.0, 2.0, 5.0]),
        st.sampled_from([10.0, 20.0, 30.0]),
    ),
    max_size=8,
    unique_by=lambda link: link[:2],
)
sensors = st.lists(
    st.tuples(
        st.sampled_from("stuvw"),
        st.sampled_from([0.0, 15.0, 30.0, 45.0]),
        st.sampled_from([0.0, 15.0]),
        st.integers(0, 1),
    ),
    max_size=5,
    unique_by=lambda sensor: sensor[0],
)


@cache
def plan_of(view: str) -> Plan:
    catalog = catalog_of(SOURCES, library=True)
    return bound_query(f"SELECT * FROM {view}", catalog).plan


def answer(view: str, **tables: list[Row]) -> set[Row]:
    database = Database()
    for name, rows in tables.items():
        database.append(name, [SourceEvent(row, ts=0) for row in rows])
    relation = evaluate(plan_of(view), database, now=0)
    assert set(relation.values()) <= {1}
    return set(relation)


def simple_walks(graph: list[Link], longest: int = 4) -> list[list[Link]]:
    """Return every walk of links that visits no node twice, except that it may close a circle."""
    found = [[link] for link in graph]
    for walk in found:
        if len(walk) < longest:
            seen = {link[0] for link in walk} | {walk[-1][1]}
            if len(seen) == len(walk) + 1:
                found += [
                    [*walk, link]
                    for link in graph
                    if link[0] == walk[-1][1] and link[1] not in seen - {walk[0][0]}
                ]
    return found


def shown(walk: list[Link]) -> str:
    return ".".join([walk[0][0], *(link[1] for link in walk)])


@given(links)
def test_reachable_and_cycles(graph: list[Link]) -> None:
    expected = {(walk[0][0], walk[-1][1]) for walk in simple_walks(graph)}
    assert answer("reachable", link=list(graph)) == expected
    assert answer("cycles", link=list(graph)) == {(a,) for a, b in expected if a == b}


@given(links)
def test_best_paths(graph: list[Link]) -> None:
    walks: dict[tuple[str, str], list[list[Link]]] = {}
    for walk in simple_walks(graph):
        walks.setdefault((walk[0][0], walk[-1][1]), []).append(walk)
    shortest, cheapest, widest = set(), set(), set()
    all_shortest, both = set(), set()
    for (src, dst), found in walks.items():
        hops = min(len(walk) for walk in found)
        shortest.add((src, dst, hops, min(shown(w) for w in found if len(w) == hops)))
        cost = min(sum(link[2] for link in walk) for walk in found)
        best = [w for w in found if sum(link[2] for link in w) == cost]
        cheapest.add((src, dst, cost, min(map(shown, best))))
        width = max(min(link[3] for link in walk) for walk in found)
        widest.add((src, dst, width))
        all_shortest |= {(src, dst, hops, shown(w)) for w in found if len(w) == hops}
        first = min(shown(w) for w in found if len(w) == hops)
        both.add((src, dst, hops, first, cost, min(map(shown, best))))
    assert answer("shortest_path", link=list(graph)) == shortest
    assert answer("cheapest_path", link=list(graph)) == cheapest
    assert answer("widest_path", link=list(graph)) == widest
    assert answer("shortest_paths", link=list(graph)) == all_shortest
    assert answer("shortest_and_cheapest_path", link=list(graph)) == both
    onward = answer("highest_bandwidth_path", link=list(graph))
    assert {row[:3] for row in onward} == widest
    for row in onward:
        path = str(row[3])
        assert width_of(path, graph) == row[2]
        assert (path[0], path[-1]) == row[:2]


def width_of(path: str, graph: list[Link]) -> float:
    wide = {(link[0], link[1]): link[3] for link in graph}
    nodes = path.split(".")
    return min(wide[one, other] for one, other in itertools.pairwise(nodes))


@given(links)
def test_radius_and_horizon(graph: list[Link]) -> None:
    hops: dict[tuple[str, str], int] = {}
    for walk in simple_walks(graph):
        pair = (walk[0][0], walk[-1][1])
        hops[pair] = min(len(walk), hops.get(pair, 99))
    assert answer("within_radius", link=list(graph)) == {(a, b, n) for (a, b), n in hops.items()}
    near = {a: len({d for s, d in hops if s == a}) for a, _ in hops}
    assert answer("horizon", link=list(graph)) == set(near.items())


def test_radius_ends_at_five_hops() -> None:
    chain: list[Row] = [(str(n), str(n + 1), 1.0, 1.0) for n in range(8)]
    assert (
        max(row[2] for row in answer("within_radius", link=chain) if isinstance(row[2], int)) == 5
    )


@given(links)
def test_cycle_paths(graph: list[Link]) -> None:
    circles = {
        (walk[0][0], len(walk), shown(walk))
        for walk in simple_walks(graph)
        if walk[0][0] == walk[-1][1]
    }
    assert answer("cycle_paths", link=list(graph)) == circles


@given(links, st.dictionaries(st.sampled_from(NODES), st.sampled_from([20.0, 25.0, 28.0])))
def test_horizon_temperature(graph: list[Link], celsius: dict[str, float]) -> None:
    near = {(walk[0][0], walk[-1][1]) for walk in simple_walks(graph)}
    expected = set()
    for node in NODES:
        found = [celsius[b] for a, b in near if a == node and b in celsius]
        if found:
            expected.add((node, sum(found) / len(found), len(found)))
    reading: list[Row] = list(celsius.items())
    rows = answer("horizon_temperature", link=list(graph), node_reading=reading)
    assert {(n, round(float(str(c)), 9), k) for n, c, k in rows} == {
        (n, round(c, 9), k) for n, c, k in expected
    }


@given(links)
def test_resilience(graph: list[Link]) -> None:
    counts: dict[tuple[str, str], int] = {}
    for walk in simple_walks(graph):
        if len({link[0] for link in walk} | {walk[-1][1]}) == len(walk) + 1:
            pair = (walk[0][0], walk[-1][1])
            counts[pair] = counts.get(pair, 0) + 1
    assert answer("resilience", link=list(graph)) == {(a, b, n) for (a, b), n in counts.items()}


def near(one: Row, other: Row) -> bool:
    assert isinstance(one[1], float)
    assert isinstance(one[2], float)
    assert isinstance(other[1], float)
    assert isinstance(other[2], float)
    return one[3] == other[3] and math.dist((one[1], one[2]), (other[1], other[2])) < 20.0


def components(places: list[Row]) -> list[set[Row]]:
    regions: list[set[Row]] = []
    for place in places:
        touching = [r for r in regions if any(near(place, other) for other in r)]
        regions = [r for r in regions if r not in touching]
        regions.append({place}.union(*touching))
    return regions


@given(sensors, st.lists(st.sampled_from("stuvw"), max_size=3, unique=True))
def test_regions(places: list[Row], seeds: list[str]) -> None:
    regions = components(places)
    named = {(min(str(p[0]) for p in region), p[0]) for region in regions for p in region}
    assert answer("contiguous_region", triggered=places) == named
    seeded = {
        (f"r{seed}", place[0])
        for seed in seeds
        for region in regions
        if seed in {p[0] for p in region}
        for place in region
    }
    region_seed: list[Row] = [(f"r{seed}", seed) for seed in seeds]
    assert answer("active_region", triggered=places, region_seed=region_seed) == seeded
    sizes = {
        region: sum(1 for other, _ in seeded if other == region)
        for region in {r for r, _ in seeded}
    }
    found = answer("region_sizes", triggered=places, region_seed=region_seed)
    assert found == set(sizes.items())
    largest = {(r, n) for r, n in sizes.items() if n == max(sizes.values())}
    assert answer("largest_regions", triggered=places, region_seed=region_seed) == largest
    size = {(max(sizes.values()),)} if sizes else set()
    assert answer("largest_region", triggered=places, region_seed=region_seed) == size
    celsius = {str(p[0]): 20.0 + number for number, p in enumerate(places)}
    means = {
        (region, sum(found) / len(found), len(found))
        for region in sizes
        for found in [[celsius[str(s)] for r, s in seeded if r == region]]
    }
    reading: list[Row] = list(celsius.items())
    tables = {"triggered": places, "region_seed": region_seed, "reading": reading}
    assert answer("region_temperature", **tables) == means


def test_the_rim_is_not_triggered_and_does_not_spread() -> None:
    place: dict[str, Row] = {
        name: (name, 15.0 * number, 0.0, 0) for number, name in enumerate("stuv")
    }
    tables: dict[str, list[Row]] = {
        "triggered": [place["s"], place["t"]],
        "sensors": list(place.values()),
        "region_seed": [("r", "s")],
    }
    inside = {("r", "s"), ("r", "t")}
    assert answer("active_region", **tables) == inside
    assert answer("active_region_with_rim", **tables) == {*inside, ("r", "u")}


def test_trees() -> None:
    parent: list[Row] = [("b", "a"), ("c", "a"), ("d", "b"), ("e", "c"), ("f", "e")]
    heights = answer("subtree_height", parent=parent)
    assert heights == {("a", 3), ("b", 1), ("c", 2), ("e", 1)}
    level = {"b": 1, "c": 1, "d": 2, "e": 2, "f": 3}
    same = {(x, y) for x, y in itertools.product(level, level) if level[x] == level[y]}
    assert answer("same_generation", parent=parent) == same


def test_imbalance() -> None:
    parent: list[Row] = [("b", "a"), ("c", "a"), ("d", "b"), ("e", "c"), ("f", "e"), ("g", "e")]
    assert answer("tree_imbalance", parent=parent) == {
        ("a", 3, 2, 1), ("b", 1, 1, 0), ("c", 2, 2, 0), ("e", 1, 1, 0)
    }  # fmt: skip


def test_nearest_resource() -> None:
    tables: dict[str, list[Row]] = {
        "visitorposition": [("badge-1", "p"), ("badge-2", "s")],
        "routingpoint": [
            ("p", "q", 5.0), ("q", "r", 5.0), ("p", "r", 12.0), ("r", "s", 1.0), ("s", "r", 1.0)
        ],
        "freemachines": [("m1", "r"), ("m2", "s"), ("m3", "s"), ("m4", "elsewhere")],
        "machinesoftware": [
            ("m1", "Word"), ("m2", "Word"), ("m2", "LaTeX"), ("m3", "LaTeX"), ("m4", "LaTeX")
        ],
    }  # fmt: skip
    assert answer("nearest_resource", **tables) == {
        ("badge-1", "Word", "m1", 10.0, "p>q>r"),
        ("badge-1", "LaTeX", "m2", 11.0, "p>q>r>s"),
        ("badge-2", "Word", "m2", 0.0, "s"),
        ("badge-2", "LaTeX", "m2", 0.0, "s"),
    }


def test_workstations() -> None:
    tables: dict[str, list[Row]] = {
        "machines": [("m1",), ("m2",), ("m3",)],
        "machinesoftware": [("m1", "Word"), ("m2", "Word"), ("m3", "LaTeX")],
        "seatsensor": [("m1", "r1", 0.0), ("m2", "r1", 70.0), ("m3", "r2", 80.0)],
        "roomsensor": [("r1", "open", 300.0), ("r2", "closed", 2.0)],
        "machineload": [("m1", 40.0), ("m2", 50.0), ("m3", 60.0)],
    }
    software = {k: v for k, v in tables.items() if k != "machineload"}
    assert answer("free_with_software", **software) == {("m1", "r1", "Word")}
    assert answer("temperature_in_use", **tables) == {("m2", "r1", 50.0)}


def test_a_circle_of_parents_ends() -> None:
    assert answer("subtree_height", parent=[("a", "b"), ("b", "a")]) == {("a", 64), ("b", 64)}
