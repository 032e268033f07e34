"""Replays: in time, without doubling, and no faster than they are kept."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.connectors.reading import Memory, Reading
from gateway.connectors.replay.replay_connector import MAX_BATCH, ReplayConnector
from gateway.connectors.testing.source_statements import definitions_of
from gateway.testing import SECOND, until
from streamsql.errors import DeploymentError
from tests.gateway.connectors.building import context_for


class Replay:
    """A replay with a clock of its own, and what it has emitted."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.now = 0
        self.emitted: list[Reading] = []
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.fail_after: int | None = None
        self.is_kept = asyncio.Event()
        self.is_kept.set()
        self.asked = 0
        self.memory: Memory | None = None
        self._remembered: Memory | None = None
        self.sources = definitions_of("CREATE SOURCE s (v INTEGER) WITH (connector = 'replay')")
        self.endpoint = {"file": str(path), "format": "csv", **options}

    async def _kept(self) -> None:
        self.asked += 1
        await self.is_kept.wait()

    def _remember(self, memory: Memory) -> None:
        self._remembered = memory

    def _emit(self, readings: Any) -> None:
        if self.fail_after is not None and len(self.emitted) >= self.fail_after:
            self.fail_after = None
            raise DeploymentError("too many events wait")
        self.emitted.extend(readings)
        self.memory, self._remembered = self._remembered, None

    async def run(self) -> None:
        context = context_for(
            self.sources,
            self.endpoint,
            clock=lambda: self.now,
            emit=self._emit,
            problem=self.problems.append,
            note=self.notes.append,
            kept=self._kept,
            memory=self.memory,
            remember=self._remember,
        )
        await ReplayConnector().run(context)

    def values(self, source: str = "s") -> list[int]:
        return [int(str(r.values["v"])) for r in self.emitted if r.source == source]


def write(folder: Path, text: str) -> Path:
    path = folder / "recording"
    path.write_text(text)
    return path


def numbers(folder: Path, count: int, bad: tuple[int, ...] = ()) -> Path:
    rows = [f"{n},{n}" if n not in bad else "never,0" for n in range(1, count + 1)]
    return write(folder, "\n".join(["ts,v", *rows]) + "\n")


def run(replay: Replay, scenario: Callable[[asyncio.Task[None]], Any]) -> None:
    async def whole() -> None:
        task = asyncio.create_task(replay.run())
        await scenario(task)
        task.cancel()

    asyncio.run(whole())


def test_readings_come_when_the_clock_reaches_them_at_any_speed(tmp_path: Path) -> None:
    replay = Replay(numbers(tmp_path, 100))

    async def scenario(task: asyncio.Task[None]) -> None:
        for now in (0, 1, 2, 40, 41, 100):
            replay.now = now * SECOND
            await until(lambda now=now: replay.values() == list(range(1, now + 1)))  # type: ignore[misc]
            await asyncio.sleep(0.12)
            assert replay.values() == list(range(1, now + 1)), "and none before its time"
        assert not task.done(), "at the end it waits to be cancelled"

    run(replay, scenario)


def test_it_says_when_it_is_over(tmp_path: Path) -> None:
    replay = Replay(numbers(tmp_path, 3))

    async def scenario(_task: asyncio.Task[None]) -> None:
        replay.now = 2 * SECOND
        await until(lambda: len(replay.emitted) == 2)
        assert replay.notes == []
        replay.now = 4 * SECOND
        await until(lambda: len(replay.notes) == 1)

    run(replay, scenario)
    assert "has ended after 3 readings" in replay.notes[0]
    assert replay.problems == []


def test_what_is_past_comes_at_once_in_bounded_batches(tmp_path: Path) -> None:
    replay = Replay(numbers(tmp_path, 5_000))
    replay.now = 5_000 * SECOND

    async def scenario(_task: asyncio.Task[None]) -> None:
        await until(lambda: len(replay.emitted) == 5_000)
        assert replay.values() == list(range(1, 5_001))

    run(replay, scenario)


