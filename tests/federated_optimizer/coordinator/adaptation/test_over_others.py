"""A query moves to the result of a newer run where it sends much less then, and says so."""

from typing import Any

from tests.federated_optimizer.coordinator.adaptation.test_adaptation import decisions

QUICK = 0.5
OPEN = "SELECT rid, status FROM RoomSensor WHERE status = 'open'"
ALL = "SELECT rid, status FROM RoomSensor"


async def begun(harness: Any, federation: Any) -> Any:
    await federation.site("base", "base")
    for gateway in ("gw-1", "gw-2"):
        site = await federation.site(gateway)
        site.put("roomsensor", (f"{gateway}-a", "open"), (f"{gateway}-b", "shut"))
    coordinator = await federation.coordinator(define_schema=True, adapt=QUICK)
    await harness.until(lambda: sum(site.online for site in coordinator.sites()) == 3)
    return coordinator


def is_looked_at(coordinator: Any, run: str) -> bool:
    known = coordinator._adaptation._known.get(run)
    return known is not None and known.basis is not None


def feeders(coordinator: Any, query: str) -> set[str]:
    return {feed.run for feed in coordinator._queries.find(query).bundle.feeds}


def test_a_query_moves_to_the_result_of_a_newer_run_and_shows_nothing_of_it(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(harness, federation)
        narrow = await harness.start_query(coordinator, OPEN)
        rows = [("gw-1-a", "open"), ("gw-2-a", "open")]
        await harness.until_rows(coordinator, narrow, rows)
        reader = coordinator.subscribe(narrow)
        await harness.next_batch(reader)
        former = coordinator.query(narrow).run
        await harness.until(lambda: is_looked_at(coordinator, former), "a look")
        wide = await harness.start_query(coordinator, ALL)
        assert feeders(coordinator, wide) == set()
        await harness.until(lambda: feeders(coordinator, narrow) == {wide}, "it reads the other")
        assert coordinator.query(narrow).run != former
        await harness.until(
            lambda: {run for run, _ in federation.fragments() if run == former} == set()
        )
        assert set(federation.sites["gw-1"].engine.queries) == {wide}
        await harness.until(lambda: any(d.outcome == "moved" for d in decisions(coordinator)))
        moved = next(d for d in decisions(coordinator) if d.outcome == "moved")
        assert moved.reason == f"run {wide} reads a source of it"
        assert moved.plan_after == f"reads node {wide[1:]}"
        federation.sites["gw-1"].put("roomsensor", ("gw-1-b", "open"))
        await harness.until_rows(coordinator, narrow, [*rows, ("gw-1-b", "open")])
        seen: list[Any] = []
        while not seen:
            seen += (await harness.next_batch(reader)).changes
        assert [(change.diff, change.row) for change in seen] == [(1, ("gw-1-b", "open"))]

    harness.run(scenario)


def test_a_query_that_reads_a_node_stays_where_it_is(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(harness, federation)
        wide = await harness.start_query(coordinator, ALL)
        narrow = await harness.start_query(coordinator, OPEN)
        await harness.until_rows(coordinator, narrow, [("gw-1-a", "open"), ("gw-2-a", "open")])
        run = coordinator.query(narrow).run
        await harness.until(lambda: is_looked_at(coordinator, run), "a look")
        assert feeders(coordinator, narrow) == {wide}
        assert coordinator.query(narrow).version == 1
        assert not [d for d in decisions(coordinator) if d.outcome != "kept"]

    harness.run(scenario)
