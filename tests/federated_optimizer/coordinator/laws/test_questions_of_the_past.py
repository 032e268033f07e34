"""FOR SYSTEM_TIME in a federation whose static engine has a lake."""

from collections.abc import Iterable
from typing import Any

from deploy.history.asked_sizes import AskedSizes
from static_engine.history.past_readings import PastReadings
from static_engine.lake.lake import Lake
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from tests.federated_optimizer.coordinator.running_static_engine import begin, static_engine
from tests.static_engine.lake.lake_rows import keep, lake_in

SECOND = 1_000_000
DAY = 86_400 * SECOND
NOON = 20_000 * DAY + DAY // 2
NOON_TEXT = "2024-10-04T12:00:00Z"
SCRIPT = """
CREATE SOURCE climate (room TEXT, celsius DOUBLE, ts TIMESTAMP) WITH (ttl = '10 min');
CREATE SOURCE seat (desk TEXT, taken BOOLEAN, ts TIMESTAMP, KEY (desk));
CREATE LINK SOURCE wire (src TEXT, dst TEXT, cost DOUBLE);
CREATE VIEW warm AS SELECT room, celsius FROM climate WHERE celsius > 20;
CREATE RECURSIVE VIEW wired (src, dst) AS SELECT src, dst FROM wire
  UNION SELECT r.src, w.dst FROM wired r JOIN wire w ON w.src = r.dst;
"""


class Clock:
    """The time at which queries start and views are refreshed."""

    now = NOON


def definition(coordinator: Any, name: str) -> SourceDefinition:
    found = next(d for d in coordinator.definitions() if d.name == name)
    assert isinstance(found, SourceDefinition)
    return found


def arrived(rows: Iterable[tuple[int, Row]], *, at: int = NOON) -> list[SourceEvent]:
    """Return readings of so many seconds after a time, which is their last column."""
    return [SourceEvent((*row, at + s * SECOND), at + s * SECOND) for s, row in rows]


def keep_climate(lake: Lake, coordinator: Any, *rows: tuple[int, Row], first: int = 0) -> None:
    keep(lake, definition(coordinator, "climate"), arrived(rows), first=first)


