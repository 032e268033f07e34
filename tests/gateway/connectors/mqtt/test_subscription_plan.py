"""Plans of subscriptions, against all topics of a small world."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.mqtt.subscribed_source import SubscribedSource
from gateway.connectors.mqtt.subscription_plan import (
    MAX_CONNECTIONS,
    covers,
    overlap,
    plan_subscriptions,
)
from gateway.connectors.testing.source_statements import definitions_of
from host.mqtt.topic_filters import matches, split_shared
from streamsql.mapping.mapper import Mapper
from tests.gateway.connectors.serving import now

TOPICS = [
    "/".join(levels)
    for length in (1, 2, 3, 4)
    for levels in itertools.product(("a", "b", "$s"), repeat=length)
]
LEVEL = st.sampled_from(["a", "b", "+", "$s"])
FILTERS = st.builds(
    lambda levels, end: "/".join([*levels, *end]),
    st.lists(LEVEL, min_size=0, max_size=3),
    st.sampled_from([["#"], ["a"], ["+"]]),
)
SHARED = st.builds(lambda share, text: share + text, st.sampled_from(["", "$share/g/"]), FILTERS)


def matched(topic_filter: str) -> set[str]:
    plain = split_shared(topic_filter)[1]
    return {topic for topic in TOPICS if matches(plain, topic)}


@given(SHARED, SHARED)
def test_filters_overlap_when_a_topic_matches_both(one: str, other: str) -> None:
    assert overlap(one, other) == bool(matched(one) & matched(other))


@given(FILTERS, FILTERS)
def test_a_filter_covers_another_when_its_topics_are_a_superset(wide: str, narrow: str) -> None:
    if covers(wide, narrow):
        assert matched(wide) >= matched(narrow)


def sources(*patterns: tuple[str, str, str]) -> list[SubscribedSource]:
    """Return sources of (name, topic, other options)."""
    text = ";".join(
        f"CREATE SOURCE {name} (device TEXT FROM '@topic', KEY (device)) "
        f"WITH (connector = 'mqtt', endpoint = 'home', topic = '{topic}'{more})"
        for name, topic, more in patterns
    )
    return [
        SubscribedSource(DeclaredSource(each, Mapper(each), now, {}, print))
        for each in definitions_of(text)
    ]


def planned(*patterns: tuple[str, str, str], named: bool = False) -> list[list[tuple[str, int]]]:
    plan = plan_subscriptions(sources(*patterns), named=named)
    assert not plan.left_out
    return [[(each.topic_filter, each.qos) for each in own] for own in plan.connections]


def test_where_subscriptions_have_names_one_connection_has_all_filters() -> None:
    assert planned(("s", "a/+", ""), ("t", "+/x", ", qos = 0"), ("u", "a/+", ""), named=True) == [
        [("a/+", 1), ("+/x", 0)]
    ]


def test_elsewhere_filters_that_overlap_have_connections_of_their_own() -> None:
    assert planned(
        ("s", "a/+", ", qos = 0"),
        ("t", "+/x", ""),
        ("u", "b", ""),
        ("v", "a/x", ""),
        ("w", "a/+", ", share = 'g'"),
    ) == [[("a/+", 1), ("b", 1)], [("+/x", 1)], [("$share/g/a/+", 1)]]


def test_a_source_that_finds_no_connection_is_left_out() -> None:
    patterns = [(f"s{n}", "/".join(["+"] * n + ["x"] + ["+"] * (9 - n)), "") for n in range(10)]
    plan = plan_subscriptions(sources(*patterns), named=False)
    assert len(plan.connections) == MAX_CONNECTIONS
    assert [each.readers[0][0].source.name for each in plan.left_out] == ["s8", "s9"]


def test_availability_is_read_where_its_filter_is() -> None:
    own = ("s", "a/#", ", availability = 'a/lwt'")
    (both,) = plan_subscriptions(sources(own), named=True).connections
    assert [(each.topic_filter, [role for _, role in each.readers]) for each in both] == [
        ("a/#", [False]),
        ("a/lwt", [True]),
    ]
    (one,) = plan_subscriptions(sources(own), named=False).connections
    assert [(each.topic_filter, [role for _, role in each.readers]) for each in one] == [
        ("a/#", [False, True])
    ]
