"""Looks at plans take long on a busy machine: moves go on meanwhile, and nobody is forgotten."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation import adaptation, known_runs, moves_under_way
from federated_optimizer.coordinator.adaptation.reconsidered import (
    Reconsidered,
    reconsider,
    reconsider_all,
)
from federated_optimizer.search.choosing import Search
from host.clocks import monotonic_clock
from streamsql.algebra.metrics import BY_BYTES
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
    monkeypatch.setattr(moves_under_way, "MOST_MOVES", 1)

    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        second = await harness.start_query(coordinator, f"{OTHER} WITH (shared = 'no')")
        for each in (query, second):
            await looked_at(harness, coordinator, each)
        runs = {each: coordinator.query(each).run for each in (query, second)}
        adapting, begin = coordinator._adaptation, coordinator._adaptation._moves.begin
        at_once: list[int] = []

        async def begins(*said: Any, **how: Any) -> Any:
            at_once.append(len(adapting._moving.all()))
            return await begin(*said, **how)

        monkeypatch.setattr(adapting._moves, "begin", begins)
        tell(coordinator, AT_BASE)
        for each, run in runs.items():
            await harness.until(lambda e=each, r=run: coordinator.query(e).run != r, "it moves")
        assert at_once == [0, 0]
        assert [d.outcome for d in decisions(coordinator)] == ["moved", "moved"]
        assert all("seatsensor" in d.reason for d in decisions(coordinator))
        assert coordinator.query(query).text == TEXT

    harness.run(scenario)


MINUTE = 60_000_000
TOO_LONG = "looking at a plan again took more than 30 s"


class Looks:
    """Looks at plans at moments of our own, some of which take too long.

    Attributes:
        slow: A query text; who looks at it first takes too long.
        runs: The runs of each piece of work.
    """

    def __init__(self, coordinator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.adapting = coordinator._adaptation
        self.slow = ""
        self.runs: list[list[str]] = []
        self._now = monotonic_clock()
        monkeypatch.setattr(adaptation, "reconsider_all", self._reconsider)
        monkeypatch.setattr(self.adapting, "_may_look", lambda: False)  # not by itself
        monkeypatch.setattr(self.adapting, "_now", lambda: self._now)

    def _reconsider(self, planner: Any, groups: Any, *said: Any) -> Any:
        self.runs.append(list(groups))
        if any(queries[0].text == self.slow for queries in groups.values()):
            raise FederationError(TOO_LONG, code="statement_limit")
        return reconsider_all(planner, groups, *said)

    async def after(self, minutes: float) -> list[list[str]]:
        """Look, and return the runs of each piece of work."""
        self._now += int(minutes * MINUTE)
        self.runs.clear()
        await self.adapting._look(self._now)
        return list(self.runs)


def test_pauses_double_after_a_look_that_takes_too_long_and_a_decision_says_so(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, adapt=60.0)
        await harness.until(lambda: coordinator.query(query).settled)
        looks = Looks(coordinator, monkeypatch)
        looks.slow = TEXT
        await looks.after(0)
        assert await looks.after(1) == [[query]]
        for pause in (2, 4, 8, 16, 32, 60, 60):
            assert await looks.after(pause - 0.1) == []
            assert await looks.after(0.1) == [[query]]
        told = decisions(coordinator)
        assert len(told) == 8
        why = f"its plan could not be made again: {TOO_LONG}"
        assert {(d.queries, d.outcome, d.detail) for d in told} == {(query, "kept", why)}
        assert {(d.plan_before, d.plan_after) for d in told} == {("plan 1", "plan 1")}
        assert told[0].bytes_before > 0
        looks.slow = ""
        assert await looks.after(60) == [[query]]
        assert looks.adapting._known[query].basis is not None
        tell(coordinator, AT_BASE)
        assert await looks.after(1) == [[query]], "pauses are short again"
        assert decisions(coordinator)[-1].outcome in {"moving", "moved"}

    harness.run(scenario)


def test_a_run_whose_look_took_too_long_is_looked_at_by_itself(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, adapt=60.0)
        texts = [f"SELECT mid FROM SeatSensor WHERE rid = 'r{n}'" for n in range(3)]
        others = [await harness.start_query(coordinator, text) for text in texts]
        everyone = [query, *others]
        await harness.until(
            lambda: all(coordinator.query(each).status == "running" for each in everyone)
        )
        looks = Looks(coordinator, monkeypatch)
        looks.slow = texts[1]
        await looks.after(0)
        halves = await looks.after(1)
        assert (halves[0], len(halves)) == (everyone, 5)
        monkeypatch.setattr(adaptation, "left_range", lambda *_: ["a fact that flaps"])
        assert await looks.after(2) == [[query, others[0], others[2]], [others[1]]]

    harness.run(scenario)


def test_a_query_whose_look_takes_too_long_keeps_no_other_of_its_run_from_it(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(
            harness, federation, f"{TEXT} WITH (heuristics = 'no')", adapt=60.0
        )
        second = await harness.start_query(coordinator, TEXT)
        run = coordinator.query(query).run
        assert coordinator.query(second).run == run
        await harness.until(lambda: coordinator.query(query).settled)
        looks = Looks(coordinator, monkeypatch)
        looks.slow = coordinator.query(query).text
        await looks.after(0)
        assert await looks.after(1) == [[run]]
        assert looks.adapting._known[run].basis is None
        assert await looks.after(1) == [[run]]
        assert looks.adapting._known[run].basis is not None
        assert {d.queries for d in decisions(coordinator)} == {query}
        assert await looks.after(1) == [[run]], "the first one, again"
        tell(coordinator, AT_BASE)
        assert await looks.after(1) == [[run]]
        assert [(d.queries, d.outcome) for d in decisions(coordinator)[2:]] == [(second, "moving")]

    harness.run(scenario)


def test_a_plan_is_searched_for_once(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, adapt=0.0)
        searches, search = [], Search.__init__

        def counted(self: Search, *said: Any, **more: Any) -> None:
            searches.append(self)
            search(self, *said, **more)

        monkeypatch.setattr(Search, "__init__", counted)
        tell(coordinator, AT_BASE)
        running = coordinator._queries.find(query)
        found = reconsider(coordinator._planner, [running], BY_BYTES)
        assert len(searches) == 1
        assert found.planned.bundle.alternative != running.bundle.alternative

    harness.run(scenario)
