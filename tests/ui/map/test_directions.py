"""Directions as queries: only known places and packages, quoted, and accepted by the binder."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.errors import DeploymentError
from ui.map.directions import Wish, literal, path_query, route_query
from ui.map.site_map import SiteMap

SITE = SiteMap(
    rooms={"L101": "gw-1", "it's": "gw-1"}, software=("LaTeX", "Word's"), nodes=("1", "2")
)


def test_the_route_query_names_place_and_package() -> None:
    text = route_query(Wish("L101", "LaTeX"), SITE)
    assert "FROM Rooms WHERE rid = 'L101'" in text
    assert "s.software = 'LaTeX'" in text
    assert "wheelchair" not in text
    assert "AND e.wheelchair" in route_query(Wish("L101", "LaTeX", wheelchair=True), SITE)


def test_a_badge_starts_where_it_is_heard() -> None:
    text = route_query(Wish("badge-2", "LaTeX"), SITE)
    assert "FROM VisitorPosition WHERE tag = 'badge-2'" in text


@pytest.mark.parametrize(
    ("start", "target"),
    [
        ("L999", "LaTeX"),
        ("L101", "Minesweeper"),
        ("badge-1' OR 'a' = 'a", "LaTeX"),
        ("badge-99999", "LaTeX"),
        ("", "LaTeX"),
    ],
)
def test_unknown_wishes_are_refused_by_name(start: str, target: str) -> None:
    with pytest.raises(DeploymentError) as refused:
        route_query(Wish(start, target), SITE)
    assert start in refused.value.message or target in refused.value.message
    assert refused.value.hint


def test_paths_lead_between_two_known_nodes() -> None:
    text = path_query(Wish("1", "2"), SITE)
    assert "WHERE src = '1'" in text
    assert "WHERE node = '2'" in text
    for start, end in (("1", "1"), ("1", "3"), ("'", "2")):
        with pytest.raises(DeploymentError):
            path_query(Wish(start, end), SITE)


@given(st.text())
def test_literals_stay_within_their_quotes(text: str) -> None:
    quoted = literal(text)
    assert quoted[0] == quoted[-1] == "'"
    assert quoted[1:-1].replace("''", "'") == text
    assert quoted[1:-1].replace("''", "").count("'") == 0


def test_every_query_binds(coordinator: Any) -> None:
    texts = [
        route_query(Wish("L101", "Word's"), SITE),
        route_query(Wish("it's", "LaTeX", wheelchair=True), SITE),
        route_query(Wish("badge-1", "LaTeX"), SITE),
        path_query(Wish("1", "2"), SITE),
    ]
    for text in texts:
        assert asyncio.run(coordinator.validate(text)).diagnoses == (), text
