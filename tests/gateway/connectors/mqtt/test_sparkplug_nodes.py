"""Nodes of one connector are asked over its connection; who does not answer is reported."""

import asyncio

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.mqtt.sparkplug_nodes import SparkplugNodes
from gateway.connectors.reading import Reading
from gateway.connectors.testing.source_statements import definitions_of
from streamsql.mapping.mapper import Mapper
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
        self.nodes = SparkplugNodes(context, memory)
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
    assert world.notes[0] == "asked Sparkplug node g/n for its births: its birth was not received"
    (problem,) = world.problems
    assert problem.startswith(
        "Sparkplug node g/n does not answer the command to publish its births; may "
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


@in_loop
async def test_without_a_source_of_sparkplug_nothing_runs() -> None:
    context = ConnectorContext("gw", "home", {}, [], lambda: 0, lambda _: None)
    await SparkplugNodes(context, None).run(lambda _topic, _payload: None)
