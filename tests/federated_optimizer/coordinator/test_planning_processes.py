"""What users write is planned and evaluated beside the loop, for a time, and for whoever waits."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import psutil
import pytest

from deploy.explainer import EngineExplainer
from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.planning_processes import (
    ATTEMPT_SECONDS,
    InProcesses,
    OnTheLoop,
    wanted_until,
)
from federated_optimizer.coordinator.statements import preparation
from streamsql.algebra.user_functions import INSTALLED
from streamsql.errors import BindingError, FederationError, InternalError, Span

SLOW = (
    f"CREATE FUNCTION slowly(x INTEGER) RETURNS INTEGER AS '{__name__}:slowly';"
    f"CREATE FUNCTION slow_away(x TEXT) RETURNS INTEGER AS '{__name__}:slow_away';"
)


def slowly(x: int) -> int:
    """Never return."""
    while True:
        x += 1


def slow_away(x: str) -> int:
    """Never return where planning cannot find it out: for values that are no constants."""
    return slowly(len(x))


@pytest.fixture(autouse=True)
def functions() -> Iterator[None]:
    INSTALLED.allow([__name__])
    yield
    INSTALLED.allow([])


@contextlib.asynccontextmanager
async def beating() -> AsyncIterator[Callable[[], float]]:
    """Measure the longest pause of the event loop, as CPU that its thread takes meanwhile.

    On the wall a pause says more of what else the machine does.
    """
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.01)
            longest = max(longest, time.thread_time() - began)

    task = asyncio.create_task(beat())
    try:
        yield lambda: longest
    finally:
        task.cancel()


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


async def small_federation(federation: Any, beside: InProcesses) -> Any:
    """Start a base, a gateway and a coordinator that plans in processes."""
    await federation.site("base", "base")
    await federation.site("gw-1")
    return await federation.coordinator(define_schema=True, beside=beside)


def forever() -> None:
    slowly(0)


def fail() -> None:
    raise BindingError("no", span=Span(2, 3, "x"), hint="yes", code="unknown_column")


def test_results_and_errors_come_back_whole() -> None:
    async def scenario() -> None:
        beside = InProcesses(30.0)
        assert await beside.run(lambda: list(range(1_000_000)), "it") == list(range(1_000_000))
        with pytest.raises(BindingError) as caught:
            await beside.run(fail, "it")
        error = caught.value
        assert (error.message, error.hint, error.code) == ("no", "yes", "unknown_column")
        assert error.span == Span(2, 3, "x")
        with pytest.raises(InternalError, match="it failed: ZeroDivisionError"):
            await beside.run(lambda: 1 // 0, "it")
        with pytest.raises(InternalError, match="ended unexpectedly"):
            await beside.run(lambda: os._exit(0), "it")

    run(scenario)


def test_what_takes_too_long_is_ended_and_the_loop_goes_on() -> None:
    async def scenario() -> None:
        beside = InProcesses(0.5)
        async with beating() as longest:
            with pytest.raises(FederationError, match=r"^it took more than 0\.5 s") as caught:
                await beside.run(forever, "it")
            assert caught.value.code == "statement_limit"
        assert longest() < 0.4
        assert psutil.Process().children() == []

    run(scenario)


def test_what_takes_too_much_memory_is_ended() -> None:
    async def scenario() -> None:
        with pytest.raises(FederationError, match="it used too much memory"):
            await InProcesses(30.0).run(lambda: len(bytes(3_000_000_000)), "it")

    run(scenario)


def test_work_ends_with_whoever_wants_it() -> None:
    async def scenario() -> None:
        beside = InProcesses(60.0)
        gone = asyncio.Event()
        asyncio.get_running_loop().call_later(0.2, gone.set)
        with (
            wanted_until(gone.wait),
            pytest.raises(FederationError, match="was stopped because the client disconnected"),
        ):
            await beside.run(forever, "it")
        task = asyncio.create_task(beside.run(forever, "it"))
        await asyncio.sleep(0)  # it is forked before anything is waited for
        assert psutil.Process().children()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert psutil.Process().children() == []

    run(scenario)


def test_nothing_is_left_open() -> None:
    async def scenario() -> None:
        beside = InProcesses(30.0)
        await beside.run(int, "it")
        before = psutil.Process().num_fds()
        for _ in range(20):
            await beside.run(int, "it")
        assert psutil.Process().num_fds() == before

    run(scenario)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT rid FROM RoomSensor WHERE SLOWLY(1) > 2",
        "EXPLAIN (TYPE FEDERATED) SELECT rid FROM RoomSensor WHERE SLOWLY(1) > 2",
        "SELECT * FROM (VALUES (SLOWLY(1))) v",
        "CREATE ALARM late AS SELECT rid FROM RoomSensor WHERE SLOWLY(1) > 2 SEVERITY 'info'",
    ],
)
def test_a_constant_that_takes_for_ever_stops_nobody_else(text: str, harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        beside = InProcesses(1.0)
        coordinator = await small_federation(federation, beside)
        await coordinator.execute(SLOW)
        async with beating() as longest:
            refused = asyncio.create_task(coordinator.execute(text))
            query = await harness.start_query(coordinator, "SELECT rid FROM RoomSensor")
            assert not refused.done()
            with pytest.raises(FederationError) as caught:
                await refused
            assert caught.value.code == "statement_limit"
        assert longest() < 0.9
        assert [one.id for one in coordinator.queries()] == [query]

    harness.run(scenario)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE VIEW opened AS SELECT rid FROM RoomSensor",
        "CREATE ALARM opened AS SELECT rid FROM RoomSensor SEVERITY 'info'",
    ],
)
def test_a_definition_that_is_checked_for_long_lets_others_in(
    text: str, harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_arguments: object) -> Any:
        time.sleep(60)  # time passes: work that hangs

    async def scenario(federation: Any) -> None:
        beside = InProcesses(5.0)
        coordinator = await small_federation(federation, beside)
        monkeypatch.setattr(preparation, "define", never)
        creating = asyncio.create_task(coordinator.execute(text))
        query = await harness.start_query(coordinator, "SELECT rid FROM RoomSensor")
        await coordinator.stop(query)
        assert not creating.done()
        with pytest.raises(FederationError, match="took more than 5 s"):
            await creating

    harness.run(scenario)


def test_a_definition_is_checked_with_those_there_are_when_it_is_its_turn(
    harness: Any,
) -> None:
    checked: list[str] = []

    class Slowly(OnTheLoop):
        async def run(self, work: Callable[[], Any], what: str) -> Any:
            result = await super().run(work, what)
            if what == "checking the definition":
                checked.append(result.name)
                await asyncio.sleep(0)  # the other comes in
            return result

    async def scenario(federation: Any) -> None:
        coordinator = await federation.coordinator(define_schema=True, beside=Slowly())
        checked.clear()
        one = coordinator.execute("CREATE VIEW first_one AS SELECT rid FROM RoomSensor")
        other = coordinator.execute("CREATE VIEW second_one AS SELECT rid FROM RoomSensor")
        await asyncio.gather(one, other)
        assert len(checked) == 3  # one of them again: the other was defined meanwhile

    harness.run(scenario)


def test_planning_anew_for_long_lets_others_in(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        beside = InProcesses(2.0)
        coordinator = await small_federation(federation, beside)
        endless = await harness.start_query(coordinator, "SELECT status FROM RoomSensor")
        good = await harness.start_query(coordinator, "SELECT rid FROM RoomSensor")
        await harness.until(lambda: coordinator._replanning.due is None)
        changed_plans = coordinator._queries.changed_plans

        def endless_for_one(queries: Any) -> Any:
            if endless in queries:
                time.sleep(60)  # time passes: work that hangs
            return changed_plans(queries)

        coordinator._queries.changed_plans = endless_for_one
        planning = asyncio.Event()
        run = beside.run

        async def told(work: Callable[[], Any], what: str) -> Any:
            if what == "replanning":
                planning.set()
            return await run(work, what)

        beside.run = told  # type: ignore[method-assign]
        await federation.site("gw-2")
        await asyncio.wait_for(planning.wait(), 30)
        assert not coordinator._shared.lock.locked()
        await harness.until(lambda: coordinator.query(good).version == 2)
        assert coordinator.query(endless).version == 1

    harness.run(scenario)


def test_a_query_over_system_tables_that_takes_for_ever_is_stopped_by_name(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        beside = InProcesses(1.0)
        coordinator = await small_federation(federation, beside)
        await coordinator.execute(SLOW)
        good = await harness.start_query(
            coordinator, "SELECT query FROM sys_queries WHERE query > ''"
        )
        bad = await harness.start_query(
            coordinator, "SELECT query FROM sys_queries WHERE SLOW_AWAY(query) > 2"
        )
        await harness.until_status(coordinator, bad, QueryStatus.FAILED)
        assert "took more than 1 s" in coordinator.query(bad).error
        later = await harness.start_query(coordinator, "SELECT query FROM sys_queries")
        await harness.until(
            lambda: {(good,), (bad,), (later,)} <= set(coordinator.relation(good)), "rows"
        )

    harness.run(scenario)


def test_a_query_that_cannot_be_planned_again_says_so_and_keeps_no_other_from_it(
    harness: Any,
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await small_federation(federation, InProcesses(5.0))
        texts = [f"SELECT rid FROM RoomSensor WHERE status <> '{n}'" for n in range(5)]
        queries = [await harness.start_query(coordinator, text) for text in texts]
        slow, others = queries[2], [*queries[:2], *queries[3:]]
        await harness.until(lambda: all(q.settled for q in coordinator.queries()))
        plan = coordinator._planner.planned

        def planned(text: str, **options: Any) -> Any:
            if text == texts[2]:
                time.sleep(60)  # time passes: work that hangs
            return plan(text, **options)

        coordinator._planner.planned = planned
        await federation.site("gw-2")
        await harness.until(lambda: all(coordinator.query(q).version == 2 for q in others))
        await harness.until(lambda: coordinator.query(slow).warnings)
        (said,) = coordinator.query(slow).warnings
        assert said.startswith("it keeps its old plan, because it cannot be replanned")
        assert "replanning took more than 5 s" in said
        assert not any(coordinator.query(q).warnings for q in others)
        coordinator._planner.planned = plan
        await federation.site("gw-3")
        await harness.until(lambda: coordinator.query(slow).version == 2)
        assert coordinator.query(slow).warnings == ()

    harness.run(scenario)


def test_a_question_about_a_large_recursion_stops_nobody_else(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        site = await federation.site("gw-1")
        nodes = 120
        links = [(a, (a * 7 + b) % nodes) for a in range(nodes) for b in range(4)]
        site.put("link", *((f"n{a}", f"n{b}", 1.0) for a, b in links))
        coordinator = await federation.coordinator(
            define_schema=True, beside=InProcesses(60.0), explainer=EngineExplainer()
        )
        query = await harness.start_query(coordinator, "SELECT src, dst FROM reachable")
        await harness.until(lambda: len(coordinator.relation(query)) > nodes)
        row = coordinator.relation(query)[-1]
        async with beating() as longest:
            result = await coordinator.rows.why_row(query, row)
        assert result.data["supports"]
        assert longest() < 1.0

    harness.run(scenario)


@pytest.mark.parametrize("asked", ["why", "confidences", "what_if_deleted"])
def test_a_question_that_takes_for_ever_is_ended(asked: str, harness: Any) -> None:
    class Endless(EngineExplainer):
        pass

    setattr(Endless, asked, lambda *_given, **_named: forever())

    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        site = await federation.site("gw-1")
        site.put("roomsensor", ("r1", "open"))
        coordinator = await federation.coordinator(
            define_schema=True, beside=InProcesses(2.0), explainer=Endless()
        )
        query = await harness.start_query(coordinator, "SELECT rid FROM RoomSensor")
        await harness.until_rows(coordinator, query, [("r1",)])
        match asked:
            case "why":
                question = coordinator.rows.why_row(query, ["r1"])
            case "confidences":
                question = coordinator.execute(
                    "EXPLAIN CONFIDENCE (SELECT src FROM Link) USING link.cost"
                )
            case _:
                question = coordinator.rows.what_if_deleted(
                    [("RoomSensor", ["r1", "open"])], query_id=query
                )
        with pytest.raises(FederationError, match="answering the question took more than 2 s"):
            await question

    harness.run(scenario)


def spun(seconds: float) -> int:
    """Compute for some seconds; return the process that did."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return os.getpid()


