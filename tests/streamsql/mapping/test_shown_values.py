"""Values in error texts: short whatever they are."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.mapping.shown_values import shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        (2.5, "2.5"),
        ("a\ud800", r"'a\ud800'"),
        ("x" * 50, "'" + "x" * 40 + "…'"),
        ({}, "an empty object"),
        ({"a": 1, "b": 2}, "an object with the fields 'a', 'b'"),
        ((1,), "an array"),
        (b"x", "a value of type bytes"),
        (Decimal(1), "a value of type Decimal"),
    ],
)
def test_texts(value: object, text: str) -> None:
    assert shown(value) == text


@given(
    st.recursive(
        st.none() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    )
)
def test_a_text_is_short(value: object) -> None:
    assert len(shown(value)) < 170
    shown(value).encode()
    assert len(shown(10**10_000)) < 60
