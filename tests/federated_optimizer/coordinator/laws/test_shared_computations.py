"""Queries that want what others compute: read at the base, whoever comes and goes, always right."""

from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.contract.people_model import Account
from federated_optimizer.coordinator.contract.principal import Principal, Role
from streamsql.errors import FederationError
from streamsql.wire.fragments import Engine
from streamsql.wire.site_messages import SiteRole

PAIRS = "SELECT l.src, l.dst, r.status FROM Link l JOIN RoomSensor r ON l.dst = r.rid"
OPEN = f"{PAIRS} WHERE r.status = 'open'"
NAMES = "SELECT l.src FROM Link l JOIN RoomSensor r ON l.dst = r.rid WHERE r.status = 'open'"
COUNTS = f"SELECT p.status, COUNT(*) AS n FROM ({PAIRS}) p GROUP BY p.status"
ALL = [("a", "r1", "open"), ("b", "r1", "open"), ("c", "r2", "shut")]
ROWS: dict[str, list[tuple[Any, ...]]] = {
    PAIRS: ALL,
    OPEN: ALL[:2],
    NAMES: [("a",), ("b",)],
    COUNTS: [("open", 2), ("shut", 1)],
}


def fill(federation: Any) -> None:
    federation.sites["gw-1"].put("roomsensor", ("r1", "open"), ("r2", "shut"))
    federation.sites["gw-2"].put("link", ("a", "r1", 1.0), ("b", "r1", 1.0), ("c", "r2", 1.0))


def at(federation: Any, site: str = "base") -> set[str]:
    return set(federation.sites[site].engine.queries)


def feeders(coordinator: Any, query: str) -> set[str]:
    return {feed.run for feed in coordinator._queries.known(query).bundle.feeds}


async def answer(harness: Any, coordinator: Any, queries: dict[str, str]) -> None:
    for query, text in queries.items():
        await harness.until_rows(coordinator, query, ROWS[text])
    await harness.until(lambda: all(coordinator.query(q).settled for q in queries), "settled")


async def started(harness: Any, coordinator: Any, *texts: str, **told: Any) -> dict[str, str]:
    return {await harness.start_query(coordinator, text, **told): text for text in texts}


