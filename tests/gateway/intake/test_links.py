"""The retained links equal the engine's rows, after whatever happened."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.intake.links import LinkPublisher
from gateway.testing import LINKS, SECOND
from messaging.in_memory import InMemoryBroker
from stream_engine.site import SiteEngine
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.codec import decode_json
from streamsql.wire.messages import LinkMessage
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")
LIFE = 60


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
            _, _, kind, *ends = TOPICS.parts(topic)
            if kind == "link":
                found[ends[0], ends[1]] = decode_json(message.payload, LinkMessage)
        return found

    def rows(self) -> dict[tuple[str, str], LinkMessage]:
        return {
            (str(src), str(dst)): LinkMessage(
                str(src), str(dst), float(cost or 0), {"ts": f"1970-01-01T{_clock(ts)}Z"}
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


@given(ACTIONS)
def test_after_any_sequence_the_retained_links_are_the_engines_rows(actions: list[Any]) -> None:
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
        retained = await field.publish()
        assert retained == field.rows()

    run(scenario)


def test_links_of_an_earlier_life_are_cleared_once_they_are_found() -> None:
    async def scenario(field: Field) -> None:
        for target in ("gone", "kept"):
            field.client.publish(TOPICS.link("gw-1", "a", target), b"{}", retain=True)
        field.put("a", "kept")
        field.publisher.found("a", "gone")
        field.publisher.found("a", "kept")
        assert await field.publish() == field.rows()

    run(scenario)


def test_ends_that_are_no_topic_levels_are_left_out_and_the_others_pass() -> None:
    async def scenario(field: Field) -> None:
        for target in ("b", "c/d", "+", "", "x" * 65):
            field.put("a", target)
        assert set(await field.publish()) == {("a", "b")}

    run(scenario)


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
            ("a", "b"): LinkMessage("a", "b", 0.0, {"cost": "dear", "ok": True})
        }

    run(scenario, definition)
