"""What is lost unnoticed is found by the counts and sent again; restarts show no false changes."""

import asyncio
import logging
from typing import Any

import msgspec
import pytest

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.queries.repairs import Repairs
from host.mqtt.in_memory import Faults
from stream_engine.site.step_result import StepResult
from streamsql.wire.codec import encode_json, encode_packed
from streamsql.wire.messages import FlowReport
from streamsql.wire.site_messages import BufferState, SiteState
from tests.loop_turns import calls

ROOMS = "SELECT rid, status FROM RoomSensor"


async def silenced(federation: Any, seconds: float = 0.3) -> None:
    """Let everything be lost for a while."""
    federation.broker.faults = Faults(lose=1.0)
    await asyncio.sleep(seconds)  # time passes: everything is lost for so long
    federation.broker.faults = Faults()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("also_the_answer", [False, True])
def test_the_last_batch_before_a_silence_is_not_lost(harness: Any, also_the_answer: bool) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, ROOMS)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until_rows(coordinator, query, [("r1", "open")])
        await harness.until(lambda: coordinator.query(query).settled)
        if also_the_answer:
            # The gateway's batch arrives; what the base sends because of it does not.
            federation.broker.cut("coordinator")
            federation.sites["gw-1"].put("roomsensor", ("r1", "shut"))
            await federation.broker.settle()
            federation.broker.faults = Faults(lose=1.0)
            federation.broker.restore("coordinator")
        else:
            federation.sites["gw-1"].put("roomsensor", ("r1", "shut"))
        await silenced(federation)
        await harness.until_rows(coordinator, query, [("r1", "shut")])
        await harness.until(lambda: coordinator.query(query).settled)

    harness.run(scenario)


class SlowBase:
    """A gateway whose batches arrive at the base one in so many seconds; every second it sends one.

    Each repair is a snapshot: two batches more to be taken in.
    """

    def __init__(self, running: Any, pace: int) -> None:
        self.flows = running.flows
        self.bundle = running.bundle
        self.pace = pace
        self.sent = self.arrived = 10
        self.snapshots = 0

    def pass_second(self, second: int, *, live: bool) -> None:
        self.sent += live
        if second % self.pace == 0:
            self.arrived = min(self.arrived + 1, self.sent)
        self.report()

    def report(self) -> None:
        version = self.bundle.version
        self.flows.hear("gw-1", FlowReport(version, 1, {"base": self.sent}, {}), self.bundle)
        arrived = {"gw-1": self.arrived}
        self.flows.hear("base", FlowReport(version, 1, {}, arrived), self.bundle)

    def request_flow(self, _site: str) -> None:
        self.report()

    def request_snapshot(self, _query: str, _site: str, _to: str) -> None:
        self.snapshots += 1
        self.sent += 2


@pytest.mark.parametrize("live", [True, False], ids=["readings go on", "the last word"])
@pytest.mark.parametrize("pace", [2, 4, 8, 15, 30])
def test_a_slow_receiver_is_not_sent_everything_again_and_again(
    harness: Any, pace: int, live: bool
) -> None:
    """In ten minutes; it was up to 61 times. The pauses are 3, 6, 12, 24, 48, then 60 seconds."""

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        running = coordinator._queries.find(await harness.start_query(coordinator, ROOMS))
        await harness.until(running.is_settled)
        slow = SlowBase(running, pace)
        slow.sent += 20  # a burst that takes its time
        repairs = Repairs(slow, coordinator._shared.membership)  # type: ignore[arg-type]
        for second in range(600):
            slow.pass_second(second, live=live and second % 5 == 0)
            repairs.look([running], second * 1_000_000)
        assert slow.snapshots <= 12

    harness.run(scenario)