def test_an_interval_is_answered_and_late_readings_change_the_answer(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begin(federation, SCRIPT)
        lake = lake_in(federation.folder / "lake")
        keep_climate(lake, coordinator, (-5, ("r1", 19.0)), (1, ("r1", 21.5)), (9, ("r2", 22.0)))
        async with static_engine(federation, past=PastReadings(lake), clock=lambda: Clock.now):
            await harness.until(lambda: sum(s.online for s in coordinator.sites()) == 3)
            query = await harness.start_query(
                coordinator,
                f"SELECT room, celsius FROM warm FOR SYSTEM_TIME BETWEEN '{NOON_TEXT}' "
                f"AND TIMESTAMP '{NOON_TEXT}' + INTERVAL '1 min'",
            )
            await harness.until_rows(coordinator, query, [("r1", 21.5), ("r2", 22.0)])
            keep_climate(lake, coordinator, (5, ("r3", 30.0)), (99, ("r9", 31.0)), first=3)
            late = [("r1", 21.5), ("r2", 22.0), ("r3", 30.0)]
            await harness.until_rows(coordinator, query, late)

    harness.run(scenario)


def test_the_past_joins_the_present_and_a_recursion_runs_over_it(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begin(federation, SCRIPT)
        lake = lake_in(federation.folder / "lake")
        links = [("a", "b", 1.0), ("b", "c", 1.0), ("c", "a", 1.0)]
        events = [SourceEvent(link, NOON + n * SECOND) for n, link in enumerate(links)]
        gone = SourceEvent(("c", "a", None), NOON + 9 * SECOND, delete=True)
        keep(lake, definition(coordinator, "wire"), [*events, gone])
        async with static_engine(federation, past=PastReadings(lake), clock=lambda: Clock.now):
            await harness.until(lambda: sum(s.online for s in coordinator.sites()) == 3)
            cycle = await harness.start_query(
                coordinator,
                f"SELECT COUNT(*) AS n FROM wired FOR SYSTEM_TIME AS OF TIMESTAMP '{NOON_TEXT}' "
                "+ INTERVAL '5 s'",
            )
            await harness.until_rows(coordinator, cycle, [(9,)])
            seat = federation.sites["gw-1"]
            seat.put("roomsensor", ("a", "open"), ("x", "open"))
            mixed = await harness.start_query(
                coordinator,
                "SELECT s.rid, w.dst FROM RoomSensor s JOIN wired "
                f"FOR SYSTEM_TIME AS OF TIMESTAMP '{NOON_TEXT}' + INTERVAL '9 s' AS w "
                "ON w.src = s.rid",
            )
            await harness.until_rows(coordinator, mixed, [("a", "b"), ("a", "c")])

    harness.run(scenario)


def test_now_is_the_start_of_the_query_also_after_a_restart(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begin(federation, SCRIPT)
        text = "SELECT room FROM climate FOR SYSTEM_TIME BETWEEN NOW - INTERVAL '1 h' AND NOW"
        query = await harness.start_query(coordinator, text)
        started = coordinator._queries.find(query).bundle.started
        assert started > NOON
        await coordinator.close()
        again = await federation.coordinator()
        assert again._queries.find(query).bundle.started == started

    harness.run(scenario)


def test_a_view_refreshed_at_times_reads_the_past_of_its_refresh(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begin(federation, SCRIPT)
        lake = lake_in(federation.folder / "lake")
        keep_climate(lake, coordinator, (-7200, ("r1", 1.0)), (-60, ("r2", 2.0)), (60, ("r3", 3.0)))
        async with static_engine(federation, past=PastReadings(lake), clock=lambda: Clock.now):
            await harness.until(lambda: sum(s.online for s in coordinator.sites()) == 3)
            await coordinator.execute(
                "CREATE MATERIALIZED VIEW last_hour (room, celsius) REFRESH AT ('12:30') AS "
                "SELECT room, celsius FROM climate FOR SYSTEM_TIME FROM NOW - INTERVAL '1 h' TO NOW"
            )
            query = await harness.start_query(coordinator, "SELECT room FROM last_hour")
            await harness.until_rows(coordinator, query, [("r2",)])
            Clock.now = NOON + 1800 * SECOND
            await harness.until_rows(coordinator, query, [("r2",), ("r3",)])
            Clock.now = NOON

    harness.run(scenario)


def test_without_a_lake_the_past_is_a_problem_of_the_query(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begin(federation, SCRIPT)
        async with static_engine(federation, clock=lambda: Clock.now):
            await harness.until(lambda: sum(s.online for s in coordinator.sites()) == 3)
            query = await harness.start_query(
                coordinator, "SELECT room FROM climate FOR SYSTEM_TIME ALL"
            )
            await harness.until(lambda: "has no lake" in str(coordinator.query(query).error))

    harness.run(scenario)


def test_a_past_without_a_reading_is_empty_until_the_first_is_kept(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begin(federation, SCRIPT)
        lake = lake_in(federation.folder / "lake")
        async with static_engine(federation, past=PastReadings(lake), clock=lambda: Clock.now):
            await harness.until(lambda: sum(s.online for s in coordinator.sites()) == 3)
            query = await harness.start_query(
                coordinator, "SELECT room FROM climate FOR SYSTEM_TIME ALL"
            )
            counted = await harness.start_query(
                coordinator, "SELECT COUNT(*) AS n FROM climate FOR SYSTEM_TIME ALL"
            )
            await harness.until_rows(coordinator, counted, [(0,)])
            await harness.until(lambda: coordinator.query(query).settled)
            await harness.until_rows(coordinator, query, [])
            assert not coordinator.query(query).error
            keep_climate(lake, coordinator, (1, ("r1", 20.0)))
            await harness.until_rows(coordinator, query, [("r1",)])
            await harness.until_rows(coordinator, counted, [(1,)])

    harness.run(scenario)


def test_explain_says_how_much_of_the_past_is_read(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await begin(federation, SCRIPT)
        lake = lake_in(federation.folder / "lake")
        keep_climate(lake, coordinator, (-2, ("r1", 20.0)), (-1, ("r2", 21.0)))
        asked = coordinator._planner._past = AskedSizes(lake.settings, 60.0)
        text = f"SELECT room FROM warm FOR SYSTEM_TIME AS OF '{NOON_TEXT}'"
        for kind, where in (("LOGICAL", "Project room"), ("FEDERATED", "STATIC")):
            (told,) = await coordinator.execute(f"EXPLAIN (TYPE {kind}) {text}")
            assert where in told.text
            assert "Scan history climate FOR SYSTEM_TIME AS OF TIMESTAMP" in told.text
            assert "reads the past of climate BETWEEN" in told.text
            assert "at most 2 rows" in told.text
        (told,) = await coordinator.execute("EXPLAIN SELECT room FROM warm")
        assert "the past" not in told.text
        asked.close()

    harness.run(scenario)
