"""Which relations say where something is."""

import math

import pytest

from streamsql.data.types import DataType
from ui.map.place_columns import BADGES, DEVICES, MAX_TEXT, Placed, place_columns

TEXT, DOUBLE, INTEGER = DataType.TEXT, DataType.DOUBLE, DataType.INTEGER


def test_a_room_or_a_point_places_a_badge() -> None:
    room = place_columns(("badge", "room", "rssi"), (TEXT, TEXT, DOUBLE), BADGES)
    assert room is not None
    assert room.placed(("ann", "L101", -50.0)) == Placed("ann", "L101", None, None, None, None)
    names = ("Tag", "X", "Y", "Level", "Confidence")
    point = place_columns(names, (INTEGER, DOUBLE, INTEGER, INTEGER, DOUBLE), BADGES)
    assert point is not None
    assert point.placed((7, 1.5, 2, 1, 0.25)) == Placed("7", None, 1, 1.5, 2.0, 0.25)


@pytest.mark.parametrize(
    ("names", "types"),
    [
        (("badge", "rssi"), (TEXT, DOUBLE)),  # no place
        (("room", "x", "y"), (TEXT, DOUBLE, DOUBLE)),  # nothing that is placed
        (("badge", "x"), (TEXT, DOUBLE)),  # half a point
        (("badge", "x", "y"), (TEXT, TEXT, DOUBLE)),  # a point in words
        (("badge", "room"), (DOUBLE, TEXT)),
    ],
)
def test_other_relations_place_nothing(names: tuple[str, ...], types: tuple[DataType, ...]) -> None:
    assert place_columns(names, types, BADGES) is None


def test_the_most_exact_name_counts() -> None:
    found = place_columns(("receiver", "device", "room"), (TEXT, TEXT, TEXT), DEVICES)
    assert found is not None
    assert found.id == 1


def test_values_that_json_lacks_and_long_names_are_cut() -> None:
    names = ("badge", "room", "x", "y", "confidence")
    found = place_columns(names, (TEXT, TEXT, DOUBLE, DOUBLE, DOUBLE), BADGES)
    assert found is not None
    assert found.placed(("a", None, math.nan, 1.0, 0.5)) is None
    assert found.placed((None, "L101", 1.0, 1.0, 0.5)) is None
    placed = found.placed(("a" * 1000, "r" * 1000, math.inf, 1.0, math.nan))
    assert placed == Placed("a" * MAX_TEXT, "r" * MAX_TEXT, None, None, None, None)
