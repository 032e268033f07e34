"""`sys_nodes`: its rows, and that queries over it follow the network."""

from typing import Any

from federated_optimizer.coordinator.computations.network_index import NetworkIndex
from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.system.node_table import NodeTable
from streamsql.catalog.system import SYS_NODES
from tests.federated_optimizer.coordinator.computations.test_network_index import (
    Query,
    bundle_of,
    some_runs,
)

ROOMS = "SELECT rid, status FROM RoomSensor"
NODES = "SELECT node, kind, readers, queries, resting, owner, kept FROM sys_nodes"
SOURCES = " WHERE sources = 'roomsensor' OR reads = '1/f1' OR owner = 'other'"


def test_rows_are_those_of_a_table_made_anew() -> None:
    runs, index = some_runs(40)
    table = NodeTable(index)
    assert len(table()) == 41
    assert all(len(row) == len(SYS_NODES.schema) for row in table())
    version = table.look()
    runs.asked.clear()
    assert table.look() == version
    assert runs.asked == []
    runs.readers["q9"].append(Query("q50", runs.readers["q9"][0].bundle))
    index.note("q9")
    changed = table.since(version) if table.look() > version else None
    assert changed is not None
    assert {row[0] for row in changed} == {"9", "1/f1"}
    assert runs.asked == ["q9"]
    for run in ("q1", "q2"):
        runs.readers[run].clear()
        index.note(run)
    runs.readers["q41"] = [Query("q41", bundle_of("q41", ("9",)))]
    index.note("q41")
    assert set(table()) == set(NodeTable(NetworkIndex(runs))())


def test_a_query_over_the_nodes_follows_them(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        rooms = await harness.start_query(coordinator, ROOMS, name="rooms")
        nodes = await harness.start_query(coordinator, NODES + SOURCES)
        leaf = ("1/f1", "rows", 1, 0, 1, "rooms", False)
        result = ("1", "rows", 0, 1, 1, "rooms", False)
        await harness.until_rows(coordinator, nodes, [result, leaf])
        await harness.until(lambda: coordinator.query(nodes).settled, "it comes to rest")
        version = coordinator._system._tables._tables["sys_nodes"].look()
        await harness.start_query(coordinator, ROOMS, name="again")
        leaf, result = ((*row[:4], 2, *row[5:]) for row in (leaf, result))
        result = (*result[:3], 2, *result[4:])
        await harness.until_rows(coordinator, nodes, [result, leaf])
        assert coordinator._system._tables._tables["sys_nodes"].look() > version
        await coordinator.stop(rooms)
        leaf, result = ((*row[:4], 1, "again", False) for row in (leaf, result))
        result = (*result[:3], 1, *result[4:])
        await harness.until_rows(coordinator, nodes, [result, leaf])
        await coordinator.stop("again")
        await harness.until_rows(coordinator, nodes, [])
        kinds = "SELECT COUNT(*) AS n FROM sys_nodes WHERE kind = 'rows' AND run = 'q1'"
        counted = await harness.start_query(coordinator, kinds)
        await harness.until_rows(coordinator, counted, [(0,)])
        for query in (counted, nodes):
            await harness.until_status(coordinator, query, QueryStatus.RUNNING)

    harness.run(scenario)
