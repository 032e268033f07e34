"""Equal queries run once: what sites run, what each of the queries shows, and who leaves when."""

from typing import Any

import pytest
from msgspec.structs import replace

from federated_optimizer.coordinator.contract.coordinator_model import Origin, QueryStatus
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.explaining.sharing_notes import NOTHING_SHARED
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.stored_runs import StoredQuery
from streamsql.errors import FederationError
from streamsql.library import library_views
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import QueryProblem
from streamsql.wire.site_messages import SiteRole

ROOMS = "SELECT rid, status FROM RoomSensor"
SEATS = (
    "SELECT s.mid, r.status FROM SeatSensor s JOIN RoomSensor r ON s.rid = r.rid "
    "WHERE s.weightLevel > 5"
)
OPEN = [("r1", "open")]


def exchanged(federation: Any) -> list[int]:
    """Return a list that collects the sizes of batches between sites from now on."""
    sizes: list[int] = []
    route = federation.broker.route

    def counting(topic: str, payload: bytes, qos: int, *, retain: bool) -> None:
        parts = federation.topics.parts(topic)
        if parts[0] == "q" and parts[2] in {"x", "out"}:
            sizes.append(len(payload))
        route(topic, payload, qos, retain=retain)

    federation.broker.route = counting
    return sizes


async def settled(harness: Any, coordinator: Any, *queries: str) -> None:
    await harness.until(lambda: all(coordinator.query(q).settled for q in queries), "settled")


def runs(federation: Any, site: str = "base") -> set[str]:
    return set(federation.sites[site].engine.queries)


def test_a_second_query_of_a_text_costs_the_network_nothing(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        federation.sites["gw-1"].put("roomsensor", *OPEN)
        first = await harness.start_query(coordinator, ROOMS)
        await harness.until_rows(coordinator, first, OPEN)
        await settled(harness, coordinator, first)
        sizes = exchanged(federation)
        others = [
            await harness.start_query(coordinator, text)
            for text in (ROOMS, f"{ROOMS}  WHERE TRUE", "select RID, Status from roomsensor")
        ]
        for other in others:
            assert coordinator.relation(other) == tuple(OPEN), "at once"
            assert coordinator.query(other).status == QueryStatus.RUNNING
            assert coordinator.query(other).settled
            assert coordinator.query(other).id == other
        assert federation.fragments() == {(first, s) for s in ("base", "gw-1", "gw-2")}
        assert sizes == []
        federation.sites["gw-2"].put("roomsensor", ("r2", "shut"))
        for query in (first, *others):
            await harness.until_rows(coordinator, query, [*OPEN, ("r2", "shut")])
        assert len(sizes) == 2, "one batch to the base site, one to the coordinator"
        assert [coordinator.query(q).changes for q in others] == [2, 2, 2]
        assert coordinator.query(others[1]).text == f"{ROOMS}  WHERE TRUE"

    harness.run(scenario)


def test_who_leaves_changes_nothing_for_the_others_and_the_last_one_ends_the_run(
    harness: Any,
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        queries = [await harness.start_query(coordinator, SEATS) for _ in range(3)]
        reader = coordinator.subscribe(queries[1])
        await harness.next_batch(reader)  # the snapshot
        await coordinator.stop(queries[0])
        assert runs(federation) == {queries[0]}, "the run keeps its name"
        federation.sites["gw-1"].put("roomsensor", *OPEN)
        federation.sites["gw-1"].put("seatsensor", ("m1", "r1", 9.0))
        for query in queries[1:]:
            await harness.until_rows(coordinator, query, [("m1", "open")])
        batch = await harness.next_batch(reader)
        while not batch.changes:
            batch = await harness.next_batch(reader)
        assert batch.query == queries[1], "readers know the query, not the run"
        await coordinator.stop(queries[2])
        await federation.broker.settle()
        assert runs(federation) == {queries[0]}
        await coordinator.stop(queries[1])
        await harness.until(lambda: not runs(federation) | runs(federation, "gw-1"), "gone")
        assert not federation.fragments()
        again = await harness.start_query(coordinator, SEATS)
        await harness.until_rows(coordinator, again, [("m1", "open")])
        assert runs(federation) == {again}

    harness.run(scenario)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{ROOMS} WITH (shared = 'no')", "shared = 'no'"),
        (f"ISTREAM({ROOMS})", "stream of changes"),
        ("SELECT rid, celsius FROM Temperature", "no readings of temperature"),
        ("SELECT query, rows FROM sys_queries", "sys_queries"),
    ],
)
def test_queries_whose_beginning_matters_run_alone(harness: Any, text: str, why: str) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        queries = [await harness.start_query(coordinator, text) for _ in range(2)]
        await harness.until(lambda: runs(federation) == set(queries), "both run")
        for said in (
            (await coordinator.execute(f"EXPLAIN (TYPE FEDERATED) {text}"))[0].text,
            coordinator.explain(queries[0]).text,
        ):
            (line,) = [line for line in said.splitlines() if line.startswith("Not shared")]
            assert why in line
        if "no'" in text:  # nor does anybody join it
            third = await harness.start_query(coordinator, ROOMS)
            await harness.until(lambda: runs(federation) == {*queries, third})

    harness.run(scenario)


