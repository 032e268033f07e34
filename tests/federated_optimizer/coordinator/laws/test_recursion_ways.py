"""Recursions that gateways compute together: every way, prices, work, and gateways that go."""

from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from streamsql.errors import UnsupportedError

LINKS = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("a", "d"), ("e", "f")]
OWNER = {"a": "gw-1", "b": "gw-2", "c": "gw-3", "d": "gw-1", "e": "gw-2"}
REACHABLE = "SELECT src, dst FROM reachable WITH (way = '{}')"


def closure(links: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return what links lead to, by iteration."""
    found = set(links)
    while True:
        more = {(a, d) for a, b in links for c, d in found if b == c} | found
        if more == found:
            return found
        found = more


def put(federation: Any, link: tuple[str, str], *, delete: bool = False) -> None:
    """Let a link come or go at its gateway."""
    federation.sites[OWNER[link[0]]].put("link", (*link, 1.0), delete=delete)


async def reaching(harness: Any, federation: Any, coordinator: Any, way: str) -> str:
    """Start the query of what is reachable; return its id when it has the answer for all links."""
    query: str = await harness.start_query(coordinator, REACHABLE.format(way))
    for link in LINKS:
        put(federation, link)
    await harness.until_rows(coordinator, query, closure(set(LINKS)))
    return query


@pytest.mark.parametrize("way", ["flood", "witness", "annotations", "centre"])
def test_every_way_gives_the_same_answer_and_says_what_it_did(harness: Any, way: str) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=3)
        await harness.until(lambda: len(coordinator.sites()) == 5)
        query = await harness.start_query(coordinator, REACHABLE.format(way))
        links = set(LINKS)
        for link in LINKS:
            put(federation, link)
        await harness.until_rows(coordinator, query, closure(links))
        for gone in (("c", "a"), ("d", "e"), ("a", "b")):
            put(federation, gone, delete=True)
            links.discard(gone)
            await harness.until_rows(coordinator, query, closure(links))
        put(federation, ("d", "e"))
        links.add(("d", "e"))
        await harness.until_rows(coordinator, query, closure(links))
        await harness.until(lambda: coordinator.query(query).settled)

        where = {"base"} if way == "centre" else {"gw-1", "gw-2", "gw-3"}
        explained = coordinator.explain(query)
        (recursion,) = explained.data["recursions"]
        assert (recursion["way"], recursion["forced"]) == (way, True)
        assert set(recursion["sites"]) == where
        assert {p["way"] for p in recursion["prices"]} == {
            "centre",
            "flood",
            "witness",
            "annotations",
        }
        work = recursion["sites_work"]
        assert set(work) == where
        assert sum(site["view_rows"] for site in work.values()) == len(closure(links))
        assert sum(site["leaf_rows"] for site in work.values()) == len(links)
        shipped = sum(site["sent_rows"] for site in work.values())
        assert (shipped > 0) == (way != "centre")
        assert f"Recursion reachable: way {way}" in explained.text
        rounds = sum(site["most_rounds"] for site in work.values())
        assert ("rounds per change" in explained.text) == (rounds > 0)  # a kernel has none
        for site in work.values():
            net = site["derived"] - site["deleted"]
            assert net == site["view_rows"] or site["rounds"], site  # rounds may derive rows again
        assert "last change by round: " in explained.text
        traffic = explained.data["traffic"]
        assert all(site["bytes"] > 0 for site in traffic.values())
        assert "Traffic:" in explained.text

    harness.run(scenario)


def test_what_does_not_go_together_is_refused(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        with pytest.raises(UnsupportedError, match="computes from base rows only"):
            await coordinator.execute(
                "SELECT * FROM reachable WITH (way = 'witness', strategy = 'recompute')"
            )

    harness.run(scenario)


def test_the_default_is_the_cheapest_and_explain_says_what_each_way_costs(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=3)
        await harness.until(lambda: len(coordinator.sites()) == 5)
        (text,) = await coordinator.execute("EXPLAIN (TYPE FEDERATED) SELECT * FROM reachable")
        lines = text.text.splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("Recursion reachable"))
        assert "way centre at base, because centre is cheapest" in lines[start]
        assert lines[start + 1].split() == ["way", "bytes/s", "ms", "computed", "at"]
        assert [line.split()[0] for line in lines[start + 2 : start + 6]] == [
            "centre",
            "flood",
            "witness",
            "annotations",
        ]
        assert lines[start + 2].endswith("base  <- taken")
        assert "bytes/s: only the order is reliable; this recursion has no" in lines[start + 6]
        assert "assumed: link: 400 rows" in lines[start + 7]

    harness.run(scenario)


@pytest.mark.parametrize("way", ["flood", "witness"])
def test_a_gateway_that_stays_away_is_done_without_until_it_is_back(harness: Any, way: str) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        for number in range(1, 4):
            await federation.site(f"gw-{number}")
        coordinator = await federation.coordinator(define_schema=True, patience=0.4)
        await harness.until(lambda: sum(site.online for site in coordinator.sites()) == 4)
        query = await reaching(harness, federation, coordinator, way)

        federation.broker.cut("gw-2")
        await federation.sites["gw-2"].stop()
        left = {link for link in LINKS if OWNER[link[0]] != "gw-2"}
        await harness.until_rows(coordinator, query, closure(left))
        await harness.until(lambda: coordinator.query(query).version == 2)
        await harness.until(lambda: coordinator.query(query).settled)
        info = coordinator.query(query)
        assert any("runs without gw-2" in warning for warning in info.warnings)

        await federation.site("gw-2", epoch=2)
        for link in LINKS:
            if OWNER[link[0]] == "gw-2":
                put(federation, link)
        await harness.until_rows(coordinator, query, closure(set(LINKS)))
        await harness.until(lambda: coordinator.query(query).settled)
        assert not coordinator.query(query).warnings

    harness.run(scenario)


@pytest.mark.parametrize("way", ["flood", "witness", "annotations"])
def test_a_gateway_that_restarts_in_time_keeps_its_part_of_the_plan(harness: Any, way: str) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=3)
        query = await reaching(harness, federation, coordinator, way)
        federation.broker.cut("gw-3")
        await federation.sites["gw-3"].stop()
        await federation.site("gw-3", epoch=2)
        put(federation, ("c", "d"))
        links = {link for link in LINKS if OWNER[link[0]] != "gw-3"} | {("c", "d")}
        await harness.until_rows(coordinator, query, closure(links))
        await harness.until(lambda: coordinator.query(query).settled)
        assert coordinator.query(query).version == 1
        traffic = coordinator.explain(query).data["traffic"]
        assert sum(site["snapshots"] for site in traffic.values()) > 0
        assert sum(site["resyncs"] for site in traffic.values()) > 0

    harness.run(scenario)


FROM_TABLE = (
    "WITH RECURSIVE near (mid, place) AS (SELECT mid, rid FROM Machines UNION "
    "SELECT n.mid, l.dst FROM near n JOIN Link l ON l.src = n.place) "
    "SELECT mid, place FROM near WHERE place <> 'r2' WITH (way = '{}')"
)


@pytest.mark.parametrize("way", ["flood", "witness", "annotations", "centre"])
def test_stored_rows_and_streams_of_few_gateways_travel_to_those_that_compute(
    harness: Any, way: str
) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        static = await federation.site("static", "static", sources=("machines", "machinesoftware"))
        static.put("machines", ("m1", "r1"), ("m2", "r2"))
        for number in range(1, 4):
            await federation.site(f"gw-{number}", sources=("link", "roomsensor"))
        await federation.site("gw-4", sources=("roomsensor",))
        coordinator = await federation.coordinator(define_schema=True)
        await harness.until(lambda: sum(site.online for site in coordinator.sites()) == 6)
        query = await harness.start_query(coordinator, FROM_TABLE.format(way))
        federation.sites["gw-1"].put("link", ("r1", "r2", 1.0))
        federation.sites["gw-2"].put("link", ("r2", "r3", 1.0))
        federation.sites["gw-3"].put("link", ("r3", "r1", 1.0))
        everything = [("m1", "r1"), ("m1", "r3"), ("m2", "r1"), ("m2", "r3")]
        await harness.until_rows(coordinator, query, everything)
        federation.sites["gw-2"].put("link", ("r2", "r3", 1.0), delete=True)
        await harness.until_rows(coordinator, query, [("m1", "r1")])
        static.put("machines", ("m3", "r3"))
        await harness.until_rows(coordinator, query, [("m1", "r1"), ("m3", "r1"), ("m3", "r3")])
        await harness.until(lambda: coordinator.query(query).settled)
        (recursion,) = coordinator.explain(query).data["recursions"]
        gateways = ["base"] if way == "centre" else ["gw-1", "gw-2", "gw-3"]
        assert list(recursion["sites"]) == gateways

    harness.run(scenario)


@pytest.mark.parametrize("way", ["centre", "flood", "witness"])
def test_a_recursion_that_needs_more_rounds_stops_and_no_other(harness: Any, way: str) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=3)
        await harness.until(lambda: len(coordinator.sites()) == 5)
        rest = (
            "r (src, dst) AS (SELECT src, dst FROM Link UNION SELECT l.src, r.dst FROM Link l "
            f"JOIN r ON r.src = l.dst) SELECT * FROM r WITH (way = '{way}')"
        )
        strict = await harness.start_query(coordinator, f"WITH RECURSIVE (LIMIT 2 ERROR) {rest}")
        cut = await harness.start_query(coordinator, f"WITH RECURSIVE (LIMIT 2 RETURN) {rest}")
        for link in (("a", "b"), ("b", "c")):
            put(federation, link)
        pairs = {("a", "b"), ("b", "c"), ("a", "c")}
        await harness.until_rows(coordinator, strict, pairs)
        await harness.until_rows(coordinator, cut, pairs)
        put(federation, ("c", "d"))
        await harness.until_status(coordinator, strict, QueryStatus.FAILED)
        assert "r needs more than 2 rounds" in coordinator.query(strict).error
        await harness.until_rows(coordinator, cut, pairs | {("c", "d"), ("b", "d")})
        # It takes over what the other one received of the links.
        await harness.until_status(coordinator, cut, QueryStatus.RUNNING)

    harness.run(scenario)
