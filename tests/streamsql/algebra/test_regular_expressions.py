"""Regular expressions against Python's, and what is refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.algebra.regular_expressions import (
    Pattern,
    RegularExpressionError,
    compile_pattern,
    regexp_like,
    similar_pattern,
)

ATOMS = ("a", "b", ".", "[ab]", "[^a]", r"\d", r"\W", r"\n", r"\.", "[a-c1]", "^", "$")
PATTERNS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(("*", "+", "?", "{2}", "{1,2}", "{0,}"))).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=8,
)


@given(PATTERNS, st.text("abc1.\n", max_size=7))
def test_as_python_has_it(pattern: str, text: str) -> None:
    expected = re.search(pattern.replace("$", r"\Z"), text, re.ASCII) is not None
    assert regexp_like(text, pattern) == expected


@given(PATTERNS, st.text("aAbB1", max_size=5))
def test_both_cases(pattern: str, text: str) -> None:
    python = re.compile(pattern.replace("$", r"\Z"), re.ASCII | re.IGNORECASE)
    assert regexp_like(text, pattern, "i") == (python.search(text) is not None)


@given(st.text("ab_%", max_size=5), st.text("ab", max_size=5))
def test_similar_without_alternatives_is_like(pattern: str, text: str) -> None:
    like = "".join({"%": ".*", "_": "."}.get(c, c) for c in pattern)
    expected = re.fullmatch(like, text) is not None
    assert regexp_like(text, similar_pattern(pattern)) == expected


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a?){30}a{30}b", "(.*a){20}b"])
def test_a_text_costs_its_length(pattern: str) -> None:
    found = Pattern(pattern)
    assert not found.search("a" * 20_000)
    # A step is computed once, however long the text is.
    assert found._kept < 100


def test_a_table_of_steps_is_bounded() -> None:
    found = Pattern("[^x]y")
    for start in range(0x100, 0x30000, 4_000):
        found.search("".join(map(chr, range(start, start + 4_000))).replace("\ud800", "a"))
        assert found._kept <= 24_000


def test_one_long_text_does_not_fill_memory() -> None:
    found = Pattern("[^x]y")
    found.search("".join(map(chr, range(0x10000, 0x1F000))))
    assert found._kept <= 20_001


def test_a_test_that_would_take_too_long_gives_null() -> None:
    assert regexp_like("a" * 1_000_000, "(a{10}b){40}") is None
    assert regexp_like("a" * 100_000, "(a{10}b){40}") is False


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "a)", "[", "[]", "[a", "a**", "a*?", "a++", "*a", "a{2", "a{3,2}", "a{999}",
        "{2}", r"\b", r"(a)\1", "(?=a)", "(?i)a", "[[:alpha:]]", "[b-a]", "\\", "]", "a}", "^*",
        r"\A",
        "(" * 60 + "a" + ")" * 60, "((a{250}){250}){250}", "[a&&b]",
    ],
)  # fmt: skip
def test_what_differs_elsewhere_is_refused(pattern: str) -> None:
    with pytest.raises(RegularExpressionError):
        compile_pattern(pattern)


@given(st.text(max_size=12))
def test_any_text_is_a_pattern_or_refused(pattern: str) -> None:
    try:
        found = compile_pattern(pattern)
    except RegularExpressionError:
        return
    python = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    for text in ("", pattern, "a1 _"):
        assert found.search(text) == (python.search(text) is not None)
