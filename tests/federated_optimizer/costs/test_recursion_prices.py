"""Prices of the ways of a recursion: against what was measured, and as the choice uses them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer import plan
from federated_optimizer.costs.recursion_prices import (
    PAPER,
    PRODUCT,
    SUPPORT,
    WAYS,
    Encoding,
    Workload,
    alternatives,
    diagram_literals,
    moved_per_change,
    price,
    prices,
)
from federated_optimizer.costs.recursion_workload import recursion_key
from federated_optimizer.network.topology import Topology
from federated_optimizer.statistics.planning_statistics import (
    Homes,
    Placed,
    RecursionFacts,
    SourceFacts,
    Statistics,
)
from streamsql.algebra.choices import Way
from streamsql.algebra.operators import Fixpoint, walk_plan
from streamsql.binder import BoundQuery
from streamsql.errors import UnsupportedError
from tests.streamsql.from_text import bound_query, catalog_of

MEASURED = {
    # Bytes inserting over 12 hosts: witness, annotations (diagrams in depth-first order), flood.
    (200, 100, 2): (0.49e6, 1.35e6, 0.029e6),
    (400, 100, 4): (0.90e6, 4.2e6, 0.057e6),
    (800, 200, 4): (3.9e6, 25.8e6, 0.114e6),
    (1600, 400, 4): (17.1e6, 110e6, 0.23e6),
}
"""performance.md 2.4, by links, nodes and links a node."""

DELETING = {
    # Bytes deleting one link: witness, annotations.
    (400, 100, 4): (0.61e6 / 80, 2.5e6 / 80),
    (800, 200, 4): (2.9e6 / 160, 15.3e6 / 160),
    (1600, 400, 4): (14.5e6 / 320, 20e6 / 69),
}


def built(load: Workload, way: Way, encoding: Encoding = PAPER) -> float:
    """Return the bytes between sites for building the whole view up, row by row.

    For comparing the model with measurements that begin with nothing.
    """
    others = load.sites - 1
    if way == Way.FLOOD:
        return load.base_rows * others * (load.base_bytes + encoding.token + encoding.envelope)
    literals = SUPPORT if way == Way.WITNESS else diagram_literals(load.fan)
    shipped = load.view_rows * load.fan * (1.0 - load.local)
    return shipped * (load.view_bytes + encoding.literal * literals)


def net(
    links: int, nodes: int, fan: int, *, inserts: float = 0.0, deletes: float = 0.0
) -> Workload:
    """Return reachability over a net whose view is every pair of nodes, on 12 hosts."""
    rows = float(nodes * nodes)
    return Workload(
        sites=12,
        base_rows=float(links),
        inserts=inserts,
        deletes=deletes,
        base_bytes=8.0,
        view_rows=rows,
        view_bytes=9.0,
        view_changes=moved_per_change(rows, float(links), float(fan)),
        fan=float(fan),
        local=1 / 12,
        shown=0.0,
    )


@pytest.mark.parametrize("size", MEASURED, ids=str)
def test_building_up_costs_about_what_was_measured(size: tuple[int, int, int]) -> None:
    witness, annotations, flood = MEASURED[size]
    load = net(*size)
    assert built(load, Way.WITNESS, PAPER) == pytest.approx(witness, rel=0.15)
    assert built(load, Way.ANNOTATIONS, PAPER) == pytest.approx(annotations, rel=0.36)
    assert built(load, Way.FLOOD, PAPER) == pytest.approx(flood, rel=0.02)


@pytest.mark.parametrize("size", DELETING, ids=str)
def test_a_deleted_link_costs_about_what_was_measured(size: tuple[int, int, int]) -> None:
    witness, annotations = DELETING[size]
    load = net(*size, deletes=1.0)
    assert price(Way.WITNESS, load, PAPER).bytes_per_second == pytest.approx(witness, rel=0.35)
    assert price(Way.ANNOTATIONS, load, PAPER).bytes_per_second == pytest.approx(
        annotations, rel=0.90
    )


def test_what_the_product_sends_costs_about_what_was_measured() -> None:
    # Bytes between 12 simulated sites, reachability over 400 links: per link, names as text.
    # Messages had 38 bytes around their rows when it was measured.
    then = replace(PRODUCT, envelope=38.0)
    gone = replace(net(400, 100, 4, deletes=1.0), base_bytes=18.0, view_bytes=18.0)
    come = replace(net(400, 100, 4, inserts=1.0), base_bytes=18.0, view_bytes=18.0)
    assert price(Way.WITNESS, gone, then).bytes_per_second == pytest.approx(
        1_164_790 / 80, rel=0.20
    )
    assert price(Way.FLOOD, gone, then).bytes_per_second == pytest.approx(35_200 / 80, rel=0.10)
    assert price(Way.FLOOD, come, then).bytes_per_second == pytest.approx(273_834 / 400, rel=0.10)


def test_in_a_tree_a_deletion_is_its_kills() -> None:
    load = net(200, 100, 2, deletes=1.0)
    assert price(Way.WITNESS, load, PAPER).bytes_per_second == 11 * PAPER.token
    assert alternatives(2.0) == 0.0


@given(
    st.integers(1, 200),
    st.floats(0.001, 1e4),
    st.floats(0, 1e4),
    st.floats(1, 1e6),
    st.floats(0, 1),
)
def test_prices_are_finite_and_grow_with_what_moves(
    sites: int, inserts: float, deletes: float, view: float, local: float
) -> None:
    load = Workload(sites, 400.0, inserts, deletes, 20.0, view, 20.0, 5.0, 4.0, local)
    more = Workload(sites, 400.0, 2 * inserts, 2 * deletes, 20.0, view, 20.0, 5.0, 4.0, local)
    assert [p.way for p in prices(load)] == list(WAYS)
    for one, two in zip(prices(load, PRODUCT), prices(more, PRODUCT), strict=True):
        assert 0 <= one.bytes_per_second <= two.bytes_per_second < float("inf")
        assert one.milliseconds > 0


def test_no_way_has_no_price() -> None:
    with pytest.raises(ValueError, match="no way is chosen yet"):
        price(Way.AUTO, net(400, 100, 4))


# --- the choice ---------------------------------------------------------------------------------

CATALOG = catalog_of(
    "CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, KEY (src, dst)) "
    "WITH (ttl = '90 s');"
    "CREATE SOURCE hot (sensor TEXT, value INTEGER) WITH (ttl = '10 s');",
    library=True,
)

GATEWAYS = Topology({f"gw-{i}": frozenset({"link", "hot"}) for i in range(4)})


def bound(text: str) -> BoundQuery:
    """Bind a query."""
    return bound_query(text, CATALOG)


def key_of(text: str) -> str:
    """Return the key of a query's recursion, as the planner will see it."""
    (made,) = plan(bound(text), GATEWAYS, query="q").recursions
    return made.key


