"""Different queries with an equal fragment: its sites send once, whoever comes and goes."""

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from federated_optimizer.coordinator.contract.coordinator_model import Origin, QueryStatus
from federated_optimizer.coordinator.explaining.sharing_notes import NOTHING_SHARED
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.stored_runs import StoredQuery
from federated_optimizer.sharing.strategy import Strategy
from streamsql.algebra.operators import Plan, RemoteSource, transform_up
from streamsql.errors import FederationError
from streamsql.wire.codec import encode_json, encode_packed
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import QueryProblem
from streamsql.wire.site_messages import SiteRole

PAIRS = "SELECT l.src, l.dst, r.status FROM Link l JOIN RoomSensor r ON l.dst = r.rid"
JOIN = f"{PAIRS} WITH (plan = 1)"  # at the base: both sides are sent there
LEFT = "SELECT l.src, l.dst, r.status FROM Link l LEFT JOIN RoomSensor r ON l.dst = r.rid"
ANTI = (
    "SELECT l.src, l.dst FROM Link l "
    "WHERE NOT EXISTS (SELECT 1 FROM RoomSensor r WHERE r.rid = l.dst)"
)
ROWS: dict[str, list[tuple[Any, ...]]] = {
    JOIN: [("a", "r1", "open")],
    LEFT: [("a", "r1", "open"), ("b", "r9", None)],
    ANTI: [("b", "r9")],
}


def feed(federation: Any) -> None:
    federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
    federation.sites["gw-2"].put("link", ("a", "r1", 1.0), ("b", "r9", 1.0))


def exchanged(federation: Any) -> list[str]:
    """Return a list that collects the runs for which sites send each other batches from now on."""
    runs: list[str] = []
    route = federation.broker.route

    def noting(topic: str, payload: bytes, qos: int, *, retain: bool) -> None:
        parts = federation.topics.parts(topic)
        if parts[0] == "q" and parts[2] == "x":
            runs.append(parts[1])
        route(topic, payload, qos, retain=retain)

    federation.broker.route = noting
    return runs


def at(federation: Any, site: str) -> set[str]:
    return set(federation.sites[site].engine.queries)


def feeders(coordinator: Any, query: str) -> set[str]:
    return {feed.run for feed in coordinator._queries.find(query).bundle.feeds}


async def shown(harness: Any, coordinator: Any, queries: dict[str, str]) -> None:
    """Wait until queries show their rows and are settled."""
    for query, text in queries.items():
        found = lambda q=query: sorted(coordinator.relation(q), key=repr)  # noqa: E731
        wanted = sorted(ROWS[text], key=repr)
        await harness.until(
            lambda f=found, w=wanted: f() == w, f"{text}: {coordinator.query(query)}"
        )
    await harness.until(lambda: all(coordinator.query(q).settled for q in queries), "settled")


async def started(harness: Any, coordinator: Any) -> dict[str, str]:
    return {await harness.start_query(coordinator, text): text for text in (JOIN, LEFT, ANTI)}


