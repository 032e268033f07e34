"""Looks at plans take long on a busy machine: moves go on meanwhile, and nobody is forgotten."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation import adaptation, known_runs
from federated_optimizer.coordinator.adaptation.reconsidered import Reconsidered, reconsider
from streamsql.errors import FederationError
from tests.federated_optimizer.coordinator.adaptation.test_adaptation import (
    AT_BASE,
    TEXT,
    decisions,
    looked_at,
    started,
    tell,
)

LOOKING = "looking at a plan again"
OTHER = "SELECT s.mid, s.rid, r.status FROM SeatSensor s JOIN RoomSensor r ON s.rid = r.rid"


def let_pass(coordinator: Any, gate: Callable[[], Any]) -> list[int]:
    """Let looks wait at a gate; return a list of how many runs each was of."""
    beside, looks = coordinator._shared.beside.run, []

    async def run(work: Any, what: str) -> Any:
        if what == LOOKING:
            looks.append(len(work.args[1]))
            await gate()
        return await beside(work, what)

    coordinator._shared.beside.run = run
    return looks


def test_a_move_comes_about_while_other_plans_are_looked_at(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        await looked_at(harness, coordinator, query)
        run, never = coordinator.query(query).run, asyncio.Event()

        async def gate() -> None:
            if decisions(coordinator):
                await never.wait()

        looks = let_pass(coordinator, gate)
        tell(coordinator, AT_BASE)
        await harness.until(lambda: bool(decisions(coordinator)), "a move begins")
        begun = len(looks)
        await harness.start_query(coordinator, "SELECT mid FROM SeatSensor")
        await harness.until(lambda: len(looks) > begun, "another plan is looked at")
        await harness.until(lambda: coordinator.query(query).run != run, "it moves")
        assert len(looks) == begun + 1, "that look is not over"

    harness.run(scenario)


def test_plans_are_looked_at_together_and_one_that_takes_too_long_keeps_no_other_from_it(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"SELECT mid FROM SeatSensor WHERE rid = 'r{n}'" for n in range(5)]
    sizes: list[int] = []

    def slow(_: Any, groups: Any, *__: Any) -> dict[str, Reconsidered | FederationError]:
        sizes.append(len(groups))
        if any(query.text == texts[3] for queries in groups.values() for query in queries):
            raise FederationError("it took too long", code="statement_limit")
        planner = coordinators[0]._planner
        return {
            run: reconsider(planner, queries, coordinators[0]._shared.settings.metric)
            for run, queries in groups.items()
        }

    coordinators: list[Any] = []

    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, adapt=3600.0)
        coordinators.append(coordinator)
        queries = [query, *[await harness.start_query(coordinator, text) for text in texts]]
        await harness.until(
            lambda: all(coordinator.query(each).status == "running" for each in queries)
        )
        monkeypatch.setattr(adaptation, "reconsider_all", slow)
        monkeypatch.setattr(known_runs.KnownRun, "pause", lambda *_: 0)
        adapting = coordinator._adaptation
        await adapting._look(adapting._now())
        await adapting._look(adapting._now())
        known = {run: each.basis is not None for run, each in adapting._known.items()}
        assert known == {run: run != queries[4] for run in queries}
        assert sizes[0] == len(queries)
        assert sizes.count(1) < len(queries), "halves, not each by itself"

    harness.run(scenario)


def test_who_finds_no_room_to_move_is_next_when_there_is_some(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptation, "MOST_MOVES", 1)

    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        second = await harness.start_query(coordinator, f"{OTHER} WITH (shared = 'no')")
        for each in (query, second):
            await looked_at(harness, coordinator, each)
        runs = {each: coordinator.query(each).run for each in (query, second)}
        adapting, begin = coordinator._adaptation, coordinator._adaptation._moves.begin
        at_once: list[int] = []

        async def begins(*said: Any) -> Any:
            at_once.append(len(adapting._moving))
            return await begin(*said)

        monkeypatch.setattr(adapting._moves, "begin", begins)
        tell(coordinator, AT_BASE)
        for each, run in runs.items():
            await harness.until(lambda e=each, r=run: coordinator.query(e).run != r, "it moves")
        assert at_once == [0, 0]
        assert [d.outcome for d in decisions(coordinator)] == ["moved", "moved"]
        assert all("seatsensor" in d.reason for d in decisions(coordinator))
        assert coordinator.query(query).text == TEXT

    harness.run(scenario)