def test_the_centre_is_cheapest_where_everything_is_wanted_at_the_base() -> None:
    (made,) = plan(bound("SELECT * FROM reachable"), GATEWAYS, query="q").recursions
    assert (made.way, made.sites, made.forced, made.measured) == ("centre", ("base",), False, False)
    assert any("400 rows" in text for text in made.assumed)


def test_only_the_way_that_is_possible_is_priced_where_copies_are_counted() -> None:
    text = (
        "WITH RECURSIVE r (a, b, n) AS (SELECT src, dst, 1 FROM link UNION ALL "
        "SELECT r.a, l.dst, r.n + 1 FROM r JOIN link l ON l.src = r.b WHERE r.n < 4) "
        "SELECT * FROM r"
    )
    (made,) = plan(bound(text), GATEWAYS, query="q").recursions
    assert [price.way for price in made.prices] == ["centre"]


def test_what_was_counted_takes_the_place_of_what_is_assumed() -> None:
    key = key_of("SELECT * FROM reachable")
    facts = Statistics(recursions={key: RecursionFacts(50.0, 600.0, 3.0, 2.0)})
    made = plan(bound("SELECT * FROM reachable"), GATEWAYS, query="q", statistics=facts)
    (recursion,) = made.recursions
    assert recursion.measured
    assert recursion.assumed == ()
    assert recursion.prices[0].bytes_per_second == pytest.approx(3.0 * (25 + 18), rel=0.2)


def test_what_was_counted_long_ago_is_said_to_be_assumed() -> None:
    key = key_of("SELECT * FROM reachable")
    for age, words in (
        (599.0, ()),
        (7_260.0, ("reachable: rows and rates as counted 121 min ago",)),
    ):
        known = {key: RecursionFacts(50.0, 600.0, 3.0, 2.0, age)}
        statistics = Statistics(recursions=known)
        text = "SELECT * FROM reachable"
        (made,) = plan(bound(text), GATEWAYS, query="q", statistics=statistics).recursions
        assert made.measured
        assert made.assumed == words


