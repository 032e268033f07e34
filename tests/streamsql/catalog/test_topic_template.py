"""Topics made of values: different values have different topics, and none leaves its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.mqtt.topic_filters import check_topic, matches
from streamsql.catalog.topic_template import TopicTemplate, level_text
from streamsql.data.types import DataType

TEXTS = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_different_keys_have_different_topics_below_the_template(
    a: str | None, b: str | None, c: str | None, d: str | None
) -> None:
    template = TopicTemplate("building/desk-{x}/of/{y}")

    def topic(x: str | None, y: str | None) -> str:
        return template.topic([level_text(x, DataType.TEXT), level_text(y, DataType.TEXT)])

    check_topic(topic(a, b))
    assert matches("building/+/of/+", topic(a, b))
    assert matches(template.filter, topic(a, b))
    assert (topic(a, b) == topic(c, d)) == ((a, b) == (c, d))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "1 to 1000"),
        ("a/\0", "printable"),
        ("x" * 1_001, "1 to 1000"),
        ("pando/v1/demo/gw/gw-1/state", "first level"),
        ("$SYS/broker", "first level"),
        ("{room}/free", "first level"),
        ("a/{x}/{x}", "twice"),
        ("a/{x}-{y}", "names 2 columns"),
        ("a/{}", "names no column"),
        ("a/{x", "open brace"),
        ("a/+", "wildcards"),
        ("a/#", "wildcards"),
    ],
)
def test_what_is_no_template_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        TopicTemplate(text)


def test_a_topic_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="characters"):
        TopicTemplate("a/{x}").topic(["x" * 1_000])


def test_values_are_written_as_people_see_them() -> None:
    assert level_text(False, DataType.BOOLEAN) == "false"
    assert level_text(1.5, DataType.DOUBLE) == "1.5"
    assert level_text(2_000_000, DataType.INTERVAL) == "2.0"
    assert level_text("", DataType.TEXT) == "%"
    assert level_text("ä", DataType.TEXT) == "%C3%A4"
