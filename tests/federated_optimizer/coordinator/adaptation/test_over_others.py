"""A query moves to the result of a newer run where it sends much less then, and says so."""

from dataclasses import astuple
from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation.bundle_choice import reads_results
from federated_optimizer.coordinator.adaptation.caused_prices import CausedPrices
from federated_optimizer.coordinator.adaptation.moves import Moves
from federated_optimizer.coordinator.adaptation.reconsidered import reconsider
from federated_optimizer.coordinator.queries.planned_queries import planned_of
from federated_optimizer.coordinator.queries.planning.shared_planning import Reading
from federated_optimizer.costs.run_costs import RunCosts
from federated_optimizer.registering import computed_anew
from streamsql.algebra.operators import Scan, walk_plan
from streamsql.errors import DeploymentError
from streamsql.wire.bundles.trimmed_bundles import is_trimmed
from tests.federated_optimizer.coordinator.adaptation.test_adaptation import decisions, tell

PAIRS = "SELECT l.src, l.dst, r.status FROM Link l JOIN RoomSensor r ON l.dst = r.rid"
COUNTS = f"SELECT p.status, COUNT(*) AS n FROM ({PAIRS}) p GROUP BY p.status"
NAMES = "SELECT l.src FROM Link l JOIN RoomSensor r ON l.dst = r.rid WHERE r.status = 'open'"
REACH = (
    "WITH RECURSIVE reach(src, dst) AS (SELECT src, dst FROM Link UNION "
    "SELECT r.src, l.dst FROM reach r JOIN Link l ON l.src = r.dst) "
)
OUT = f"{REACH}SELECT src, COUNT(*) AS n FROM reach GROUP BY src"
STATES = "SELECT n.src, s.status FROM reach n JOIN RoomSensor s ON s.rid = n.dst"
FROM_B = f"{REACH}SELECT dst FROM reach WHERE src >= 'b'"
QUICK = 0.5
ODD = f"{PAIRS} AND l.src = r.status"
OPEN = "SELECT rid, status FROM RoomSensor WHERE status = 'open'"
HEAVY = "SELECT mid, rid FROM SeatSensor WHERE rid = 'gw-1-a'"
SEATS = "SELECT mid, rid FROM SeatSensor"
ALL = "SELECT rid, status FROM RoomSensor"


async def begun(harness: Any, federation: Any, adapt: float = QUICK) -> Any:
    await federation.site("base", "base")
    for gateway in ("gw-1", "gw-2"):
        site = await federation.site(gateway)
        site.put("roomsensor", (f"{gateway}-a", "open"), (f"{gateway}-b", "shut"))
    coordinator = await federation.coordinator(define_schema=True, adapt=adapt)
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


