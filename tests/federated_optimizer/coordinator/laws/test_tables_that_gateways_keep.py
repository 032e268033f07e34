"""Streams joined at gateways with a small table, in a federation with a real static engine."""

import contextlib
import random
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from federated_optimizer.alternatives.joins.stored_at_gateways import OUTGROWN, STORED
from federated_optimizer.alternatives.method import Method
from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from host.mqtt.in_memory import Faults
from streamsql.wire.fragments import TABLE_OUTGROWN
from streamsql.wire.messages import QueryProblem
from tests.federated_optimizer.coordinator.running_static_engine import begin, static_engine

TABLE = (
    "CREATE TABLE floors (room TEXT, floor INTEGER, PRIMARY KEY (room))"
    " WITH (source = 'csv', path = 'floors.csv');"
)
TEXT = (
    "SELECT s.rid, s.status, f.floor FROM RoomSensor s JOIN floors f ON f.room = s.rid"
    " WHERE f.floor > 0"
)
ROOMS = [f"r{number}" for number in range(6)]
SENT = {
    Method.STORED_ROWS: "floors sent to all gateways of roomsensor, joined there",
    Method.STORED_KEYS: "keys of floors sent to all gateways of roomsensor",
}

Floors = dict[str, int]


def write(folder: Path, floors: Floors, others: int = 0) -> None:
    rows = [*floors.items(), *((f"other {n}", 1) for n in range(others))]
    lines = ["room,floor", *(f"{room},{floor}" for room, floor in rows)]
    whole = folder / "new.csv"
    whole.write_text("\n".join(lines) + "\n", encoding="utf-8")
    whole.rename(folder / "floors.csv")


def joined(rooms: dict[str, str], floors: Floors, text: str = TEXT) -> list[tuple[Any, ...]]:
    """Return the answer of DuckDB."""
    with closing(duckdb.connect()) as database:
        database.execute("CREATE TABLE RoomSensor (rid TEXT, status TEXT)")
        database.execute("CREATE TABLE floors (room TEXT, floor INTEGER)")
        for name, rows in (("RoomSensor", rooms), ("floors", floors)):
            for row in rows.items():
                database.execute(f"INSERT INTO {name} VALUES (?, ?)", row)
        return database.execute(text).fetchall()


async def begun(federation: Any, harness: Any, floors: Floors) -> Any:
    write(federation.folder, floors)
    coordinator = await begin(federation, gateways=2)
    await harness.until(lambda: sum(s.online for s in coordinator.sites()) == 4)
    await coordinator.execute(TABLE)
    return coordinator