@pytest.mark.usefixtures("impatient")
def test_a_fragment_that_never_arrived_is_sent_again(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await harness.until(lambda: sum(s.online for s in coordinator.sites()) == 4)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        federation.broker.faults = Faults(lose=1.0)
        query = await harness.start_query(coordinator, ROOMS)
        await silenced(federation)
        await harness.until_rows(coordinator, query, [("r1", "open")])
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)

    harness.run(scenario)


@pytest.mark.usefixtures("impatient")
def test_a_site_that_knows_a_later_version_from_another_catalog(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        other = await harness.start_query(coordinator, "SELECT mid FROM SeatSensor")
        bundle = coordinator._queries.find(other).bundle
        await coordinator.stop(other)
        await harness.until(lambda: "q1" not in federation.sites["gw-1"].engine.queries)
        later = type(bundle)("q2", 9, bundle.fragments, bundle.schema)
        federation.sites["gw-1"].engine.install(later)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        query = await harness.start_query(coordinator, ROOMS)
        assert query == "q2"
        await harness.until_rows(coordinator, query, [("r1", "open")])
        assert federation.sites["gw-1"].engine.queries == {"q2": 1}

    harness.run(scenario)


def test_a_query_starts_when_every_site_has_sent_what_it_has(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await harness.until(lambda: sum(s.online for s in coordinator.sites()) == 4)
        gateway = federation.sites["gw-1"]
        gateway.host.engine.step, step = (lambda _now: _nothing()), gateway.host.engine.step
        query = await harness.start_query(coordinator, ROOMS)
        await harness.until(lambda: coordinator.query(query).waiting_for == ("gw-1",))
        assert coordinator.query(query).status == QueryStatus.STARTING
        gateway.host.engine.step = step
        gateway.put("roomsensor", ("r1", "open"))
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)
        assert coordinator.query(query).waiting_for == ()

    harness.run(scenario)


def _nothing() -> StepResult:
    return StepResult()


@pytest.mark.parametrize("text", [ROOMS, f"ISTREAM ({ROOMS})"])
def test_a_restart_of_the_base_shows_only_what_has_changed(harness: Any, text: str) -> None:
    def shown(row: Any) -> Any:
        return row[:2]  # a stream has the instant behind the row

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, text)
        rows = [(f"r{number}", "open") for number in range(5)]
        federation.sites["gw-1"].put("roomsensor", *rows)
        await harness.until(lambda: sorted(map(shown, coordinator.relation(query))) == rows)
        await harness.until(lambda: coordinator.query(query).settled or "ISTREAM" in text)
        reader = coordinator.subscribe(query, snapshot=False)
        federation.broker.cut("base")
        await federation.sites["base"].stop()
        federation.sites["gw-2"].put("roomsensor", ("new", "open"))
        await federation.site("base", "base", epoch=2)
        changes: list[tuple[int, Any]] = []
        while not changes:
            batch = await harness.next_batch(reader)
            changes = [(change.diff, shown(change.row)) for change in batch.changes]
        assert changes == [(1, ("new", "open"))]
        wanted = sorted([*rows, ("new", "open")])
        await harness.until(lambda: sorted(map(shown, coordinator.relation(query))) == wanted)
        await harness.until(lambda: coordinator.query(query).settled or "ISTREAM" in text)

    harness.run(scenario)


def test_a_query_settles_without_a_gateway_that_is_gone(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, ROOMS)
        for name in ("gw-1", "gw-2"):
            federation.sites[name].put("roomsensor", (name, "open"))
        await harness.until_rows(coordinator, query, [("gw-1", "open"), ("gw-2", "open")])
        await harness.until(lambda: coordinator.query(query).settled)
        federation.broker.cut("gw-2")
        await federation.sites["gw-2"].stop()
        await harness.until(lambda: coordinator.query(query).waiting_for == ("gw-2",))
        await harness.until(lambda: coordinator.query(query).settled)
        assert coordinator.relation(query) == (("gw-1", "open"),)

    harness.run(scenario)