def test_after_a_fault_it_goes_on_where_it_stood(tmp_path: Path) -> None:
    replay = Replay(numbers(tmp_path, 50, bad=(3, 30)))

    async def scenario(task: asyncio.Task[None]) -> None:
        replay.now = 10 * SECOND
        await until(lambda: len(replay.emitted) == 9)
        replay.fail_after = 9
        replay.now = 20 * SECOND
        await asyncio.wait({task}, timeout=60)
        assert isinstance(task.exception(), DeploymentError)
        again = asyncio.create_task(replay.run())
        replay.now = 50 * SECOND
        await until(lambda: len(replay.emitted) == 48)
        assert replay.values() == [n for n in range(1, 51) if n not in (3, 30)]
        assert [p.split(" line ")[1].split(":")[0] for p in replay.problems] == ["4", "31"]
        again.cancel()

    run(replay, scenario)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"format": "xls"}, "format"),
        ({"least_pdr": 0.0}, "least_pdr"),
        ({"speed": 2}, "speed"),
        ({"nodes": "a"}, "nodes"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: dict[str, Any], complaint: str) -> None:
    replay = Replay(numbers(tmp_path, 1), **options)
    with pytest.raises(DeploymentError, match=f"endpoint here.*{complaint}"):
        asyncio.run(replay.run())


def test_a_source_that_is_new_catches_up_and_the_others_go_on(tmp_path: Path) -> None:
    replay = Replay(numbers(tmp_path, 20))

    async def scenario(task: asyncio.Task[None]) -> None:
        replay.now = 10 * SECOND
        await until(lambda: len(replay.emitted) == 10)
        task.cancel()
        await asyncio.wait({task}, timeout=60)
        replay.sources += definitions_of(
            "CREATE SOURCE twice (v DOUBLE SCALE 2, at TIMESTAMP, "
            "WATERMARK FOR at AS at - INTERVAL '1 s') WITH (connector = 'replay')"
        )
        again = asyncio.create_task(replay.run())
        replay.now = 20 * SECOND
        await until(lambda: len(replay.emitted) == 40)
        again.cancel()
        assert replay.values() == list(range(1, 21))
        doubled = [(r.values["v"], r.values["at"]) for r in replay.emitted if r.source == "twice"]
        assert doubled == [(2.0 * n, n * SECOND) for n in range(1, 21)]

    run(replay, scenario)


def test_a_source_that_is_created_again_after_the_end_gets_the_whole_recording(
    tmp_path: Path,
) -> None:
    replay = Replay(numbers(tmp_path, 20))
    replay.sources += definitions_of("CREATE SOURCE o (v INTEGER) WITH (connector = 'replay')")
    replay.now = 20 * SECOND

    async def scenario(task: asyncio.Task[None]) -> None:
        await until(lambda: len(replay.emitted) == 40)
        task.cancel()
        await asyncio.wait({task}, timeout=60)
        replay.sources[0] = msgspec.structs.replace(replay.sources[0], version=2)
        for count in (2, 3):  # created again; restarted
            again = asyncio.create_task(replay.run())
            await until(lambda: len(replay.values("s")) == 40)
            await until(lambda count=count: len(replay.notes) == count)  # type: ignore[misc]
            again.cancel()
            await asyncio.wait({again}, timeout=60)
        assert replay.values("s") == [*range(1, 21)] * 2
        assert replay.values("o") == list(range(1, 21)), "nothing has changed for the other"

    run(replay, scenario)


def test_what_is_past_comes_no_faster_than_it_is_kept(tmp_path: Path) -> None:
    replay = Replay(numbers(tmp_path, 3 * MAX_BATCH))
    replay.now = 3 * MAX_BATCH * SECOND
    replay.is_kept.clear()

    async def scenario(_task: asyncio.Task[None]) -> None:
        await until(lambda: replay.asked == 1)
        assert len(replay.emitted) == MAX_BATCH
        replay.is_kept.set()
        await until(lambda: len(replay.emitted) == 3 * MAX_BATCH)

    run(replay, scenario)


def test_others_have_their_turns_while_it_looks_for_its_place(tmp_path: Path) -> None:
    count = 60_000
    replay = Replay(numbers(tmp_path, count))
    replay.memory = {"file": str(tmp_path / "recording"), "done": [["s", 0, count - 1]]}
    replay.sources = [msgspec.structs.replace(each, version=0) for each in replay.sources]
    replay.now = count * SECOND

    async def scenario(_task: asyncio.Task[None]) -> None:
        turns = 0
        while not replay.emitted:
            await asyncio.sleep(0)
            turns += 1
        assert replay.values() == [count]
        assert turns > 3

    run(replay, scenario)
