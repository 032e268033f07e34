"""Queries whose changes act on the world have no join in the network; equal other queries may."""

from typing import Any

from federated_optimizer.coordinator.adaptation.reconsidered import reconsider
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.statistics.fact import Origin, Quantity, Subject, SubjectKind, exact
from streamsql.algebra.metrics import BY_BYTES
from streamsql.algebra.operators import RemoteSource, walk_plan
from streamsql.wire.fragments import Engine, FragmentBundle

TEXT = "SELECT s.mid, l.cost FROM SeatSensor s JOIN Link l ON s.mid = l.src"
ALARM = f"CREATE ALARM met AS {TEXT} SEVERITY 'warning'"
SINK = f"CREATE SINK told FROM {TEXT} WITH (connector = 'mqtt', topic = 'seats/{{mid}}')"


def joins_in_network(bundle: FragmentBundle) -> bool:
    """Whether a gateway reads rows of other gateways."""
    nodes = (
        node for f in bundle.fragments if f.engine == Engine.GATEWAY for node in walk_plan(f.plan)
    )
    return any(isinstance(node, RemoteSource) for node in nodes)


def tell(coordinator: Any) -> None:
    """Put facts by which few links find few of many seats."""
    for source, rows, changes in (("seatsensor", 1e4, 100.0), ("link", 4.0, 0.001)):
        for gateway in ("gw-1", "gw-2"):
            subject = Subject(SubjectKind.SOURCE, source, gateway)
            for quantity, value in ((Quantity.SENSORS, rows), (Quantity.CHANGES, changes)):
                fact = exact(subject, quantity, value, coordinator._shared.clock(), Origin.COUNTED)
                coordinator._shared.facts.put(fact)


def running(coordinator: Any) -> dict[str, RunningQuery]:
    return {str(query.origin): query for query in coordinator._queries.all()}


def check(coordinator: Any) -> None:
    """Check that only the query joins in the network, also if all are planned again."""
    queries = running(coordinator)
    found = {origin: joins_in_network(query.bundle) for origin, query in queries.items()}
    assert found == {"user": True, "alarm": False, "sink": False}
    assert queries["alarm"].run == queries["sink"].run != queries["user"].run
    planner = coordinator._planner
    for origin, query in queries.items():
        again = reconsider(planner, [query], BY_BYTES)
        assert joins_in_network(again.planned.bundle) == (origin == "user")
        assert again.before is not None, "the plan that runs is known again"
    registry = coordinator._queries
    assert not registry.changed_plans([query.id for query in queries.values()])


def test_alarms_and_sinks_have_no_join_in_the_network(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        tell(coordinator)
        await harness.start_query(coordinator, TEXT)
        for acting in (ALARM, SINK):
            (shown,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES {acting}")
            assert "alarms and sinks act on each change" in shown.text
            await coordinator.execute(acting)
        check(coordinator)
        (plain,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES {TEXT}")
        assert "alarms and sinks act on each change" not in plain.text
        await coordinator.close()
        again = await federation.coordinator()
        await harness.until(lambda: sum(site.online for site in again.sites()) == 4)
        check(again)

    harness.run(scenario)


def test_a_run_that_an_alarm_reads_moves_to_no_join_in_the_network(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await coordinator.execute(ALARM)
        await harness.start_query(coordinator, f"{TEXT} WITH (plan = 1)")
        queries = running(coordinator)
        assert queries["user"].run == queries["alarm"].run
        tell(coordinator)
        found = reconsider(coordinator._planner, queries.values(), BY_BYTES)
        assert not joins_in_network(found.planned.bundle)

    harness.run(scenario)
