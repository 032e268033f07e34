"""A trial from its order to its messages, over a lake in memory."""

import random
from collections.abc import Iterable
from dataclasses import replace

import networkx as nx
import pytest

from deploy.history.happenings import Presence
from deploy.history.order_run import OrderRun, reach_of
from federated_optimizer import Topology
from federated_optimizer.alarm_life_cycle import AlarmState
from federated_optimizer.coordinator.trials.history_runner import (
    HistoryAlarm,
    HistoryChanges,
    HistoryMessage,
    HistoryOrder,
    HistoryProgress,
)
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition, Severity
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.errors import DeploymentError
from streamsql.reference import evaluate
from streamsql.reference.reference_database import Database
from tests.deploy.history.kept_rows import KeptRow, RowsInMemory
from tests.deploy.history.past import SECOND, bound, catalog

MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
TOPOLOGY = Topology({"gw-1": frozenset({"noise", "heat", "seen"})}, bases=("base",))


def sources(known: Catalog) -> dict[str, SourceDefinition]:
    return {source.name: source for source in known.sources}


def order(text: str, known: Catalog, *names: str, since: int, until: int) -> HistoryOrder:
    definitions = sources(known)
    return HistoryOrder(
        query=bound(text, known),
        topology=TOPOLOGY,
        sources=tuple(definitions[name] for name in names),
        since=since,
        until=until,
        lookback=DAY,
        tables={},
        grace=5 * SECOND,
    )


def relation(messages: Iterable[HistoryMessage], at: int) -> Delta:
    total: Delta = {}
    for message in messages:
        if isinstance(message, HistoryChanges) and message.at <= at:
            for weight, row in message.rows:
                total[row] = total.get(row, 0) + weight
    return {row: weight for row, weight in total.items() if weight}


def test_a_day_with_late_readings_gives_what_was_known_at_each_time() -> None:
    known = catalog()
    text = "SELECT room, COUNT(*) AS n FROM noise [RANGE 1 HOURS] GROUP BY room"
    chance = random.Random(3)
    rows = []
    for seq in range(1_500):
        ts = seq * MINUTE
        late = chance.choice((0, 0, 0, 5 * MINUTE, 2 * HOUR))
        room, gateway = chance.choice("abc"), chance.choice(("gw-1", "gw-of-the-past"))
        rows.append(KeptRow(gateway, seq, ts, ts + late, (room, seq)))
    lake = RowsInMemory(sources(known), {"noise": rows})
    trial = order(text, known, "noise", since=3 * HOUR, until=23 * HOUR)
    messages = list(OrderRun(trial, lake).messages())
    for at in range(3 * HOUR, 23 * HOUR + 1, 37 * MINUTE):
        database = Database()
        for row in rows:
            if row.arrived <= at:
                database.append("noise", [SourceEvent(row.row, row.ts)], clock=row.arrived)
        assert relation(messages, at) == evaluate(trial.query.plan, database, at), at
    last = [message for message in messages if isinstance(message, HistoryProgress)][-1]
    assert last.at == 23 * HOUR
    assert 1_000 < last.readings <= 1_500


def test_an_alarm_of_last_week_is_raised_and_cleared_at_its_times() -> None:
    known = catalog()
    text = "SELECT device FROM heat WHERE level > 30"
    rows = [
        KeptRow("gw-1", seq, seq * MINUTE, seq * MINUTE + 2, ("oven", 40 if seq % 60 < 20 else 20))
        for seq in range(180)
    ]
    states = [
        Presence(0, "gw-1", online=True),
        Presence(65 * MINUTE, "gw-1", online=False),
        Presence(70 * MINUTE, "gw-1", online=True),
    ]
    lake = RowsInMemory(sources(known), {"heat": rows}, states)
    alarm = AlarmDefinition("hot", text, Severity.WARNING, hold=2 * MINUTE)
    trial = replace(order(text, known, "heat", since=30 * MINUTE, until=170 * MINUTE), alarm=alarm)
    messages = list(OrderRun(trial, lake).messages())
    row = ("oven",)
    assert [message for message in messages if isinstance(message, HistoryAlarm)] == [
        HistoryAlarm(62 * MINUTE + 2, AlarmState.RAISED, row),
        HistoryAlarm(65 * MINUTE + 5 * SECOND, AlarmState.UNKNOWN, row),
        HistoryAlarm(62 * MINUTE + 2, AlarmState.RAISED, row),
        HistoryAlarm(80 * MINUTE + 2, AlarmState.CLEARED, row),
        HistoryAlarm(122 * MINUTE + 2, AlarmState.RAISED, row),
        HistoryAlarm(140 * MINUTE + 2, AlarmState.CLEARED, row),
    ]
    notes = [n for m in messages if isinstance(m, HistoryProgress) for n in m.notes]
    assert len(notes) == 1
    assert "heat with no reading in the" in notes[0]


