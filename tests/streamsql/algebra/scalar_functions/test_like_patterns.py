"""LIKE against its definition, and the number of steps it takes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsql.algebra.scalar_functions.like_patterns import like, like_pattern, text_behind

TEXTS = st.text("ab%_!", max_size=12)


def by_definition(text: str, pattern: str, escape: str) -> bool | None:
    """The table of all pairs of prefixes, which is SQL's definition and cannot go wrong."""
    symbols: list[tuple[str, bool]] = []
    at = 0
    while at < len(pattern):
        escaped = bool(escape) and pattern[at] == escape
        at += escaped
        if at == len(pattern):
            return None
        symbols.append((pattern[at], not escaped and pattern[at] in "%_"))
        at += 1
    row = [True] + [False] * len(text)
    for symbol, special in symbols:
        if special and symbol == "%":
            following = [any(row[: end + 1]) for end in range(len(row))]
        else:
            same = [(special and symbol == "_") or symbol == c for c in text]
            following = [False] + [row[end] and same[end] for end in range(len(text))]
        row = following
    return row[-1]


@given(TEXTS, TEXTS, st.sampled_from(["", "!", "_", "%", "a"]))
def test_a_text_is_like_a_pattern_where_the_definition_says_so(
    text: str, pattern: str, escape: str
) -> None:
    assert like(text, pattern, escape) == by_definition(text, pattern, escape)


@st.composite
def texts_and_patterns_of_them(draw: st.DrawFn) -> tuple[str, str]:
    """A text, and a pattern of its own characters: most match, or miss by one character."""
    text = draw(st.text("ab", max_size=40))
    wild = draw(st.sampled_from(["_", "_%", "%"]))
    pattern = "".join(draw(st.sampled_from([c, c, *wild])) for c in text)
    missed = draw(st.none() | st.integers(0, len(pattern)))
    if missed is not None:
        pattern = pattern[:missed] + draw(st.sampled_from(["", "a", "b"])) + pattern[missed + 1 :]
    return text, pattern


@settings(max_examples=settings().max_examples * 10)
@given(texts_and_patterns_of_them())
def test_a_text_is_like_a_pattern_made_of_it_where_the_definition_says_so(
    case: tuple[str, str],
) -> None:
    text, pattern = case
    assert like(text, pattern) == by_definition(text, pattern, "")


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("a" * 1_000_000, "%a" * 100_000 + "%b", False),
        ("a" * 1_000_000, "%a_a" * 200 + "%b", False),
        ("a" * 100_000, "%" + "a_" * 4_000 + "b%", False),
        ("ab" * 500_000, "%a_" * 300 + "%b", True),
        ("a" * 5_000, "%" * 5_000 + "b", False),
        ("a" * 1_000_000, "%" + "a" * 500_000 + "b", False),
        ("a" * 1_000_000, "a%" + "_a" * 250_000 + "b", False),
        ("a" * 200, "%a%a%a%a%a%a%a%ab", False),
    ],
)
@pytest.mark.timeout(60)  # a backtracking matcher takes years
def test_hostile_patterns_end(text: str, pattern: str, expected: bool) -> None:
    assert like(text, pattern) is expected


def test_a_pattern_that_cannot_be_tested_quickly_gives_null() -> None:
    assert like("a" * 10, "%" + "a_" * 5_001 + "%") is None
    assert like("a" * 20_000, "a_" * 10_000) is True


@pytest.mark.parametrize(
    ("pattern", "prefix", "longest", "texts"),
    [
        ("abc", "abc", "abc", ("abc",)),
        ("ab%", "ab", "ab", ("ab", "")),
        ("ab%%", "ab", "ab", ("ab", "")),
        ("%ab%", "", "ab", ("", "ab", "")),
        ("a%bcd_", "a", "bcd", None),
        ("_ab%c", "", "ab", None),
        ("_%", "", "", None),
        ("", "", "", ("",)),
    ],
)
def test_texts_of_a_pattern_begin_with_its_prefix_and_have_its_longest_piece(
    pattern: str, prefix: str, longest: str, texts: tuple[str, ...] | None
) -> None:
    found = like_pattern(pattern)
    assert found is not None
    assert (found.prefix, found.longest_piece) == (prefix, longest)
    given_texts = [("abc",), ("ab", ""), ("", "ab", ""), ("",)]
    assert [each for each in given_texts if found.is_of(*each)] == ([texts] if texts else [])


@given(st.text("ab\U0010ffff", max_size=3), st.text("abc\U0010ffff", max_size=4))
def test_texts_with_a_prefix_lie_from_it_up_to_before_the_text_behind(
    prefix: str, text: str
) -> None:
    behind = text_behind(prefix)
    below = behind is None or text < behind
    assert text.startswith(prefix) == (prefix <= text and below)
