"""Places in a script: lines and columns as an editor counts them."""

from hypothesis import given
from hypothesis import strategies as st

from streamsql.syntax.script_places import Script


@given(text=st.text("ab \n", max_size=12), start=st.integers(-2, 14))
def test_line_and_column_of_an_offset(text: str, start: int) -> None:
    before = text[: max(0, start)]
    place = Script(text).span(start, start)
    assert place.line == len(before.split("\n"))
    assert place.column == len(before.split("\n")[-1]) + 1
