"""Parts go on by another gateway when the one that merges them stays away."""

from typing import Any

from federated_optimizer.costs.tree_shares import trees_in

TEXT = "SELECT COUNT(*) AS n, MAX(weightLevel) AS w FROM SeatSensor"
ALARM = (
    "CREATE ALARM many AS SELECT COUNT(*) AS n FROM SeatSensor HAVING COUNT(*) > 1"
    " SEVERITY 'warning'"
)


async def merged_plan(coordinator: Any, text: str) -> str:
    """Return the number of the plan in which gateways merge parts."""
    (shown,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES {text}")
    (line,) = [line for line in shown.text.splitlines() if "on their way" in line]
    return str(line.replace("*", " ").split()[0])


def trees(coordinator: Any, query: str) -> list[dict[str, str | None]]:
    """Return to which gateway each sends in a running query."""
    (bundle,) = (each.bundle for each in coordinator._queries.all() if each.id == query)
    return [dict(each) for each in trees_in(bundle).values()]


def test_parts_go_on_by_another_gateway_until_theirs_is_back(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        for number in range(1, 4):
            await federation.site(f"gw-{number}")
        coordinator = await federation.coordinator(define_schema=True, patience=0.4)
        await harness.until(lambda: sum(site.online for site in coordinator.sites()) == 4)
        asked = await merged_plan(coordinator, TEXT)
        query = await harness.start_query(coordinator, f"{TEXT} WITH (plan = {asked})")
        assert trees(coordinator, query) == [{"gw-1": None, "gw-2": "gw-1", "gw-3": "gw-1"}]
        for number in range(1, 4):
            federation.sites[f"gw-{number}"].put("seatsensor", (f"m{number}", "r", 10.0 * number))
        await harness.until_rows(coordinator, query, [(3, 30.0)])

        federation.broker.cut("gw-1")
        await federation.sites["gw-1"].stop()
        await harness.until_rows(coordinator, query, [(2, 30.0)])
        assert trees(coordinator, query) == [{"gw-1": "gw-2", "gw-2": None, "gw-3": "gw-2"}]
        federation.sites["gw-3"].put("seatsensor", ("m3", "r", 30.0), delete=True)
        await harness.until_rows(coordinator, query, [(1, 20.0)])

        await federation.site("gw-1", epoch=2)
        federation.sites["gw-1"].put("seatsensor", ("m4", "r", 40.0))
        await harness.until_rows(coordinator, query, [(2, 40.0)])
        await harness.until(lambda: coordinator.query(query).settled)

    harness.run(scenario)


def test_alarms_may_have_parts_that_are_merged(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=3)
        (shown,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES {ALARM}")
        assert "on their way" in shown.text

    harness.run(scenario)
