"""Topic patterns: subscriptions, facts, and MQTT's wildcards."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.mapping.topic_pattern import TopicPattern


@pytest.mark.parametrize(
    ("pattern", "subscription", "topic", "facts"),
    [
        ("tele/{device}/SENSOR", "tele/+/SENSOR", "tele/th16/SENSOR", {"device": "th16"}),
        ("tele/{device}/SENSOR", "tele/+/SENSOR", "tele/th16/STATE", None),
        ("tele/{device}/SENSOR", "tele/+/SENSOR", "tele/a/b/SENSOR", None),
        ("tele/{device}/SENSOR", "tele/+/SENSOR", "tele//SENSOR", None),
        ("shelly-{id}/events", "+/events", "shelly-7f/events", {"id": "7f"}),
        ("shelly-{id}/events", "+/events", "other-7f/events", None),
        ("{a}-{b}", "+", "x-y-z", {"a": "x", "b": "y-z"}),
        ("a/+/c", "a/+/c", "a//c", {}),
        ("a/+/c", "a/+/c", "a/b/b/c", None),
        ("a/#", "a/#", "a", {}),
        ("a/#", "a/#", "a/b/c", {}),
        ("a/#", "a/#", "ab", None),
        ("{site}/#", "+/#", "north/x", {"site": "north"}),
        ("#", "#", "a/b", {}),
        ("#", "#", "$SYS/x", None),
        ("+/x", "+/x", "$SYS/x", None),
        ("{a}/x", "+/x", "$SYS/x", None),
        ("a.c/d", "a.c/d", "abc/d", None),
    ],
)
def test_patterns(
    pattern: str, subscription: str, topic: str, facts: dict[str, str] | None
) -> None:
    parsed = TopicPattern(pattern)
    assert parsed.filter == subscription
    assert parsed.facts(topic) == facts


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "1 to 1000 characters"),
        ("a\0", "no NUL"),
        ("x" * 1_001, "1 to 1000"),
        ("{a}/{a}", "twice"),
        ("#/a", "at the end"),
        ("a+/b", "be alone"),
        ("{a}+", "be alone"),
        ("{a}{b}", "text between"),
        ("{a b}", "no name"),
        ("{}", "no name"),
        ("{a", "brace"),
        ("{a}-{b}-{c}", "more than 2"),
    ],
)
def test_wrong_patterns_are_told(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TopicPattern(pattern)


LEVEL = st.text("ab$", min_size=1, max_size=3)


def matches(levels: list[str], topic: list[str]) -> bool:
    """Whether a filter matches a topic, level by level as in MQTT."""
    if levels[0] in {"+", "#"} and topic[0].startswith("$"):
        return False
    for position, level in enumerate(levels):
        if level == "#":
            return True
        if position == len(topic) or level not in {"+", topic[position]}:
            return False
    return len(levels) == len(topic)


@given(
    st.lists(LEVEL | st.just("+"), min_size=1, max_size=4),
    st.booleans(),
    st.lists(LEVEL, min_size=1, max_size=4),
)
def test_wildcards_match_as_in_mqtt(levels: list[str], rest: bool, topic: list[str]) -> None:
    levels = [*levels, "#"] if rest else levels
    found = TopicPattern("/".join(levels)).facts("/".join(topic))
    expected = matches(levels, topic) or (rest and matches(levels[:-1], topic))
    assert (found is not None) == expected


@given(st.text(max_size=40))
def test_any_topic_matches_or_not(topic: str) -> None:
    facts = TopicPattern("a-{x}/{y}").facts(topic)
    assert facts is None or f"a-{facts['x']}/{facts['y']}" == topic


def test_hostile_topics_take_no_time() -> None:
    pattern = TopicPattern("{a}-{b}x/c")
    began = time.process_time()
    for _ in range(20):
        assert pattern.facts("-" * 998 + "/c") is None
    assert pattern.facts("a-" + "x" * 1_000 + "/c") is None
    assert time.process_time() - began < 5