def test_short_work_is_done_here_and_long_work_in_a_process() -> None:
    async def scenario() -> None:
        beside = InProcesses(30.0)
        assert await beside.run_short(lambda: spun(0.001), "it") == os.getpid()
        assert await beside.run_short(lambda: spun(0.2), "it") != os.getpid()
        with pytest.raises(BindingError, match="no"):
            await InProcesses(30.0).run_short(fail, "it")

    run(scenario)


def test_attempts_in_vain_take_a_tenth_of_the_loop_at_most() -> None:
    async def scenario() -> None:
        beside, here = InProcesses(0.5), os.getpid()
        attempts = 0

        def hostile() -> None:
            nonlocal attempts
            attempts += os.getpid() == here
            forever()

        async with beating() as longest:
            began = time.perf_counter()
            refused = [asyncio.create_task(beside.run_short(hostile, "it")) for _ in range(24)]
            found = await asyncio.gather(*refused, return_exceptions=True)
            took = time.perf_counter() - began
        assert all(isinstance(error, FederationError) for error in found)
        assert {error.code for error in found if isinstance(error, FederationError)} == {
            "statement_limit"
        }
        assert attempts <= 1 + took / (10 * ATTEMPT_SECONDS)
        assert longest() < 1.0
        assert psutil.Process().children() == []

    run(scenario)
