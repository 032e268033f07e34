"""Runs outlive their queries while others read their rows: in memory, in the catalog, at sites."""

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

import pytest
from msgspec.structs import replace

from federated_optimizer.coordinator.contract.coordinator_model import Origin, QueryStatus
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.stored_runs import RunChanges, StoredNode, StoredQuery
from federated_optimizer.sharing.strategy import Strategy
from streamsql.wire.bundles.trimmed_bundles import is_trimmed
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import QueryProblem

PAIRS = "SELECT l.src, l.dst, r.status FROM Link l JOIN RoomSensor r ON l.dst = r.rid"
JOIN = f"{PAIRS} WITH (plan = 1)"  # at the base: both sides are sent there
LEFT = "SELECT l.src, l.dst, r.status FROM Link l LEFT JOIN RoomSensor r ON l.dst = r.rid"
ROOMS = "SELECT rid, status FROM RoomSensor"
OPEN = f"{PAIRS} WHERE r.status = 'open'"
BOTH = [("a", "r1", "open"), ("b", "r9", None)]


def fill(federation: Any) -> None:
    federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
    federation.sites["gw-2"].put("link", ("a", "r1", 1.0), ("b", "r9", 1.0))


def feeders(coordinator: Any, query: str) -> set[str]:
    return {feed.run for feed in coordinator._queries.find(query).bundle.feeds}


def at(federation: Any, site: str = "base") -> set[str]:
    return set(federation.sites[site].engine.queries)


def stored(coordinator: Any) -> dict[str, StoredNode]:
    return {node.run: node for node in coordinator._shared.store.nodes()}


def catalog(federation: Any) -> CatalogStore:
    store = CatalogStore(f"sqlite:///{federation.folder}/catalog.db")
    store.claim(0)
    return store


async def answers(
    harness: Any, coordinator: Any, query: str, rows: list[tuple[Any, ...]] = BOTH
) -> None:
    def is_there() -> bool:
        return sorted(coordinator.relation(query), key=repr) == sorted(rows, key=repr)

    await harness.until(is_there, f"{query} gives {rows}")
    await harness.until(lambda: coordinator.query(query).settled, "settled")


async def with_node(harness: Any, federation: Any, **options: Any) -> tuple[Any, str, str]:
    """Return a coordinator, a node's run that was a query's, and the query that reads it."""
    coordinator = await federation.standard(sharing=Strategy.OFF)
    fill(federation)
    first = await harness.start_query(coordinator, JOIN, **options)
    left = await harness.start_query(coordinator, LEFT)
    await answers(harness, coordinator, left)
    assert feeders(coordinator, left) == {first}
    await coordinator.stop(first)
    assert {node.run for node in coordinator._queries.nodes.all()} == {first}
    return coordinator, first, left