LAST_ROWS = (
    "SELECT celsius FROM Temperature [ROWS 3]",
    "SELECT COUNT(*) AS n FROM Temperature [PARTITION BY celsius ROWS 3 RANGE 1 HOUR]",
    "SELECT t.celsius, m.mid FROM Temperature [ROWS 3] AS t JOIN Machines m ON m.rid = t.rid",
)


@pytest.mark.parametrize("text", LAST_ROWS)
def test_the_last_rows_of_all_gateways_are_not_settled_while_one_is_away(
    harness: Any, text: str
) -> None:
    """Its rows stay, and what it reads meanwhile comes as history when it is back."""

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, text)
        await harness.until(lambda: coordinator.query(query).settled)
        assert coordinator.query(query).status == QueryStatus.RUNNING
        federation.broker.cut("gw-2")
        await federation.sites["gw-2"].stop()
        await harness.until_status(coordinator, query, QueryStatus.DEGRADED)
        assert coordinator.query(query).waiting_for == ("gw-2",)
        for _ in range(50):
            await asyncio.sleep(0.01)
            assert not coordinator.query(query).settled
        back = await federation.site("gw-2", epoch=2)
        state = SiteState(True, 2, 0, buffer=BufferState(stored=3, waiting=3))
        back.client.publish(federation.topics.state("gw-2"), encode_json(state), retain=True)
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)
        await harness.until(lambda: not coordinator.query(query).settled, "history is to come")
        state = SiteState(True, 2, 0, buffer=BufferState(stored=1))
        back.client.publish(federation.topics.state("gw-2"), encode_json(state), retain=True)
        await harness.until(lambda: coordinator.query(query).settled)

    harness.run(scenario)


def test_a_query_stays_settled_without_the_static_engine(harness: Any) -> None:
    """The rows of its tables stay."""

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(
            coordinator,
            "SELECT m.mid, s.weightLevel FROM SeatSensor s JOIN Machines m ON m.mid = s.mid",
        )
        federation.sites["gw-1"].put("seatsensor", ("m1", "r1", 1.0))
        await harness.until_rows(coordinator, query, [("m1", 1.0)])
        await harness.until(lambda: coordinator.query(query).settled)
        federation.broker.cut("static")
        await federation.sites["static"].stop()
        await harness.until_status(coordinator, query, QueryStatus.DEGRADED)
        await calls(coordinator._repairs, "look")
        assert coordinator.query(query).settled
        assert coordinator.relation(query) == (("m1", 1.0),)

    harness.run(scenario)


@pytest.mark.usefixtures("impatient")
def test_a_site_that_runs_what_nobody_wants_is_stopped(harness: Any) -> None:
    """Even if it sends nothing but its counts."""

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, ROOMS)
        engine = federation.sites["gw-1"].engine
        await harness.until(lambda: engine.queries == {query: 1})
        bundle = coordinator._queries.find(query).bundle
        engine.install(type(bundle)("q99", 1, bundle.fragments, bundle.schema))
        await harness.until(lambda: engine.queries == {query: 1}, "q99 is stopped")

    harness.run(scenario)


