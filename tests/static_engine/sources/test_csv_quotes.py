"""Quotes that are not closed, against Python's reader of CSV."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from static_engine.sources.csv_quotes import open_quote


def _is_open(text: str) -> bool:
    try:
        list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        return "unexpected end of data" in str(error)
    return False


FIELD = st.text("ab \n", max_size=3) | st.text('ab",\n', max_size=4).map(
    lambda text: '"' + text.replace('"', '""') + '"'
)
LINE = st.lists(FIELD.filter(lambda f: f.startswith('"') or "\n" not in f), min_size=1).map(
    ",".join
)


@given(
    lines=st.lists(LINE), rest=st.sampled_from(["", '"', '"a', '"a""', 'a,"b\n', 'a"b']),
    size=st.integers(1, 7),
)  # fmt: skip
def test_it_is_open_where_the_reader_misses_its_end(lines: list[str], rest: str, size: int) -> None:
    text = "\n".join([*lines, rest])
    content = text.encode()
    blocks = [content[at : at + size] for at in range(0, len(content), size)]
    found = open_quote(blocks, ",")
    assert (found is not None) == _is_open(text)
    if found is not None:
        assert content[found : found + 1] == b'"'
        assert found >= len(content) - len(rest)