def test_a_run_that_others_read_outlives_its_query(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, first, left = await with_node(harness, federation)
        assert at(federation) == {first, left}
        assert list(stored(coordinator)) == [first]
        assert coordinator.query(left).version == 1, "nothing was deployed again"
        assert first not in feeders(coordinator, left) - {first}
        federation.sites["gw-1"].put("roomsensor", ("r9", "shut"))
        await answers(harness, coordinator, left, [BOTH[0], ("b", "r9", "shut")])
        assert left not in at(federation, "gw-1")

    harness.run(scenario)


def test_nobody_sees_a_node(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, first, left = await with_node(harness, federation)
        assert [query.id for query in coordinator.queries()] == [left]
        (shown,) = await coordinator.execute("SHOW QUERIES")
        assert [row[0] for row in shown.rows] == [left]
        assert coordinator._queries.find("node 1") is None
        assert coordinator._queries.find(first) is None
        said = coordinator.explain(left).text
        assert "of which you may not see" not in said
        table = await harness.start_query(coordinator, "SELECT query FROM sys_queries")
        await harness.until_rows(coordinator, table, [(left,), (table,)])

    harness.run(scenario)


@pytest.mark.parametrize("origin", [Origin.USER, Origin.SESSION])
def test_a_node_goes_with_its_last_reader(harness: Any, origin: Origin) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, _first, left = await with_node(harness, federation, origin=origin)
        await coordinator.stop(left)
        assert not coordinator._queries.nodes.all(), "at once"
        assert not stored(coordinator)
        await harness.until(lambda: not federation.fragments(), "nothing is left")
        assert not coordinator._queries.runs.all()

    harness.run(scenario)


def test_an_equal_query_reads_a_node_and_takes_its_place(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        fill(federation)
        first = await harness.start_query(coordinator, PAIRS)
        opened = await harness.start_query(coordinator, OPEN)
        await answers(harness, coordinator, opened, BOTH[:1])
        await coordinator.stop(first)
        assert not is_trimmed(stored(coordinator)[first].bundle), "its result is read"
        again = await harness.start_query(coordinator, PAIRS)
        assert coordinator.query(again).run == first
        await answers(harness, coordinator, again, BOTH[:1])
        await harness.until(lambda: not stored(coordinator), "its run has a query")
        await harness.until(lambda: not coordinator._queries.nodes.all())
        await coordinator.stop(again)
        assert list(stored(coordinator)) == [first]
        await answers(harness, coordinator, opened, BOTH[:1])
        assert coordinator.query(opened).version == 1

    harness.run(scenario)


def sent_by(federation: Any, site: str) -> int:
    """Return the number of batches that a site has sent to the base."""
    engine = federation.sites[site].engine
    reports = filter(None, map(engine.flow, engine.queries))
    return sum(report.sent.get("base", 0) for report in reports)


def test_a_node_of_which_leaves_are_read_computes_no_more(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(sharing=Strategy.OFF)
        fill(federation)
        first = await harness.start_query(coordinator, JOIN)
        left = await harness.start_query(coordinator, LEFT)
        await answers(harness, coordinator, left)
        engine, rows = federation.sites["base"].engine, {}

        def kept(query: str) -> int:
            fragments = (f for f in engine.statistics() if f.query == query)
            return sum(each.state_rows for f in fragments for each in f.operators)

        rows[first], sent = kept(first), [sent_by(federation, f"gw-{n}") for n in (1, 2)]
        assert rows[first] > 0
        reader = coordinator.subscribe(left, snapshot=False)
        await coordinator.stop(first)
        await harness.until(lambda: kept(first) == 0, "it joins nothing")
        assert [sent_by(federation, f"gw-{n}") for n in (1, 2)] == sent, "nothing is sent again"
        assert is_trimmed(stored(coordinator)[first].bundle)
        federation.sites["gw-1"].put("roomsensor", ("r9", "shut"))
        await answers(harness, coordinator, left, [BOTH[0], ("b", "r9", "shut")])
        changes = [change async for change in _changes(harness, reader, 2)]
        assert sorted(changes, key=repr) == [(-1, BOTH[1]), (1, ("b", "r9", "shut"))]
        again = await harness.start_query(coordinator, JOIN)
        assert coordinator.query(again).run == again, "nobody computes it"
        assert feeders(coordinator, again) == {first}
        await answers(harness, coordinator, again, [BOTH[0], ("b", "r9", "shut")])

    harness.run(scenario)


def test_a_leaf_that_nobody_reads_is_sent_no_more(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(sharing=Strategy.OFF)
        fill(federation)
        first = await harness.start_query(coordinator, JOIN)
        rooms = await harness.start_query(coordinator, ROOMS)
        await answers(harness, coordinator, rooms, [("r1", "open")])
        assert feeders(coordinator, rooms) == {first}
        await coordinator.stop(first)
        (node,) = stored(coordinator).values()
        assert [f.id for f in node.bundle.fragments if f.consumer] == [
            feed.source for feed in coordinator._queries.find(rooms).bundle.feeds
        ]
        engine = federation.sites["gw-2"].engine
        await harness.until(lambda: is_trimmed(engine._queries[first].bundle), "told")
        sent = sent_by(federation, "gw-2")
        federation.sites["gw-2"].put("link", ("c", "r1", 1.0))
        federation.sites["gw-1"].put("roomsensor", ("r2", "shut"))
        await answers(harness, coordinator, rooms, [("r1", "open"), ("r2", "shut")])
        assert sent_by(federation, "gw-2") == sent
        assert coordinator.query(rooms).version == 1
        await coordinator.stop(rooms)
        await harness.until(lambda: not federation.fragments(), "nothing is left")

    harness.run(scenario)


def test_a_node_is_there_after_a_restart(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        former, first, left = await with_node(harness, federation)
        bundle = former._queries.find(left).bundle
        await former.close()
        coordinator = await federation.coordinator(sharing=Strategy.OFF)
        await answers(harness, coordinator, left)
        federation.sites["gw-1"].put("roomsensor", ("r9", "shut"))
        await answers(harness, coordinator, left, [BOTH[0], ("b", "r9", "shut")])
        assert coordinator._queries.find(left).bundle == bundle
        assert coordinator._queries.nodes.of(first).logical is not None
        await coordinator.stop(left)
        await harness.until(lambda: not federation.fragments(), "nothing is left")
        assert not stored(coordinator)

    harness.run(scenario)


def test_a_node_is_planned_again_when_a_gateway_comes(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, first, left = await with_node(harness, federation)
        new = await federation.site("gw-3")
        new.put("link", ("c", "r1", 1.0))
        await answers(harness, coordinator, left, [*BOTH, ("c", "r1", "open")])
        await harness.until(lambda: feeders(coordinator, left) == {first}, "it reads again")
        await answers(harness, coordinator, left, [*BOTH, ("c", "r1", "open")])
        node = coordinator._queries.nodes.of(first)
        assert node.bundle.version == 2
        assert stored(coordinator)[first].bundle == node.bundle
        assert left not in at(federation, "gw-3")

    harness.run(scenario)


def test_a_node_whose_source_is_replaced_goes_with_its_readers(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, _first, left = await with_node(harness, federation)
        await coordinator.execute(
            "CREATE OR REPLACE SOURCE RoomSensor (rid TEXT, status TEXT, KEY (rid)) "
            "WITH (colocate = 'rid', ttl = '9 HOURS')"
        )
        await harness.until(lambda: not feeders(coordinator, left), "it reads the new source")
        await harness.until(lambda: not stored(coordinator), "nobody reads the node")
        await harness.until(lambda: not coordinator._queries.nodes.all())

    harness.run(scenario)


def test_a_site_that_stops_a_node_stops_no_reader(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, first, left = await with_node(harness, federation)
        fault = federation.topics.error(first, "base")
        problem = encode_json(QueryProblem("step_budget", "it is stopped", "", 1, "base"))
        federation.sites["base"].engine.uninstall(first)
        federation.sites["base"].client.publish(fault, problem, retain=True)
        await harness.until(lambda: not feeders(coordinator, left), "it reads no more")
        await answers(harness, coordinator, left)
        assert coordinator.query(left).status == QueryStatus.RUNNING
        await harness.until(lambda: not stored(coordinator), "nobody reads the node")
        await harness.until(lambda: at(federation) == {left})

    harness.run(scenario)


# --- crashes: the catalog is as a coordinator left it that was killed ---------------------------


def test_a_node_that_was_stored_before_its_reader_is_withdrawn(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        former, _first, left = await with_node(harness, federation)
        await former.close()
        store = catalog(federation)
        store.drop_query(left)
        store.close()
        coordinator = await federation.coordinator(sharing=Strategy.OFF)
        await harness.until(lambda: not stored(coordinator), "nobody reads it")
        await harness.until(lambda: not federation.fragments(), "nothing is left")
        await harness.until(lambda: not at(federation), "nothing runs")

    harness.run(scenario)


def test_a_reader_whose_node_is_not_stored_runs_all_itself(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        former, first, left = await with_node(harness, federation)
        await former.close()
        store = catalog(federation)
        store.put_runs(RunChanges(ended=(first,)))
        store.close()
        coordinator = await federation.coordinator(sharing=Strategy.OFF)
        reader = coordinator.subscribe(left, snapshot=False)
        await harness.until(lambda: not feeders(coordinator, left), "it runs all itself")
        await answers(harness, coordinator, left)
        await harness.until(lambda: first not in at(federation) | at(federation, "gw-1"))
        told = [change async for change in _changes(harness, reader, 2)]
        assert sorted(told, key=repr) == sorted(((1, row) for row in BOTH), key=repr)

    harness.run(scenario)


async def _changes(harness: Any, reader: Any, count: int) -> Any:
    while count > 0:
        for change in (await harness.next_batch(reader)).changes:
            count -= 1
            yield change.diff, change.row


def test_a_node_whose_sites_lost_it_is_deployed(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        former, first, left = await with_node(harness, federation)
        await former.close()
        for run, site in federation.fragments():
            if run == first:
                client = federation.sites["base"].client
                client.publish(federation.topics.fragment(run, site), b"", retain=True)
        await harness.until(lambda: first not in at(federation), "lost")
        coordinator = await federation.coordinator(sharing=Strategy.OFF)
        await answers(harness, coordinator, left)
        assert first in at(federation)

    harness.run(scenario)


def test_a_node_that_is_stored_with_a_query_of_its_run_goes(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        former = await federation.standard(sharing=Strategy.OFF)
        fill(federation)
        first = await harness.start_query(former, JOIN)
        left = await harness.start_query(former, LEFT)
        await answers(harness, former, left)
        bundle = former._queries.find(first).bundle
        await former.stop(first)
        (node,) = former._shared.store.nodes()
        await former.close()
        store = catalog(federation)
        store.put_runs(RunChanges(nodes=(dataclasses.replace(node, bundle=bundle),)))
        again = StoredQuery("q9", "again", JOIN, Origin.USER, 1, bundle)
        store.put_query(again)
        store.close()
        coordinator = await federation.coordinator(sharing=Strategy.OFF)
        await answers(harness, coordinator, "q9", BOTH[:1])
        await answers(harness, coordinator, left)
        await harness.until(lambda: not stored(coordinator), "its run has a query")
        assert coordinator.query("q9").run == first

    harness.run(scenario)


def test_a_node_that_cannot_be_read_from_the_catalog_stops_nobody(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        former, first, left = await with_node(harness, federation)
        node = stored(former)[first]
        await former.close()
        store = catalog(federation)
        damaged = replace(node.bundle, text=7)
        store.put_runs(RunChanges(nodes=(StoredNode(damaged, node.plan, node.reads, 1),)))
        assert not store.nodes()
        store.close()
        coordinator = await federation.coordinator(sharing=Strategy.OFF)
        await harness.until(lambda: not feeders(coordinator, left), "it runs all itself")
        await answers(harness, coordinator, left)

    harness.run(scenario)


def test_a_node_stays_that_the_run_of_an_equal_query_reads(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        fill(federation)
        pairs = await harness.start_query(coordinator, PAIRS)
        opened = await harness.start_query(coordinator, OPEN)
        reader = await harness.start_query(coordinator, f"{OPEN} AND l.src <> 'z'")
        await answers(harness, coordinator, reader, BOTH[:1])
        assert (feeders(coordinator, opened), feeders(coordinator, reader)) == ({pairs}, {opened})
        await coordinator.stop(pairs)
        await coordinator.stop(opened)
        assert {node.run for node in coordinator._queries.nodes.all()} == {pairs, opened}
        again = await harness.start_query(coordinator, OPEN)
        await answers(harness, coordinator, again, BOTH[:1])
        await harness.until(
            lambda: {node.run for node in coordinator._queries.nodes.all()} != {pairs, opened},
            "the query takes the place of its node",
        )
        assert [*stored(coordinator)] == [pairs]
        assert coordinator.query(again).version == 1, "nothing was deployed again"

    harness.run(scenario)


def test_nodes_are_looked_at_when_their_readers_change(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, first, left = await with_node(harness, federation)
        nodes = coordinator._queries.nodes
        await harness.until(lambda: not nodes.unneeded() and not nodes.trimmable(), "at rest")
        asked: list[str] = []
        feeds: Callable[[str], Collection[str]] = nodes._runs.fed.readers

        def readers(run: str) -> Collection[str]:
            asked.append(run)
            return feeds(run)

        monkeypatch.setattr(nodes._runs.fed, "readers", readers)
        await harness.start_query(coordinator, "SELECT rid FROM RoomSensor WHERE status = 'x'")
        assert not nodes.unneeded()
        assert not nodes.trimmable()
        assert first not in asked, "nothing of the node has changed"
        await coordinator.stop(left)
        assert first in asked

    harness.run(scenario)
