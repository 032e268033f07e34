"""Where desks stand."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from shapely import Point, Polygon, box

from building.furnishing.furnishing import CLOSEST, DOOR_DISTANCE, desk_places
from building.walking.walking_graph import middle_of


@given(st.floats(2, 20), st.floats(2, 20), st.integers(0, 12), st.floats(0, 1))
def test_desks_are_free_of_walls_doors_and_each_other(
    width: float, depth: float, count: int, share: float
) -> None:
    room = box(0, 0, width, depth)
    door = room.boundary.interpolate(share, normalized=True)
    desks = desk_places(room, count, [door], middle_of(room))
    assert len(desks) <= count
    assert all(room.buffer(-0.85).contains(desk) for desk in desks)
    assert all(desk.distance(door) >= DOOR_DISTANCE for desk in desks)
    assert all(a.distance(b) >= CLOSEST - 0.02 for a, b in combinations(desks, 2))
    if min(width, depth) >= 8 and count <= 9:
        assert len(desks) == count


def test_desks_fill_the_arms_of_an_l_shaped_room() -> None:
    room = Polygon([(0, 0), (12, 0), (12, 5), (5, 5), (5, 12), (0, 12)])
    desks = desk_places(room, 8, [Point(0, 6)], middle_of(room))
    assert len(desks) == 8
    assert any(desk.x > 6 for desk in desks)
    assert any(desk.y > 6 for desk in desks)


def test_a_cupboard_has_no_desk() -> None:
    assert desk_places(box(0, 0, 1.5, 1.5), 3, [], Point(0.7, 0.7)) == []