@pytest.mark.usefixtures("impatient")
def test_a_query_stopped_for_its_size_is_not_sent_again(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.standard()
        coordinator = await federation.coordinator(max_result_rows=3)
        query = await harness.start_query(coordinator, ROOMS)
        federation.sites["gw-1"].put("roomsensor", *[(f"r{n}", "open") for n in range(9)])
        await harness.until_status(coordinator, query, QueryStatus.FAILED)
        await harness.until(lambda: not federation.fragments())
        federation.broker.cut("coordinator")
        federation.broker.restore("coordinator")
        await calls(coordinator._repairs, "look", 5)
        assert federation.fragments() == set()
        assert coordinator.query(query).status == QueryStatus.FAILED

    harness.run(scenario)


def test_heartbeats_are_no_reason_to_plan_again(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, ROOMS)
        await harness.until(lambda: coordinator.query(query).settled)
        await harness.until(lambda: coordinator._replanning.due is None)
        planned: list[str] = []
        plan = coordinator._planner.planned

        def counted(text: str, **options: Any) -> Any:
            planned.append(text)
            return plan(text, **options)

        coordinator._planner.planned = counted
        for name in ("gw-1", "gw-2", "base"):
            federation.sites[name]._announce(connected=True)
        await federation.broker.settle()
        await calls(coordinator._replanning, "look")
        assert coordinator._replanning.due is None
        assert planned == []
        await coordinator.execute("CREATE VIEW Open AS SELECT rid FROM RoomSensor")
        await harness.until(lambda: ROOMS in planned, "a view may change a plan")
        await federation.site("gw-9")
        await harness.until(lambda: coordinator.query(query).version == 2)

    harness.run(scenario)


def test_housekeeping_goes_on_after_a_defect(harness: Any, caplog: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(coordinator, ROOMS)
        await harness.until(lambda: coordinator.query(query).settled)
        changed_plans = coordinator._queries.changed_plans

        def broken(_: Any) -> Any:
            coordinator._queries.changed_plans = changed_plans
            coordinator._replanning.due = None  # do not wait for the next try
            raise ZeroDivisionError("a defect")

        coordinator._queries.changed_plans = broken
        await federation.site("gw-2")
        await harness.until(lambda: "a defect interrupted housekeeping" in caplog.text)
        await federation.site("gw-3")
        await harness.until(lambda: coordinator.query(query).version == 2)
        federation.sites["gw-3"].put("roomsensor", ("r3", "open"))
        await harness.until_rows(coordinator, query, [("r3", "open")])

    with caplog.at_level(logging.ERROR):
        harness.run(scenario)


def test_a_defect_that_a_message_meets_does_not_lose_the_next_ones(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(coordinator, ROOMS)
        await harness.until(lambda: coordinator.query(query).settled)
        hear_flow = coordinator._receiver.heard.flow

        def broken(*_: Any) -> None:
            coordinator._receiver.heard.flow = hear_flow
            raise KeyError("a defect")

        coordinator._receiver.heard.flow = broken
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until(lambda: coordinator.figures.bad_payloads == 1)
        await harness.until_rows(coordinator, query, [("r1", "open")])

    harness.run(scenario)


def test_everything_is_announced_although_the_queue_is_small(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        client = federation.broker.client

        def small(name: str, **options: Any) -> Any:
            most = 30 if name == "coordinator" else 10_000
            return client(name, **{**options, "max_pending": most})

        monkeypatch.setattr(federation.broker, "client", small)
        coordinator = await federation.standard(gateways=1)
        for _ in range(20):
            await harness.start_query(coordinator, f"{ROOMS} WITH (shared = 'no')")
            await federation.broker.settle()
        before = federation.fragments()
        assert len(before) == 40
        federation.broker.stop(forget=True)
        for number in range(29):
            coordinator._shared.client.publish(f"elsewhere/{number}", encode_packed(number))
        federation.broker.start()
        await harness.until(lambda: federation.fragments() == before, "all fragments are there")
        assert federation.tables() == ("machines", "machinesoftware")

    harness.run(scenario)


def test_a_restarted_base_from_which_nothing_has_come_has_not_settled(harness: Any) -> None:
    """It may have sent as many batches as before it stopped, and all of them were lost."""

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, ROOMS)
        await harness.until(lambda: coordinator.query(query).settled)
        running = coordinator._queries.find(query)
        report = federation.sites["base"].engine.flow(query)
        restarted = msgspec.structs.replace(report, epoch=report.epoch + 1)
        assert running.flows.hear("base", restarted, running.bundle)
        assert not coordinator.query(query).settled
        doubts = [key for key, _counts in coordinator._repairs._doubtful(running)]
        assert (query, running.bundle.version, "base", "") in doubts

    harness.run(scenario)