def test_counted_rows_of_a_source_count() -> None:
    few = Statistics(sources={"link": SourceFacts(rows=8.0, changes=0.5)})
    (made,) = plan(bound("SELECT * FROM reachable"), GATEWAYS, query="q", statistics=few).recursions
    (usual,) = plan(bound("SELECT * FROM reachable"), GATEWAYS, query="q").recursions
    assert made.prices[2].bytes_per_second < usual.prices[2].bytes_per_second


def test_a_running_query_changes_its_way_only_for_a_much_cheaper_one() -> None:
    text = "SELECT * FROM reachable"
    (made,) = plan(bound(text), GATEWAYS, query="q").recursions
    costs = {p.way: p.bytes_per_second for p in made.prices}
    assert costs[Way.FLOOD] > 2 * costs[Way.CENTRE]
    (moved,) = plan(
        bound(text),
        GATEWAYS,
        query="q",
        statistics=Statistics(placed={made.key: Placed(Way.FLOOD, ("gw-0",))}),
    ).recursions
    assert moved.way == "centre"
    assert "its current way, costs" in moved.why
    # Where the view hardly moves, sending base rows to two others or to one is nearly the same.
    near = Topology({f"gw-{i}": frozenset({"link"}) for i in range(3)})
    slow = RecursionFacts(400.0, 10_000.0, 1.0, 0.01)
    known = Statistics(recursions={made.key: slow}, placed={made.key: Placed(Way.FLOOD, ("gw-0",))})
    (kept,) = plan(bound(text), near, query="q", statistics=known).recursions
    assert kept.way == "flood"
    assert "would cost more than half of it" in kept.why


@pytest.mark.parametrize("way", ["flood", "witness", "annotations"])
def test_a_forced_way_runs_at_the_gateways_and_is_written_down(way: str) -> None:
    text = f"SELECT dst FROM reachable WHERE src = 'a' WITH (way = '{way}')"
    bundle = plan(bound(text), GATEWAYS, query="q")
    (recursion,) = bundle.recursions
    assert recursion.forced
    (at,) = [f for f in bundle.fragments if f.sites == recursion.sites]
    (node,) = [n for n in walk_plan(at.plan) if isinstance(n, Fixpoint)]
    assert node.choice.way == way
    assert not isinstance(at.plan, Fixpoint)  # the filter runs there too


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("way = 'witness', strategy = 'ranked'", "computes from base rows only"),
        ("way = 'annotations', strategy = 'kernel'", "computes from base rows only"),
        ("way = 'flood', strategy = 'absorption'", "'flood' ships base rows"),
        ("way = 'flood', ship = 'eager'", "'flood' ships base rows"),
    ],
)
def test_ways_and_strategies_that_contradict_each_other_are_refused(
    options: str, message: str
) -> None:
    with pytest.raises(UnsupportedError, match=message):
        plan(bound(f"SELECT * FROM reachable WITH ({options})"), GATEWAYS, query="q")


def test_who_wants_annotations_gets_no_flood() -> None:
    key = key_of("SELECT * FROM reachable")
    slow = RecursionFacts(400.0, 10_000.0, 1.0, 0.01)
    near = Topology({f"gw-{i}": frozenset({"link"}) for i in range(2)})
    known = Statistics(recursions={key: slow})
    for options, way in (("", "flood"), ("WITH (ship = 'eager')", "centre")):
        text = f"SELECT * FROM reachable {options}"
        (made,) = plan(bound(text), near, query="q", statistics=known).recursions
        assert made.way == way


def test_with_one_gateway_there_is_only_the_centre() -> None:
    alone = Topology({"gw-1": frozenset({"link"})})
    text = "SELECT * FROM reachable WITH (way = 'flood')"
    (made,) = plan(bound(text), alone, query="q").recursions
    assert (made.way, made.sites) == ("centre", ("base",))
    assert "fewer than two" in made.why


