"""However the start of the engine and the end of the service meet: the engine is ended, once."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from static_engine.evaluation import engine_starter
from static_engine.evaluation.bags import Bag
from static_engine.evaluation.engine_starter import EngineStarter
from static_engine.evaluation.static_executor import StaticExecutor
from streamsql.algebra.operators import Plan
from streamsql.data.delta import Delta
from tests.loop_turns import loop_turns


class Engine:
    """Counts how often it is ended."""

    description = "a test"
    is_gone = False

    def __init__(self) -> None:
        self.ended = 0

    def evaluate(self, plan: Plan) -> Delta:  # noqa: ARG002  (nobody may ask it)
        raise AssertionError("nothing is evaluated here")

    def collect(self, plan: Plan) -> Bag:  # noqa: ARG002
        raise AssertionError("nothing is evaluated here")

    def batches(self, plan: Plan, scratch: Path) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        raise AssertionError("no view is refreshed here")

    def cancel(self, _plan: Plan, /) -> None:
        raise AssertionError("nothing is cancelled here")

    def stop(self) -> None:
        self.ended += 1


def starting() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if t.name == "static-engine-start"}


class World:
    """A starter whose engine is there when a test lets it."""

    def __init__(self) -> None:
        self._of_others = starting()
        self.engine = Engine()
        self.may_be_made = threading.Event()
        self.starter = EngineStarter(self._make, lambda: None)

    def _make(self, _progress: object) -> StaticExecutor:
        assert self.may_be_made.wait(60)
        return self.engine

    def begin(self) -> None:
        self.starter.start()

    @property
    def threads(self) -> set[threading.Thread]:
        return starting() - self._of_others

    def make(self) -> None:
        """Let it be there; the loop has not heard of it when this returns."""
        self.may_be_made.set()
        for thread in self.threads:
            thread.join(60)


def test_an_engine_that_nobody_has_heard_of_yet_is_ended() -> None:
    async def run() -> None:
        world = World()
        world.begin()
        world.make()
        assert world.starter.executor is None
        world.starter.stop()
        assert world.engine.ended == 1
        await loop_turns()
        assert world.engine.ended == 1

    asyncio.run(run())


def test_an_engine_that_comes_after_the_end_is_ended() -> None:
    async def run() -> None:
        world = World()
        world.begin()
        world.starter.stop()
        world.make()
        assert world.engine.ended == 1

    asyncio.run(run())


def test_after_the_end_nothing_starts_any_more() -> None:
    async def run() -> None:
        world = World()
        world.starter.stop()
        world.begin()
        assert not world.threads

    asyncio.run(run())


def test_a_running_engine_is_ended_once() -> None:
    async def run() -> None:
        world = World()
        world.begin()
        world.make()
        await loop_turns()
        assert world.starter.executor is world.engine
        world.starter.stop()
        world.starter.stop()
        assert world.engine.ended == 1

    asyncio.run(run())


def test_an_engine_that_has_ended_is_replaced_though_nobody_asks_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_starter, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(engine_starter, "_FIRST_PAUSE", 0.01)

    async def run() -> None:
        world = World()
        first = world.engine
        world.begin()
        world.make()
        await loop_turns()
        assert world.starter.executor is first
        world.engine = Engine()
        first.is_gone = True
        async with asyncio.timeout(60):
            while world.starter.executor is not world.engine:  # noqa: ASYNC110 - it starts threads
                await asyncio.sleep(0.01)
        assert (first.ended, world.engine.ended) == (1, 0)
        world.starter.stop()

    asyncio.run(run())