def test_queries_that_read_nothing_of_each_other_move_in_one_look(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(harness, federation)
        tell(coordinator, dict.fromkeys(("roomsensor", "seatsensor"), (1_000.0, 20.0)))
        adapting, looks = coordinator._adaptation, list[int]()
        narrow = [await harness.start_query(coordinator, text) for text in (OPEN, HEAVY)]
        for query in narrow:
            await harness.until(lambda q=query: is_looked_at(coordinator, q), "a look")
        with monkeypatch.context() as held:
            held.setattr(adapting, "_may_look", lambda: False)
            wide = [await harness.start_query(coordinator, text) for text in (ALL, SEATS)]
            looked = max(adapting._known[query].looked for query in narrow)
            pause = int(QUICK * 1_000_000)
            await harness.until(lambda: adapting._now() > looked + pause, "they may be looked at")
        begin = adapting._moves.begin

        async def begins(*said: Any, **how: Any) -> Any:
            looks.append(adapting._looked)
            assert not how["silently"], "it sends less: gateways may send for it"
            return await begin(*said, **how)

        monkeypatch.setattr(adapting._moves, "begin", begins)
        for query, node in zip(narrow, wide, strict=True):
            await harness.until(lambda q=query, n=node: feeders(coordinator, q) == {n}, "it moves")
        assert len(looks) == 2
        assert len(set(looks)) == 1

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


def test_a_query_that_was_found_without_a_search_over_what_is_delivered_is_looked_at(
    harness: Any,
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(harness, federation)
        pairs = await harness.start_query(coordinator, f"{PAIRS} WITH (plan = 1)")
        narrow = await harness.start_query(coordinator, OPEN)
        await harness.until_rows(coordinator, narrow, [("gw-1-a", "open"), ("gw-2-a", "open")])
        bundle = coordinator._queries.find(narrow).bundle
        (feed,) = bundle.feeds
        assert (feed.run, bundle.alternative) == (pairs, 0)
        await harness.until(lambda: is_looked_at(coordinator, narrow), "a look")
        await coordinator.stop(pairs)
        await harness.until(lambda: len(decisions(coordinator)) > 0, "it is looked at again")
        assert decisions(coordinator)[0].plan_before == f"reads node {pairs[1:]}/{feed.source}"

    harness.run(scenario)


def sent_by(federation: Any, site: str) -> int:
    """Return the number of batches that a site has sent to the base."""
    engine = federation.sites[site].engine
    reports = filter(None, map(engine.flow, engine.queries))
    return sum(report.sent.get("base", 0) for report in reports)


def kept_at_base(federation: Any, run: str) -> int:
    """Return the rows that the operators of a run keep at the base."""
    fragments = federation.sites["base"].engine.statistics()
    return sum(each.state_rows for f in fragments if f.query == run for each in f.operators)


async def two_with_a_node(
    harness: Any, federation: Any, adapt: float = QUICK
) -> tuple[Any, str, str]:
    """Return a coordinator, a query that counts over a recursion, and one that wants its rows."""
    coordinator = await begun(harness, federation, adapt)
    links = [("a", "b", 1.0), ("b", "c", 1.0), ("a", "gw-1-a", 1.0), ("a", "gw-1-b", 1.0)]
    federation.sites["gw-2"].put("link", *links)
    first = await harness.start_query(coordinator, OUT)
    await harness.until(lambda: len(coordinator.relation(first)) == 2)
    second = await harness.start_query(coordinator, FROM_B)
    await harness.until(lambda: len(coordinator.relation(second)) == 1)
    return coordinator, first, second


def test_a_move_takes_the_work_of_filling_and_of_a_minute_beside(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, counts, _ = await two_with_a_node(harness, federation, adapt=0.0)
        tell(coordinator, {"link": (1_000.0, 1.0), "roomsensor": (10.0, 0.0)})
        query, adapting = coordinator._queries.find(counts), coordinator._adaptation
        planner, metric = adapting._planner, coordinator._shared.settings.metric
        found = reconsider(
            planner, [query], metric, adapting._fed, coordinator._queries.offers.looked()
        )
        assert found.work is not None
        assert found.over is not None
        statistics = planner.statistics(found.over)
        costs = RunCosts(found.over, statistics, planner.estimates(found.over))
        filling = sum(costs.filling(fragment.id) for fragment in found.over.own)
        assert filling > 0
        assert found.work.filling == pytest.approx(filling + 60 * found.work.after.value)
        assert found.before is not None
        assert found.work.before.milliseconds == found.before.cost.cpu
        assert found.work.after.kept == found.after.cost.state < found.before.cost.state
        # Readings take the same way to the answer.
        assert found.after.cost.milliseconds == found.before.cost.milliseconds > 0

    harness.run(scenario)


def test_what_runs_has_one_price_also_as_another_plan_for_it(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, counts, names = await two_with_a_node(harness, federation, adapt=0.0)
        tell(coordinator, {"link": (1_000.0, 1.0), "roomsensor": (10.0, 1.0)})
        wide = await harness.start_query(coordinator, ALL)
        narrow = await harness.start_query(coordinator, OPEN)
        for left_alone in (False, True):
            for query in (narrow, counts, names):
                running, adapting = coordinator._queries.find(query), coordinator._adaptation
                again = adapting._fed(planned_of(running), running.run)
                offers = coordinator._queries.offers.looked()
                prices = CausedPrices(adapting._planner, offers.runs, (running.run,))
                assert prices.now.cpu > 0
                # A run of which only leaves are read has a result of no rows, which takes steps.
                near = pytest.approx(astuple(prices.now), rel=0.1)
                assert astuple(prices.caused(again)) == near
                if query == narrow:
                    assert prices.has_company == left_alone
                    assert (prices.now.bytes > 0) == left_alone, "it causes the node"
            if not left_alone:
                await coordinator.stop(wide)

    harness.run(scenario)


def moves_of(coordinator: Any) -> list[Any]:
    return [d for d in decisions(coordinator) if d.outcome == "moved"]


async def looks(harness: Any, coordinator: Any, number: int) -> None:
    """Wait for some looks at plans."""
    for _ in range(number):
        looked = coordinator._adaptation._looked
        await harness.until(lambda seen=looked: coordinator._adaptation._looked != seen, "a look")


def test_an_older_query_moves_onto_the_node_of_its_part(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    begin = Moves.begin

    async def begins(moves: Moves, *said: Any, **how: Any) -> Any:
        asked.append(how)
        return await begin(moves, *said, **how)

    monkeypatch.setattr(Moves, "begin", begins)

    async def scenario(federation: Any) -> None:
        coordinator, counts, names = await two_with_a_node(harness, federation)
        former, (node,) = counts, feeders(coordinator, names)
        reader = coordinator.subscribe(counts, snapshot=False)
        sent = [sent_by(federation, site) for site in ("gw-1", "gw-2")]
        await harness.until(lambda: feeders(coordinator, counts) == {node}, "it reads the node")
        await harness.until(lambda: kept_at_base(federation, former) == 0, "it is computed once")
        assert [sent_by(federation, site) for site in ("gw-1", "gw-2")] == sent
        (left,) = (n for n in coordinator._shared.store.nodes() if n.run == former)
        assert is_trimmed(left.bundle), "it goes on to receive"
        assert {n.run for n in coordinator._queries.nodes.all()} == {node, former}
        assert coordinator.query(names).version == 1
        await harness.until(lambda: bool(moves_of(coordinator)))
        assert moves_of(coordinator)[0].plan_after == f"reads node {node[1:]}"
        assert [how["silently"] for how in asked] == [True], (
            "it is only less work: gateways may send nothing"
        )
        federation.sites["gw-2"].put("link", ("c", "d", 1.0))
        want = [("a", 5), ("b", 2), ("c", 1)]
        await harness.until_rows(coordinator, counts, want)
        changes: list[Any] = []
        while len(changes) < 5:
            changes += (await harness.next_batch(reader)).changes
        told = sorted((c.diff, c.row) for c in changes)
        assert told == [(-1, ("a", 4)), (-1, ("b", 1)), *((1, row) for row in want)]
        await harness.until_rows(coordinator, names, [("c",), ("d",), ("d",)])
        await looks(harness, coordinator, 12)
        assert len(moves_of(coordinator)) == 1, "plans do not take turns"
        assert {coordinator.query(q).run for q in (counts, names)}.isdisjoint({node, former})
        for query in (names, counts):
            await coordinator.stop(query)
        await harness.until(lambda: not federation.fragments(), "nothing is left")
        await harness.until(lambda: not coordinator._shared.store.nodes())

    harness.run(scenario)


def test_a_query_stays_where_gateways_would_send_anew_for_less_work(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(harness, federation, adapt=0.0)
        await harness.start_query(coordinator, "SELECT src, dst FROM Link")
        former = await harness.start_query(coordinator, f"{REACH}{STATES}")
        await harness.start_query(coordinator, FROM_B)
        query, adapting = coordinator._queries.find(former), coordinator._adaptation
        leaves = [node for f in query.bundle.own for node in walk_plan(f.plan)]
        scans = {node.source for node in leaves if isinstance(node, Scan)}
        assert scans == {"roomsensor"}, "the links are read of another run"
        planner, offers = adapting._planner, coordinator._queries.offers.looked()
        reading = Reading(offers, offers.for_moves([query]), makes_nodes=False)
        over = planner.placed(
            planner.bound(query.text, current=query.bundle),
            query=former,
            version=2,
            text=query.text,
            current=query.bundle,
            reading=reading,
        )
        assert reads_results(adapting._fed(over, former)), "there is such a plan"
        metric = coordinator._shared.settings.metric
        found = reconsider(planner, [query], metric, adapting._fed, offers)
        assert found.planned.bundle.runs_as(query.bundle)
        assert found.work is None
        # Nor does it begin if it is seen only then that they would.
        assert await adapting._moves.begin(over, [query], silently=True) is None
        move = await adapting._moves.begin(over, [query])
        assert move is not None
        await adapting._moves.give_up(move)

    harness.run(scenario)


def test_a_query_that_is_stopped_by_us_keeps_no_node(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, counts, names = await two_with_a_node(harness, federation)
        (node,) = feeders(coordinator, names)
        await harness.until(lambda: feeders(coordinator, counts) == {node}, "it reads the node")
        await coordinator.stop(names)
        assert node in {n.run for n in coordinator._queries.nodes.all()}
        queries = coordinator._queries
        queries.fail(queries.find(counts), DeploymentError("it has too many rows"))
        await harness.until(lambda: not queries.nodes.all(), "nobody reads them")
        await harness.until(lambda: not coordinator._shared.store.nodes())
        await harness.until(lambda: not federation.fragments(), "nothing is left")
        assert counts in {query.id for query in coordinator.queries()}, "it is still listed"

    harness.run(scenario)


def test_a_coordinator_that_is_killed_while_queries_change_over_leaves_them_right(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, counts, names = await two_with_a_node(harness, federation)
        former, (node,) = counts, feeders(coordinator, names)
        store = coordinator._shared.store

        def stored() -> dict[str, str]:
            return {query.id: query.bundle.query for query in store.queries()}

        with monkeypatch.context() as killed:
            killed.setattr(Moves, "_change_over", lambda *_: ())
            await harness.until(lambda: stored()[counts] != former, "it is stored")
            # The node came in the same transaction: what reads the former run finds it.
            assert {n.run for n in store.nodes()} == {node, former}
            again = await federation.coordinator(adapt=0)
        assert again.query(counts).run == stored()[counts]
        await harness.until_rows(again, counts, [("a", 4), ("b", 1)])
        await harness.until(lambda: again.query(counts).settled)
        assert sorted(again.relation(names)) == [("c",)]
        federation.sites["gw-2"].put("link", ("c", "d", 1.0))
        await harness.until_rows(again, counts, [("a", 5), ("b", 2), ("c", 1)])
        await harness.until_rows(again, names, [("c",), ("d",), ("d",)])
        for query in (names, counts):
            await again.stop(query)
        await harness.until(lambda: not federation.fragments(), "nothing is left")
        await harness.until(lambda: not again._shared.store.nodes())

    harness.run(scenario)


@pytest.mark.parametrize("metric", ["bytes", "latency"])
def test_a_query_stays_where_reading_costs_more_than_its_join(harness: Any, metric: str) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(harness, federation)
        # A room that changes changes a hundred rows of the join, each of which would be read. And
        # nothing is there sooner: readings take the same way.
        tell(coordinator, {"link": (1_000.0, 0.01), "roomsensor": (10.0, 10.0)})
        counts = await harness.start_query(coordinator, f"{COUNTS} WITH (metric = '{metric}')")
        names = await harness.start_query(coordinator, NAMES)
        run = coordinator.query(counts).run
        (node,) = feeders(coordinator, names)
        assert node not in (counts, names)
        await harness.until(lambda: is_looked_at(coordinator, run), "a look")
        await looks(harness, coordinator, 6)
        assert coordinator.query(counts).run == run
        assert not moves_of(coordinator)

    harness.run(scenario)


def test_a_query_moves_onto_a_node_where_rows_are_kept_twice_though_hardly_any_changes(
    harness: Any,
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(harness, federation)
        tell(coordinator, {"link": (100_000.0, 0.0), "roomsensor": (10.0, 0.0)})
        counts = await harness.start_query(coordinator, OUT)
        names = await harness.start_query(coordinator, FROM_B)
        (node,) = feeders(coordinator, names)
        await harness.until(lambda: feeders(coordinator, counts) == {node}, "it reads the node")
        await harness.until(lambda: bool(moves_of(coordinator)))

    harness.run(scenario)


def test_a_query_that_is_left_alone_with_a_node_does_without(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begun(harness, federation)
        wide = await harness.start_query(coordinator, ALL)
        narrow = await harness.start_query(coordinator, OPEN)
        rows = [("gw-1-a", "open"), ("gw-2-a", "open")]
        await harness.until_rows(coordinator, narrow, rows)
        assert feeders(coordinator, narrow) == {wide}
        run = coordinator.query(narrow).run
        await harness.until(lambda: is_looked_at(coordinator, run), "a look")
        reader = coordinator.subscribe(narrow, snapshot=False)
        await coordinator.stop(wide)
        await harness.until(lambda: not feeders(coordinator, narrow), "it does without")
        await harness.until(lambda: not coordinator._queries.nodes.all())
        await harness.until(lambda: any(d.outcome == "moved" for d in decisions(coordinator)))
        moved = next(d for d in decisions(coordinator) if d.outcome == "moved")
        assert moved.reason == f"nobody else reads node {wide[1:]} any more"
        federation.sites["gw-1"].put("roomsensor", ("gw-1-b", "open"))
        await harness.until_rows(coordinator, narrow, [*rows, ("gw-1-b", "open")])
        seen: list[Any] = []
        while not seen:
            seen += (await harness.next_batch(reader)).changes
        assert [(change.diff, change.row) for change in seen] == [(1, ("gw-1-b", "open"))]

    harness.run(scenario)


MANY_CHANGES = {"link": (100_000.0, 0.01), "roomsensor": (10.0, 10_000.0)}


def compares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small nodes are compared, and rows and changes of sources are all that has to be counted."""
    monkeypatch.setattr(computed_anew, "MANY_ROWS", 0)
    for gate in ("_may_hand_much", "_is_counted"):
        monkeypatch.setattr(computed_anew.Prices, gate, lambda *_: True)


async def pairs_and_odd(harness: Any, federation: Any, facts: Any) -> tuple[Any, str, str]:
    """Return a coordinator, a query of a join, and one of few of its rows."""
    coordinator = await begun(harness, federation)
    federation.sites["gw-2"].put("link", ("open", "gw-1-a", 1.0), ("b", "gw-1-b", 1.0))
    tell(coordinator, MANY_CHANGES)
    pairs = await harness.start_query(coordinator, PAIRS)
    tell(coordinator, facts)
    odd = await harness.start_query(coordinator, ODD)
    await harness.until_rows(coordinator, odd, [("open", "gw-1-a", "open")])
    return coordinator, pairs, odd


def test_what_is_computed_anew_moves_onto_no_node_for_the_same_facts(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compares(monkeypatch)

    async def scenario(federation: Any) -> None:
        coordinator, pairs, odd = await pairs_and_odd(harness, federation, MANY_CHANGES)
        assert not coordinator._queries.find(odd).bundle.results_read
        told = coordinator.explain(odd).text
        assert f"computes it anew: node {pairs[1:]} would hand on" in told
        run = coordinator.query(odd).run
        await harness.until(lambda: is_looked_at(coordinator, run), "a look")
        await looks(harness, coordinator, 6)
        assert not moves_of(coordinator)
        federation.sites["gw-1"].put("roomsensor", ("gw-1-b", "b"))
        rows = [("b", "gw-1-b", "b"), ("open", "gw-1-a", "open")]
        await harness.until_rows(coordinator, odd, rows)
        await coordinator.stop(pairs)
        federation.sites["gw-1"].put("roomsensor", ("gw-1-b", "shut"))
        await harness.until_rows(coordinator, odd, rows[1:])

    harness.run(scenario)


def test_what_is_read_is_left_for_nothing_that_a_new_query_would_compute_anew(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compares(monkeypatch)

    async def scenario(federation: Any) -> None:
        few = {"link": (1_000.0, 0.01), "roomsensor": (10.0, 0.01)}
        coordinator, pairs, odd = await pairs_and_odd(harness, federation, few)
        assert coordinator._queries.find(odd).bundle.results_read == {pairs}
        run = coordinator.query(odd).run
        await harness.until(lambda: is_looked_at(coordinator, run), "a look")
        tell(coordinator, MANY_CHANGES)
        await looks(harness, coordinator, 6)
        assert not moves_of(coordinator)
        coordinator._queries.has_old_plans = True
        coordinator._replanning.soon(0)
        await harness.until(lambda: coordinator._replanning.due is None, "it is planned again")
        assert coordinator._queries.find(odd).bundle.results_read == {pairs}
        assert coordinator.query(odd).version == 1

    harness.run(scenario)
