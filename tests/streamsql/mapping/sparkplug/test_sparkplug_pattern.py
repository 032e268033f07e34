"""Which nodes and devices a Sparkplug topic means."""

import pytest

from streamsql.mapping.payloads.sparkplug_payload import sparkplug_topic
from streamsql.mapping.sparkplug.sparkplug_pattern import ALL_TOPICS, SparkplugPattern

NODE, DEVICE = "spBv1.0/plant/NDATA/line1", "spBv1.0/plant/DDATA/line1/press"
ALL = {"group": "plant", "node": "line1"}


@pytest.mark.parametrize(
    ("text", "topic_filter", "node", "device"),
    [
        (ALL_TOPICS, "spBv1.0/+/+/+/#", {}, {}),
        ("spBv1.0/plant/#", "spBv1.0/plant/+/+/#", {}, {}),
        ("spBv1.0/plant/+/line1/#", "spBv1.0/plant/+/line1/#", {}, {}),
        ("spBv1.0/plant/DDATA/#", "spBv1.0/plant/+/+/#", None, {}),
        ("spBv1.0/plant/NBIRTH/+", "spBv1.0/plant/+/+/#", {}, None),
        ("spBv1.0/+/+/{line}/{machine}", "spBv1.0/+/+/+/#", None,
         {"line": "line1", "machine": "press"}),
        ("spBv1.0/plant/{kind}/line{n}", "spBv1.0/plant/+/+/#", {"kind": "NDATA", "n": "1"}, None),
        ("spBv1.0/other/#", "spBv1.0/other/+/+/#", None, None),
    ],
)  # fmt: skip
def test_a_topic_means_nodes_devices_or_both(
    text: str, topic_filter: str, node: dict[str, str] | None, device: dict[str, str] | None
) -> None:
    pattern = SparkplugPattern(text)
    assert pattern.filter == topic_filter
    for topic, names, name in ((NODE, node, ""), (DEVICE, device, "press")):
        place = sparkplug_topic(topic)
        assert place is not None
        expected = (
            None
            if names is None
            else {
                **ALL,
                "device": name,
                "birth": False,
                **names,
            }
        )
        assert pattern.facts(place) == expected
        assert pattern.has_node(place.group, place.node) == ("other" not in text)


def test_facts_of_a_device_need_no_message() -> None:
    pattern = SparkplugPattern("spBv1.0/{site}/{kind}/+/#")
    assert pattern.facts_of("plant", "line1", "press") == {
        **ALL,
        "device": "press",
        "site": "plant",
    }
    assert SparkplugPattern("spBv1.0/g/+/n/{machine}").device_facts == {"device", "machine"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tele/{device}", "Sparkplug's topics are spBv1.0/GROUP/TYPE/NODE"),
        ("spBv1.0/plant", "Sparkplug's topics are"),
        ("spBv1.0/a/+/b/c/d", "Sparkplug's topics are"),
        ("spBv1.0/plant/NCMD/line1", "'NCMD' is no type of message"),
        ("spBv1.0/plant/DDATA/line1", "DDATA is a message of a device: add a level"),
        ("spBv1.0/plant/NDATA/line1/press", "NDATA is a message of a node, whose topics have no"),
        ("spBv1.0/#/x", "# is allowed only at the end"),
    ],
)
def test_other_topics_are_refused_in_words(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SparkplugPattern(text)
