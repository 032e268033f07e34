"""Runs are left to readers of what they receive; nodes end with their only reader."""

from types import SimpleNamespace
from typing import Any

from federated_optimizer.coordinator.queries.runs.fed_runs import FedRuns
from federated_optimizer.coordinator.queries.runs.read_parts import (
    may_leave,
    only_reads,
    parts_read,
    run_that_ends,
    unneeded_without,
)
from federated_optimizer.sharing.strategy import Strategy
from streamsql.wire.fragments import Feed

PAIRS = "SELECT l.src, l.dst, r.status FROM Link l JOIN RoomSensor r ON l.dst = r.rid"
JOIN = f"{PAIRS} WITH (plan = 1, adapt = 'no')"  # at the base: both sides are sent there
LEFT = "SELECT l.src, r.status FROM Link l LEFT JOIN RoomSensor r ON l.dst = r.rid"
ROOMS = "SELECT rid FROM RoomSensor WHERE status = 'open'"
OPEN = f"{PAIRS} WHERE r.status = 'open'"


def feeds_of(runs: Any, run: str) -> Any:
    return runs.leader(run).bundle.feeds


def test_a_run_is_left_where_only_what_it_receives_is_read(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(sharing=Strategy.OFF)
        first = await harness.start_query(coordinator, JOIN)
        runs = coordinator._queries.runs
        query = runs.leader(first)
        assert not parts_read(runs, first)
        assert run_that_ends(runs, first) == first
        left = await harness.start_query(coordinator, LEFT)
        parts = parts_read(runs, first)
        assert parts == {feed.source for feed in feeds_of(runs, left)}
        assert parts
        assert may_leave(runs, query)
        assert run_that_ends(runs, first) == ""
        # It would lose its join, and what nobody else reads of it; `left` loses nothing.
        own = {fragment.id for fragment in query.bundle.own}
        assert unneeded_without(runs, first) == {first: own - parts}
        assert parts_read(runs, first, gone={left}) == frozenset()

    harness.run(scenario)


def test_a_run_stays_whose_result_is_read_and_a_node_goes_with_its_only_reader(
    harness: Any,
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        runs = coordinator._queries.runs
        pairs = await harness.start_query(coordinator, JOIN)
        narrow = await harness.start_query(coordinator, OPEN)
        assert {feed.run for feed in feeds_of(runs, narrow)} == {pairs}
        query = runs.leader(pairs)
        assert not may_leave(runs, query)
        assert run_that_ends(runs, pairs) == pairs
        # A query reads the other run, too, so it is no node that only this one reads.
        assert only_reads(runs, runs.leader(narrow)) == frozenset()
        assert set(unneeded_without(runs, narrow)) == {narrow}
        await coordinator.stop(pairs)
        (feed,) = feeds_of(runs, narrow)
        assert only_reads(runs, runs.leader(narrow)) == {(pairs, feed.source)}
        gone = unneeded_without(runs, narrow)
        assert set(gone) == {narrow, pairs}
        assert gone[pairs] == {fragment.id for fragment in query.bundle.own}
        # Somebody else would still read it.
        stays = feeds_of(runs, narrow)
        assert set(unneeded_without(runs, narrow, stays=stays)) == {narrow}

    harness.run(scenario)


def test_what_is_read_is_known_without_a_look_at_each_reader() -> None:
    looked: list[str] = []
    bundle = SimpleNamespace(feeds=(Feed("f2", "q1", 1, "f1"),))
    readers = {
        f"q{number}": SimpleNamespace(bundle=bundle, run=f"q{number}") for number in range(2, 2_002)
    }

    def leader(run: str) -> Any:
        looked.append(run)
        return readers.get(run)

    fed = FedRuns()
    runs: Any = SimpleNamespace(fed=fed, leader=leader)
    runs.fed_by = lambda run: [leader(each) for each in fed.readers(run)]
    for run in readers:
        fed.put(run, bundle.feeds)
    looked.clear()
    assert parts_read(runs, "q1") == {"f1"}
    assert len(looked) == 1
    assert parts_read(runs, "q1", gone=set(readers) - {"q2001"}) == {"f1"}
    assert parts_read(runs, "q1", gone=readers) == frozenset()
    readers.clear()  # each has failed
    assert parts_read(runs, "q1") == frozenset()


def test_a_part_of_a_node_is_only_its_that_reads_it_where_nobody_needs_the_result(
    harness: Any,
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(adapt=0.0)
        runs = coordinator._queries.runs
        pairs = await harness.start_query(coordinator, JOIN)
        narrow = await harness.start_query(coordinator, OPEN)
        left = await harness.start_query(coordinator, LEFT)
        rooms = await harness.start_query(coordinator, ROOMS)
        assert {feed.run for feed in (*feeds_of(runs, left), *feeds_of(runs, rooms))} == {pairs}
        (shared,) = (feed.source for feed in feeds_of(runs, rooms))
        (own,) = {feed.source for feed in feeds_of(runs, left)} - {shared}
        await coordinator.stop(pairs)
        assert only_reads(runs, runs.leader(left)) == frozenset(), "the result needs them"
        assert only_reads(runs, runs.leader(rooms)) == frozenset()
        await coordinator.stop(narrow)
        assert only_reads(runs, runs.leader(left)) == {(pairs, own)}
        assert only_reads(runs, runs.leader(rooms)) == frozenset()
        await coordinator.stop(left)
        assert only_reads(runs, runs.leader(rooms)) == {(pairs, shared)}

    harness.run(scenario)
