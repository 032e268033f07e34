"""Subscriptions and the retained set against the plain definition of matching."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.embedded.packets.packets import Message, Options
from broker.embedded.retained import RetainedMessages
from broker.embedded.subscription_tree import Subscriptions
from host.mqtt.topic_filters import matches

_levels = st.sampled_from(["a", "b", "", "$x"])
topics = st.lists(_levels, min_size=1, max_size=4).map("/".join).filter(bool)
filters = (
    st.tuples(
        st.lists(st.sampled_from(["a", "b", "", "$x", "+"]), min_size=1, max_size=3),
        st.booleans(),
    )
    .map(lambda pair: "/".join([*pair[0], "#"] if pair[1] else pair[0]))
    .filter(bool)
)
subscribers = st.sampled_from(["one", "two", "three"])


class SubscriptionMachine(RuleBasedStateMachine):
    """Add, replace and remove subscriptions; every topic must always find the right ones."""

    def __init__(self) -> None:
        super().__init__()
        self.subscriptions: Subscriptions[str] = Subscriptions()
        self.model: dict[tuple[str, str], Options] = {}

    @rule(topic_filter=filters, subscriber=subscribers, qos=st.integers(0, 1), local=st.booleans())
    def add(self, topic_filter: str, subscriber: str, qos: int, local: bool) -> None:
        options = Options(qos, no_local=local)
        self.subscriptions.add(topic_filter, subscriber, options)
        self.model[topic_filter, subscriber] = options

    @rule(topic_filter=filters, subscriber=subscribers)
    def remove(self, topic_filter: str, subscriber: str) -> None:
        self.subscriptions.remove(topic_filter, subscriber)
        self.model.pop((topic_filter, subscriber), None)

    @rule(topic=topics)
    def match(self, topic: str) -> None:
        expected: dict[str, list[Options]] = {}
        for (topic_filter, subscriber), options in self.model.items():
            if matches(topic_filter, topic):
                expected.setdefault(subscriber, []).append(options)
        direct = self.subscriptions.match(topic).direct
        found = dict(direct)
        assert len(found) == len(direct), "each subscriber once"
        assert found.keys() == expected.keys()
        for subscriber, options in found.items():
            assert options.qos == max(o.qos for o in expected[subscriber])
            assert options.no_local == all(o.no_local for o in expected[subscriber])

    @rule()
    def remove_everything(self) -> None:
        for topic_filter, subscriber in self.model:
            self.subscriptions.remove(topic_filter, subscriber)
        self.model.clear()
        assert self.subscriptions.size() == 0, "no branch is left behind"

    @invariant()
    def size_is_bounded_by_what_is_subscribed(self) -> None:
        assert self.subscriptions.size() <= sum(f.count("/") + 1 for f, _ in self.model)


TestSubscriptions = SubscriptionMachine.TestCase


def test_a_shared_group_takes_turns() -> None:
    subscriptions: Subscriptions[str] = Subscriptions()
    for name in ("x", "y", "z"):
        subscriptions.add("$share/g/a/+", name, Options(1))
    subscriptions.add("$share/h/a/b", "x", Options(0))
    route = subscriptions.match("a/b")
    assert route.direct == ()
    assert len(route.shared) == 2
    group = next(g for g in route.shared if len(g.members) == 3)
    first = [next(group.rotation())[0] for _ in range(6)]
    assert sorted(first[:3]) == ["x", "y", "z"]
    assert first[:3] == first[3:]
    for name in ("x", "y", "z"):
        subscriptions.remove("$share/g/a/+", name)
    subscriptions.remove("$share/h/a/b", "x")
    subscriptions.remove("$share/none/a/b", "x")
    assert subscriptions.size() == 0


@given(st.lists(st.tuples(topics, st.sampled_from([b"", b"1", b"22"])), max_size=12), filters)
def test_retained_messages_are_found_by_filter(
    writes: list[tuple[str, bytes]], topic_filter: str
) -> None:
    retained, model = RetainedMessages(100, 1_000), dict[str, bytes]()
    for topic, payload in writes:
        assert retained.store(Message(topic, payload, 0, retain=True))
        model[topic] = payload
    model = {topic: payload for topic, payload in model.items() if payload}
    assert len(retained) == len(model)
    found = retained.find(topic_filter, 0.0)
    assert len(found) == len({m.topic for m in found})
    expected = {t: p for t, p in model.items() if matches(topic_filter, t)}
    assert {m.topic: m.payload for m in found} == expected


def test_the_retained_set_is_bounded() -> None:
    retained = RetainedMessages(max_messages=2, max_bytes=10)
    assert retained.store(Message("a", b"12345", 0))
    assert retained.store(Message("b", b"1234", 0))
    assert not retained.store(Message("c", b"1", 0)), "too many"
    assert not retained.store(Message("b", b"123456", 0)), "too large"
    assert retained.store(Message("b", b"12345", 0))
    retained.remove("a")
    retained.remove("nothing/here")
    assert retained.store(Message("c", b"12345", 0))
    old = retained.get("b")
    assert old is not None
    assert old.payload == b"12345"


def test_an_expired_retained_message_is_forgotten() -> None:
    retained = RetainedMessages(10, 100)
    retained.store(Message("a", b"x", 0, expires_at=5.0))
    assert [m.topic for m in retained.find("#", 4.9)] == ["a"]
    assert retained.find("#", 5.0) == []
    assert len(retained) == 0