async def number_of(coordinator: Any, words: str, text: str = TEXT) -> int:
    """Return the number of the plan that does something, as EXPLAIN lists it."""
    (told,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES {text}")
    line = next(line for line in told.text.splitlines() if words in line)
    return int(line.lstrip("* ").split()[0])


def at_gateways(coordinator: Any, query: str) -> Iterable[str]:
    found: frozenset[str] = coordinator._queries.find(query).bundle.at_gateways
    return found


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("method", STORED)
def test_answers_follow_both_sides_over_losses_and_deaths(harness: Any, method: Method) -> None:
    async def scenario(federation: Any) -> None:
        rng = random.Random(method)
        floors: Floors = {"r1": 1, "r2": 2}
        rooms: dict[str, str] = {}

        def gateway(room: str) -> Any:
            return federation.sites[f"gw-{1 + ROOMS.index(room) % 2}"]

        async with contextlib.AsyncExitStack() as first:
            await first.enter_async_context(static_engine(federation))
            coordinator = await begun(federation, harness, floors)
            number = await number_of(coordinator, SENT[method])
            query = await harness.start_query(coordinator, f"{TEXT} WITH (plan = {number})")
            assert at_gateways(coordinator, query)
            for step in range(14):
                room = rng.choice(ROOMS)
                if rng.random() < 0.4:
                    floors = {r: rng.randrange(3) for r in ROOMS if rng.random() < 0.6}
                    write(federation.folder, floors)
                elif room in rooms and rng.random() < 0.4:
                    gateway(room).put("roomsensor", (room, rooms.pop(room)), delete=True)
                else:
                    rooms[room] = rng.choice(["open", "shut"])
                    gateway(room).put("roomsensor", (room, rooms[room]))
                if step % 4 == 3:
                    federation.broker.faults = Faults(lose=0.5)
                    await federation.broker.settle()
                    federation.broker.faults = Faults()
                if step == 8:  # a gateway starts anew, and has read nothing yet
                    await federation.sites["gw-1"].stop()
                    rooms = {r: s for r, s in rooms.items() if ROOMS.index(r) % 2}
                    await federation.site("gw-1", epoch=2)
                if step == 11:
                    await federation.sites["base"].stop()
                    await federation.site("base", "base", epoch=2)
                await harness.until_rows(coordinator, query, joined(rooms, floors))
            await harness.until(lambda: coordinator.query(query).settled)
        # Without the static engine gateways have the table; another one goes on with it.
        rooms["r2"] = "anew"
        gateway("r2").put("roomsensor", ("r2", "anew"))
        await harness.until_rows(coordinator, query, joined(rooms, floors))
        async with static_engine(federation, epoch=2):
            floors = {"r2": 2, "r4": 1}
            write(federation.folder, floors)
            await harness.until_rows(coordinator, query, joined(rooms, floors))

    harness.run(scenario)


def test_a_table_that_has_outgrown_the_gateways_goes_to_the_base(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        async with static_engine(federation) as engine:
            coordinator = await begun(federation, harness, {"r1": 1})
            federation.sites["gw-1"].put("roomsensor", ("r0", "open"))
            federation.sites["gw-2"].put("roomsensor", ("r1", "open"))
            number = await number_of(coordinator, SENT[Method.STORED_ROWS])
            chosen = await harness.start_query(coordinator, f"{TEXT} WITH (plan = {number})")
            await harness.until_rows(coordinator, chosen, [("r1", "open", 1)])
            assert at_gateways(coordinator, chosen)
            shown: Counter[tuple[Any, ...]] = Counter()

            def seen() -> bool:
                shown.update(coordinator.relation(chosen))
                return not at_gateways(coordinator, chosen)

            most = engine.settings.max_gateway_rows
            write(federation.folder, {"r0": 2, "r1": 3}, others=most)
            await harness.until(seen)
            rows = [("r0", "open", 2), ("r1", "open", 3)]
            await harness.until_rows(coordinator, chosen, rows)
            # In between there were rows of the old table, or of the new one, and no others.
            assert set(shown) <= {("r1", "open", 1), *rows}
            await harness.until_status(coordinator, chosen, QueryStatus.RUNNING)
            (told,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES {TEXT}")
            assert "a gateway keeps at most 10,000" in told.text

    harness.run(scenario)


def test_the_problem_names_the_table_and_its_bound(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        async with static_engine(federation) as engine:
            coordinator = await begun(federation, harness, {"r1": 1})
            number = await number_of(coordinator, SENT[Method.STORED_KEYS])
            query = await harness.start_query(coordinator, f"{TEXT} WITH (plan = {number})")
            await harness.until_rows(coordinator, query, [])
            problems: dict[str, str] = {}
            report = engine._reporter.problems

            def noted(current: dict[str, Any]) -> None:
                problems.update({e.code: e.message for e in current.values() if e is not None})
                report(current)

            engine._reporter.problems = noted  # type: ignore[method-assign]
            most = engine.settings.max_gateway_rows
            # It would plan anew when it hears how large the table is, perhaps before the problem.
            await coordinator.close()
            write(federation.folder, {"r1": 1}, others=most)
            await harness.until(lambda: TABLE_OUTGROWN in problems, "the problem is told")
            assert f"floors has {most + 1:,} rows" in problems[TABLE_OUTGROWN]
            assert f"at most {most:,} of 100 bytes" in problems[TABLE_OUTGROWN]

    harness.run(scenario)


def test_a_table_that_plans_keep_from_gateways_by_now_leaves_them(harness: Any) -> None:
    """It is not too large yet to be sent there."""

    async def scenario(federation: Any) -> None:
        async with static_engine(federation) as engine:
            write(federation.folder, {"r1": 1})
            for name, role in (("base", "base"), ("gw-1", "gateway"), ("gw-2", "gateway")):
                await federation.site(name, role)
            coordinator = await federation.coordinator(define_schema=True, adapt=0.2)
            await harness.until(lambda: sum(s.online for s in coordinator.sites()) == 4)
            await coordinator.execute(TABLE)
            federation.sites["gw-2"].put("roomsensor", ("r1", "open"))
            number = await number_of(coordinator, SENT[Method.STORED_ROWS])
            text = f"{TEXT} WITH (plan = {number})"
            query = await harness.start_query(coordinator, text)
            await harness.until_rows(coordinator, query, [("r1", "open", 1)])
            adaptation = coordinator._adaptation
            await harness.until(lambda: any(run.basis for run in adaptation._known.values()))
            others = engine.settings.max_gateway_rows // 2
            write(federation.folder, {"r1": 2}, others=others)
            await harness.until(lambda: not at_gateways(coordinator, query))
            await harness.until_rows(coordinator, query, [("r1", "open", 2)])

    harness.run(scenario)


UNCOUNTED = "LOWER(f.room) = f.room AND f.floor * 2 > 1"
"""A filter that nobody counts, of which far too few rows are expected to pass."""


def uncounted(where: str) -> str:
    return TEXT.replace("f.floor > 0", where)


def test_a_query_whose_filter_nobody_has_counted_answers(harness: Any) -> None:
    text = uncounted(UNCOUNTED)

    async def scenario(federation: Any) -> None:
        async with static_engine(federation) as engine:
            floors = {"r0": 1, "r1": 2}
            coordinator = await begun(federation, harness, floors)
            write(federation.folder, floors, others=engine.settings.max_gateway_rows + 5_000)
            federation.sites["gw-1"].put("roomsensor", ("r0", "open"))
            query = await harness.start_query(coordinator, text)
            await harness.until_rows(coordinator, query, joined({"r0": "open"}, floors, text))
            assert coordinator._queries.find(query).bundle.outgrown, "it had another plan"
            await harness.until_status(coordinator, query, QueryStatus.RUNNING)
            (told,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES {text}")
            assert OUTGROWN in told.text

            # It stays so, also for another coordinator.
            await coordinator.close()
            federation.sites["gw-2"].put("roomsensor", ("r1", "shut"))
            floors = {"r0": 3, "r1": 4}
            write(federation.folder, floors, others=engine.settings.max_gateway_rows + 5_000)
            coordinator = await federation.coordinator()
            rows = joined({"r0": "open", "r1": "shut"}, floors, text)
            await harness.until_rows(coordinator, query, rows)
            assert coordinator._queries.find(query).bundle.outgrown
            assert not at_gateways(coordinator, query)

    harness.run(scenario)


def test_a_running_query_follows_a_table_that_outgrows_its_gateways(harness: Any) -> None:
    text = uncounted(UNCOUNTED)

    async def scenario(federation: Any) -> None:
        async with static_engine(federation) as engine:
            coordinator = await begun(federation, harness, {"r0": 1, "r1": 2})
            federation.sites["gw-1"].put("roomsensor", ("r0", "open"))
            number = await number_of(coordinator, SENT[Method.STORED_ROWS], text)
            query = await harness.start_query(coordinator, f"{text} WITH (plan = {number})")
            await harness.until_rows(coordinator, query, [("r0", "open", 1)])
            assert at_gateways(coordinator, query)
            floors = {"r0": 5, "r1": 2}
            write(federation.folder, floors, others=engine.settings.max_gateway_rows)
            await harness.until_rows(coordinator, query, joined({"r0": "open"}, floors, text))
            await federation.sites["gw-1"].stop()
            await federation.site("gw-1", epoch=2)
            federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
            await harness.until_rows(coordinator, query, joined({"r1": "open"}, floors, text))
            await harness.until_status(coordinator, query, QueryStatus.RUNNING)

    harness.run(scenario)


def test_only_a_site_that_sends_gateways_a_table_has_a_query_planned_again(harness: Any) -> None:
    """And once: a second report changes nothing."""

    async def scenario(federation: Any) -> None:
        async with static_engine(federation):
            coordinator = await begun(federation, harness, {"r1": 1})
            number = await number_of(coordinator, SENT[Method.STORED_ROWS])
            query = await harness.start_query(coordinator, f"{TEXT} WITH (plan = {number})")
            other = await harness.start_query(coordinator, "SELECT rid FROM RoomSensor")
            table = await harness.start_query(coordinator, "SELECT room FROM floors")
            queries, heard = coordinator._queries, coordinator._receiver.heard

            def plans_again(run: str, site: str) -> bool:
                queries.has_old_plans = False
                heard.problem(run, site, QueryProblem(TABLE_OUTGROWN, "too much", "", 1, site))
                found: bool = queries.has_old_plans
                return found

            for run, site in ((query, "gw-1"), (query, "base"), (other, "gw-1"), (table, "static")):
                assert not plans_again(run, site), (run, site)
            assert [plans_again(query, "static") for _ in range(3)] == [True, False, False]
            queries.has_old_plans = True
            await harness.until(lambda: not at_gateways(coordinator, query))

    harness.run(scenario)
