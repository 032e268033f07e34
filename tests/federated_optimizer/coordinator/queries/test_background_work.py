"""Chores recur; a pause holds all up, also those that wait behind one."""

import asyncio

import pytest

from federated_optimizer.coordinator.queries import background_work
from federated_optimizer.coordinator.queries.background_work import keep_house


def test_a_pause_that_begins_during_a_chore_holds_up_those_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background_work, "HOUSEKEEPING_SECONDS", 0.0)
    done: list[str] = []
    paused = False

    async def first() -> None:
        nonlocal paused
        done.append("first")
        paused = True

    async def second() -> None:
        done.append("second")

    async def scenario() -> None:
        nonlocal paused
        house = asyncio.get_running_loop().create_task(keep_house((first, second), lambda: paused))
        for _ in range(10):
            await asyncio.sleep(0)
        assert done == ["first"]
        house.cancel()

    asyncio.run(scenario())
