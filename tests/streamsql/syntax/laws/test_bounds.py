"""Texts that are too long, too deep or too wide are refused, quickly and in words."""

import time

import pytest

from streamsql.errors import QueryError
from streamsql.syntax import parse_script, parse_statement
from streamsql.syntax.parse import MAX_TEXT
from streamsql.syntax.statement_parsers.create_statements import MAX_COLUMNS
from tests.streamsql.from_text import query_of


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "brackets are nested"),
        ("SELECT 1 FROM s [" * 2_000, "brackets are nested"),
        ("SELECT " + "NOT " * 5_000 + "TRUE", "nested too deeply"),
        ("SELECT " + "- " * 5_000 + "1", "nested too deeply"),
        ("SELECT " + "+".join(["1"] * 5_000), "nested too deeply"),
        ("SELECT 1 WHERE " + " OR ".join(["a = 1"] * 2_000), "nested too deeply"),
        (" UNION ".join(["SELECT 1"] * 2_000), "nested too deeply"),
        ("SELECT " + "CASE WHEN TRUE THEN " * 300, ""),
        ("SELECT " + "a." * 3_000 + "a", "nested too deeply"),
        ("SELECT " + "f(" * 90 + "1" + ")" * 89, ""),
        ("x" * (MAX_TEXT + 1), "the max is"),
        ("CREATE SOURCE s (" + ", ".join(f"c{n} TEXT" for n in range(MAX_COLUMNS + 9)), "columns"),
        ("INSERT INTO s VALUES " + ", ".join(["(1)"] * 10_001), "10000 rows"),
    ],
)
def test_refused_within_seconds(text: str, message: str) -> None:
    started = time.monotonic()
    with pytest.raises(QueryError) as caught:
        parse_script(text)
    assert message in caught.value.message
    assert time.monotonic() - started < 20


def test_long_but_flat_texts_are_read() -> None:
    values = ", ".join(str(n) for n in range(5_000))
    query_of(f"SELECT a FROM s WHERE a IN ({values})")
    assert len(parse_script("SELECT 1;" * 2_000)) == 2_000


def test_shown_text_is_short() -> None:
    with pytest.raises(QueryError) as caught:
        parse_statement("SELECT 1 FROM s WHERE '" + "x" * 10_000)
    assert caught.value.span is not None
    assert len(caught.value.span.text) <= 80
