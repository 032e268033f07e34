"""The retained links equal the engine's rows, after whatever happened."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.intake.links import REPEAT_SECONDS, LinkPublisher, LinkPublishers
from gateway.testing import LINKS, SECOND
from host.mqtt import Message
from host.mqtt.in_memory import InMemoryBroker
from host.mqtt.topic_filters import check_topic
from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import WireError
from streamsql.wire.codec import decode_json
from streamsql.wire.messages import LinkMessage
from streamsql.wire.topics import Topics, level_of, text_of_level

TOPICS = Topics("demo")
LIFE = 60
TIMED = msgspec.structs.replace(LINKS, time_column=3)
"""Its rows say themselves of when they are."""


class Field:
    """A broker, an engine with links, and the publisher between them."""

    def __init__(self, definition: SourceDefinition = LINKS) -> None:
        self.broker = InMemoryBroker()
        self.client = self.broker.client("gw-1")
        self.engine = SiteEngine("gw-1", 1)
        self.engine.declare(definition.scan())
        self.publisher = LinkPublisher("gw-1", definition, self.engine, self.client, TOPICS)
        self.now = 0

    def put(self, src: str, dst: str, cost: float | None = 1.0, *, delete: bool = False) -> None:
        event = SourceEvent((src, dst, cost, self.now), self.now, delete)
        self.engine.ingest("link", [event])

    async def publish(self) -> dict[tuple[str, str], LinkMessage]:
        """Step, publish, and return what is retained then."""
        self.engine.step(self.now)
        self.publisher.publish_changes()
        await self.broker.settle()
        return self.retained()

    def retained(self) -> dict[tuple[str, str], LinkMessage]:
        found = {}
        for topic, message in self.broker.retained.items():
            _, _, kind, relation, *ends = TOPICS.parts(topic)
            if (kind, relation) == ("link", "link"):
                link = decode_json(message.payload, LinkMessage)
                assert [link.source, link.target] == list(map(text_of_level, ends))
                found[link.source, link.target] = link
        return found

    def rows(self) -> dict[tuple[str, str], LinkMessage]:
        return {
            (str(src), str(dst)): LinkMessage(
                str(src), str(dst), cast("float | None", cost), {"ts": f"1970-01-01T{_clock(ts)}Z"}
            )
            for src, dst, cost, ts in self.engine.source_rows("link")
        }


def _clock(ts: Any) -> str:
    seconds = ts // SECOND
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def run(scenario: Callable[[Field], Coroutine[Any, Any, None]], *definition: Any) -> None:
    async def whole() -> None:
        field = Field(*definition)
        await field.client.connect()
        await scenario(field)
        await field.client.close()

    asyncio.run(whole())


def test_a_link_is_published_as_net_json_and_cleared_when_it_is_gone() -> None:
    async def scenario(field: Field) -> None:
        field.put("a", "b", 1.5)
        retained = await field.publish()
        assert retained == {("a", "b"): LinkMessage("a", "b", 1.5, {"ts": "1970-01-01T00:00:00Z"})}
        field.put("a", "b", delete=True)
        assert await field.publish() == {}

    run(scenario)


def test_an_expired_link_is_cleared() -> None:
    async def scenario(field: Field) -> None:
        field.put("a", "b")
        assert len(await field.publish()) == 1
        field.now = LIFE * SECOND
        assert await field.publish() == {}

    run(scenario)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            st.sampled_from("ab"),
            st.sampled_from("bc"),
            st.sampled_from([1.0, 2.0, None]),
        ),
        st.tuples(st.just("delete"), st.sampled_from("ab"), st.sampled_from("bc")),
        st.tuples(st.just("wait"), st.integers(1, LIFE)),
        st.tuples(st.just("publish")),
        st.tuples(st.just("cut")),
        st.tuples(st.just("forget")),
    ),
    max_size=25,
)


@given(ACTIONS, st.sampled_from([LINKS, TIMED]))
def test_after_any_sequence_the_retained_links_are_the_engines_rows(
    actions: list[Any], definition: SourceDefinition
) -> None:
    async def scenario(field: Field) -> None:
        for action, *arguments in actions:
            if action == "put":
                field.put(*arguments)
            elif action == "delete":
                field.put(*arguments, delete=True)
            elif action == "wait":
                field.now += arguments[0] * SECOND
            elif action == "publish":
                await field.publish()
            elif action == "cut":
                field.broker.cut("gw-1")
                await field.publish()
                field.broker.restore("gw-1")
            else:
                field.publisher.forget()
        retained, rows = await field.publish(), field.rows()
        if definition.time_column is None:
            assert retained == rows
        else:
            assert _without_times(retained) == _without_times(rows)
            assert all(
                str(retained[ends].properties) <= str(rows[ends].properties) for ends in rows
            )

    run(scenario, definition)


def _without_times(links: dict[tuple[str, str], LinkMessage]) -> dict[tuple[str, str], LinkMessage]:
    return {ends: msgspec.structs.replace(link, properties={}) for ends, link in links.items()}


def test_a_link_that_is_heard_again_as_it_was_is_not_published_again() -> None:
    async def scenario(field: Field) -> None:
        heard: list[Message] = []
        reader = field.broker.client("reader")
        reader.on_messages(heard.extend)
        await reader.connect()
        await reader.subscribe(TOPICS.link())
        for now in range(0, LIFE, 5):
            field.now = now * SECOND
            field.put("a", "b", 1.5)
            field.put("a", "c", 1.5 if now < 30 else 2.5)
            await field.publish()
        told = [decode_json(message.payload, LinkMessage) for message in heard]
        assert [(link.target, link.cost) for link in told] == [("b", 1.5), ("c", 1.5), ("c", 2.5)]
        assert told[-1].properties == {"ts": "1970-01-01T00:00:30Z"}
        field.now = (2 * LIFE - 5) * SECOND
        assert await field.publish() == {}, "it lives as long as it is heard"
        await reader.close()

    run(scenario, TIMED)


def test_all_links_are_repeated_now_and_then() -> None:
    async def scenario(field: Field) -> None:
        publishers = LinkPublishers("gw-1", field.engine, field.client, TOPICS)
        publishers.define([TIMED])
        for target in "bc":
            field.put("a", target)
        field.engine.step(field.now)
        heard: list[float] = []
        reader = field.broker.client("reader")
        now = 50.0
        reader.on_messages(lambda burst: heard.extend([now] * len(burst)))
        await reader.connect()
        await reader.subscribe(TOPICS.link())
        while now < 50.0 + 3.5 * REPEAT_SECONDS:
            publishers.publish_changes(now)
            await field.broker.settle()
            now += REPEAT_SECONDS / 10
        again = [50.0 + number * REPEAT_SECONDS for number in range(4)]
        assert heard == [moment for moment in again for _ in "bc"]
        await reader.close()

    run(scenario, TIMED)


def test_links_of_an_earlier_life_are_cleared_once_they_are_found() -> None:
    async def scenario(field: Field) -> None:
        for target in ("gone", "kept"):
            field.client.publish(TOPICS.link("gw-1", "link", "a", target), b"{}", retain=True)
        field.put("a", "kept")
        assert field.publisher.found(("link", "a", "gone"))
        assert field.publisher.found(("link", "a", "kept"))
        assert not field.publisher.found(("a", "gone")), "of an earlier version"
        assert not field.publisher.found(("cable", "a", "gone")), "of another source"
        assert await field.publish() == field.rows()

    run(scenario)


ENDS = ("b", "c/d", "+", "#", "", "%", "%20", "aa:bb:cc", "10.0.0.1", "x" * 400, "Größe $1\n\0")


def test_ends_of_any_kind_have_a_topic_of_their_own() -> None:
    async def scenario(field: Field) -> None:
        for target in ENDS:
            field.put("a", target)
        assert set(await field.publish()) == {("a", target) for target in ENDS}
        for target in ENDS:
            field.put("a", target, delete=True)
        assert await field.publish() == {}

    run(scenario)


def test_ends_that_are_too_long_for_a_topic_are_left_out_and_the_others_pass(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(field: Field) -> None:
        for target in ("b", "x" * 401):
            field.put("a", target)
        assert set(await field.publish()) == {("a", "b")}
        await field.publish()

    run(scenario)
    assert caplog.text.count("is not published") == 1


@given(st.text(max_size=30))
def test_a_level_says_what_it_was_made_of_and_stays_one_level(text: str) -> None:
    assume(all(not 0xD800 <= ord(letter) < 0xE000 for letter in text))
    level = level_of(text)
    check_topic(f"a/{level}")
    assert "/" not in level
    assert text_of_level(level) == text


@pytest.mark.parametrize("level", ["%2f", "%61", "a b", "%", "%%", "%ff", "ä", "", "x" * 401])
def test_only_one_level_stands_for_a_text(level: str) -> None:
    """Else two topics could name one link."""
    if level == "%":
        assert not text_of_level(level)
        return
    with pytest.raises(WireError, match="is not the name of a link"):
        text_of_level(level)


def test_two_sources_of_one_gateway_keep_apart_what_they_publish() -> None:
    """As one radio link and one cable between the same two ends."""
    cables = msgspec.structs.replace(LINKS, name="cable")

    async def scenario(field: Field) -> None:
        field.engine.declare(cables.scan())
        other = LinkPublisher("gw-1", cables, field.engine, field.client, TOPICS)
        field.put("a", "b", 1.0)
        field.engine.ingest("cable", [SourceEvent(("a", "b", 7.0, 0), 0)])
        assert (await field.publish())["a", "b"].cost == 1.0
        other.publish_changes()
        await field.broker.settle()
        cable = TOPICS.link("gw-1", "cable", "a", "b")
        assert decode_json(field.broker.retained[cable].payload, LinkMessage).cost == 7.0
        field.put("a", "b", delete=True)
        assert await field.publish() == {}
        assert cable in field.broker.retained, "the cable is still there"

    run(scenario)


def test_links_of_equal_ends_are_told_apart_by_the_rest_of_their_key() -> None:
    schema = Schema.of(
        ("src", DataType.TEXT), ("dst", DataType.TEXT), ("channel", DataType.INTEGER)
    )
    definition = SourceDefinition("link", SourceKind.LINK, schema, key=(0, 1, 2))

    async def scenario(field: Field) -> None:
        rows = [("a", "b", 11), ("a", "b", 26)]
        field.engine.ingest("link", [SourceEvent(row, 0) for row in rows])
        field.engine.step(0)
        field.publisher.publish_changes()
        await field.broker.settle()
        assert {topic.rsplit("/", 3)[-1] for topic in field.broker.retained} == {"11", "26"}

    run(scenario, definition)


def test_a_full_queue_only_delays() -> None:
    async def scenario(field: Field) -> None:
        small = field.broker.client("small", max_pending=3)
        await small.connect()
        field.publisher.client = small
        for number in range(10):
            field.put("a", f"b{number}")
        for _ in range(5):
            await field.publish()
        assert field.retained() == field.rows()
        await small.close()

    run(scenario)


def test_a_cost_that_is_no_number_stays_a_property() -> None:
    schema = Schema.of(
        ("src", DataType.TEXT),
        ("dst", DataType.TEXT),
        ("cost", DataType.TEXT),
        ("ok", DataType.BOOLEAN),
    )
    definition = SourceDefinition("link", SourceKind.LINK, schema, key=(0, 1))

    async def scenario(field: Field) -> None:
        field.engine.ingest("link", [SourceEvent(("a", "b", "dear", True), 0)])
        assert await field.publish() == {
            ("a", "b"): LinkMessage("a", "b", None, {"cost": "dear", "ok": True})
        }

    run(scenario, definition)


def test_a_cost_that_has_changed_a_little_is_not_published_until_all_are() -> None:
    async def scenario(field: Field) -> None:
        def cost() -> float | None:
            return field.retained()["a", "b"].cost

        field.put("a", "b", 1.0)
        await field.publish()
        for near in (1.05, 0.95, 1.09):
            field.put("a", "b", near)
            await field.publish()
            assert cost() == 1.0
        field.put("a", "b", 1.2)
        await field.publish()
        assert cost() == 1.2
        field.put("a", "b", 1.25)
        await field.publish()
        field.publisher.forget()
        await field.publish()
        assert cost() == 1.25

    run(scenario)
