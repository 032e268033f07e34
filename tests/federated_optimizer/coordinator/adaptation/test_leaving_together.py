"""Readers of a node that is far too wide for all of them leave it together, and nobody notices."""

from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation.begun_moves import Move
from federated_optimizer.coordinator.adaptation.leaving_together import Together
from federated_optimizer.coordinator.adaptation.moves import Moves
from tests.federated_optimizer.coordinator.adaptation.test_adaptation import decisions
from tests.federated_optimizer.coordinator.adaptation.test_over_others import (
    ALL,
    OPEN,
    begun,
    feeders,
    is_looked_at,
)

ODD = f"{OPEN} AND rid >= 'gw-2'"
MOST = "SELECT rid, status FROM RoomSensor WHERE rid <> 'x'"
OTHERS = "SELECT rid, status FROM RoomSensor WHERE rid <> 'y'"
ROWS = [("gw-1-a", "open"), ("gw-2-a", "open")]
ODD_ROWS = [("gw-2-a", "open")]


async def wide_and_narrow(harness: Any, federation: Any) -> tuple[Any, str, str, str]:
    """Start a query of all rows, and two that read few of its rows."""
    coordinator = await begun(harness, federation)
    wide = await harness.start_query(coordinator, ALL)
    narrow = await harness.start_query(coordinator, OPEN)
    odd = await harness.start_query(coordinator, ODD)
    await harness.until_rows(coordinator, narrow, ROWS)
    await harness.until_rows(coordinator, odd, ODD_ROWS)
    assert feeders(coordinator, narrow) == {wide}
    for query in (narrow, odd):
        await harness.until(lambda q=query: is_looked_at(coordinator, q), "a look")
    return coordinator, wide, narrow, odd


def outcomes(coordinator: Any) -> set[tuple[str, str]]:
    """Return what has come of looks at queries that would not stay."""
    return {(d.outcome, d.queries) for d in decisions(coordinator) if d.outcome != "kept"}


def count_looks(coordinator: Any) -> list[Together]:
    """Note what comes of looks at all who rest on a node."""
    found: list[Together] = []
    beside = coordinator._shared.beside
    run = beside.run

    async def noted(work: Any, what: str) -> Any:
        made = await run(work, what)
        if isinstance(made, Together):
            found.append(made)
        return made

    beside.run = noted
    return found


def test_two_readers_leave_a_node_that_is_wide_for_nobody(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, wide, narrow, odd = await wide_and_narrow(harness, federation)
        assert feeders(coordinator, odd) == {narrow}
        readers = [coordinator.subscribe(query, snapshot=False) for query in (narrow, odd)]
        await coordinator.stop(wide)
        await harness.until(lambda: not coordinator._queries.nodes.all(), "the node goes")
        run = coordinator.query(narrow).run
        assert feeders(coordinator, narrow) == set()
        assert feeders(coordinator, odd) == {run}
        await harness.until(lambda: outcomes(coordinator) == {("moved", narrow), ("moved", odd)})
        why = f"the 2 runs that rest on node {wide[1:]} cost less without it"
        moved = {d.queries: d for d in decisions(coordinator) if d.outcome == "moved"}
        assert {d.reason for d in moved.values()} == {why}
        assert moved[odd].plan_after == f"reads node {run[1:]}/f1"
        federation.sites["gw-2"].put("roomsensor", ("gw-2-b", "open"))
        for query, rows, reader in zip((narrow, odd), (ROWS, ODD_ROWS), readers, strict=True):
            await harness.until_rows(coordinator, query, [*rows, ("gw-2-b", "open")])
            seen: list[Any] = []
            while not seen:
                seen += (await harness.next_batch(reader)).changes
            assert [(change.diff, change.row) for change in seen] == [(1, ("gw-2-b", "open"))]
        # A look at each finds nothing better.
        known = coordinator._adaptation._known
        for query in (narrow, odd):
            run = coordinator.query(query).run
            await harness.until(lambda r=run: r in known and known[r].basis is not None, "a look")
        assert len(moved) == sum(d.outcome == "moved" for d in decisions(coordinator))

    harness.run(scenario)


def test_where_one_is_given_up_the_others_are_and_all_are_tried_again(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    why_not = Moves.why_not

    async def scenario(federation: Any) -> None:
        coordinator, wide, narrow, odd = await wide_and_narrow(harness, federation)
        with monkeypatch.context() as patched:

            def fails(self: Moves, move: Move) -> str:
                return why_not(self, move) if move.earlier else "it was not to be"

            patched.setattr(Moves, "why_not", fails)
            await coordinator.stop(wide)
            given_up = {("given up", narrow), ("given up", odd)}
            await harness.until(lambda: outcomes(coordinator) == given_up, "none moves")
            details = {d.queries: d.detail for d in decisions(coordinator) if d.outcome != "kept"}
            assert details[odd] == "the move of another of them was given up"
            assert not coordinator._queries.runs.tried()
            assert feeders(coordinator, odd) == {narrow}
        await harness.until(lambda: not coordinator._queries.nodes.all(), "then they move")
        assert feeders(coordinator, odd) == {coordinator.query(narrow).run}
        assert sorted(coordinator.relation(narrow)) == ROWS
        assert sorted(coordinator.relation(odd)) == ODD_ROWS

    harness.run(scenario)


def test_readers_stay_where_they_want_most_of_a_node(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(harness, federation)
        wide = await harness.start_query(coordinator, ALL)
        most = [await harness.start_query(coordinator, text) for text in (MOST, OTHERS)]
        for query in most:
            await harness.until(lambda q=query: is_looked_at(coordinator, q), "a look")
        looks = count_looks(coordinator)
        await coordinator.stop(wide)
        await harness.until(lambda: bool(looks), "a look at both")
        (together,) = looks
        assert together.members.keys() == set(most)
        assert not together.is_worth_it
        assert [feeders(coordinator, query) for query in most] == [{wide}, {wide}]
        assert not outcomes(coordinator)

    harness.run(scenario)


@pytest.mark.parametrize(
    ("before", "after", "filling", "is_worth_it"),
    [(10.0, 1.0, 5_000.0, True), (10.0, 1.0, 5_500.0, False), (10.0, 6.0, 0.0, False)],
)
def test_they_leave_where_it_costs_much_less_and_saves_what_the_moves_cost(
    before: float, after: float, filling: float, is_worth_it: bool
) -> None:
    assert Together({}, frozenset(), before, after, filling).is_worth_it == is_worth_it
