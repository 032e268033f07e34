"""A trial on the past gives what the running query gave: late readings, outages, alarms."""

import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from deploy.history.happenings import Presence
from deploy.history.order_run import OrderRun
from federated_optimizer.alarm_life_cycle import AlarmState
from federated_optimizer.coordinator.trials.history_runner import (
    HistoryAlarm,
    HistoryChanges,
    HistoryMessage,
    HistoryOrder,
)
from federated_optimizer.coordinator.trials.tried_past import scans_of
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row, Value
from streamsql.syntax import parse_statement
from streamsql.wire.site_messages import SiteRole
from tests.deploy.history.kept_rows import KeptRow, RowsInMemory
from tests.federated_optimizer.coordinator.conftest import SCHEMA, definitions, wall

SECOND = 1_000_000
HOUR = 3_600 * SECOND
GRACE = 200_000
GATEWAYS = ("gw-1", "gw-2")
QUERIES = (
    "SELECT rid, COUNT(*) AS n, MAX(celsius) AS top FROM Temperature [RANGE 1 HOURS] "
    "GROUP BY rid HAVING MAX(celsius) > 25",
    "SELECT s.mid, s.rid, t.celsius FROM SeatSensor AS s "
    "JOIN Temperature [PARTITION BY rid ROWS 2] AS t ON t.rid = s.rid WHERE s.weightLevel > 1",
)


@dataclass
class Recorder:
    """Puts readings at sites and keeps them as a lake would have them."""

    federation: Any
    rows: dict[str, list[KeptRow]] = field(
        default_factory=lambda: {"temperature": [], "seatsensor": []}
    )
    states: list[Presence] = field(default_factory=list)
    waiting: dict[str, list[tuple[str, KeptRow]]] = field(default_factory=dict)
    number: int = 0

    def put(self, gateway: str, source: str, row: tuple[Value, ...], late: int) -> None:
        site, now = self.federation.sites[gateway], wall()
        site.engine.ingest(source, [SourceEvent(row, now - late)])
        site.host.wake()
        self.number += 1
        kept = KeptRow(gateway, self.number, now - late, now, row)
        if gateway in self.waiting:  # it is sent when the gateway is back
            self.waiting[gateway].append((source, kept))
        else:
            self.rows[source].append(kept)

    def cut(self, gateway: str) -> None:
        self.waiting[gateway] = []
        self.states.append(Presence(wall(), gateway, online=False))
        self.federation.broker.cut(gateway)

    def restore(self, gateway: str) -> None:
        self.federation.broker.restore(gateway)
        now = wall()
        self.states.append(Presence(now, gateway, online=True))
        for source, kept in self.waiting.pop(gateway):
            self.rows[source].append(replace(kept, arrived=now))


def act(chance: random.Random, recorder: Recorder) -> int:
    """Do something at random; return how long it takes at least until all have noticed."""
    away = set(recorder.waiting)
    kind = chance.random()
    if kind < 0.12 and not away:
        recorder.cut(chance.choice(GATEWAYS))
        return 3 * GRACE
    if away and kind < 0.35:
        recorder.restore(away.pop())
        return 3 * GRACE
    gateway = chance.choice(GATEWAYS)
    room = f"{gateway}-{chance.choice('ab')}"
    # While a gateway is away a late reading could be of before: that is not told apart.
    late = 0 if gateway in recorder.waiting else chance.choice((0, 0, 5 * SECOND, 600 * SECOND))
    if chance.random() < 0.6:
        recorder.put(gateway, "temperature", (room, float(chance.randrange(20, 32))), late)
    else:
        seat = (f"{gateway}-{chance.choice('xy')}", room, float(chance.randrange(3)))
        recorder.put(gateway, "seatsensor", seat, 0)
    return GRACE // 2


def relation(messages: list[HistoryMessage], at: int) -> Delta:
    total: Delta = {}
    for message in messages:
        if isinstance(message, HistoryChanges) and message.at <= at:
            for weight, row in message.rows:
                total[row] = total.get(row, 0) + weight
    return {row: weight for row, weight in total.items() if weight}


def raised(messages: list[HistoryMessage], at: int) -> dict[Row, AlarmState]:
    states: dict[Row, AlarmState] = {}
    for message in messages:
        if isinstance(message, HistoryAlarm) and message.at <= at:
            states[message.row] = message.state
    return {row: state for row, state in states.items() if state == AlarmState.RAISED}


@pytest.mark.parametrize("text", QUERIES)
def test_a_trial_gives_what_the_query_gave(text: str, harness: Any) -> None:
    moments: list[tuple[int, Delta, dict[Row, AlarmState] | None]] = []
    order: HistoryOrder | None = None
    recorder: Recorder | None = None

    async def scenario(federation: Any) -> None:
        nonlocal order, recorder
        await federation.site("base", SiteRole.BASE)
        for gateway in GATEWAYS:
            await federation.site(gateway)
        made = await federation.coordinator(define_schema=True)
        await harness.until(lambda: sum(site.online for site in made.sites()) == 3)
        recorder = Recorder(federation)
        began = wall()
        await made.execute(f"CREATE ALARM odd AS {text} SEVERITY 'info'")
        query = made._queries.find("alarm odd")
        await harness.until(query.is_settled)
        chance = random.Random(7)
        for _ in range(24):
            pause = act(chance, recorder)
            away = frozenset(recorder.waiting)
            changes = -1
            while changes != query.result.changes:  # until nothing moves any more
                changes, since = query.result.changes, wall()
                await harness.until(lambda since=since, pause=pause: wall() - since > pause)
                await harness.until(lambda: query.is_settled() or bool(recorder.waiting))
                pause = GRACE // 2
            (alarm,) = made.alarms()
            opened = {row.row: row.state for row in alarm.rows if row.state != AlarmState.CLEARED}
            moments.append((wall(), dict(query.result.view), None if away else opened))
        bound = made._planner.bind(parse_statement(text))
        order = HistoryOrder(
            query=bound,
            topology=made._planner.topology(),
            sources=tuple(
                {scan.source: definitions(SCHEMA)[scan.source] for scan in scans_of(bound)}.values()
            ),
            since=began,
            until=wall(),
            lookback=HOUR,
            tables={},
            grace=GRACE,
            alarm=made._shared.catalog.find("odd"),
        )

    harness.run(scenario)
    assert order is not None
    assert recorder is not None
    lake = RowsInMemory(definitions(SCHEMA), recorder.rows, recorder.states)
    messages = list(OrderRun(order, lake).messages())
    assert any(presence.online for presence in recorder.states)
    for at, rows, alarms in moments:
        assert relation(messages, at) == rows, at
        if alarms is not None:
            assert raised(messages, at) == alarms, at
