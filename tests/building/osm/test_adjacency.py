"""Shared walls between rooms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapely import Point, Polygon, box

from building.osm.adjacency import WALL_THICKNESS, shared_wall


def test_the_middle_of_the_wall_two_rooms_have_in_common() -> None:
    wall = shared_wall(box(0, 0, 4, 4), box(4, 1, 8, 9))
    assert wall is not None
    assert wall.length == pytest.approx(3)
    assert wall.middle == Point(4, 2.5)


def test_a_gap_as_wide_as_a_wall_does_not_matter() -> None:
    wall = shared_wall(box(0, 0, 4, 4), box(4.3, 0, 8, 4))
    assert wall is not None
    assert wall.middle.distance(Point(4, 2)) < 0.1


@pytest.mark.parametrize(
    "other",
    [box(4, 4, 8, 8), box(4.7, 0, 8, 4), box(4, 3.5, 8, 8), box(4.2, 4.2, 8, 8)],
    ids=["touches at a corner", "too far", "touches for half a metre", "diagonal"],
)
def test_no_wall_is_shared(other: Polygon) -> None:
    assert shared_wall(box(0, 0, 4, 4), other) is None


def test_rooms_side_by_side_at_a_third_wall_share_only_their_own() -> None:
    wall = shared_wall(box(0, 0, 4, 4), box(4, 0, 8, 4))
    assert wall is not None
    assert wall.length == pytest.approx(4)
    assert wall.middle == Point(4, 2)


def test_a_kiosk_has_its_door_in_the_middle_of_its_longest_side() -> None:
    kiosk = box(3, 3, 5, 7)
    hall = box(0, 0, 10, 10).difference(kiosk)
    assert isinstance(hall, Polygon)
    wall = shared_wall(kiosk, hall)
    assert wall is not None
    assert wall.length == pytest.approx(4)
    assert wall.middle in {Point(3, 5), Point(5, 5)}


def test_a_round_room_shares_its_whole_outline() -> None:
    room = Point(0, 0).buffer(2)
    hall = box(-5, -5, 5, 5).difference(room)
    assert isinstance(hall, Polygon)
    wall = shared_wall(room, hall)
    assert wall is not None
    assert room.boundary.distance(wall.middle) < 0.01


@given(st.floats(-3, 7), st.floats(0, 1), st.floats(1, 6))
def test_the_wall_is_as_long_as_the_overlap(low: float, gap: float, height: float) -> None:
    """Two boxes side by side: the shared wall is the overlap of their y ranges."""
    overlap = min(4, low + height) - max(0, low)
    wall = shared_wall(box(0, 0, 4, 4), box(4 + gap, low, 8, low + height))
    if gap > WALL_THICKNESS or overlap < 0.4:
        assert wall is None
    elif overlap > 1.3:
        assert wall is not None
        assert wall.length == pytest.approx(overlap, abs=0.45)
        assert wall.middle.x == pytest.approx(4, abs=0.001)
