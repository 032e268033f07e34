"""A run whose feeder gets another plan is planned again, not left with an old copy of it."""

from typing import Any

from msgspec.structs import replace

from federated_optimizer.coordinator.statements.feeding import loses_results
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle

LINKS = "SELECT src, dst, cost FROM Link"
REACH = (
    "WITH RECURSIVE reach (a, b) AS (SELECT src, dst FROM Link UNION "
    "SELECT r.a, l.dst FROM reach r JOIN Link l ON l.src = r.b) SELECT a, b FROM reach"
)
CLOSURE = {("a", "b"), ("b", "c"), ("a", "c")}


def test_only_results_count_as_lost() -> None:
    leaf = Fragment("f2", Engine.GATEWAY, None, ("gw",), "f1", ("base",))  # type: ignore[arg-type]
    copy = replace(leaf, id="f1", engine=Engine.BASE, sites=("base",), consumer="f0")
    own = replace(copy, id="f0", consumer="", destinations=())
    read = Feed("f1", "q1", 1, "f0"), Feed("f2", "q1", 1, "f1")
    bundle = FragmentBundle("q2", 1, (own, copy, leaf), None, feeds=read)  # type: ignore[arg-type]
    assert not loses_results(bundle, read)
    assert not loses_results(bundle, read[:1])
    assert loses_results(bundle, read[1:])


def test_a_query_that_begins_while_its_feeder_is_planned_again_has_all_rows(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=0)
        links = await harness.start_query(coordinator, LINKS)
        first = coordinator._queries.find(links).bundle
        replanning = coordinator._replanning
        replanning.soon(3_600)
        await federation.site("gw-1")
        await harness.until(lambda: coordinator._planner.topology().gateways, "a gateway")
        reach = await harness.start_query(coordinator, REACH)
        reader = coordinator._queries.find(reach).bundle
        assert [reader.fragment(f.fragment).engine for f in reader.feeds] == [Engine.BASE]
        # Where queries come all the time there are always some like it: it is planned again when
        # its feeder has got another plan, and not because that may be.
        assert not coordinator._queries.late_runs
        await replanning._plan_again([links])
        replanning._planned_for = replanning._inputs()
        replanning.due = coordinator._queries.planning_since = None
        assert coordinator._queries.find(links).bundle.version > first.version
        federation.sites["gw-1"].put("link", ("a", "b", 1.0), ("b", "c", 1.0))
        await harness.until(lambda: len(coordinator.relation(links)) == 2, "both links")
        looks: list[bool] = []  # a mark may be early by one report, never wrong for long

        def is_whole() -> bool:
            rows = set(coordinator.relation(reach))
            looks.append(rows != CLOSURE and coordinator.query(reach).settled)
            assert sum(looks) < 20, f"settled without rows: {rows}"
            return rows == CLOSURE

        await harness.until(is_whole, "the second query has all rows")
        await harness.until(lambda: coordinator.query(reach).settled, "settled")

    harness.run(scenario)
