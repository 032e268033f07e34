"""Field paths: what they read, where an error is, and that no payload makes them raise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.mapping.field_path import (
    MISSING,
    compile_getter,
    elements_of,
    fact_name,
    parse_field_path,
)

DOCUMENT = {"a": {"b": [{"c": 1}, {"c": 2}]}, "odd.name": 3, "switch:0": {"on": True}, "": 4}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b[0].c", 1),
        ("a.b[-1].c", 2),
        ('["odd.name"]', 3),
        ('a["b"][1]["c"]', 2),
        ("switch:0.on", True),
        ('[""]', 4),
        (".", DOCUMENT),
        ("$", DOCUMENT),
        ("$.a.b[0].c", 1),
        ('$["odd.name"]', 3),
        ("a.b[2].c", MISSING),
        ("a.b[-3].c", MISSING),
        ("a.b.c", MISSING),
        ("a.x.y.z", MISSING),
        ("a.b[0].c.d", MISSING),
        ("switch:0.on.x", MISSING),
        ("x", MISSING),
        ("a[0]", MISSING),
    ],
)
def test_a_path_reads(path: str, value: object) -> None:
    assert compile_getter(parse_field_path(path).steps)(DOCUMENT) is value or (
        compile_getter(parse_field_path(path).steps)(DOCUMENT) == value
    )


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("a..b", 3),
        (".a", 1),
        ("a.", 3),
        ("a[x]", 2),
        ("a[0]b", 5),
        ("$a", 2),
        ('a["b]', 2),
        (" a", 1),
    ],
)
def test_an_error_says_where(path: str, place: int) -> None:
    with pytest.raises(ValueError, match=f"at character {place}$"):
        parse_field_path(path)


def test_paths_are_bounded() -> None:
    with pytest.raises(ValueError, match="1001 characters"):
        parse_field_path("a" * 1001)
    with pytest.raises(ValueError, match="65 steps"):
        parse_field_path("[0]" * 65)
    with pytest.raises(ValueError, match="empty"):
        parse_field_path("")


def test_facts_begin_with_an_at_sign() -> None:
    assert fact_name("@topic") == "topic"
    assert fact_name("topic") is None
    with pytest.raises(ValueError, match="@topic"):
        fact_name("@a b")


@pytest.mark.parametrize(
    ("path", "elements"),
    [
        ("a.b", [(0, {"c": 1}), (1, {"c": 2})]),
        ("a.b[*].c", [(0, 1), (1, 2)]),
        ("a[*][*]", [(0, {"c": 1}), (1, {"c": 2})]),
        ('["switch:0"]', [("on", True)]),
        ("x[*]", []),
        ("a.b[*].x", []),
    ],
)
def test_elements_have_their_key_or_index(path: str, elements: list[tuple[object, object]]) -> None:
    steps = parse_field_path(path, with_elements=True).steps
    assert list(elements_of(DOCUMENT, steps)) == elements


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=8,
)
STEPS = st.lists(st.sampled_from(["a", "b", 0, 1, -1]), max_size=4).map(tuple)


@given(JSON, STEPS)
def test_a_getter_says_what_a_plain_walk_says(
    document: object, steps: tuple[str | int, ...]
) -> None:
    expected = document
    for step in steps:
        if isinstance(expected, dict) and step in expected:
            expected = expected[step]
        elif isinstance(expected, list) and isinstance(step, int):
            places = range(len(expected))
            expected = (
                expected[step]
                if step % max(len(expected), 1) in places
                and (-len(expected) <= step < len(expected))
                else MISSING
            )
        else:
            expected = MISSING
        if expected is MISSING:
            break
    assert compile_getter(steps)(document) is expected


@given(st.text(max_size=12) | st.text('ab.[]"*0-$\\', max_size=12))
def test_no_text_makes_parsing_raise_but_value_error(text: str) -> None:
    try:
        path = parse_field_path(text, with_elements=True)
    except ValueError:
        return
    assert len(list(elements_of(DOCUMENT, path.steps))) < 10
