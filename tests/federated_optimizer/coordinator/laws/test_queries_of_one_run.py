"""Every query is looked at: those whose run others leave, and those that began amid a move."""

from collections.abc import Callable
from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation import moves
from federated_optimizer.coordinator.adaptation.begun_moves import Move
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from federated_optimizer.sharing.strategy import Strategy
from streamsql.errors import DeploymentError, FederationError
from tests.federated_optimizer.coordinator.adaptation.test_adaptation import (
    AT_BASE,
    AT_GATEWAYS,
    ROWS,
    TEXT,
    decisions,
    looked_at,
    plan_of,
    started,
    tell,
)

METRIC = "another query of its run asks for another metric"
HEURISTICS = "another query of its run asks for other heuristics"


async def all_looked_at(harness: Any, coordinator: Any, query: str) -> None:
    """Wait until each query of a run has been looked at."""
    await looked_at(harness, coordinator, query)
    known = coordinator._adaptation._known[coordinator.query(query).run]
    await harness.until(lambda: not known.own, "a look at each of them")


def told_of(coordinator: Any, query: str) -> list[tuple[str, str]]:
    return [(d.outcome, d.detail) for d in decisions(coordinator) if d.queries == query]


def test_a_query_whose_run_others_leave_is_looked_at_and_follows(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        second = await harness.start_query(coordinator, f"{TEXT} WITH (heuristics = 'no')")
        run = coordinator.query(query).run
        assert coordinator.query(second).run == run
        await all_looked_at(harness, coordinator, query)
        tell(coordinator, AT_BASE)
        await harness.until(lambda: coordinator.query(second).run != run, "both move")
        assert coordinator.query(second).run == coordinator.query(query).run
        await harness.until(lambda: {q for q, _ in federation.fragments()} != {run})
        await harness.until(lambda: told_of(coordinator, second)[-1][0] == "moved")
        assert [outcome for outcome, _ in told_of(coordinator, query)] == ["moved"]
        assert [outcome for outcome, _ in told_of(coordinator, second)] == ["kept", "moved"]
        assert told_of(coordinator, second)[0] == ("kept", HEURISTICS)
        assert all("seatsensor" in d.reason for d in decisions(coordinator))

    harness.run(scenario)


def test_a_query_that_stays_where_others_leave_is_told_why(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, sharing=Strategy.OFF)
        second = await harness.start_query(coordinator, f"{TEXT} WITH (metric = 'messages')")
        run = coordinator.query(query).run
        assert coordinator.query(second).run == run
        await all_looked_at(harness, coordinator, query)
        tell(coordinator, AT_BASE)
        stays = [("kept", METRIC), ("kept", "no other plan is much cheaper")]
        await harness.until(lambda: told_of(coordinator, second) == stays)
        assert coordinator.query(query).run != run
        assert coordinator.query(second).run == run
        # By the facts of now there is no better plan for such a query.
        alone = f"{TEXT} WITH (metric = 'messages', shared = 'no')"
        third = await harness.start_query(coordinator, alone)
        assert plan_of(coordinator, third) == plan_of(coordinator, second)

    harness.run(scenario)


def test_a_query_moves_though_the_first_one_of_its_run_stays(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, first = await started(
            harness, federation, f"{TEXT} WITH (metric = 'messages')"
        )
        query = await harness.start_query(coordinator, TEXT)
        run = coordinator.query(first).run
        assert coordinator.query(query).run == run
        await all_looked_at(harness, coordinator, query)
        tell(coordinator, AT_BASE)
        await harness.until(lambda: coordinator.query(query).run != run, "it moves")
        assert coordinator.query(first).run == run
        await harness.until(lambda: told_of(coordinator, query)[-1][0] == "moved")
        assert told_of(coordinator, first)[0] == ("kept", "no other plan is much cheaper")

    harness.run(scenario)


def gated(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let no move come about until the returned function is called."""
    is_open: list[bool] = []
    is_ready = moves.Moves.is_ready

    def ready(self: moves.Moves, move: Move) -> bool:
        return bool(is_open) and is_ready(self, move)

    monkeypatch.setattr(moves.Moves, "is_ready", ready)
    monkeypatch.setattr(moves, "REST_MICROSECONDS", 3_600_000_000)
    return lambda: is_open.append(True)


@pytest.mark.parametrize("is_fed", [True, False])
def test_an_equal_query_that_began_amid_a_move_reads_the_same_run_afterwards(
    harness: Any, monkeypatch: pytest.MonkeyPatch, is_fed: bool
) -> None:
    go_on = gated(monkeypatch)
    if not is_fed:  # as of joins between gateways, whose rows no other run reads
        monkeypatch.setattr(SharedRuns, "_feeds", lambda *_: ())

    async def scenario(federation: Any) -> None:
        # It plans by itself, and does not look for what others compute.
        coordinator, query = await started(harness, federation, sharing=Strategy.OFF)
        await looked_at(harness, coordinator, query)
        former, plan = coordinator.query(query).run, plan_of(coordinator, query)
        tell(coordinator, AT_BASE)
        await harness.until(lambda: bool(decisions(coordinator)), "a move begins")
        second = await harness.start_query(coordinator, TEXT)
        await harness.until_rows(coordinator, second, ROWS)
        own, new_plan = coordinator.query(second).run, plan_of(coordinator, second)
        assert new_plan != plan, "it begins with the plan of now"
        reader = coordinator.subscribe(second)
        assert len((await harness.next_batch(reader)).changes) == len(ROWS)  # the snapshot
        changes = coordinator.query(second).changes
        go_on()
        await harness.until(lambda: coordinator.query(query).run != former, "it moves")
        run = coordinator.query(query).run
        assert run != own
        await harness.until(lambda: coordinator.query(second).run == run, "it follows")
        assert plan_of(coordinator, second) == plan_of(coordinator, query) == new_plan
        await harness.until(lambda: {q for q, _ in federation.fragments()} == {run})
        assert coordinator.query(second).changes == changes, "readers were told something"
        # What changes now comes to both, once.
        federation.sites["gw-1"].put("roomsensor", ("r0", "new"))
        batch = await harness.next_batch(reader)
        while not batch.changes:  # it tells of the status
            batch = await harness.next_batch(reader)
        told = sorted((change.diff, change.row) for change in batch.changes)
        assert told == [(-1, ("m0", "s0")), (1, ("m0", "new"))]
        await harness.until_rows(coordinator, query, [("m0", "new"), *ROWS[1:]])
        for decision in (d for d in decisions(coordinator) if d.queries == second):
            assert (decision.run, decision.reason) == (own, f"run {run} computes the same")

    harness.run(scenario)


def test_an_equal_query_that_looks_for_what_runs_reads_the_run_that_others_leave(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = gated(monkeypatch)

    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        await looked_at(harness, coordinator, query)
        former = coordinator.query(query).run
        tell(coordinator, AT_BASE)
        await harness.until(lambda: bool(decisions(coordinator)), "a move begins")
        second = await harness.start_query(coordinator, TEXT)
        assert coordinator.query(second).run == former, "nobody builds on a run that is tried"
        assert coordinator.relation(second) == tuple(sorted(ROWS))
        go_on()
        await harness.until(lambda: coordinator.query(query).run != former, "it moves")
        run = coordinator.query(query).run
        await harness.until(lambda: coordinator.query(second).run == run, "it follows")
        await harness.until(lambda: {q for q, _ in federation.fragments()} == {run})

    harness.run(scenario)


def test_joining_an_equal_run_is_a_move_with_a_decision(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = gated(monkeypatch)
    monkeypatch.setattr(SharedRuns, "_feeds", lambda *_: ())

    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, facts=AT_BASE, sharing=Strategy.OFF)
        await looked_at(harness, coordinator, query)
        tell(coordinator, AT_GATEWAYS)
        await harness.until(lambda: bool(decisions(coordinator)), "a move begins")
        fixed = await harness.start_query(coordinator, f"{TEXT} WITH (adapt = 'no')")
        alone = await harness.start_query(coordinator, f"{TEXT} WITH (shared = 'no')")
        plan, own = plan_of(coordinator, fixed), coordinator.query(fixed).run
        go_on()
        await harness.until(lambda: "moved" in dict(told_of(coordinator, fixed)), "it has moved")
        run = coordinator.query(query).run
        assert plan_of(coordinator, fixed) == plan_of(coordinator, query) == plan
        assert coordinator.query(fixed).run == run != coordinator.query(alone).run
        *_, decision = (d for d in decisions(coordinator) if d.queries == fixed)
        assert (decision.run, decision.reason) == (own, f"run {run} computes the same")
        assert decision.detail.startswith(f"the queries read run {run} from then on")
        assert decision.plan_before == decision.plan_after == f"plan {plan}"
        # It keeps its plan as before.
        tell(coordinator, AT_BASE)
        await harness.until(lambda: plan_of(coordinator, query) != plan, "the other one moves on")
        assert plan_of(coordinator, fixed) == plan

    harness.run(scenario)


def test_a_move_that_could_not_be_deployed_is_tried_again(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        await looked_at(harness, coordinator, query)
        begin = coordinator._adaptation._moves.begin
        fails = [True]

        async def begins(*said: Any, **how: Any) -> Any:
            if fails.pop():
                fails.append(False)
                raise DeploymentError("the catalog cannot be written")
            fails.append(False)
            return await begin(*said, **how)

        monkeypatch.setattr(coordinator._adaptation._moves, "begin", begins)
        tell(coordinator, AT_BASE)
        await harness.until(lambda: plan_of(coordinator, query) != 1, "it moves")
        assert told_of(coordinator, query)[0] == ("given up", "the catalog cannot be written")

    harness.run(scenario)


def test_a_move_whose_catalog_cannot_be_written_holds_up_no_other(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.coordinator(adapt=0.0)
        moving, gone_on = coordinator._adaptation._moving, []

        async def go_on(number: int, *_: Any) -> None:
            gone_on.append(number)
            if number != 2:
                raise DeploymentError(f"the catalog cannot be written for {number}")

        with monkeypatch.context() as patched:
            patched.setattr(moving, "_go_on", go_on)
            patched.setattr(moving, "_moving", {1: None, 2: None, 3: None})
            with pytest.raises(FederationError, match="for 1"):
                await coordinator._adaptation.work()
        assert gone_on[:3] == [1, 2, 3]

    harness.run(scenario)
