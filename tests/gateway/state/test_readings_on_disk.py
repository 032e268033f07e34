"""Who waits for readings to be kept returns when they are on disk, and not before."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gateway.state import readings_on_disk
from gateway.state.readings_on_disk import MAX_PENDING, KeptReadings
from gateway.testing import until


class Disk:
    """Counts writes; refuses, or is behind, as it is told."""

    def __init__(self) -> None:
        self.writes = 0
        self.is_on_disk = True
        self.pending = 0

    def write(self) -> None:
        self.writes += 1

    def kept(self) -> KeptReadings:
        return KeptReadings(self.write, lambda: self.is_on_disk, lambda: self.pending)


def run(scenario: Callable[[Disk, KeptReadings], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        disk = Disk()
        async with asyncio.timeout(30):
            await scenario(disk, disk.kept())

    asyncio.run(whole())


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings_on_disk, "RETRY", 0.01)


def test_those_who_wait_together_need_one_write() -> None:
    async def scenario(disk: Disk, kept: KeptReadings) -> None:
        await asyncio.gather(*(kept.wait() for _ in range(100)))
        assert disk.writes == 1

    run(scenario)


def test_what_is_emitted_after_a_write_needs_another() -> None:
    async def scenario(disk: Disk, kept: KeptReadings) -> None:
        disk.is_on_disk = False
        first = asyncio.ensure_future(kept.wait())
        await until(lambda: disk.writes > 0)
        second = asyncio.ensure_future(kept.wait())
        disk.is_on_disk = True
        before = disk.writes
        await second
        assert first.done()
        assert disk.writes > before

    run(scenario)


@pytest.mark.parametrize("cause", ["disk", "engine"])
def test_nobody_returns_while_the_disk_refuses_or_the_engine_is_behind(cause: str) -> None:
    async def scenario(disk: Disk, kept: KeptReadings) -> None:
        disk.is_on_disk = cause != "disk"
        disk.pending = MAX_PENDING + 1 if cause == "engine" else 0
        waiting = asyncio.ensure_future(kept.wait())
        await until(lambda: disk.writes > 3, "it is tried again")
        assert not waiting.done()
        disk.is_on_disk, disk.pending = True, 0
        await waiting

    run(scenario)


def test_one_who_gives_up_takes_nothing_from_others() -> None:
    async def scenario(disk: Disk, kept: KeptReadings) -> None:
        disk.is_on_disk = False
        left, stays = asyncio.ensure_future(kept.wait()), asyncio.ensure_future(kept.wait())
        await until(lambda: disk.writes > 0)
        left.cancel()
        disk.is_on_disk = True
        await stays

    run(scenario)