def test_columns_of_other_names_are_other_queries(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        one = await harness.start_query(coordinator, ROOMS)
        other = await harness.start_query(coordinator, "SELECT rid, status AS s FROM RoomSensor")
        await harness.until(lambda: runs(federation) == {one, other})
        assert coordinator.query(other).schema.names == ("rid", "s")

    harness.run(scenario)


def test_a_run_is_redeployed_once_when_a_gateway_comes_and_no_reader_sees_a_gap(
    harness: Any,
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        federation.sites["gw-1"].put("roomsensor", *OPEN)
        queries = [await harness.start_query(coordinator, ROOMS) for _ in range(3)]
        await harness.until_rows(coordinator, queries[0], OPEN)
        readers = [coordinator.subscribe(query) for query in queries]
        assert all([(await harness.next_batch(reader)).snapshot for reader in readers])
        new = await federation.site("gw-2")
        new.put("roomsensor", ("r2", "shut"))
        for query in queries:
            await harness.until_rows(coordinator, query, [*OPEN, ("r2", "shut")])
        assert {coordinator.query(query).version for query in queries} == {2}
        assert federation.sites["base"].engine.queries == {queries[0]: 2}
        for reader in readers:
            seen: list[Any] = []
            while not seen:
                seen += (await harness.next_batch(reader)).changes
            assert [(change.diff, change.row) for change in seen] == [(1, ("r2", "shut"))]

    harness.run(scenario)


def test_a_query_that_is_stopped_for_its_own_reasons_stops_no_other(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        one, other = [await harness.start_query(coordinator, ROOMS) for _ in range(2)]
        reason = FederationError("its maker may not read it any more", code="not_allowed")
        coordinator._queries.fail(coordinator._queries.find(one), reason)
        assert coordinator.query(one).status == QueryStatus.FAILED
        federation.sites["gw-1"].put("roomsensor", *OPEN)
        await harness.until_rows(coordinator, other, OPEN)
        await settled(harness, coordinator, other)
        assert coordinator.relation(one) == ()
        third = await harness.start_query(coordinator, ROOMS)
        assert coordinator.relation(third) == tuple(OPEN)
        await coordinator.stop(other)
        await coordinator.stop(third)
        await harness.until(lambda: not runs(federation), "nobody reads it any more")
        assert coordinator.query(one).status == QueryStatus.FAILED

    harness.run(scenario)


def test_what_stops_a_run_at_a_site_is_said_of_each_of_its_queries(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        one, other = [await harness.start_query(coordinator, ROOMS) for _ in range(2)]
        await settled(harness, coordinator, one, other)
        said = QueryProblem(
            "step_budget", f"query {one} is stopped at site base: it took 9 s", "", 1, "base"
        )
        topic = federation.topics.error(one, "base")
        federation.sites["base"].client.publish(topic, encode_json(said), retain=True)
        for query in (one, other):
            await harness.until_status(coordinator, query, QueryStatus.FAILED)
            assert f"query {query} is stopped at site base" in coordinator.query(query).error
        third = await harness.start_query(coordinator, ROOMS)
        await harness.until(lambda: third in runs(federation), "it does not join what has failed")
        await settled(harness, coordinator, third)

    harness.run(scenario)


def test_queries_meet_when_a_view_changes_and_part_when_it_changes_back(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        bare = await harness.start_query(coordinator, "SELECT src, dst FROM Link")
        viewed = [
            await harness.start_query(coordinator, f"SELECT src, dst FROM reachable {where}")
            for where in ("", "", "WHERE TRUE")
        ]
        federation.sites["gw-1"].put("link", ("a", "b", 1.0), ("b", "c", 1.0))
        near, far = [("a", "b"), ("b", "c")], [("a", "b"), ("a", "c"), ("b", "c")]
        for query in viewed:
            await harness.until_rows(coordinator, query, far)
        assert len(runs(federation)) == 2
        await coordinator.execute("CREATE VIEW reachable AS SELECT src, dst FROM Link")
        for query in (bare, *viewed):
            await harness.until_rows(coordinator, query, near)
        await harness.until(lambda: runs(federation) == {bare}, "one run for all")
        await settled(harness, coordinator, bare, *viewed)
        assert {query.run for query in coordinator._queries.all()} == {bare}
        # Back to the library's, as if somebody had dropped the view.
        coordinator._shared.catalog.define(
            next(view for view in library_views() if view.name == "reachable"), replace=True
        )
        for query in viewed:
            await harness.until_rows(coordinator, query, far)
        await harness.until_rows(coordinator, bare, near)
        assert len(runs(federation)) == 2
        assert len({query.run for query in coordinator._queries.all()}) == 2
        await settled(harness, coordinator, bare, *viewed)

    harness.run(scenario)


def test_runs_are_shared_after_restarts_of_the_coordinator_and_of_the_base(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard()
        queries = [await harness.start_query(first, SEATS) for _ in range(3)]
        federation.sites["gw-1"].put("roomsensor", *OPEN)
        federation.sites["gw-1"].put("seatsensor", ("m1", "r1", 9.0))
        await harness.until_rows(first, queries[2], [("m1", "open")])
        await first.stop(queries[0])  # of whose name the run is
        await first.close()
        second = await federation.coordinator()
        for query in queries[1:]:
            await harness.until_rows(second, query, [("m1", "open")])
        await settled(harness, second, *queries[1:])
        await federation.sites["base"].stop()
        await federation.site("base", SiteRole.BASE, epoch=2)
        federation.sites["gw-1"].put("seatsensor", ("m2", "r1", 9.0))
        for query in queries[1:]:
            await harness.until_rows(second, query, [("m1", "open"), ("m2", "open")])
        await settled(harness, second, *queries[1:])
        assert federation.sites["base"].engine.queries == {queries[0]: 1}
        await second.stop(queries[1])
        await second.stop(queries[2])
        await harness.until(lambda: not federation.fragments())

    harness.run(scenario)


def test_equal_queries_of_a_catalog_of_the_former_release_are_brought_together(
    harness: Any,
) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard()
        queries = [await harness.start_query(first, ROOMS)]
        federation.sites["gw-1"].put("roomsensor", *OPEN)
        await harness.until_rows(first, queries[0], OPEN)
        bundle = first._queries.find(queries[0]).bundle
        await first.close()
        # The former release stored and deployed a bundle per query, under the query's own name.
        store = CatalogStore(f"sqlite:///{federation.folder}/catalog.db")
        store.claim(0)
        for number in range(2):
            query = f"q{store.next_query_number()}"
            queries.append(query)
            own = replace(bundle, query=query)
            created = 2**60 + number
            store.put_query(StoredQuery(query, query, ROOMS, Origin.USER, created, own))
        store.close()
        second = await federation.coordinator()
        readers = [second.subscribe(query, snapshot=False) for query in queries]
        for query in queries:
            await harness.until_rows(second, query, OPEN)
        await harness.until(lambda: runs(federation) == {queries[0]}, "one run")
        await harness.until(lambda: {q for q, _ in federation.fragments()} == {queries[0]})
        federation.sites["gw-2"].put("roomsensor", ("r2", "shut"))
        for query in queries:
            await harness.until_rows(second, query, [*OPEN, ("r2", "shut")])
        await settled(harness, second, *queries)
        for reader in readers:
            seen: list[Any] = []
            while len(seen) < 2:
                seen += (await harness.next_batch(reader)).changes
            assert [c.row for c in seen if c.diff == 1] == [*OPEN, ("r2", "shut")], "no gap"
        await second.close()
        third = await federation.coordinator()
        assert {third._queries.find(query).bundle.query for query in queries} == {queries[0]}

    harness.run(scenario)


@pytest.mark.parametrize("stored", [1, 2])
def test_a_redeployment_that_was_interrupted_goes_on_with_the_newest_bundle(
    harness: Any, stored: int
) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard(gateways=1)
        queries = [await harness.start_query(first, ROOMS) for _ in range(3)]
        bundle = first._queries.find(queries[0]).bundle
        await first.close()
        store = CatalogStore(f"sqlite:///{federation.folder}/catalog.db")
        store.claim(0)
        one = list(store.queries())[stored]
        newer = replace(bundle, version=bundle.version + 1)
        store.put_query(StoredQuery(one.id, one.name, ROOMS, Origin.USER, one.created, newer))
        store.close()
        second = await federation.coordinator()
        federation.sites["gw-1"].put("roomsensor", *OPEN)
        for query in queries:
            await harness.until_rows(second, query, OPEN)
        await settled(harness, second, *queries)
        assert federation.sites["base"].engine.queries == {queries[0]: 2}

    harness.run(scenario)


def test_explain_names_the_queries_that_share_a_run(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        (before,) = await coordinator.execute(f"EXPLAIN (TYPE FEDERATED) {ROOMS}")
        assert before.text.endswith(NOTHING_SHARED)
        one = await harness.start_query(coordinator, ROOMS, name="one")
        (before,) = await coordinator.execute(f"EXPLAIN (TYPE FEDERATED) {ROOMS}")
        assert before.text.endswith("Shared with 1 equal query: one")
        await harness.start_query(coordinator, ROOMS, name="two")
        await harness.start_query(coordinator, ROOMS, name="three")
        assert "\nShared with 2 equal queries: two, three" in coordinator.explain(one).text
        (analyzed,) = await coordinator.execute(f"EXPLAIN ANALYZE {ROOMS}")
        assert "\nShared with 2 equal queries: one, two" in analyzed.text
        (data,) = await coordinator.execute(f"EXPLAIN (TYPE FEDERATED, FORMAT JSON) {ROOMS}")
        assert data.data["shared"] == {
            "alone": "",
            "queries": ["one", "two", "three"],
            "hidden": 0,
            "fragments": {},
            "nodes": {},
        }

    harness.run(scenario)


def test_explain_names_no_query_that_whoever_asks_may_not_read(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute(f"CREATE VIEW Shown AS {ROOMS}")
        await coordinator.execute("GRANT SELECT ON VIEW Shown TO ROLE analyst")
        await harness.start_query(coordinator, ROOMS, name="secret")
        viewer = coordinator.on_behalf(Principal("visitor", Role.ANALYST))
        (before,) = await viewer.execute("EXPLAIN (TYPE FEDERATED) SELECT * FROM Shown")
        hidden = "Shared with 1 equal query, 1 of which you may not see"
        assert before.text.splitlines()[-1] == hidden
        mine = await harness.start_query(viewer, "SELECT * FROM Shown", origin="session")
        reader = viewer.subscribe(mine)
        assert hidden in viewer.explain(mine).text.splitlines()
        assert "secret" not in viewer.explain(mine).text
        assert viewer.explain(mine).data["shared"] == {
            "alone": "",
            "queries": [],
            "hidden": 1,
            "fragments": {},
            "nodes": {},
        }
        assert "Shared with 1 equal query: " + mine in coordinator.explain("secret").text
        await reader.close()

    harness.run(scenario)


def test_the_order_of_a_query_outlives_the_coordinator(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard(gateways=1)
        down = f"{ROOMS} ORDER BY rid DESC"
        up = await harness.start_query(first, ROOMS)
        query = await harness.start_query(first, down)
        federation.sites["gw-1"].put("roomsensor", *OPEN, ("r2", "shut"))
        await harness.until_rows(first, query, [*OPEN, ("r2", "shut")])
        assert runs(federation) == {up}, "an order is for showing only"
        assert first.relation(query) == (("r2", "shut"), *OPEN)
        await first.close()
        second = await federation.coordinator()
        await harness.until_rows(second, query, [*OPEN, ("r2", "shut")])
        assert second.relation(query) == (("r2", "shut"), *OPEN)
        assert second.relation(up) == (*OPEN, ("r2", "shut"))

    harness.run(scenario)
