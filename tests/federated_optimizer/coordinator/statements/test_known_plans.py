"""An equal text has the plan that runs, as long as planning would give that."""

import asyncio
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.principal import LOCAL
from federated_optimizer.coordinator.planning_processes import OnTheLoop
from federated_optimizer.coordinator.statements.known_plans import MOST_KEPT, Asked, KnownPlans

TEXT = "SELECT rid FROM RoomSensor WHERE status = 'open'"


class Counting(OnTheLoop):
    """Counts the queries that are planned."""

    def __init__(self) -> None:
        self.planned = 0

    async def run(self, work: Any, what: str) -> Any:
        """Do it, and count it."""
        self.planned += what == "planning the query"
        return await super().run(work, what)


def asked(number: int) -> Asked:
    return Asked(str(number), LOCAL, gathered=True, whole_changes=False)


def test_the_plans_that_were_used_last_are_kept() -> None:
    plans: KnownPlans[int] = KnownPlans(lambda _plan, _principal: True)
    for number in range(MOST_KEPT):
        plans.keep(asked(number), number)
    assert plans.find(asked(0)) == 0
    plans.keep(asked(MOST_KEPT), MOST_KEPT)
    assert plans.find(asked(0)) == 0
    assert plans.find(asked(1)) is None


def test_a_plan_that_does_not_hold_is_forgotten() -> None:
    good = {1}
    plans: KnownPlans[int] = KnownPlans(lambda plan, _principal: plan in good)
    plans.keep(asked(1), 1)
    assert plans.find(asked(1)) == 1
    good.clear()
    assert plans.find(asked(1)) is None
    good.add(1)
    assert plans.find(asked(1)) is None


@pytest.mark.parametrize(
    ("between", "planned"),
    [
        ("", 1),
        ("CREATE VIEW another AS SELECT rid FROM RoomSensor", 2),
        ("a gateway", 2),
        ("stopped", 2),
    ],
)
def test_an_equal_text_is_planned_once(between: str, planned: int, harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        beside = Counting()
        await federation.site("base", "base")
        await federation.site("gw-1")
        coordinator = await federation.coordinator(define_schema=True, beside=beside)
        first = await harness.start_query(coordinator, TEXT)
        await harness.until(lambda: coordinator._replanning.due is None)
        assert beside.planned == 1
        match between:
            case "":
                pass
            case "stopped":
                await coordinator.stop(first)
            case "a gateway":
                await federation.site("gw-2")
                await harness.until(lambda: coordinator.query(first).version == 2)
            case statement:
                await coordinator.execute(statement)
        second = await harness.start_query(coordinator, TEXT)
        assert beside.planned == planned
        await asyncio.sleep(0)
        if between != "stopped":
            assert coordinator.query(second).run == coordinator.query(first).run

    harness.run(scenario)