def test_gateways_send_once_for_different_queries(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(sharing=Strategy.OFF)
        feed(federation)
        queries = await started(harness, coordinator)
        await shown(harness, coordinator, queries)
        first, left, anti = queries
        # The last one reads fewer columns of the rooms.
        assert at(federation, "gw-1") == {first, anti}
        assert at(federation, "base") == set(queries)
        assert feeders(coordinator, left) == feeders(coordinator, anti) == {first}
        runs = exchanged(federation)
        federation.sites["gw-1"].put("roomsensor", ("r1", "shut"))
        await harness.until_rows(coordinator, left, [("a", "r1", "shut"), ("b", "r9", None)])
        assert runs.count(first) == 1
        assert left not in runs
        said = coordinator.explain(left).text.splitlines()
        assert "Fragment f1 reads node 1/f1, shared with 2 queries; adds 1 join" in said
        assert f"  node 1/f1: 2 other queries: {first}, {anti}" in said
        assert "Fragment f2 reads node 1/f2, shared with 1 query" in said
        own = coordinator.explain(first).text.splitlines()
        assert f"Fragment f1 runs once with 2 other queries: {left}, {anti}" in own
        (before,) = await coordinator.execute(f"EXPLAIN (TYPE FEDERATED) {PAIRS} WHERE l.src > 'a'")
        assert NOTHING_SHARED in before.text

    harness.run(scenario)


def test_others_read_on_when_the_first_one_ends_and_show_no_gap(
    harness: Any,
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(sharing=Strategy.OFF)
        feed(federation)
        queries = await started(harness, coordinator)
        await shown(harness, coordinator, queries)
        first, left, anti = queries
        readers = {query: coordinator.subscribe(query) for query in (left, anti)}
        for reader in readers.values():
            await harness.next_batch(reader)
        await coordinator.stop(first)
        assert first in at(federation, "gw-1") & at(federation, "base"), "its run is a node"
        assert feeders(coordinator, left) == feeders(coordinator, anti) == {first}
        assert {coordinator.query(query).version for query in (left, anti)} == {1}
        await shown(harness, coordinator, {left: LEFT, anti: ANTI})
        federation.sites["gw-1"].put("roomsensor", ("r9", "open"))
        await harness.until_rows(coordinator, anti, [])
        for query, gone in ((left, ("b", "r9", None)), (anti, ("b", "r9"))):
            seen: list[Any] = []
            while not seen:
                seen += (await harness.next_batch(readers[query])).changes
            assert (-1, gone) in [(c.diff, c.row) for c in seen], "the first change there is"
        await coordinator.stop(left)
        await coordinator.stop(anti)
        await harness.until(lambda: not federation.fragments(), "nothing is left")

    harness.run(scenario)


def test_a_run_that_a_site_stops_takes_no_other_with_it(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(sharing=Strategy.OFF)
        feed(federation)
        queries = await started(harness, coordinator)
        await shown(harness, coordinator, queries)
        first, left, anti = queries
        said = QueryProblem("step_budget", f"query {first} is stopped", "", 1, "base")
        federation.sites["base"].engine.uninstall(first)
        topic = federation.topics.error(first, "base")
        federation.sites["base"].client.publish(topic, encode_json(said), retain=True)
        await harness.until_status(coordinator, first, QueryStatus.FAILED)
        await harness.until(lambda: first not in feeders(coordinator, left), "it reads no more")
        federation.sites["gw-2"].put("link", ("b", "r9", 1.0), delete=True)
        await harness.until_rows(coordinator, left, [("a", "r1", "open")])
        await harness.until_rows(coordinator, anti, [])
        await harness.until(lambda: coordinator.query(left).settled)
        assert not coordinator.query(left).error

    harness.run(scenario)


def test_a_query_that_is_stopped_by_the_coordinator_hands_its_fragments_over(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(sharing=Strategy.OFF)
        feed(federation)
        queries = await started(harness, coordinator)
        await shown(harness, coordinator, queries)
        first, left, anti = queries
        reason = FederationError("too large", code="result_limit")
        coordinator._queries.fail(coordinator._queries.find(first), reason)
        await harness.until(lambda: not feeders(coordinator, left), "it has its own fragments")
        await shown(harness, coordinator, {left: LEFT, anti: ANTI})

    harness.run(scenario)


def test_all_go_on_when_a_gateway_comes(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1, sharing=Strategy.OFF)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        queries = await started(harness, coordinator)
        first, left, _ = queries
        new = await federation.site("gw-2")
        new.put("link", ("a", "r1", 1.0), ("b", "r9", 1.0))
        await shown(harness, coordinator, queries)
        await harness.until(lambda: feeders(coordinator, left) == {first}, "it reads again")
        await shown(harness, coordinator, queries)
        assert left not in at(federation, "gw-2")
        fed = [query.bundle for query in coordinator._queries.all()]
        versions = {bundle.query: bundle.version for bundle in fed}
        assert all(f.version == versions[f.run] for bundle in fed for f in bundle.feeds)

    harness.run(scenario)


@pytest.mark.parametrize("name", ["base", "gw-1"])
def test_a_site_that_restarts_is_read_again(harness: Any, name: str) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(sharing=Strategy.OFF)
        feed(federation)
        queries = await started(harness, coordinator)
        await shown(harness, coordinator, queries)
        federation.broker.cut(name)
        await federation.sites[name].stop()
        role = SiteRole.BASE if name == "base" else SiteRole.GATEWAY
        await federation.site(name, role, epoch=2)
        if name == "gw-1":
            federation.sites[name].put("roomsensor", ("r1", "open"))
        await shown(harness, coordinator, queries)

    harness.run(scenario)


def test_fragments_are_shared_after_a_restart_of_the_coordinator(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard(sharing=Strategy.OFF)
        feed(federation)
        queries = await started(harness, first)
        await shown(harness, first, queries)
        bundles = {query.id: query.bundle for query in first._queries.all()}
        await first.close()
        second = await federation.coordinator(sharing=Strategy.OFF)
        await shown(harness, second, queries)
        assert {query.id: query.bundle for query in second._queries.all()} == bundles

    harness.run(scenario)


def test_fragments_of_a_catalog_of_the_former_release_are_shared(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard(sharing=Strategy.OFF)
        feed(federation)
        queries = await started(harness, first)
        await shown(harness, first, queries)
        await first.close()
        # The former release stored and deployed all fragments of each query.
        store = CatalogStore(f"sqlite:///{federation.folder}/catalog.db")
        store.claim(0)
        for stored in store.queries():
            bundle = replace(stored.bundle, feeds=())
            store.put_query(
                StoredQuery(
                    *(stored.id, stored.name, stored.text, Origin.USER, stored.created, bundle)
                )
            )
        store.close()
        second = await federation.coordinator(sharing=Strategy.OFF)
        _, left, _ = queries
        await harness.until(lambda: feeders(second, left), "it reads what others receive")
        await shown(harness, second, queries)
        await harness.until(lambda: left not in at(federation, "gw-1"))

    harness.run(scenario)


TWICE = (
    "SELECT r.rid, r.status FROM RoomSensor r UNION ALL SELECT r.rid, r.status FROM RoomSensor r"
    " WITH (plan = 2)"
)
ROWS[TWICE] = 2 * [("r1", "open")]


def doubled(bundle: FragmentBundle) -> FragmentBundle:
    """Return a bundle in which each reading of a fragment has one of its own, as there were."""
    top, below = bundle.fragments
    names = iter(("f1", "f2"))

    def renamed(node: Plan) -> Plan:
        return RemoteSource(next(names), node.columns) if isinstance(node, RemoteSource) else node

    plan = transform_up(top.plan, renamed)
    assert next(names, None) is None
    return replace(bundle, fragments=(replace(top, plan=plan), below, replace(below, id="f2")))


def test_rows_that_a_former_release_sent_twice_are_sent_once(harness: Any) -> None:
    """Sites run the stored bundle until the coordinator is there; its rows stay in view."""

    async def scenario(federation: Any) -> None:
        first = await federation.standard(sharing=Strategy.OFF)
        feed(federation)
        query = await harness.start_query(first, TWICE)
        await shown(harness, first, {query: TWICE})
        bundle = first._queries.find(query).bundle
        assert bundle.readers("f1") == ("f0", "f0")
        await first.close()
        former = replace(doubled(bundle), version=bundle.version + 1)
        store = CatalogStore(f"sqlite:///{federation.folder}/catalog.db")
        store.claim(0)
        (stored,) = store.queries()
        store.put_query(dataclasses.replace(stored, bundle=former))
        store.close()
        for site in former.sites:
            topic = federation.topics.fragment(query, site)
            federation.broker.route(topic, encode_packed(former), 1, retain=True)
        base = federation.sites["base"].engine
        await harness.until(lambda: base.queries[query] == former.version, "as it was stored")
        second = await federation.coordinator(sharing=Strategy.OFF)
        await harness.until(lambda: base.queries[query] > former.version, "planned again")
        assert second._queries.find(query).bundle.readers("f1") == ("f0", "f0")
        await shown(harness, second, {query: TWICE})
        runs = exchanged(federation)
        federation.sites["gw-1"].put("roomsensor", ("r1", "shut"))
        await harness.until_rows(second, query, 2 * [("r1", "shut")])
        assert runs.count(query) == 1

    harness.run(scenario)


MET = (
    "SELECT l.src, r.status FROM Link l JOIN RoomSensor r ON l.dst = r.rid"
    " UNION ALL SELECT l.src, r.status FROM Link l JOIN RoomSensor r ON l.src = r.rid"
)


@pytest.mark.parametrize("name", ["base", "gw-1", "gw-2"])
def test_rows_read_twice_by_joins_at_gateways_survive_restarts(harness: Any, name: str) -> None:
    """Rooms go to all gateways once, for both joins there."""

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(sharing=Strategy.OFF)
        rooms = [("a", "open"), ("r1", "shut"), ("r2", "open")]
        links = [("a", "r1", 1.0), ("b", "r9", 1.0), ("r2", "a", 1.0)]
        rows = [("a", "open"), ("a", "shut"), ("r2", "open"), ("r2", "open")]
        federation.sites["gw-1"].put("roomsensor", *rooms)
        federation.sites["gw-2"].put("link", *links)
        (told,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES {MET}")
        said = "roomsensor sent to all gateways of link"
        line = next(line for line in told.text.splitlines() if line.count(said) > 1)
        number = int(line.replace("*", " ").split()[0])
        query = await harness.start_query(coordinator, f"{MET} WITH (plan = {number})")
        bundle = coordinator._queries.find(query).bundle
        twice = [f.id for f in bundle.fragments if len(set(bundle.readers(f.id))) > 1]
        assert len(twice) == 1, coordinator.explain(query).text
        assert "read twice: its rows are sent once" in coordinator.explain(query).text
        await harness.until_rows(coordinator, query, rows)
        await harness.until(lambda: coordinator.query(query).settled, "settled")
        federation.broker.cut(name)
        await federation.sites[name].stop()
        role = SiteRole.BASE if name == "base" else SiteRole.GATEWAY
        again = await federation.site(name, role, epoch=2)
        if name == "gw-1":
            again.put("roomsensor", *rooms)
        if name == "gw-2":
            again.put("link", *links)
        await harness.until_rows(coordinator, query, rows)
        await harness.until(lambda: coordinator.query(query).settled, "settled again")
        federation.sites["gw-1"].put("roomsensor", ("a", "shut"))
        await harness.until_rows(coordinator, query, [("a", "shut"), *rows[1:3], ("r2", "shut")])

    harness.run(scenario)


def test_a_query_that_runs_alone_gives_and_takes_nothing(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(sharing=Strategy.OFF)
        feed(federation)
        alone = f"{PAIRS} WITH (plan = 1, shared = 'no')"
        one = await harness.start_query(coordinator, alone)
        left = await harness.start_query(coordinator, LEFT)
        other = await harness.start_query(coordinator, alone)
        await shown(harness, coordinator, {one: JOIN, left: LEFT, other: JOIN})
        assert not feeders(coordinator, left) | feeders(coordinator, other)
        assert at(federation, "gw-1") == {one, left, other}

    harness.run(scenario)
