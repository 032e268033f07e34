"""RUN … ON HISTORY at a coordinator: bound for whoever asks, run in a process, kept for a while."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest

from deploy.history.engine_runner import EngineRunner
from federated_optimizer.alarm_life_cycle import AlarmState
from federated_optimizer.coordinator.contract.history_model import HistoryTrialInfo, PastChange
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.trials.history_runner import (
    HistoryChanges,
    HistoryEnd,
    HistoryMessage,
    HistoryOrder,
    PastSize,
)
from streamsql.algebra.operators import Plan
from streamsql.errors import FederationError
from streamsql.wire.site_messages import SiteRole
from tests.deploy.history.kept_rows import KeptRow, RowsInMemory
from tests.federated_optimizer.coordinator.conftest import SCHEMA, definitions, until, wall

SECOND = 1_000_000
HOUR = 3_600 * SECOND
INTERVAL = "ON HISTORY BETWEEN NOW - INTERVAL '2 hours' AND NOW - INTERVAL '1 hour'"


def warm_past(_sources: object = ()) -> RowsInMemory:
    """Return a lake in which room r1 was hot 100 minutes ago, for ten minutes."""
    now, rows = wall(), []
    for minute in range(180, 0, -1):
        ts = now - minute * 60 * SECOND
        celsius = 40.0 if 90 < minute <= 100 else 20.0
        rows.append(KeptRow("gw-1", 180 - minute, ts, ts + 1, ("r1", celsius)))
    return RowsInMemory(definitions(SCHEMA), {"temperature": rows})


class Saying:
    """A runner that says what it is told, and then waits."""

    def __init__(self, *messages: HistoryMessage) -> None:
        self.messages = messages
        self.orders: list[HistoryOrder] = []
        self.closed = 0

    async def run(self, order: HistoryOrder) -> AsyncIterator[HistoryMessage]:
        self.orders.append(order)
        try:
            for message in self.messages:
                yield message
            await asyncio.Event().wait()
        finally:
            self.closed += 1

    def sizes(self, _plan: Plan) -> tuple[PastSize, ...]:
        return ()


async def ended(made: Any, result: Any) -> HistoryTrialInfo:
    trial = result.data["trial"]
    await until(lambda: made.past.info(trial).done)
    found: HistoryTrialInfo = made.past.info(trial)
    return found


def test_an_alarm_is_tried_on_the_past_in_a_process(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", SiteRole.BASE)
        runner = EngineRunner(warm_past)
        made = await federation.coordinator(define_schema=True, history=runner)
        text = (
            "RUN CREATE ALARM hot AS SELECT rid, AVG(celsius) AS mean FROM Temperature "
            f"[RANGE 2 MINUTES] GROUP BY rid HAVING AVG(celsius) > 30 SEVERITY 'warning' {INTERVAL}"
        )
        (result,) = await made.execute(text)
        info = await ended(made, result)
        assert (info.problem, info.alarm, info.share) == ("", "hot", 1.0)
        changes = made.past.changes(info.id, 0, 1_000)
        alarms = [(change.alarm, change.row) for change in changes if change.alarm is not None]
        assert alarms == [
            (AlarmState.RAISED, ("r1", 40.0)),
            (AlarmState.CLEARED, ("r1", 40.0)),
        ]
        raised = next(change.at for change in changes if change.alarm == AlarmState.RAISED)
        assert abs(raised - (wall() - 100 * 60 * SECOND)) < 120 * SECOND
        assert made.alarms() == ()  # nothing was created

    harness.run(scenario)


def test_a_view_a_query_and_an_alarm_are_tried_by_name(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", SiteRole.BASE)
        runner = Saying(HistoryEnd())
        made = await federation.coordinator(define_schema=True, history=runner)
        await made.execute("CREATE VIEW warm AS SELECT rid FROM Temperature [RANGE 1 MINUTES]")
        await made.execute("SELECT rid, celsius FROM Temperature [ROWS 5]", name="last-five")
        await made.execute("CREATE ALARM hot AS SELECT rid FROM warm SEVERITY 'info' FOR '1 min'")
        for name in ("warm", '"last-five"', "hot"):
            (result,) = await made.execute(f"RUN {name} {INTERVAL}")
            await until(lambda: len(runner.orders) == len(made.past.all()))
            await made.past.stop(result.data["trial"])
        columns = [order.query.schema.names for order in runner.orders]
        assert columns == [("rid",), ("rid", "celsius"), ("rid",)]
        assert [order.alarm is not None and order.alarm.hold for order in runner.orders] == [
            False,
            False,
            60 * SECOND,
        ]
        assert {source.name for source in runner.orders[0].sources} == {"temperature"}

    harness.run(scenario)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RUN nothing {}", "there is no view, alarm or running query"),
        ("RUN SELECT software FROM MachineSoftware {}", "reads no source whose past is kept"),
        ("RUN SELECT site FROM sys_stream {}", "cannot be run on history"),
        ("RUN SELECT rid FROM Nowhere {}", "nowhere"),
        ("RUN SELECT rid FROM Temperature ON HISTORY BETWEEN NOW AND NOW", "interval is empty"),
    ],
)
def test_what_cannot_be_tried_is_told(harness: Any, text: str, message: str) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", SiteRole.BASE)
        made = await federation.coordinator(define_schema=True, history=Saying())
        with pytest.raises(FederationError, match=f"(?i){message}"):
            await made.execute(text.format(INTERVAL))
        assert made.past.all() == ()

    harness.run(scenario)


def test_without_a_lake_trials_are_refused(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        made = await federation.coordinator(define_schema=True)
        with pytest.raises(FederationError, match="keeps no history"):
            await made.execute(f"RUN SELECT rid FROM Temperature {INTERVAL}")

    harness.run(scenario)


def test_stored_tables_are_read_as_they_are(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        made = await federation.standard()
        runner = Saying(HistoryEnd())
        made._past._runner = runner
        text = (
            "RUN SELECT m.mid FROM SeatSensor AS s JOIN Machines AS m ON m.mid = s.mid "
            f"WHERE s.weightLevel > 1 {INTERVAL}"
        )
        (result,) = await made.execute(text)
        await until(lambda: len(runner.orders) == 1)
        (order,) = runner.orders
        assert sorted(order.tables["machines"]) == [("m1", "r1"), ("m2", "r2"), ("m3", "r1")]
        assert "rows of machines are those that are there now" in made.past.all()[0].notes
        await made.past.stop(result.data["trial"])

    harness.run(scenario)


def test_a_trial_is_its_makers_and_can_be_stopped(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        runner = Saying(HistoryChanges(5, ((1, ("r1",)),)))
        made = await federation.coordinator(define_schema=True, history=runner)
        ann, bob = Principal("ann", Role.ADMINISTRATOR), Principal("bob", Role.ADMINISTRATOR)
        text = f"RUN SELECT rid FROM Temperature {INTERVAL}"
        (result,) = await made.execute(text, principal=ann)
        trial = result.data["trial"]
        await until(lambda: made.past.info(trial).events == 1)
        hers, his = made.on_behalf(ann).past, made.on_behalf(bob).past
        assert list(hers.changes(trial, 0, 10)) == [PastChange(5, 1, ("r1",))]
        assert (len(hers.all()), len(his.all())) == (1, 0)
        with pytest.raises(KeyError):
            his.info(trial)
        with pytest.raises(KeyError):
            await his.stop(trial)
        limited = Principal("ann", Role.ANALYST, token="t", sources=("seatsensor",))
        with pytest.raises(KeyError):
            made.on_behalf(limited).past.info(trial)
        stopped = await hers.stop(trial)
        assert (stopped.done, stopped.problem, runner.closed) == (True, "it was stopped", 1)

    harness.run(scenario)


def test_viewers_may_not_and_two_run_at_a_time(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        made = await federation.coordinator(define_schema=True, history=Saying())
        text = f"RUN SELECT rid FROM Temperature {INTERVAL}"
        with pytest.raises(FederationError, match="may not run"):
            await made.execute(text, principal=Principal("eve", Role.VIEWER))
        await made.execute(text)
        await made.execute(text)
        with pytest.raises(FederationError, match="2 trials on history run already"):
            await made.execute(text)

    harness.run(scenario)


def endless_past(_sources: object) -> RowsInMemory:
    lake = warm_past()
    lake.rows["temperature"] *= 20_000
    return lake


def test_a_stopped_trial_has_no_process_any_more(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        made = await federation.coordinator(define_schema=True, history=EngineRunner(endless_past))
        me = psutil.Process()

        def children() -> list[psutil.Process]:
            found = [p for p in me.children() if "deploy.history.trial_process" in p.cmdline()]
            return [p for p in found if p.status() != psutil.STATUS_ZOMBIE]

        (result,) = await made.execute(f"RUN SELECT rid FROM Temperature [ROWS 2] {INTERVAL}")
        await until(lambda: bool(children()))
        await made.past.stop(result.data["trial"])
        assert children() == []

    harness.run(scenario)


def no_lake(_sources: object) -> RowsInMemory:
    raise OSError("the disk is gone")


def test_how_a_trial_fails_is_told(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        made = await federation.coordinator(define_schema=True, history=EngineRunner(no_lake))
        (result,) = await made.execute(f"RUN SELECT rid FROM Temperature {INTERVAL}")
        info = await ended(made, result)
        assert "the disk is gone" in info.problem

    harness.run(scenario)