def test_what_a_query_adds_is_a_filter_over_a_result(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        fill(federation)
        queries = await started(harness, coordinator, PAIRS, OPEN, NAMES, COUNTS)
        await answer(harness, coordinator, queries)
        first, *others = queries
        assert at(federation, "gw-1") == at(federation, "gw-2") == {first}
        assert feeders(coordinator, others[0]) == {first}
        federation.sites["gw-1"].put("roomsensor", ("r2", "open"))
        for query, rows in zip(others, ([*ALL[:2], ("c", "r2", "open")],), strict=False):
            await harness.until_rows(coordinator, query, rows)
        await harness.until_rows(coordinator, others[2], [("open", 3)])
        for query in (first, *others):
            await coordinator.stop(query)
        await harness.until(lambda: not federation.fragments(), "nothing is left")
        assert not coordinator._shared.store.nodes()

    harness.run(scenario)


def test_a_part_that_two_queries_compute_becomes_a_node(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        fill(federation)
        queries = await started(harness, coordinator, COUNTS)
        (counts,) = queries
        await answer(harness, coordinator, queries)
        queries |= await started(harness, coordinator, NAMES)
        await answer(harness, coordinator, queries)
        names = list(queries)[1]
        (node,) = coordinator._queries.nodes.all()
        assert feeders(coordinator, names) == {node.run}
        assert node.bundle.silent
        assert [stored.run for stored in coordinator._shared.store.nodes()] == [node.run]
        assert [query.id for query in coordinator.queries()] == [counts, names]
        await coordinator.stop(names)
        assert not coordinator._queries.nodes.all()
        await coordinator.stop(counts)
        await harness.until(lambda: not federation.fragments(), "nothing is left")

    harness.run(scenario)


def test_all_go_on_when_a_gateway_comes(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        fill(federation)
        queries = await started(harness, coordinator, COUNTS, NAMES, PAIRS, OPEN)
        await answer(harness, coordinator, queries)
        fed = {query: feeders(coordinator, query) for query in queries}
        new = await federation.site("gw-3")
        new.put("link", ("d", "r1", 1.0))
        counts, names, pairs, opened = queries
        await harness.until_rows(coordinator, names, [("a",), ("b",), ("d",)])
        await harness.until_rows(coordinator, counts, [("open", 3), ("shut", 1)])
        await harness.until_rows(coordinator, opened, [*ALL[:2], ("d", "r1", "open")])
        await harness.until_rows(coordinator, pairs, [*ALL, ("d", "r1", "open")])
        await harness.until(
            lambda: {query: feeders(coordinator, query) for query in queries} == fed, "as before"
        )
        await harness.until(lambda: all(coordinator.query(q).settled for q in queries))
        runs = [query.bundle for query in coordinator._queries.everything()]
        versions = {bundle.query: bundle.version for bundle in runs}
        assert all(f.version == versions[f.run] for bundle in runs for f in bundle.feeds)

    harness.run(scenario)


def test_all_are_there_after_a_restart(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        former = await federation.standard()
        fill(federation)
        queries = await started(harness, former, COUNTS, NAMES, PAIRS, OPEN)
        await answer(harness, former, queries)
        bundles = {query.id: query.bundle for query in former._queries.everything()}
        await former.close()
        coordinator = await federation.coordinator()
        await answer(harness, coordinator, queries)
        await harness.until(lambda: coordinator._replanning.due is None, "planned again")
        assert {q.id: q.bundle for q in coordinator._queries.everything()} == bundles
        for query in queries:
            await coordinator.stop(query)
        await harness.until(lambda: not federation.fragments(), "nothing is left")
        assert not coordinator._shared.store.nodes()

    harness.run(scenario)


def test_readers_of_a_result_see_no_gap_when_its_query_ends(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        fill(federation)
        queries = await started(harness, coordinator, PAIRS, OPEN)
        await answer(harness, coordinator, queries)
        first, opened = queries
        reader = coordinator.subscribe(opened)
        await harness.next_batch(reader)
        await coordinator.stop(first)
        federation.sites["gw-1"].put("roomsensor", ("r2", "open"))
        await harness.until_rows(coordinator, opened, [*ALL[:2], ("c", "r2", "open")])
        seen: list[Any] = []
        while not seen:
            seen += (await harness.next_batch(reader)).changes
        assert [(change.diff, change.row) for change in seen] == [(1, ("c", "r2", "open"))]
        assert feeders(coordinator, opened) == {first}
        assert coordinator.query(opened).version == 1

    harness.run(scenario)


def test_a_query_that_says_so_shares_nothing(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        fill(federation)
        queries = await started(harness, coordinator, PAIRS)
        (alone,) = await started(harness, coordinator, f"{OPEN} WITH (shared = 'no')")
        await harness.until_rows(coordinator, alone, ROWS[OPEN])
        assert not feeders(coordinator, alone)
        (session,) = await started(harness, coordinator, OPEN, origin=Origin.SESSION)
        assert feeders(coordinator, session) == set(queries)

    harness.run(scenario)


COSTS = (
    "SELECT l.src, l.cost FROM Link l JOIN RoomSensor r ON l.dst = r.rid WHERE r.status = 'shut'"
)
ROWS[COSTS] = [("c", 1.0)]


def test_a_node_gets_more_columns_and_its_readers_show_no_gap(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        fill(federation)
        queries = await started(harness, coordinator, COUNTS, NAMES)
        await answer(harness, coordinator, queries)
        _counts, names = queries
        (node,) = coordinator._queries.nodes.all()
        run, columns = node.run, node.bundle.schema.names
        reader = coordinator.subscribe(names)
        await harness.next_batch(reader)
        queries |= await started(harness, coordinator, COSTS)
        await answer(harness, coordinator, queries)
        (node,) = coordinator._queries.nodes.all()
        assert (node.run, node.bundle.version) == (run, 2)
        assert node.bundle.schema.names[: len(columns)] == columns
        assert len(node.bundle.schema) > len(columns)
        await harness.until(lambda: not coordinator._queries.widened, "planned again")
        assert {run} == feeders(coordinator, names) == feeders(coordinator, list(queries)[2])
        assert coordinator._shared.store.nodes()[0].bundle == node.bundle
        await answer(harness, coordinator, queries)
        federation.sites["gw-1"].put("roomsensor", ("r2", "open"))
        await harness.until_rows(coordinator, names, [("a",), ("b",), ("c",)])
        seen: list[Any] = []
        while not seen:
            seen += (await harness.next_batch(reader)).changes
        assert [(change.diff, change.row) for change in seen] == [(1, ("c",))]

    harness.run(scenario)


def test_nobody_reads_what_they_may_not(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        fill(federation)
        accounts = {
            name: Account(name, role)
            for name, role in (("olga", Role.OPERATOR), ("anna", Role.ANALYST))
        }
        coordinator.follow_accounts(accounts.get)
        olga, anna = (Principal(account.name, account.role) for account in accounts.values())
        await coordinator.execute(f"CREATE VIEW shown AS {PAIRS}", principal=olga)
        await coordinator.execute("GRANT SELECT ON VIEW shown TO USER anna")
        queries = await started(harness, coordinator, PAIRS, principal=olga)
        shown = "SELECT src, dst, status FROM shown WHERE status = 'open'"
        ROWS[shown] = ROWS[OPEN]
        queries |= await started(harness, coordinator, shown, principal=anna)
        await answer(harness, coordinator, queries)
        first, second = queries
        bundle = coordinator._queries.find(second).bundle
        results = [f for f in bundle.feeds if bundle.fragment(f.fragment).engine == Engine.BASE]
        assert not results, "she may not read RoomSensor, only the view"
        other = "SELECT src, dst, status FROM shown WHERE status = 'shut'"
        (third,) = await started(harness, coordinator, other, principal=olga)
        assert feeders(coordinator, third) == {first}

    harness.run(scenario)


def test_nodes_count_for_nobody(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        await federation.site("gw-1")
        await federation.site("gw-2")
        coordinator = await federation.coordinator(define_schema=True, max_queries=2)
        fill(federation)
        queries = await started(harness, coordinator, COUNTS, NAMES)
        await answer(harness, coordinator, queries)
        assert coordinator._queries.nodes.all()
        with pytest.raises(FederationError, match="2 queries already run"):
            await coordinator.execute(PAIRS)
        assert len(coordinator.queries()) == 2

    harness.run(scenario)


@pytest.mark.parametrize("way", ["base", "gw-1", "coordinator"])
def test_chains_of_nodes_survive_deaths(harness: Any, way: str) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        fill(federation)
        queries = await started(harness, coordinator, COUNTS, NAMES, PAIRS, OPEN, COSTS)
        await answer(harness, coordinator, queries)
        if way == "coordinator":
            federation.broker.cut("coordinator")
            await coordinator.close()
            coordinator = await federation.coordinator()
        else:
            federation.broker.cut(way)
            await federation.sites[way].stop()
            role = SiteRole.BASE if way == "base" else SiteRole.GATEWAY
            await federation.site(way, role, epoch=2)
            if way != "base":
                federation.sites[way].put("roomsensor", ("r1", "open"), ("r2", "shut"))
        await answer(harness, coordinator, queries)
        for query in list(queries)[::-1]:
            await coordinator.stop(query)
        await harness.until(lambda: not federation.fragments(), "nothing is left")
        assert not coordinator._shared.store.nodes()
        assert not coordinator._queries.runs.all()

    harness.run(scenario)