def test_a_source_that_is_not_kept_is_named() -> None:
    known = catalog()
    lake = RowsInMemory(sources(known), {})
    trial = order("SELECT room FROM noise [ROWS 1]", known, "noise", since=0, until=HOUR)
    with pytest.raises(DeploymentError, match="the lake keeps nothing of source noise"):
        list(OrderRun(trial, lake).messages())


def test_speed_makes_it_wait() -> None:
    known = catalog()
    rows = [KeptRow("gw-1", n, n * MINUTE, n * MINUTE, ("a", n)) for n in range(60)]
    lake = RowsInMemory(sources(known), {"noise": rows})
    trial = order("SELECT level FROM noise [ROWS 1]", known, "noise", since=0, until=HOUR)
    now = 0.0

    def rest(seconds: float) -> None:
        nonlocal now
        now += seconds

    run = OrderRun(replace(trial, speed=60.0), lake, lambda: now, rest)
    seen = [(m.at // MINUTE, now) for m in run.messages() if isinstance(m, HistoryChanges)]
    assert seen[::20] == [(0, 0.0), (20, 20.0), (40, 40.0)]
    assert now == 60.0


@pytest.mark.parametrize(
    ("text", "name", "reach"),
    [
        ("SELECT room FROM noise [RANGE 7 DAYS]", "noise", 7 * DAY),
        ("SELECT room FROM noise [RANGE 1 HOURS SLIDE 10 MINUTES]", "noise", HOUR + 10 * MINUTE),
        ("SELECT room FROM noise [ROWS 10]", "noise", 2 * DAY),
        ("SELECT room FROM noise [ROWS 10 RANGE 5 MINUTES]", "noise", 5 * MINUTE),
        ("SELECT room FROM noise", "noise", 0),
        ("SELECT device FROM heat", "heat", 2 * DAY),
        ("SELECT tag FROM seen", "seen", 7 * SECOND),
    ],
)
def test_a_query_reaches_as_far_back_as_its_windows(text: str, name: str, reach: int) -> None:
    known = catalog()
    assert reach_of(bound(text, known), sources(known)[name], 2 * DAY) == reach


def live_links(rows: list[KeptRow], at: int, present: set[str]) -> "nx.DiGraph[str]":
    """Return the links that there are at a time: the newest word on each, if it is not too old."""
    known = [row for row in rows if row.arrived <= at and row.gateway in present]
    newest = {row.row: row for row in sorted(known, key=lambda row: row.ts)}
    there = [r.row for r in newest.values() if not r.withdrawn and r.ts + 40 * MINUTE > at]
    return nx.DiGraph([(str(src), str(dst)) for src, dst in there])


@pytest.mark.parametrize(
    "placed", [("gw-0", "gw-1", "gw-2"), ()], ids=["gateways of today", "none"]
)
def test_paths_over_links_of_the_past_are_those_that_there_were(placed: tuple[str, ...]) -> None:
    script = (
        "CREATE LINK SOURCE wire (src TEXT, dst TEXT, KEY (src, dst)) WITH (ttl = '40 min');"
        "CREATE RECURSIVE VIEW reach (src, dst) AS SELECT src, dst FROM wire UNION "
        "SELECT r.src, w.dst FROM reach r JOIN wire w ON w.src = r.dst;"
    )
    known, chance = catalog(script), random.Random(7)
    away = (4 * HOUR, 5 * HOUR)
    rows = []
    for seq in range(540):
        src, dst = chance.sample("abcdefgh", 2)
        gateway, ts = f"gw-{ord(src) % 3}", seq * MINUTE
        arrived = away[1] + 1 if gateway == "gw-1" and away[0] <= ts < away[1] else ts + 1
        gone = chance.random() < 0.3
        rows.append(KeptRow(gateway, seq, ts, arrived, (src, dst), withdrawn=gone))
    states = [Presence(ts, "gw-1", online=ts != away[0]) for ts in (0, *away)]
    lake = RowsInMemory(sources(known), {"wire": rows}, states)
    topology = Topology({name: frozenset({"wire"}) for name in placed}, bases=("base", "base-2"))
    trial = order("SELECT src, dst FROM reach", known, "wire", since=2 * HOUR, until=9 * HOUR)
    messages = list(OrderRun(replace(trial, topology=topology), lake).messages())
    counts = []
    for at in range(2 * HOUR + 30 * SECOND, 9 * HOUR, 11 * MINUTE):
        is_away = away[0] + 5 * SECOND <= at < away[1]
        present = {"gw-0", "gw-2"} if is_away else {"gw-0", "gw-1", "gw-2"}
        closed = nx.transitive_closure(live_links(rows, at, present), reflexive=False)
        assert relation(messages, at) == dict.fromkeys(closed.edges, 1), at
        counts.append(closed.number_of_edges())
    assert len(set(counts)) > 10
