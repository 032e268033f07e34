"""A connector that another one has replaced is told so by what it calls."""

import asyncio

import pytest

from gateway.connectors.connector_intake import ConnectorIntake
from gateway.connectors.reading import Reading
from gateway.connectors.testing.observed_run import Recorder
from tests.gateway.connectors.serving import in_loop

READING = Reading("climate", {"celsius": 20})


class World:
    """One intake.

    Attributes:
        is_current: Whether its connector still serves the endpoint.
        waits: How often something waited until all was kept.
    """

    def __init__(self) -> None:
        self.is_current = True
        self.waits = 0
        self.port = Recorder()
        self.intake = ConnectorIntake(self.port, self.kept, lambda: self.is_current)

    async def kept(self) -> None:
        self.waits += 1


@in_loop
async def test_what_was_emitted_before_is_waited_for_afterwards() -> None:
    world = World()
    world.intake.remember({"place": 1})
    world.intake.emit([READING])
    world.is_current = False
    await world.intake.kept()
    assert world.waits == 1
    assert (world.port.readings, world.port.memory) == ([READING], {"place": 1})


@in_loop
async def test_nothing_counts_as_kept_once_something_was_refused() -> None:
    world = World()
    world.is_current = False
    with pytest.raises(asyncio.CancelledError):
        world.intake.remember({"place": 1})
    with pytest.raises(asyncio.CancelledError):
        world.intake.emit([READING])
    with pytest.raises(asyncio.CancelledError):
        await world.intake.kept()
    assert world.waits == 0
    assert (world.port.readings, world.port.memory) == ([], None)
