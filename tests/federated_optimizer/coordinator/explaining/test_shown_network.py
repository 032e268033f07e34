"""The network as an operator and as others see it: equal queries, equal fragments, and rights."""

from typing import Any

import pytest

from federated_optimizer.coordinator.computations.run_nodes import NOTHING_LEFT
from federated_optimizer.coordinator.contract.network_model import NetworkNode, NodeKind
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.explaining import shown_network
from federated_optimizer.sharing.strategy import Strategy
from streamsql.errors import DeploymentError
from tests.docs.markdown import ROOT, blocks

ROOMS = "SELECT rid, status FROM RoomSensor"
OPEN = "SELECT rid FROM RoomSensor WHERE status = 'open'"
SEATS = "SELECT mid, rid FROM SeatSensor WHERE weightLevel > 5"
ANN = Principal("ann", Role.ANALYST)
OPERATOR = Principal("olga", Role.OPERATOR)


def by_name(coordinator: Any, **asked: Any) -> dict[str, NetworkNode]:
    return {node.name: node for node in coordinator.network(**asked).nodes}


async def started(harness: Any, coordinator: Any, **texts: str) -> None:
    for name, text in texts.items():
        await harness.start_query(coordinator, text, name=name)


def test_equal_queries_rest_on_one_node(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"), ("r2", "shut"))
        await started(harness, coordinator, first=ROOMS, second=ROOMS, third=ROOMS)
        await harness.until_rows(coordinator, "third", [("r1", "open"), ("r2", "shut")])
        await harness.until(lambda: coordinator.query("third").settled, "settled")
        nodes = by_name(coordinator)
        assert set(nodes) == {"1", "1/f1"}
        result, leaf = nodes["1"], nodes["1/f1"]
        assert (result.direct, result.resting, result.owner) == (3, 3, "first")
        assert [query.name for query in result.queries] == ["first", "second", "third"]
        assert (result.reads, leaf.readers) == (("1/f1",), ("1",))
        assert (leaf.direct, leaf.resting, leaf.queries) == (0, 3, ())
        assert leaf.computes.endswith("roomsensor")
        assert (leaf.sites, leaf.sources) == (("gw-1", "gw-2"), ("roomsensor",))
        assert result.rows == 2
        assert leaf.rows is None
        await coordinator.stop("first")
        nodes = by_name(coordinator)
        assert (nodes["1"].direct, nodes["1"].owner) == (2, "second")
        for name in ("second", "third"):
            await coordinator.stop(name)
        assert coordinator.network().nodes == ()
        assert coordinator.network().queries == 0

    harness.run(scenario)


JOINED = f"SELECT s.mid FROM ({SEATS}) s, (SELECT MAX(status) AS top FROM RoomSensor) r"


def test_what_is_read_from_another_run_is_a_node_of_that_run(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        left = f"SELECT s.mid FROM ({SEATS}) s LEFT JOIN RoomSensor r ON s.mid = r.rid"
        await started(harness, coordinator, one=JOINED, two=left)
        nodes = by_name(coordinator)
        leaf = nodes["1/f1"]
        assert (leaf.readers, leaf.resting) == (("1", "2"), 2)
        assert nodes["2"].reads == ("1/f1",)
        said = coordinator.explain("two").text
        words = "Fragment f1 reads node 1/f1, shared with 1 query; adds nothing"
        assert f"{words}\n  node 1/f1: 1 other query: one" in said
        assert "reads node" not in coordinator.explain("one").text
        await coordinator.stop("one")
        kept = [node for node in by_name(coordinator).values() if node.run == "q1"]
        assert {node.name for node in kept} == {"1", "1/f1"}, "nobody reads what f2 delivers"
        assert by_name(coordinator)["1"].computes == NOTHING_LEFT
        assert all(node.kept and not node.owner for node in kept)
        assert by_name(coordinator)["1/f1"].resting == 1

    harness.run(scenario)


def test_a_node_that_is_made_for_others_is_kept_for_them(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await started(harness, coordinator, one=JOINED, two=f"{JOINED} WHERE s.mid <> r.top")
        nodes = by_name(coordinator)
        assert (nodes["2"].kept, nodes["2"].kind, nodes["2"].direct) == (True, NodeKind.JOIN, 0)
        assert (nodes["3"].reads, nodes["3"].kind) == (("2",), NodeKind.SELECTION)
        said = coordinator.explain("two").text
        assert "reads node 2, which no other query reads yet; adds 1 filter" in said
        await started(harness, coordinator, three=f"{JOINED} WHERE s.mid > r.top")
        assert by_name(coordinator)["2"].resting == 2
        said = coordinator.explain("three").text
        assert (
            "reads node 2, shared with 1 query; adds 1 filter\n  node 2: 1 other query: two" in said
        )
        assert coordinator.network().queries == 3
        mine = coordinator.on_behalf(ANN)
        await coordinator.execute("GRANT SELECT ON SOURCE SeatSensor TO ROLE analyst")
        assert mine.network().nodes == ()

    harness.run(scenario)


def test_others_see_the_nodes_below_queries_that_they_may_read(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await started(harness, coordinator, rooms=ROOMS, seats=SEATS, more=SEATS)
        mine = coordinator.on_behalf(ANN)
        assert (mine.network().nodes, mine.network().hidden) == ((), 4)
        await coordinator.execute("GRANT SELECT ON SOURCE RoomSensor TO ROLE analyst")
        seen = mine.network()
        assert {node.name for node in seen.nodes} == {"1", "1/f1"}
        assert (seen.hidden, seen.queries) == (2, 3)
        assert len(coordinator.on_behalf(OPERATOR).network().nodes) == 4
        limited = Principal("olga", Role.OPERATOR, sources=("seatsensor",))
        assert {n.name for n in coordinator.on_behalf(limited).network().nodes} == {"2", "2/f1"}
        (shown,) = await mine.execute("SHOW NETWORK")
        assert [row[0] for row in shown.rows] == ["1", "1/f1"]
        assert shown.message == "not listed: 2 nodes of queries that you may not read"

    harness.run(scenario)


def test_the_most_used_nodes_come_first_and_the_others_are_counted(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(sharing=Strategy.OFF)
        await started(harness, coordinator, seats=SEATS, rooms=ROOMS, again=ROOMS, open=OPEN)
        found = coordinator.network(2)
        assert {node.name for node in found.nodes} == {"2", "2/f1"}
        assert found.unlisted == 4
        (shown,) = await coordinator.execute("SHOW NETWORK")
        first = dict(zip(shown.columns, shown.rows[0], strict=True))
        assert (first["node"], first["queries"], first["in all"]) == ("2", 2, 2)
        assert first["owner"] == "rooms"
        assert (shown.message, len(shown.rows)) == ("", 6)

    harness.run(scenario)


def test_a_query_that_the_coordinator_stops_leaves_the_network(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await started(harness, coordinator, rooms=ROOMS, seats=SEATS)
        assert "1" in by_name(coordinator)
        queries = coordinator._queries
        queries.fail(queries.find("rooms"), DeploymentError("too much"))
        assert set(by_name(coordinator)) == {"2", "2/f1"}

    harness.run(scenario)


def test_the_page_about_the_network_names_the_columns_that_its_statements_give(
    harness: Any,
) -> None:
    page = ROOT / "docs" / "network.md"
    (statement,) = [block.text for block in blocks(page, "sql") if "SHOW" in block.text]

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await started(harness, coordinator, rooms=ROOMS)
        (shown,) = await coordinator.execute(statement)
        assert len(shown.rows) == 2
        table = page.read_text(encoding="utf-8").partition("| column |")[2]
        documented = [name for row in table.split("\n|")[2:] for name in names_in(row)]
        assert documented[: len(shown.columns)] == list(shown.columns)

    harness.run(scenario)


def names_in(row: str) -> list[str]:
    """Return the names in backquotes of the first cell of a row."""
    return row.split("|", maxsplit=1)[0].strip().strip("`").split("`, `")


def test_readers_are_named_up_to_a_bound_and_the_others_counted(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        texts = {name: f"{JOINED} WHERE s.mid <> r.top || '{name}'" for name in "abcd"}
        await started(harness, coordinator, **texts)
        busy = max(coordinator.network().nodes, key=lambda node: len(node.readers))
        readers = len(busy.readers)
        assert readers > 2
        assert busy.more_readers == 0
        monkeypatch.setattr(shown_network, "MOST_READERS", readers - 1)
        found = by_name(coordinator)[busy.name]
        assert (found.readers, found.more_readers) == (busy.readers[:-1], 1)
        (listed,) = await coordinator.execute("SHOW NETWORK")
        assert readers in next(row for row in listed.rows if row[0] == busy.name)

    harness.run(scenario)