def test_a_gateway_that_is_absent_takes_no_part() -> None:
    topology = Topology(GATEWAYS.gateways, absent=frozenset({"gw-2"}))
    text = "SELECT * FROM reachable WITH (way = 'flood')"
    bundle = plan(bound(text), topology, query="q")
    (made,) = bundle.recursions
    assert made.sites == ("gw-0", "gw-1", "gw-3")
    assert made.without == ("gw-2",)
    assert all("gw-2" not in f.sites for f in bundle.fragments)


def test_the_same_recursion_has_one_key_whatever_is_asked_of_it() -> None:
    nodes = [
        node
        for text in ("SELECT * FROM reachable", "SELECT src FROM reachable WITH (way = 'flood')")
        for node in walk_plan(bound(text).plan)
        if isinstance(node, Fixpoint)
    ]
    assert len({recursion_key(node) for node in nodes}) == 1


FORWARD = (
    "WITH RECURSIVE r (src, dst) AS (SELECT src, dst FROM link UNION "
    "SELECT r.src, l.dst FROM r JOIN link l ON l.src = r.dst) SELECT src, dst FROM r"
)
"""Every step keeps `src`."""


def test_a_restricted_recursion_reads_all_of_its_base_and_derives_less() -> None:
    """The step reads every link, so the centre is sent as much as without the condition."""
    known = Statistics(sources={"link": SourceFacts(400.0, 4.0)})
    found = [
        {
            p.way: p.bytes_per_second
            for p in plan(bound(text), GATEWAYS, query="q", statistics=known).recursions[0].prices
        }
        for text in (FORWARD, f"{FORWARD} WHERE src = 'a'")
    ]
    whole, restricted = found
    assert restricted[Way.CENTRE] == pytest.approx(whole[Way.CENTRE], rel=0.01)
    assert restricted[Way.WITNESS] < 0.9 * whole[Way.WITNESS]


def test_what_was_counted_for_one_constant_is_taken_for_another() -> None:
    def key(condition: str) -> str:
        text = FORWARD + condition
        return plan(bound(text), GATEWAYS, query="q").recursions[0].key

    a, b = key(" WHERE src = 'a'"), key(" WHERE 'b' = src")
    assert a == b
    assert len({a, key(""), key(" WHERE src <> 'a'"), key(" WHERE src > 'a'")}) == 4


HOMES = Homes({"a": "gw-1", "b": "gw-3", "c": "gw-9"}, local=0.9)


def test_rows_about_an_end_of_links_are_kept_where_its_links_are() -> None:
    text = "SELECT * FROM reachable WITH (way = 'witness')"
    known = Statistics(homes=HOMES)
    bundle = plan(bound(text), GATEWAYS, query="q", statistics=known)
    (at,) = [f for f in bundle.fragments if len(f.sites) == 4 and f.homes]
    assert at.homes == (("a", 1), ("b", 3))
    (near,) = bundle.recursions
    (far,) = plan(bound(text), GATEWAYS, query="q").recursions
    assert near.prices[2].bytes_per_second < 0.5 * far.prices[2].bytes_per_second
    assert near.prices[1] == far.prices[1]


def test_homes_stay_as_long_as_the_sites_do() -> None:
    text = "SELECT * FROM reachable WITH (way = 'witness')"
    (made,) = plan(bound(text), GATEWAYS, query="q").recursions
    before = (("z", 2),)
    placed = {made.key: Placed(Way.WITNESS, made.sites, before)}
    known = Statistics(homes=HOMES, placed=placed)
    bundle = plan(bound(text), GATEWAYS, query="q", statistics=known)
    assert {f.homes for f in bundle.fragments if f.homes} == {before}
    fewer = Topology(GATEWAYS.gateways, absent=frozenset({"gw-0"}))
    bundle = plan(bound(text), fewer, query="q", statistics=known)
    assert {f.homes for f in bundle.fragments if f.homes} == {(("a", 0), ("b", 2))}


def test_what_reads_no_links_has_no_homes() -> None:
    text = (
        "WITH RECURSIVE up (sensor, value) AS (SELECT sensor, value FROM hot UNION "
        "SELECT h.sensor, u.value FROM up u JOIN hot h ON h.value = u.value) "
        "SELECT * FROM up WITH (way = 'witness')"
    )
    bundle = plan(bound(text), GATEWAYS, query="q", statistics=Statistics(homes=HOMES))
    assert bundle.recursions[0].way == "witness"
    assert all(not f.homes for f in bundle.fragments)
