"""Doors as gaps along their walls."""

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ui.map.openings import openings

SQUARE = [[0, 0], [10, 0], [10, 6], [0, 6], [0, 0]]


def site(*doors: tuple[float, float, float], level: int = 0) -> dict[str, Any]:
    room = {
        "geometry": {"type": "Polygon", "coordinates": [SQUARE]},
        "properties": {"feature_type": "space", "id": "A", "level": 0},
    }
    made = [
        {
            "geometry": {"type": "Point", "coordinates": [x, y]},
            "properties": {
                "feature_type": "door",
                "id": f"d{n}",
                "level": level,
                "room": "A",
                "to": "B",
                "entrance": n == 0,
                "width": width,
            },
        }
        for n, (x, y, width) in enumerate(doors)
    ]
    return {"features": [room, *made]}


def test_a_door_lies_along_its_wall() -> None:
    (gap,) = openings(site((4, 0, 1.2)), 0)
    assert gap["geometry"]["coordinates"] == [[3.4, 0.0], [4.6, 0.0]]
    assert gap["properties"]["kind"] == "entrance"


def test_doors_of_other_levels_and_doors_off_the_walls_are_left_out() -> None:
    assert openings(site((4, 0, 1.2)), 1) == []
    assert openings(site((5, 3, 1.2)), 0) == []
    assert openings(site((5, 0, 1.2), level=1), 1) == []


@given(st.floats(0, 10), st.floats(0.1, 50))
def test_gaps_are_centred_and_never_wider_than_asked(x: float, width: float) -> None:
    (gap,) = openings(site((x, 6, width)), 0)
    (ax, ay), (bx, by) = gap["geometry"]["coordinates"]
    assert math.isclose((ax + bx) / 2, x, abs_tol=0.002)
    assert math.dist((ax, ay), (bx, by)) <= min(width, 3.0) + 0.002
