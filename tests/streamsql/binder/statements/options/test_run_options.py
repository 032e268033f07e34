"""WITH (heuristics = 'no') and its like."""

import re

import pytest

from streamsql.errors import BindingError
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of("CREATE SOURCE r (k TEXT, v INTEGER);")


@pytest.mark.parametrize(("text", "kept"), [("no", False), ("yes", True), (" NO ", False)])
def test_a_query_says_whether_heuristics_are_kept(text: str, kept: bool) -> None:
    bound = bound_query(f"SELECT k FROM r WITH (heuristics = '{text}', plan = 2)", CATALOG)
    assert bound.heuristics is kept
    assert bound.asked == 2


def test_a_query_that_says_nothing_leaves_heuristics_to_the_system() -> None:
    bound = bound_query("SELECT k FROM r WITH (adapt = 'no')", CATALOG)
    assert bound.heuristics is None
    assert not bound.adapts


def test_another_value_is_refused_where_it_stands() -> None:
    text = "SELECT k FROM r WITH (heuristics = 'some')"
    with pytest.raises(
        BindingError, match=re.escape("heuristics is yes or no, not 'some'")
    ) as error:
        bound_query(text, CATALOG)
    assert error.value.code == "bad_option"
    assert error.value.span is not None
    assert text[error.value.span.column - 1 :].startswith("'some'")
