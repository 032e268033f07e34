"""Calibrated constants in a running coordinator: plans, `sys_costs`, restarts, the broker."""

from typing import Any

import pytest

from federated_optimizer.coordinator.contract.cost_model import Measured
from federated_optimizer.coordinator.facts import calibrated_costs, shown_facts
from federated_optimizer.coordinator.facts.kept_facts import KeptFacts
from federated_optimizer.coordinator.facts.planned_costs import speeds_of, wires_of
from federated_optimizer.coordinator.store.stored_facts import store_facts
from federated_optimizer.statistics.default_facts import JOIN_MICROSECONDS
from federated_optimizer.statistics.fact import Origin, Quantity, Subject, SubjectKind, exact
from federated_optimizer.statistics.speeds import DEFAULT_SPEEDS
from streamsql.errors import BindingError, DeploymentError

VALUES = {
    "join_microseconds": Measured(70.0, 60.0, 90.0, 30),
    "join_bytes": Measured(211.0, 200.0, 220.0),
    "hop_milliseconds": Measured(7.0, 6.0, 9.0),
}


@pytest.fixture(autouse=True)
def look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_facts, "SHOWN_MICROSECONDS", 0)


async def _rows(harness: Any, coordinator: Any, words: str, rows: list[Any]) -> None:
    query = await harness.start_query(
        coordinator,
        "SELECT value, low, high, origin, measured IS NULL AS never FROM sys_costs "
        f"WHERE cost = '{words}'",
    )
    await harness.until_rows(coordinator, query, rows)


def test_plans_and_the_table_of_costs_have_what_was_calibrated_also_after_a_crash(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def killed(_facts: KeptFacts) -> None:
        """Save nothing at the end."""

    monkeypatch.setattr(KeptFacts, "end", killed)

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        words = JOIN_MICROSECONDS.words
        before = (JOIN_MICROSECONDS.value, JOIN_MICROSECONDS.low, JOIN_MICROSECONDS.high)
        await _rows(harness, coordinator, words, [(*before, JOIN_MICROSECONDS.why, True)])
        found = {each.name: each for each in await coordinator.costs.calibrate(VALUES, "")}
        assert found["join_microseconds"][3:6] == VALUES["join_microseconds"][:3]
        assert found["join_microseconds"].origin == "calibrated"
        assert found["group_microseconds"].measured is None
        calibrated = [(70.0, 60.0, 90.0, "calibrated", False)]
        await _rows(harness, coordinator, words, calibrated)
        await coordinator.close()
        federation.coordinators.clear()
        again = await federation.coordinator()
        await _rows(harness, again, words, calibrated)
        facts = again._shared.facts
        assert speeds_of(facts).gateway.join == speeds_of(facts).base.join == 70.0
        assert speeds_of(facts).kept.join == 211.0
        assert wires_of(facts, {}, 0).hop_milliseconds == 7.0
        assert await again.costs.forget() == len(VALUES)
        await _rows(harness, again, words, [(*before, JOIN_MICROSECONDS.why, True)])
        assert speeds_of(facts) == DEFAULT_SPEEDS

    harness.run(scenario)


def test_the_estimates_of_a_plan_follow_the_calibration(harness: Any) -> None:
    query = "EXPLAIN (TYPE ALTERNATIVES, FORMAT JSON) SELECT s.mid FROM SeatSensor s, RoomSensor r"
    query += " WHERE s.rid = r.rid"

    async def estimate(coordinator: Any) -> tuple[float, float]:
        (found,) = await coordinator.execute(query)
        plan = found.data["plans"][0]
        return plan["cpu_milliseconds_per_second"], plan["bytes_kept"]

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        before = await estimate(coordinator)
        slow = {name: Measured(9_000.0, 9_000.0, 9_000.0) for name in ("step_microseconds",)}
        large = {"join_bytes": Measured(50_000.0, 50_000.0, 50_000.0)}
        await coordinator.costs.calibrate({**slow, **large}, "")
        after = await estimate(coordinator)
        assert after[0] > 10 * before[0]
        assert after[1] > 10 * before[1]

    harness.run(scenario)


def test_one_wrong_number_changes_nothing(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        wrong = {**VALUES, "step_microseconds": Measured(-1.0, -1.0, 3.0)}
        with pytest.raises(BindingError, match="step_microseconds is from") as raised:
            await coordinator.costs.calibrate(wrong, "")
        assert raised.value.code == "bad_option"
        with pytest.raises(BindingError, match="no value of its own for 'cellar'"):
            await coordinator.costs.calibrate(VALUES, "cellar")
        assert all(each.measured is None for each in coordinator.costs.all())

    harness.run(scenario)


def test_times_of_the_static_engine_stay(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        local = Subject(SubjectKind.ENGINE, "local")
        timed = exact(local, Quantity.FLOOR_SECONDS, 0.25, 1, Origin.TIMED)
        coordinator._shared.facts.put(timed)
        taken = {"local_floor": Measured(0.5, 0.4, 0.6), "local_rows": Measured(1e5, 1e5, 1e5)}
        await coordinator.costs.calibrate(taken, "")
        found = {each.name: each for each in coordinator.costs.all()}
        assert (found["local_floor"].value, found["local_floor"].origin) == (0.25, Origin.TIMED)
        assert (found["local_rows"].value, found["local_rows"].origin) == (1e5, "calibrated")
        assert speeds_of(coordinator._shared.facts).local == type(DEFAULT_SPEEDS.local)(0.25, 1e5)
        assert found["spark_floor"].measured is None

    harness.run(scenario)


@pytest.mark.parametrize("forgets", [False, True])
def test_times_that_the_static_engine_tells_while_constants_are_saved_stay(
    harness: Any, monkeypatch: pytest.MonkeyPatch, *, forgets: bool
) -> None:
    local = Subject(SubjectKind.ENGINE, "local")
    timed = exact(local, Quantity.FLOOR_SECONDS, 0.25, 1, Origin.TIMED)
    taken = {"local_floor": Measured(0.5, 0.4, 0.6), "local_rows": Measured(1e5, 1e5, 1e5)}

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        facts = coordinator._shared.facts
        if forgets:
            await coordinator.costs.calibrate(taken, "")

        def saving(store: Any, changes: Any) -> None:
            store_facts(store, changes)
            facts.put(timed)

        with monkeypatch.context() as patched:
            patched.setattr(calibrated_costs, "store_facts", saving)
            await (
                coordinator.costs.forget() if forgets else coordinator.costs.calibrate(taken, "")
            )
        assert facts.find(*timed.key) == timed
        origins = {each.name: each.origin for each in coordinator.costs.all()}
        assert (origins["local_rows"] == "calibrated") is not forgets
        await coordinator.close()
        federation.coordinators.clear()
        again = await federation.coordinator()
        assert again._shared.facts.find(*timed.key) == timed, "the catalog has it, too"

    harness.run(scenario)


def test_messages_over_the_broker_come_back_and_leave_nothing(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        dead = coordinator._receiver.bad_payloads
        found = await coordinator.costs.hops(7)
        assert len(found) == 7
        assert min(found) > 0
        assert coordinator._receiver.bad_payloads == dead
        assert len(await coordinator.costs.hops(10_000)) == 100
        federation.broker.cut(coordinator._shared.settings.host)
        with pytest.raises(DeploymentError, match="not connected to its broker"):
            await coordinator.costs.hops(1)

    harness.run(scenario)
