"""Assigning rooms to gateways, and radio links between motes."""

from collections import Counter
from dataclasses import replace
from math import hypot

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapely import box

from building.furnishing.gateway_areas import NEIGHBOURS, assign_gateways, radio_links, split_evenly
from building.model.site_model import Level, Mote, Site, SiteError, Space, SpaceKind


@given(st.dictionaries(st.text("abcdef", min_size=1), st.integers(1, 50), min_size=1), st.data())
def test_runs_keep_order_and_are_balanced(weights: dict[str, int], data: st.DataObject) -> None:
    items = list(weights)
    parts = data.draw(st.integers(1, len(items)))
    runs = split_evenly(items, weights, parts)
    assert [item for run in runs for item in run] == items
    assert len(runs) == parts
    assert all(runs)
    if parts * 2 <= len(items):
        heaviest = max(sum(weights[item] for item in run) for run in runs)
        assert heaviest <= sum(weights.values()) / parts + 2 * max(weights.values())


@pytest.mark.parametrize("gateways", [1, 2, 3, 4, 7, 20])
def test_every_room_and_its_sensors_have_one_gateway(sample: Site, gateways: int) -> None:
    owned = assign_gateways(sample, gateways)
    assert set(owned.gateways) == {space.id for space in sample.spaces}
    assert set(owned.gateways.values()) == {f"gw-{n}" for n in range(1, gateways + 1)}
    loads = Counter(owned.gateways[sensor.room] for sensor in sample.sensors)
    assert max(loads.values()) <= 1.6 * sum(loads.values()) / gateways + 45


def test_three_gateways_own_a_level_each(sample: Site) -> None:
    owned = assign_gateways(sample, 3)
    levels = {(owned.gateways[space.id], space.level) for space in sample.spaces}
    assert levels == {("gw-1", 0), ("gw-2", 1), ("gw-3", 2)}


def test_more_gateways_slice_levels_from_left_to_right(sample: Site) -> None:
    owned = assign_gateways(sample, 6)
    for gateway in set(owned.gateways.values()):
        spaces = [s for s in sample.spaces if owned.gateways[s.id] == gateway]
        assert len({s.level for s in spaces}) == 1
    for level in range(3):
        swept = sorted((s for s in sample.spaces if s.level == level),
                       key=lambda s: (s.polygon.centroid.x, s.id))  # fmt: skip
        owners = [owned.gateways[s.id] for s in swept]
        assert owners == sorted(owners)


def test_a_crowded_level_is_shared_with_its_neighbours() -> None:
    spaces = [
        Space(f"R{level}-{i}", "", SpaceKind.ROOM, level, box(5 * i, 0, 5 * i + 5, 5))
        for level, rooms in ((0, 2), (1, 40), (2, 2))
        for i in range(rooms)
    ]
    site = Site("tower", None, tuple(Level(n, str(n)) for n in range(3)), tuple(spaces))
    counts = Counter(assign_gateways(site, 3).gateways.values())
    assert max(counts.values()) <= 16


@pytest.mark.parametrize("gateways", [0, -1, 65, 1000])
def test_numbers_of_gateways_that_are_refused(sample: Site, gateways: int) -> None:
    with pytest.raises(SiteError, match=f"{gateways} gateways asked for"):
        assign_gateways(sample, gateways)


def test_more_gateways_than_rooms_are_refused() -> None:
    room = Space("R", "R", SpaceKind.ROOM, 0, box(0, 0, 5, 5))
    site = Site("hut", None, (Level(0, "0"),), (room,))
    with pytest.raises(SiteError, match="only 1 rooms"):
        assign_gateways(site, 2)


def test_motes_hear_near_ones_and_through_a_slab_only_those_above() -> None:
    motes = [
        Mote("a", "A", 0, 0, 0),
        Mote("b", "B", 20, 0, 0),
        Mote("far", "F", 41, 0, 0),
        Mote("above", "U", 3, 3, 1),
        Mote("aslant", "V", 6, 0, 1),
        Mote("two-up", "W", 0, 0, 2),
    ]
    links = {(link.src, link.dst): link.distance for link in radio_links(motes)}
    assert set(links) == {("a", "b"), ("a", "above"), ("above", "aslant"), ("above", "two-up")}
    assert links["a", "b"] == 20
    assert links["a", "above"] == pytest.approx(hypot(3, 3, 3.5), abs=0.001)


def test_the_radio_of_the_sample_building_is_connected_and_sparse(sample: Site) -> None:
    links = assign_gateways(sample, 3).radio
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(mote.id for mote in sample.motes)
    graph.add_edges_from((link.src, link.dst) for link in links)
    assert nx.is_connected(graph)
    assert len(links) <= NEIGHBOURS * len(sample.motes)
    assert {mote.room for mote in sample.motes} == {space.id for space in sample.spaces}


def test_sites_without_rooms_keep_their_links() -> None:
    motes = tuple(Mote(str(i), None, float(i), 0, 0) for i in range(4))
    site = Site("testbed", None, (Level(0, "0"),), motes=motes)
    owned = assign_gateways(site, 2)
    assert owned.gateways == {"0": "gw-1", "1": "gw-1", "2": "gw-2", "3": "gw-2"}
    assert owned.radio == replace(site).radio
