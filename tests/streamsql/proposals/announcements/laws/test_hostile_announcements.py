"""Whatever is announced: nothing raises, and what is proposed binds."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from streamsql.proposals.announcements.announced_sources import proposals_of
from streamsql.proposals.proposing import Asked
from streamsql.proposals.sample import Sample
from tests.streamsql.proposals.test_proposing import NOON, bound

WORDS = st.sampled_from(
    [
        "a",
        "b/c",
        "odd name",
        "ON",
        "{x}",
        "+",
        "#",
        "~",
        "",
        "W",
        "°C",
        "select",
        "x" * 300,
        "'\"\\",
    ]
) | st.text(max_size=6)
VALUES: st.SearchStrategy[Any] = WORDS | st.booleans() | st.integers() | st.none()
EXPOSES = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["numeric", "binary", "enum", "list"]), "property": VALUES},
        optional={"unit": VALUES, "access": VALUES, "value_on": VALUES, "value_off": VALUES},
    ),
    lambda inner: st.fixed_dictionaries(
        {"type": st.just("composite"), "features": st.lists(inner, max_size=3) | VALUES},
        optional={"property": VALUES},
    ),
    max_leaves=6,
)
LISTED = st.fixed_dictionaries(
    {"friendly_name": VALUES},
    optional={
        "definition": st.fixed_dictionaries(
            {"exposes": st.lists(EXPOSES | VALUES, max_size=4)},
            optional={"model": VALUES, "vendor": VALUES, "description": VALUES},
        )
        | VALUES
    },
)
TEMPLATES = st.sampled_from(
    ["{{ value_json.a }}", "{{ value_json['b c'] }}", "{{ value }}", "{{ value_json.a.b | int }}"]
)
CONFIGS = st.fixed_dictionaries(
    {"state_topic": WORDS},
    optional={
        "value_template": TEMPLATES | VALUES,
        "unit_of_measurement": VALUES,
        "device_class": VALUES,
        "payload_on": VALUES,
        "payload_off": VALUES,
        "device": st.dictionaries(st.sampled_from(["name", "model"]), VALUES) | VALUES,
        "availability_topic": VALUES,
        "availability": st.lists(st.dictionaries(st.just("topic"), VALUES), max_size=2) | VALUES,
        "~": VALUES,
    },
)
COMPONENTS = st.sampled_from(["sensor", "binary_sensor", "switch", "lock", "light", "x"])


def message(topic: str, payload: object) -> Sample:
    return Sample(json.dumps(payload).encode(), topic, NOON)


SAMPLES = (
    st.builds(message, st.just("z/bridge/devices"), st.lists(LISTED, max_size=4) | VALUES)
    | st.builds(
        lambda component, name, config: message(f"ha/{component}/n/{name}/config", config),
        COMPONENTS,
        st.sampled_from(["a", "b", "c"]),
        CONFIGS,
    )
    | st.builds(Sample, st.binary(max_size=40), st.just("spBv1.0/g/DBIRTH/n/d"), st.just(NOON))
)


@settings(max_examples=300, deadline=None)
@given(st.lists(SAMPLES, max_size=6))
def test_what_is_proposed_of_announcements_binds_as_it_says(samples: list[Sample]) -> None:
    proposals = proposals_of(samples, Asked("mqtt", "home"))
    assert len({proposal.name for proposal in proposals}) == len(proposals)
    for proposal in proposals:
        definition = bound(proposal)
        assert definition.mapping == proposal.mapping
        assert (definition.key, definition.schema) == (proposal.key, proposal.schema)
