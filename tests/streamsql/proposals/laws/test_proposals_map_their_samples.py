"""Whatever devices send: what is proposed parses, binds, and maps what it was made of."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from streamsql.proposals.proposing import Asked, maps, propose
from streamsql.proposals.sample import Sample
from tests.streamsql.proposals.test_proposing import NOON, bound

NAMES = st.sampled_from(
    ["temp", "Temp", "ts", "state", "a.b", 'odd"', "select", "key", "$x", "@y", "1st", "id", "°C"]
) | st.text(max_size=5)
VALUES: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["ON", "OFF", "21.5", "21 °C", "007", "2026-06-01T12:00:00", "1e999", "'"])
    | st.text(max_size=8)
)
OBJECTS = st.recursive(
    st.dictionaries(NAMES, VALUES, max_size=4),
    lambda inner: (
        st.dictionaries(NAMES, VALUES | inner, max_size=4)
        | st.dictionaries(NAMES, VALUES | st.lists(inner, max_size=3), max_size=3)
    ),
    max_leaves=4,
)
LEVELS = st.sampled_from(["tele", "SENSOR", "a", "b", "front door", "{x}", "ch:0", "ch:1", "$SYS"])
TOPICS = st.lists(LEVELS, min_size=1, max_size=3).map("/".join)
PAYLOADS = (
    OBJECTS.map(lambda value: json.dumps(value).encode())
    | st.lists(OBJECTS, max_size=3).map(lambda value: json.dumps(value).encode())
    | VALUES.map(lambda value: json.dumps(value).encode())
    | st.text(max_size=20).map(lambda text: text.encode())
    | st.binary(max_size=20)
)
ONE_SHAPE = st.fixed_dictionaries({"v": st.floats(-1e9, 1e9), "on": st.booleans()})
SAMPLES = st.lists(
    st.builds(Sample, payload=PAYLOADS, topic=TOPICS, arrival=st.just(NOON)), max_size=6
)


@settings(max_examples=400, deadline=None)
@given(SAMPLES, st.booleans())
def test_a_proposal_binds_as_it_says_and_maps_its_samples(
    samples: list[Sample], has_topics: bool
) -> None:
    options = (("topic", "#"),) if has_topics else (("path", "/x"),)
    asked = Asked("mqtt" if has_topics else "http", "home", options=options, zone="Asia/Tokyo")
    proposals = propose(samples, asked)
    assert len({proposal.name for proposal in proposals}) == len(proposals)
    for proposal in proposals:
        definition = bound(proposal)
        assert definition.mapping == proposal.mapping
        assert (definition.key, definition.schema) == (proposal.key, proposal.schema)
        assert len(maps(proposal, samples)) >= proposal.samples > 0


@settings(max_examples=200, deadline=None)
@given(st.lists(ONE_SHAPE, min_size=1, max_size=10))
def test_payloads_of_one_shape_are_one_source_with_a_row_each(payloads: list[Any]) -> None:
    samples = [
        Sample(json.dumps(payload).encode(), f"site/dev{number}/air", NOON)
        for number, payload in enumerate(payloads)
    ]
    (proposal,) = propose(samples, Asked("mqtt", "home", options=(("topic", "site/+/air"),)))
    assert proposal.samples == len(samples)
    assert {column.name for column in proposal.columns} == {"device", "v", "on"}
