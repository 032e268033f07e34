"""A running query takes another plan when a fact leaves its range; its readers do not notice."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation import adaptation
from federated_optimizer.statistics.fact import Origin, Quantity, Subject, SubjectKind, exact

TEXT = "SELECT status, COUNT(*) AS n FROM RoomSensor GROUP BY status"
QUICK = 0.2


def tell(coordinator: Any, source: str, rows: float, changes: float) -> None:
    """Put facts as if gateways had reported them."""
    subject = Subject(SubjectKind.SOURCE, source, "gw-1")
    told = {Quantity.SENSORS: rows, Quantity.CHANGES: changes}
    for quantity, value in told.items():
        fact = exact(subject, quantity, value, coordinator._shared.clock(), Origin.COUNTED)
        coordinator._shared.facts.put(fact)


def decisions(coordinator: Any) -> list[Any]:
    return list(coordinator._shared.decisions.all())


def plan_of(coordinator: Any, query: str) -> int:
    alternative: int = coordinator._queries.find(query).bundle.alternative
    return alternative


async def looked_at(harness: Any, coordinator: Any, query: str) -> None:
    """Wait until what the plan of a query rests on is known."""

    def is_known() -> bool:
        run = coordinator._queries.find(query).run
        known = coordinator._adaptation._known.get(run)
        return known is not None and known.basis is not None

    await harness.until(is_known, "the basis of the plan")


async def started(harness: Any, federation: Any, text: str = TEXT, **options: Any) -> Any:
    """Start a coordinator that looks often, and a query whose counting is cheap at the base."""
    await federation.site("base", "base")
    for gateway in ("gw-1", "gw-2"):
        await federation.site(gateway)
    coordinator = await federation.coordinator(define_schema=True, **{"adapt": QUICK, **options})
    await harness.until(lambda: sum(site.online for site in coordinator.sites()) == 3)
    tell(coordinator, "roomsensor", 10.0, 0.01)
    query = await harness.start_query(coordinator, text)
    for number in range(6):
        site = federation.sites[f"gw-{1 + number % 2}"]
        site.put("roomsensor", (f"r{number}", "open" if number < 4 else "shut"))
    await harness.until_rows(coordinator, query, [("open", 4), ("shut", 2)])
    return coordinator, query


def test_a_fact_that_leaves_its_range_moves_a_query(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        assert plan_of(coordinator, query) == 2
        before = coordinator.query(query)
        await looked_at(harness, coordinator, query)
        reader = coordinator.subscribe(query)
        assert len((await harness.next_batch(reader)).changes) == 2  # the snapshot
        tell(coordinator, "roomsensor", 10.0, 10.0)
        await harness.until(lambda: plan_of(coordinator, query) == 1, "it moves")
        assert sorted(coordinator.relation(query)) == [("open", 4), ("shut", 2)]
        after = coordinator.query(query)
        assert (after.version, after.run != before.run) == (before.version + 1, True)
        assert after.changes == before.changes, "readers were told something"
        # Only the new run is left, at the sites and on the broker.
        await harness.until(lambda: {q for q, _ in federation.fragments()} == {after.run})
        engine = federation.sites["base"].engine
        await harness.until(lambda: set(engine.queries) == {after.run})
        federation.sites["gw-1"].put("roomsensor", ("r0", "shut"))
        await harness.until_rows(coordinator, query, [("open", 3), ("shut", 3)])
        batch = await harness.next_batch(reader)
        assert Counter(change.row for change in batch.changes).total() == 4
        (decision,) = decisions(coordinator)
        assert decision.outcome == "moved"
        assert "changes a second of roomsensor: 0.01 before, now 10" in decision.reason
        assert decision.plan_before.startswith("plan 2")
        assert decision.plan_after.startswith("plan 1")
        assert decision.bytes_before > 2 * decision.bytes_after > 0
        assert decision.switch_bytes > 0
        assert decision.switch_seconds > 0

    harness.run(scenario)


@pytest.mark.parametrize(
    ("option", "why"),
    [("plan = 2", "it asks for plan 2"), ("adapt = 'no'", "WITH (adapt = 'no') says so")],
)
def test_a_query_that_wants_its_plan_never_moves(harness: Any, option: str, why: str) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, f"{TEXT} WITH ({option})")
        await looked_at(harness, coordinator, query)
        tell(coordinator, "roomsensor", 10.0, 10.0)
        await harness.until(lambda: bool(decisions(coordinator)), "it is decided")
        (decision,) = decisions(coordinator)
        assert (decision.outcome, decision.detail) == ("kept", why)
        assert plan_of(coordinator, query) == 2

    harness.run(scenario)


def test_a_change_of_plan_has_to_pay(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptation, "HORIZON_SECONDS", 0.1)

    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        await looked_at(harness, coordinator, query)
        tell(coordinator, "roomsensor", 10.0, 10.0)
        await harness.until(lambda: bool(decisions(coordinator)), "it is decided")
        (decision,) = decisions(coordinator)
        assert decision.outcome == "kept"
        assert "filling the other plan takes" in decision.detail
        assert plan_of(coordinator, query) == 2

    harness.run(scenario)


def test_without_adaptation_nothing_is_looked_at(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, adapt=0.0)
        tell(coordinator, "roomsensor", 10.0, 10.0)
        await asyncio.sleep(0.6)  # time passes: with adaptation it would have moved
        assert plan_of(coordinator, query) == 2
        assert not decisions(coordinator)

    harness.run(scenario)
