"""The level syntax of OSM."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from building.model.site_model import SiteError
from building.osm.osm_features import MAX_LEVELS, parse_levels


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("0", (0,)),
        ("-1;0", (-1, 0)),
        ("1-3", (1, 2, 3)),
        ("-2--1", (-2, -1)),
        ("-1-1", (-1, 0, 1)),
        ("-4;0;4", (-4, 0, 4)),
        ("0;0;0", (0,)),
        (" 1 ; 2 ", (1, 2)),
        ("0.5", ()),
        ("0;0.5;1", (0, 1)),
        ("0-0.5", (0,)),
        ("0.5-2.5", (1, 2)),
        ("2.0", (2,)),
    ],
)
def test_accepted(text: str, levels: tuple[int, ...]) -> None:
    assert parse_levels(text, label="f") == levels


@pytest.mark.parametrize(
    "text",
    ["", ";", "ground", "1,2", "3-1", "1--", "--1", "0x1", "1e3", "٣", "1;;2", "9999", "1-999"],
)
def test_refused_with_the_feature_and_the_tag(text: str) -> None:
    with pytest.raises(SiteError, match=r"feature 7.*repeat_on="):
        parse_levels(text, label="feature 7", tag="repeat_on")


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 5)), min_size=1, max_size=5))
def test_ranges_are_sets_of_their_levels(ranges: list[tuple[int, int]]) -> None:
    text = ";".join(f"{low}-{low + more}" if more else str(low) for low, more in ranges)
    expected = {level for low, more in ranges for level in range(low, low + more + 1)}
    assert parse_levels(text, label="f") == tuple(sorted(expected))


@given(st.text(alphabet="0123456789-;. ", max_size=12))
def test_any_text_gives_levels_near_the_ground_or_an_error(text: str) -> None:
    try:
        levels = parse_levels(text, label="f")
    except SiteError as error:
        complaint, levels = str(error), ()
    else:
        complaint = "f: level="
    assert complaint.startswith("f: level=")
    assert list(levels) == sorted(set(levels))
    assert all(abs(level) <= MAX_LEVELS for level in levels)
