"""A running query takes another plan when a fact leaves its range; its readers do not notice."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from federated_optimizer.coordinator.adaptation import (
    adaptation,
    decision_rows,
    known_runs,
    move_gains,
    moves,
)
from federated_optimizer.coordinator.adaptation.reconsidered import PricedPlan, reconsider
from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.statistics.fact import Origin, Quantity, Subject, SubjectKind, exact
from host.clocks import monotonic_clock
from streamsql.algebra.metrics import Metric, Term
from streamsql.errors import DeploymentError
from streamsql.wire.bundles.trimmed_bundles import is_trimmed

TEXT = "SELECT s.mid, r.status FROM SeatSensor s JOIN RoomSensor r ON s.rid = r.rid"
ROWS = [(f"m{number}", f"s{number % 3}") for number in range(6)]
# Rows and changes a second of rooms and seats: where the join costs least is a matter of both.
AT_BASE = {"roomsensor": (10.0, 10.0), "seatsensor": (1_000.0, 100.0)}
AT_GATEWAYS = {"roomsensor": (1_000.0, 100.0), "seatsensor": (10.0, 0.01)}
ROOMS = [(f"r{number}", status) for number, (_, status) in enumerate(ROWS)]
QUICK = 0.2


def tell(coordinator: Any, facts: dict[str, tuple[float, float]]) -> None:
    """Put facts as if gateways had reported them."""
    for source, told in facts.items():
        subject = Subject(SubjectKind.SOURCE, source, "gw-1")
        for quantity, value in zip((Quantity.SENSORS, Quantity.CHANGES), told, strict=True):
            fact = exact(subject, quantity, value, coordinator._shared.clock(), Origin.COUNTED)
            coordinator._shared.facts.put(fact)


def decisions(coordinator: Any) -> list[Any]:
    return list(coordinator._shared.decisions.all())


def plan_of(coordinator: Any, query: str) -> int:
    alternative: int = coordinator._queries.find(query).bundle.alternative
    return alternative


async def looked_at(harness: Any, coordinator: Any, query: str) -> None:
    """Wait until what the plan of a query rests on is known."""

    def is_known() -> bool:
        run = coordinator._queries.find(query).run
        known = coordinator._adaptation._known.get(run)
        return known is not None and known.basis is not None

    await harness.until(is_known, "the basis of the plan")


async def started(
    harness: Any,
    federation: Any,
    text: str = TEXT,
    facts: Any = AT_GATEWAYS,
    rows: Any = None,
    **options: Any,
) -> Any:
    """Start a coordinator that looks often, and a query whose join is cheap by some facts."""
    await federation.site("base", "base")
    for gateway in ("gw-1", "gw-2"):
        await federation.site(gateway)
    coordinator = await federation.coordinator(define_schema=True, **{"adapt": QUICK, **options})
    await harness.until(lambda: sum(site.online for site in coordinator.sites()) == 3)
    tell(coordinator, facts)
    query = await harness.start_query(coordinator, text)
    for number, (seat, status) in enumerate(ROWS):
        site = federation.sites[f"gw-{1 + number % 2}"]
        site.put("seatsensor", (seat, f"r{number}", 1.0))
        site.put("roomsensor", (f"r{number}", status))
    await harness.until_rows(coordinator, query, rows or ROWS)
    return coordinator, query


def test_a_fact_that_leaves_its_range_moves_a_query(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        assert plan_of(coordinator, query) == 1
        before = coordinator.query(query)
        await looked_at(harness, coordinator, query)
        reader = coordinator.subscribe(query)
        assert len((await harness.next_batch(reader)).changes) == len(ROWS)  # the snapshot
        tell(coordinator, AT_BASE)
        await harness.until(lambda: plan_of(coordinator, query) != 1, "it moves")
        assert sorted(coordinator.relation(query)) == ROWS
        after = coordinator.query(query)
        assert (after.version, after.run != before.run) == (before.version + 1, True)
        assert after.changes == before.changes, "readers were told something"
        # Only the new run is left, at the sites and on the broker.
        await harness.until(lambda: {q for q, _ in federation.fragments()} == {after.run})
        engine = federation.sites["base"].engine
        await harness.until(lambda: set(engine.queries) == {after.run})
        federation.sites["gw-1"].put("roomsensor", ("r0", "new"))
        batch = await harness.next_batch(reader)
        told = sorted((change.diff, change.row) for change in batch.changes)
        assert told == [(-1, ("m0", "s0")), (1, ("m0", "new"))]
        (decision,) = decisions(coordinator)
        assert decision.outcome == "moved"
        assert "changes a second of seatsensor: 0.01 before, now 100" in decision.reason
        assert decision.plan_before.startswith("plan 1")
        assert "at the base" in decision.plan_after
        assert decision.bytes_before > 2 * decision.bytes_after > 0
        assert decision.switch_bytes > 0
        assert decision.switch_seconds > 0

    harness.run(scenario)


@pytest.mark.parametrize(
    ("option", "why"),
    [("plan = 1", "it asks for plan 1"), ("adapt = 'no'", "WITH (adapt = 'no') says so")],
)
def test_a_query_that_wants_its_plan_never_moves(harness: Any, option: str, why: str) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, f"{TEXT} WITH ({option})")
        await looked_at(harness, coordinator, query)
        tell(coordinator, AT_BASE)
        await harness.until(lambda: bool(decisions(coordinator)), "it is decided")
        (decision,) = decisions(coordinator)
        assert (decision.outcome, decision.detail) == ("kept", why)
        assert plan_of(coordinator, query) == 1
        tell(coordinator, AT_GATEWAYS)
        adapting = coordinator._adaptation
        said = adapting._now()
        await harness.until(lambda: adapting._looked > said + 3 * QUICK * 1_000_000, "it looks")
        assert decisions(coordinator) == [decision], "its plan is not made a third time"

    harness.run(scenario)


def test_the_former_plan_is_stored_again_as_soon_as_the_catalog_can_be_written(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moves, "REST_MICROSECONDS", 0)
    monkeypatch.setattr(moves.Moves, "_at_rest", lambda *_: False)
    monkeypatch.setattr(moves.Moves, "_may_follow", lambda *_: False)

    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        run = coordinator.query(query).run
        store = coordinator._shared.store

        def stored() -> str:
            (found,) = [each for each in store.queries() if each.id == query]
            assert found.bundle is not None
            name: str = found.bundle.query
            return name

        tries: list[str] = []

        def refuse(found: Any) -> None:
            tries.extend(each.id for each in found.queries)
            raise DeploymentError("the catalog cannot be written")

        await looked_at(harness, coordinator, query)
        tell(coordinator, AT_BASE)
        await harness.until(lambda: stored() != run, "the new plan is stored")
        with monkeypatch.context() as broken:
            broken.setattr(store, "put_runs", refuse)
            broken.setattr(moves, "MOVE_MICROSECONDS", 0)
            await harness.until(lambda: len(tries) >= 2, "it is tried again")
        await harness.until(lambda: stored() == run, "the former plan is stored")
        assert decisions(coordinator)[0].outcome == "given up"
        assert "both plans were never at rest at once" in decisions(coordinator)[0].detail

    harness.run(scenario)


def test_whoever_has_waited_longest_is_looked_at_first(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptation, "AT_ONCE", 1)
    monkeypatch.setattr(adaptation, "left_range", lambda *_: ["a fact that flaps"])
    monkeypatch.setattr(known_runs.KnownRun, "pause", lambda *_: 0)

    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        texts = ("SELECT mid FROM SeatSensor", "SELECT rid FROM RoomSensor")
        others = [await harness.start_query(coordinator, text) for text in texts]
        for each in (query, *others):
            await looked_at(harness, coordinator, each)

    harness.run(scenario)


def test_a_change_of_plan_has_to_pay(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(move_gains, "HORIZON_SECONDS", 0.1)

    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        await looked_at(harness, coordinator, query)
        tell(coordinator, AT_BASE)
        await harness.until(lambda: bool(decisions(coordinator)), "it is decided")
        (decision,) = decisions(coordinator)
        assert decision.outcome == "kept"
        assert "filling the other plan takes" in decision.detail
        assert plan_of(coordinator, query) == 1

    harness.run(scenario)


def test_what_a_move_has_brought_is_counted_for_a_minute(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        run = coordinator.query(query).run
        await looked_at(harness, coordinator, query)
        tell(coordinator, AT_BASE)
        await harness.until(
            lambda: decisions(coordinator)[-1:] and coordinator.query(query).run != run
        )
        await harness.until(lambda: decisions(coordinator)[0].outcome == "moved")
        adapting = coordinator._adaptation
        flows = coordinator._queries.find(query).flows

        def sent() -> int:
            return sum(traffic.bytes for traffic in flows.traffic().values())

        before = sent()
        federation.sites["gw-1"].put("roomsensor", ("r0", "new"))
        await harness.until_rows(coordinator, query, [("m0", "new"), *ROWS[1:]])
        await harness.until(lambda: coordinator.query(query).settled, "all is counted")
        brought = sent() - before
        assert brought > 0

        async def look_after(seconds: int) -> None:
            adapting._now = lambda: monotonic_clock() + seconds * 1_000_000
            begin = adapting._now()
            await harness.until(lambda: adapting._looked > begin, "it has looked")
            await harness.until(lambda: adapting._looked > begin + 500_000, "and again")

        await look_after(40)
        assert decisions(coordinator)[0].measured_after is None
        await look_after(100)
        rate = decisions(coordinator)[0].measured_after
        assert brought / 115 < rate <= brought / 100

    harness.run(scenario)


def test_what_the_change_takes_counts_in_messages_too(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        running = coordinator._queries.find(query)
        by_messages = Metric(((Term.MESSAGES, 1.0),))
        found = reconsider(coordinator._planner, [running], by_messages)
        why_kept = coordinator._adaptation._why_kept
        for saved_in_ten_minutes, is_kept in ((5.0, True), (7.0, False)):
            cost = Cost(messages=saved_in_ten_minutes / move_gains.HORIZON_SECONDS)
            priced = replace(found, before=PricedPlan("", cost), after=PricedPlan("", Cost()))
            why, movers = why_kept(priced, [running], changes=True)
            assert movers == ([] if is_kept else [running])
            # The bundle goes to three sites; two gateways and the base send their rows once.
            says = "filling the other plan takes 6 by messages; it saves 5 in 600 s"
            assert why == (says if is_kept else "")

    harness.run(scenario)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({Term.BYTES: 1.0, Term.LATENCY: 2.0}, "the other plan is being filled"),
        (
            {Term.LATENCY: 1.0},
            "the other plan is being filled; that has no price by latency: costing at most half "
            "suffices",
        ),
    ],
)
def test_a_change_without_a_price_is_said_to_have_none(
    weights: dict[Term, float], said: str
) -> None:
    weighing = Weighing(Metric(tuple(weights.items())))
    found: Any = SimpleNamespace(filling=Cost(500.0, messages=8.0), weighing=weighing, work=None)
    assert decision_rows.begun(found) == said


def test_without_adaptation_nothing_is_looked_at(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, adapt=0.0)
        tell(coordinator, AT_BASE)
        await asyncio.sleep(0.6)  # time passes: with adaptation it would have moved
        assert plan_of(coordinator, query) == 1
        assert not decisions(coordinator)

    harness.run(scenario)


def test_a_move_that_does_not_come_about_is_given_up_and_tried_later(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        await looked_at(harness, coordinator, query)
        before = coordinator.query(query)

        def stored() -> str:
            (found,) = coordinator._shared.store.queries()
            return str(found.bundle.query)

        tell(coordinator, AT_BASE)
        with monkeypatch.context() as never:
            never.setattr(moves, "REST_MICROSECONDS", 0)
            never.setattr(moves, "is_not_behind", lambda *_: False)
            never.setattr(moves.Moves, "_at_rest", lambda *_: False)
            await harness.until(lambda: stored() != before.run, "it may move amid changes")
            never.setattr(moves, "MOVE_MICROSECONDS", 0)
            await harness.until(
                lambda: any(d.outcome == "given up" for d in decisions(coordinator))
            )
            await harness.until(lambda: stored() == before.run, "the catalog has the old plan")
            assert coordinator.query(query).run == before.run
            (decision, *_) = decisions(coordinator)
            assert "both plans were never at rest at once" in decision.detail
        await harness.until(lambda: decisions(coordinator)[-1].outcome == "moved")
        after = coordinator.query(query)
        assert (after.changes, after.run != before.run) == (before.changes, True)
        await harness.until(lambda: {q for q, _ in federation.fragments()} == {after.run})

    harness.run(scenario)


def test_a_coordinator_that_ends_amid_a_busy_move_goes_on_with_the_new_run(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moves, "REST_MICROSECONDS", 0)
    monkeypatch.setattr(moves, "is_not_behind", lambda *_: False)
    monkeypatch.setattr(moves.Moves, "_at_rest", lambda *_: False)

    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        run = coordinator.query(query).run
        await looked_at(harness, coordinator, query)
        tell(coordinator, AT_BASE)
        store = coordinator._shared.store
        await harness.until(lambda: store.queries()[0].bundle.query != run, "the plan is stored")
        assert coordinator.query(query).run == run
        await coordinator.close()
        federation.sites["gw-1"].put("roomsensor", ("r0", "new"))
        later = await federation.coordinator(adapt=0.0)
        await harness.until_rows(later, query, [("m0", "new"), *ROWS[1:]])
        new = later.query(query).run
        assert new != run
        await harness.until(lambda: {q for q, _ in federation.fragments()} == {new})

    harness.run(scenario)


def test_equal_queries_move_together_and_one_that_may_not_stays(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        equal = await harness.start_query(coordinator, TEXT)
        fixed = await harness.start_query(coordinator, f"{TEXT} WITH (adapt = 'no')")
        run = coordinator.query(query).run
        assert {coordinator.query(q).run for q in (equal, fixed)} == {run}
        await looked_at(harness, coordinator, query)
        before = {q: coordinator.query(q).changes for q in (query, equal, fixed)}
        tell(coordinator, AT_BASE)
        await harness.until(lambda: coordinator.query(query).run != run, "they move")
        assert coordinator.query(equal).run == coordinator.query(query).run
        assert coordinator.query(fixed).run == run
        assert before == {q: coordinator.query(q).changes for q in before}
        told = [(d.queries, d.outcome, d.detail) for d in decisions(coordinator)]
        assert [each[:2] for each in told] == [(f"{query}, {equal}", "moved"), (fixed, "kept")]
        assert told[1][2] == "WITH (adapt = 'no') says so"
        federation.sites["gw-1"].put("roomsensor", ("r0", "new"))
        for each in before:
            await harness.until_rows(coordinator, each, [("m0", "new"), *ROWS[1:]])
        for each in (query, equal):
            await coordinator.stop(each)
        await harness.until(lambda: {q for q, _ in federation.fragments()} == {run})
        assert coordinator.query(fixed).status == "running"

    harness.run(scenario)


def test_counts_begin_when_the_query_reads_the_new_run(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        fixed = await harness.start_query(coordinator, f"{TEXT} WITH (adapt = 'no')")
        former = coordinator.query(query).run
        await looked_at(harness, coordinator, query)
        tell(coordinator, AT_BASE)
        await harness.until(lambda: coordinator.query(query).run != former, "it moves")
        run = coordinator.query(query).run

        def sent() -> dict[str, Any]:
            fragments = coordinator.explain(query).data["fragments"]
            return {f["id"]: f["measured"]["sent"]["rows"] for f in fragments if f["measured"]}

        assert set(sent().values()) == {0}, "what filled it is not counted"
        federation.sites["gw-1"].put("roomsensor", ("r0", "new"))
        await harness.until_rows(coordinator, query, [("m0", "new"), *ROWS[1:]])
        await harness.until(lambda: sum(sent().values()) > 0, "it counts")
        text = coordinator.explain(query).text
        assert f"Sent since this query began to read run {run}: " in text
        assert "which other queries read, too" not in text
        # Back to the run that it has left, which has sent the change for the other query.
        await harness.until(lambda: coordinator.query(fixed).settled)
        await looked_at(harness, coordinator, query)
        tell(coordinator, AT_GATEWAYS)
        await harness.until(lambda: coordinator.query(query).run == former, "it moves back")
        assert set(sent().values()) == {0}, "what was sent before is not counted"

    harness.run(scenario)


def test_a_run_whose_result_another_one_reads_stays_until_nobody_does(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, facts=AT_BASE)
        before = plan_of(coordinator, query)
        fixed = f"{TEXT} WHERE r.status <> 's2' WITH (adapt = 'no')"
        fed = await harness.start_query(coordinator, fixed)
        await harness.until_rows(coordinator, fed, [row for row in ROWS if row[1] != "s2"])
        run = coordinator.query(query).run
        assert {feed.run for feed in coordinator._queries.find(fed).bundle.feeds} == {run}
        await looked_at(harness, coordinator, query)
        tell(coordinator, AT_GATEWAYS)
        await harness.until(lambda: any(d.queries == query for d in decisions(coordinator)))
        (decision,) = [d for d in decisions(coordinator) if d.queries == query]
        assert (decision.outcome, decision.detail) == ("kept", f"its rows are read by {fed}")
        assert decision.plan_before != decision.plan_after
        assert (plan_of(coordinator, query), coordinator.query(fed).version) == (before, 1)
        await coordinator.stop(fed)
        await harness.until(lambda: plan_of(coordinator, query) != before, "it moves")
        (*_, decision) = [d for d in decisions(coordinator) if d.queries == query]
        assert decision.reason == "no other query needs it as it is any more"

    harness.run(scenario)


def test_a_run_is_left_to_those_who_read_what_it_receives(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, facts=AT_BASE)
        before, former = plan_of(coordinator, query), coordinator.query(query).run
        rooms = "SELECT rid, status FROM RoomSensor WITH (adapt = 'no')"
        fed = await harness.start_query(coordinator, rooms)
        await harness.until_rows(coordinator, fed, ROOMS)
        assert {feed.run for feed in coordinator._queries.find(fed).bundle.feeds} == {former}
        reader = coordinator.subscribe(fed, snapshot=False)
        await looked_at(harness, coordinator, query)
        tell(coordinator, AT_GATEWAYS)
        await harness.until(lambda: plan_of(coordinator, query) != before, "it moves")
        assert sorted(coordinator.relation(query)) == ROWS
        assert (coordinator.query(fed).run, coordinator.query(fed).version) == (fed, 1)

        def is_trimmed_in_the_catalog() -> bool:
            nodes = coordinator._shared.store.nodes()
            return [n.run for n in nodes if is_trimmed(n.bundle)] == [former]

        await harness.until(is_trimmed_in_the_catalog, "only what is read goes on")
        assert [d.outcome for d in decisions(coordinator) if d.queries == query] == ["moved"]
        federation.sites["gw-1"].put("roomsensor", ("r0", "new"))
        seen: list[Any] = []
        while not seen:
            seen += (await harness.next_batch(reader)).changes
        told = sorted((change.diff, change.row) for change in seen)
        assert told == [(-1, ROOMS[0]), (1, ("r0", "new"))]
        await harness.until_rows(coordinator, query, [("m0", "new"), *ROWS[1:]])
        await coordinator.stop(fed)
        await harness.until(lambda: not coordinator._shared.store.nodes(), "nobody reads it")
        await harness.until(
            lambda: {q for q, _ in federation.fragments()} == {coordinator.query(query).run}
        )

    harness.run(scenario)


def test_who_begins_to_read_what_is_left_while_a_busy_query_moves_has_a_stored_node(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moves, "REST_MICROSECONDS", 0)

    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, facts=AT_BASE)
        former = coordinator.query(query).run
        await looked_at(harness, coordinator, query)
        moving = coordinator._adaptation._moving.all
        with monkeypatch.context() as never:
            never.setattr(moves.Moves, "is_ready", lambda *_: False)
            never.setattr(moves.Moves, "counts_came", lambda *_: None)
            tell(coordinator, AT_GATEWAYS)
            await harness.until(lambda: any(m.may_be_busy for m in moving()), "busy")
            assert not coordinator._shared.store.nodes()
            rooms = "SELECT rid, status FROM RoomSensor WITH (adapt = 'no')"
            fed = await harness.start_query(coordinator, rooms)
        assert {feed.run for feed in coordinator._queries.find(fed).bundle.feeds} == {former}
        with monkeypatch.context() as never:
            never.setattr(moves.Moves, "is_ready", lambda *_: False)
            await harness.until(lambda: coordinator.query(query).run != former, "it moves")
            assert [node.run for node in coordinator._shared.store.nodes()] == [former]
        assert sorted(coordinator.relation(query)) == ROWS
        await harness.until_rows(coordinator, fed, ROOMS)

    harness.run(scenario)


def test_a_node_that_is_not_needed_in_the_end_is_in_no_catalog(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, facts=AT_BASE)
        former, store = coordinator.query(query).run, coordinator._shared.store
        rooms = "SELECT rid, status FROM RoomSensor WITH (adapt = 'no')"
        fed = await harness.start_query(coordinator, rooms)
        await looked_at(harness, coordinator, query)
        moving = coordinator._adaptation._moving.all
        monkeypatch.setattr(moves, "REST_MICROSECONDS", 0)
        with monkeypatch.context() as never:
            never.setattr(moves.Moves, "is_ready", lambda *_: False)
            never.setattr(moves.Moves, "counts_came", lambda *_: None)
            tell(coordinator, AT_GATEWAYS)
            await harness.until(lambda: any(m.may_be_busy for m in moving()), "busy")
            assert [node.run for node in store.nodes()] == [former]
            await coordinator.stop(fed)
        await harness.until(lambda: coordinator.query(query).run != former, "it moves")
        await harness.until(lambda: not moving() and not store.nodes(), "nothing is left of it")
        run = coordinator.query(query).run
        await harness.until(lambda: {q for q, _ in federation.fragments()} == {run})
        assert sorted(coordinator.relation(query)) == ROWS

    harness.run(scenario)


def test_a_move_is_given_up_when_another_query_begins_to_read_the_result(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation, facts=AT_BASE)
        await looked_at(harness, coordinator, query)
        with monkeypatch.context() as never:
            never.setattr(moves.Moves, "_at_rest", lambda *_: False)
            tell(coordinator, AT_GATEWAYS)
            await harness.until(lambda: bool(decisions(coordinator)), "it moves")
            assert coordinator._shared.store.nodes() == ()
            fed = await harness.start_query(coordinator, f"{TEXT} WHERE r.status <> 's2'")
            await harness.until(lambda: decisions(coordinator)[0].outcome == "given up")
        assert decisions(coordinator)[0].detail == f"its rows are read by {fed}"
        assert coordinator.query(fed).version == 1

    harness.run(scenario)


def test_what_another_run_sends_in_any_case_is_not_saved(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator, rooms = await started(
            harness, federation, "SELECT rid, status FROM RoomSensor", facts=AT_BASE, rows=ROOMS
        )
        query = await harness.start_query(coordinator, TEXT)
        await harness.until_rows(coordinator, query, ROWS)
        assert {f.run for f in coordinator._queries.find(query).bundle.feeds} == {rooms}
        before = plan_of(coordinator, query)
        await looked_at(harness, coordinator, query)
        tell(coordinator, AT_GATEWAYS)
        await harness.until(lambda: any(d.queries == query for d in decisions(coordinator)))
        (decision,) = [d for d in decisions(coordinator) if d.queries == query]
        assert decision.outcome == "kept"
        assert decision.detail == "no other plan is much cheaper"
        assert plan_of(coordinator, query) == before

    harness.run(scenario)


def test_a_run_on_trial_is_nobody_that_shares_a_fragment(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moves.Moves, "_at_rest", lambda *_: False)

    async def scenario(federation: Any) -> None:
        coordinator, query = await started(harness, federation)
        rooms = await harness.start_query(coordinator, "SELECT rid, status FROM RoomSensor")
        await looked_at(harness, coordinator, query)
        tell(coordinator, AT_BASE)
        await harness.until(lambda: bool(coordinator._queries.runs.tried()), "a run is tried")
        (trial,) = coordinator._queries.runs.tried()
        assert len(trial.bundle.fragments) > 1
        assert "runs once with" not in coordinator.explain(rooms).text

    harness.run(scenario)


def test_a_query_that_counts_from_its_start_stays_and_says_why(harness: Any) -> None:
    text = "SELECT t.celsius, r.status FROM Temperature t JOIN RoomSensor r ON t.rid = r.rid"

    async def scenario(federation: Any) -> None:
        coordinator, _ = await started(harness, federation)
        temperature = Subject(SubjectKind.SOURCE, "temperature", "gw-1")
        now = coordinator._shared.clock()
        tell(coordinator, {"roomsensor": (1_000.0, 0.01)})
        seldom = exact(temperature, Quantity.INSERTS, 0.01, now, Origin.COUNTED)
        coordinator._shared.facts.put(seldom)
        query = await harness.start_query(coordinator, text)
        await harness.until(lambda: coordinator.query(query).settled)
        federation.sites["gw-1"].put("temperature", ("r0", 20.0))
        await harness.until_rows(coordinator, query, [(20.0, "s0")])
        await looked_at(harness, coordinator, query)
        before = plan_of(coordinator, query)
        tell(coordinator, {"roomsensor": (10.0, 100.0)})
        await harness.until(lambda: any(d.queries == query for d in decisions(coordinator)))
        told = [d for d in decisions(coordinator) if d.queries == query]
        assert told[0].outcome == "kept"
        assert told[0].detail.startswith("it cannot move: sites keep no readings of temperature")
        assert told[0].plan_before != told[0].plan_after
        assert plan_of(coordinator, query) == before

    harness.run(scenario)
