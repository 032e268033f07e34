"""Nodes of one connector are asked over its connection; who does not answer is reported."""

import asyncio

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.mqtt.sparkplug_nodes import SparkplugNodes
from gateway.connectors.reading import Reading
from gateway.connectors.testing.source_statements import definitions_of
from streamsql.mapping.mapper import Mapper
from streamsql.mapping.sparkplug.sparkplug_pattern import ALL_TOPICS
from tests.gateway.connectors.mqtt.test_sparkplug_source import KEYED, SECOND, withdrawn
from tests.gateway.connectors.serving import in_loop, until
from tests.streamsql.mapping.sparkplug.written import NOON, bd_seq, level, temp, written


class World:
    """Nodes with one source, and a clock."""

    def __init__(self, memory: object = None) -> None:
        self.now = NOON * 1_000
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.emitted: list[Reading] = []
        self.published: list[str] = []
        (definition,) = definitions_of(KEYED)
        source = DeclaredSource(
            definition, Mapper(definition), lambda: self.now, {}, self.problems.append
        )
        context = ConnectorContext(
            gateway="gw",
            endpoint_name="home",
            endpoint={},
            sources=[source],
            clock=lambda: self.now,
            emit=self.emitted.extend,
            problem=self.problems.append,
            note=self.notes.append,
        )
        self.nodes = SparkplugNodes(context, memory, lambda _: self.now)
        self.source = self.nodes.served(source)

    def publish(self, topic: str, _payload: bytes) -> None:
        self.published.append(topic)


@in_loop
async def test_a_node_is_asked_at_once_and_its_silence_is_reported() -> None:
    world = World()
    running = asyncio.create_task(world.nodes.run(world.publish))
    for times, seconds in enumerate((0, 10, 20), 1):
        world.now += seconds * SECOND
        world.source.readings("spBv1.0/g/NDATA/n", {}, written(seq=4), retained=False)
        await until(lambda n=times: len(world.published) == n)  # type: ignore[misc]
    running.cancel()
    assert set(world.published) == {"spBv1.0/g/NCMD/n"}
    assert world.notes[0] == (
        "told Sparkplug node g/n to publish its birth messages again (rebirth): "
        "its birth was not received"
    )
    (problem,) = world.problems
    assert problem.startswith(
        "Sparkplug node g/n does not answer the command to publish its birth messages again"
    )


@in_loop
async def test_rows_go_of_a_node_that_does_not_answer_after_a_restart() -> None:
    before = World()
    before.source.readings("spBv1.0/g/NBIRTH/n", {}, written(bd_seq(0), seq=0), retained=False)
    birth = written(temp(1.0), level(2), seq=1)
    before.source.readings("spBv1.0/g/DBIRTH/n/d", {}, birth, retained=False)
    assert before.nodes.is_changed
    world = World(before.nodes.to_remember())
    running = asyncio.create_task(world.nodes.run(world.publish))
    await until(lambda: world.published == ["spBv1.0/g/NCMD/n"])
    world.now += 61 * SECOND
    await until(lambda: bool(world.emitted))
    running.cancel()
    assert {"node": "n", "device": "d"} in withdrawn(world.emitted)


def test_many_nodes_that_answer_their_commands_keep_their_rows() -> None:
    """Commands are ten a second: the last of 900 nodes gets its own after a minute and a half."""
    number = 900
    memory = {
        "s": {"topic": ALL_TOPICS, "nodes": [("g", f"n{n}", 0, ("", "d")) for n in range(number)]}
    }
    world = World(memory)
    answered = 0
    while answered < number:
        world.now += SECOND
        world.nodes.turn(world.publish)
        assert len(world.published) > answered
        for topic in world.published[answered:]:
            node = topic.rpartition("/")[2]
            birth = written(temp(1.0), bd_seq(0), seq=0)
            world.source.readings(f"spBv1.0/g/NBIRTH/{node}", {}, birth, retained=False)
            world.source.readings(f"spBv1.0/g/DBIRTH/{node}/d", {}, birth, retained=False)
        answered = len(world.published)
    assert world.now > NOON * 1_000 + 80 * SECOND
    for _ in range(3):
        world.now += 60 * SECOND
        world.nodes.turn(world.publish)
    assert withdrawn(world.emitted) == []


def test_many_changes_are_remembered_together() -> None:
    """Ten thousand devices are written at most once a second, and a few without a pause to see."""
    world = World()
    assert not world.nodes.is_to_remember
    for number in range(1_000):
        world.source.readings(f"spBv1.0/g/NBIRTH/n{number}", {}, written(seq=0), retained=False)
    assert world.nodes.is_to_remember, "it is the first time"
    world.nodes.to_remember()
    world.source.readings("spBv1.0/g/NDEATH/n0", {}, written(), retained=False)
    world.now += SECOND // 10 - 1_000
    assert world.nodes.is_changed
    assert not world.nodes.is_to_remember
    world.now += 1_000
    world.nodes.turn(world.publish)
    assert world.nodes.is_to_remember, "the connector writes it with what is emitted"


@in_loop
async def test_without_a_source_of_sparkplug_nothing_runs() -> None:
    context = ConnectorContext("gw", "home", {}, [], lambda: 0, lambda _: None)
    await SparkplugNodes(context, None, lambda _: 0).run(lambda _topic, _payload: None)
