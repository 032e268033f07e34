"""Topic names and filters: validity, and matching against a definition by regular expression."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.mqtt.topic_filters import MAX_LEVELS, check_filter, check_topic, matches, split_shared

_names = st.sampled_from(["a", "bc", "", "$s", "a.b"])
_topics = st.lists(_names, min_size=1, max_size=5).map("/".join).filter(bool)
_filters = (
    st.tuples(st.lists(_names | st.just("+"), max_size=4), st.booleans())
    .map(lambda pair: "/".join([*pair[0], "#"] if pair[1] else pair[0]))
    .filter(bool)
)


def _oracle(topic_filter: str, topic: str) -> bool:
    pattern = re.escape(topic_filter).replace(r"\+", "[^/]*")
    if pattern == r"\#":
        pattern = ".*"
    elif pattern.endswith(r"/\#"):
        pattern = pattern[:-3] + "(/.*)?"
    wildcard_meets_dollar = topic.startswith("$") and topic_filter[0] in "+#"
    return re.fullmatch(pattern, topic) is not None and not wildcard_meets_dollar


@given(_filters, _topics)
def test_matching(topic_filter: str, topic: str) -> None:
    check_filter(topic_filter)
    check_topic(topic)
    assert matches(topic_filter, topic) == _oracle(topic_filter, topic)


@given(_topics)
def test_every_topic_is_a_filter_that_matches_itself(topic: str) -> None:
    check_filter(topic)
    assert matches(topic, topic)


@pytest.mark.parametrize("topic", ["", "a/+", "#", "a\0", "\ud800", "x" * 65_536, "/" * MAX_LEVELS])
def test_topics_one_cannot_publish_on(topic: str) -> None:
    with pytest.raises(ValueError, match="topic"):
        check_topic(topic)


@pytest.mark.parametrize(
    "topic_filter",
    [
        "",
        "a#",
        "#/a",
        "a/#/b",
        "a+",
        "+a/b",
        "a/b+/c",
        "a\0",
        "$share/g",
        "$share//a",
        "$share/+/a",
    ],
)
def test_malformed_filters(topic_filter: str) -> None:
    with pytest.raises(ValueError, match="filter"):
        check_filter(topic_filter)


def test_shared_filters() -> None:
    check_filter("$share/g/a/#")
    assert split_shared("$share/g//a") == ("g", "/a")
    assert split_shared("$sharex/g") == (None, "$sharex/g")
