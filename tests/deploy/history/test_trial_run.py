"""A trial on the past gives what the query means, at every time."""

import random

import pytest

from deploy.history.happenings import Happening, Presence, Readings, after_grace
from deploy.history.replayed_alarm import ReplayedAlarm
from federated_optimizer import direct_scans
from federated_optimizer.alarm_life_cycle import AlarmState
from federated_optimizer.coordinator.trials.history_runner import HistoryAlarm, HistoryChanges
from streamsql.catalog.notice_definitions import AlarmDefinition, Severity
from streamsql.data.events import SourceEvent
from tests.deploy.history.past import (
    SECOND,
    bound,
    bundle,
    catalog,
    expected_at,
    relation_at,
    run,
)

QUERIES = (
    "SELECT room, COUNT(*) AS n, SUM(level) AS total FROM noise [RANGE 9 SECONDS] GROUP BY room",
    "SELECT room, level FROM noise [PARTITION BY room ROWS 2]",
    "SELECT room, level FROM noise [ROWS 3]",
    "SELECT device, level FROM heat WHERE level > 1",
    "SELECT room, COUNT(*) AS n FROM seen GROUP BY room",
    "SELECT n.room, n.level, s.tag FROM noise [RANGE 5 SECONDS] AS n JOIN seen AS s "
    "ON s.room = n.room",
    "SELECT h.device, COUNT(*) AS n FROM heat AS h LEFT JOIN noise [RANGE 4 SECONDS] AS n "
    "ON n.room = h.device GROUP BY h.device",
)
GATEWAYS = ("gw-1", "gw-2", "gw-3")


def _past(chance: random.Random, count: int, direct: frozenset[str]) -> list[Readings]:
    found = []
    for number in range(count):
        at = number * SECOND // 2
        ts = max(0, at - chance.choice((0, 0, 0, 1, 4)) * SECOND)
        source = chance.choice(("noise", "heat", "seen"))
        room, gateway = chance.choice(("a", "b", "c")), chance.choice(GATEWAYS)
        if source == "heat":  # one gateway owns a key
            room = {"gw-1": "a", "gw-2": "b", "gw-3": "c"}[gateway]
        row = (chance.choice("xy"), room) if source == "seen" else (room, chance.randrange(4))
        event = SourceEvent(row, ts)
        found.append(Readings(at, gateway, source, (event,), source in direct))
    return found


@pytest.mark.parametrize("text", QUERIES)
def test_rows_are_at_every_time_those_of_an_evaluation_from_scratch(text: str) -> None:
    known = catalog()
    query = bound(text, known)
    placed = bundle(query, known, GATEWAYS)
    direct = frozenset(direct_scans(placed))
    for seed in range(8):
        chance = random.Random(seed)
        past = _past(chance, 60, direct)
        since, until = 10 * SECOND, 29 * SECOND
        messages = run(placed, past, since, until)
        for at in range(since, until + 1, SECOND):
            assert relation_at(messages, at) == expected_at(query, past, at), (seed, at)


def test_an_interval_is_the_end_of_a_longer_one() -> None:
    known = catalog()
    query = bound(QUERIES[0], known)
    placed = bundle(query, known, GATEWAYS)
    past = _past(random.Random(5), 80, frozenset())
    whole = run(placed, past, 0, 35 * SECOND)
    part = run(placed, past, 20 * SECOND, 35 * SECOND)
    assert relation_at(part, 20 * SECOND) == relation_at(whole, 20 * SECOND)
    later = [message for message in whole if message.at > 20 * SECOND]
    assert [message for message in part if message.at > 20 * SECOND] == later
    assert later


def test_a_log_without_a_window_begins_with_the_interval() -> None:
    known = catalog()
    query = bound("SELECT room, COUNT(*) AS n FROM noise GROUP BY room", known)
    placed = bundle(query, known, GATEWAYS)
    past = [
        Readings(at * SECOND, "gw-1", "noise", (SourceEvent(("a", at), at * SECOND),))
        for at in range(10)
    ]
    messages = run(placed, past, 5 * SECOND, 9 * SECOND)
    assert relation_at(messages, 9 * SECOND) == {("a", 5): 1}


def test_a_stream_gives_what_is_emitted_within_the_interval() -> None:
    known = catalog()
    query = bound("ISTREAM(SELECT device, level FROM heat)", known)
    placed = bundle(query, known, GATEWAYS)
    past = [
        Readings(at * SECOND, "gw-1", "heat", (SourceEvent(("a", at), at * SECOND),))
        for at in range(10)
    ]
    messages = run(placed, past, 5 * SECOND, 9 * SECOND)
    rows = [row for m in messages if isinstance(m, HistoryChanges) for _weight, row in m.rows]
    assert [row[:2] for row in rows if row[2] is not None][-3:] == [("a", 6), ("a", 7), ("a", 8)]


def _warm(times: range, gateway: str = "gw-1") -> list[Happening]:
    return [
        Readings(at * SECOND, gateway, "heat", (SourceEvent((gateway, 5), at * SECOND),))
        for at in times
    ]


def test_rows_of_an_absent_gateway_leave_and_come_back() -> None:
    known = catalog()
    query = bound("SELECT device, level FROM heat WHERE level > 1", known)
    placed = bundle(query, known, GATEWAYS)
    absences = [
        Presence(10 * SECOND, "gw-1", online=False),
        Presence(20 * SECOND, "gw-1", online=True),
        Presence(22 * SECOND, "gw-2", online=False),
        Presence(25 * SECOND, "gw-2", online=True),  # within the grace time
    ]
    happenings = sorted(
        [*_warm(range(30)), *_warm(range(30), "gw-2"), *after_grace(absences, 5 * SECOND)],
        key=lambda happening: happening.at,
    )
    messages = run(placed, happenings, 5 * SECOND, 29 * SECOND)
    assert messages == [
        HistoryChanges(5 * SECOND, ((1, ("gw-1", 5)), (1, ("gw-2", 5)))),
        HistoryChanges(15 * SECOND, ((-1, ("gw-1", 5)),)),
        HistoryChanges(20 * SECOND, ((1, ("gw-1", 5)),)),
    ]


def test_an_alarm_is_raised_after_its_time_and_doubted_while_a_gateway_is_away() -> None:
    known = catalog()
    text = "SELECT device, level FROM heat WHERE level > 1"
    query = bound(text, known)
    placed = bundle(query, known, GATEWAYS)
    alarm = ReplayedAlarm(AlarmDefinition("hot", text, Severity.CRITICAL, hold=3 * SECOND))
    absences = [
        Presence(10 * SECOND, "gw-1", online=False),
        Presence(20 * SECOND, "gw-1", online=True),
    ]
    cold = Readings(26 * SECOND, "gw-1", "heat", (SourceEvent(("gw-1", 0), 26 * SECOND),))
    happenings = sorted(
        [*_warm(range(2, 25)), cold, *after_grace(absences, 5 * SECOND)],
        key=lambda happening: happening.at,
    )
    messages = run(placed, happenings, SECOND, 40 * SECOND, alarm)
    row = ("gw-1", 5)
    assert [message for message in messages if isinstance(message, HistoryAlarm)] == [
        HistoryAlarm(5 * SECOND, AlarmState.RAISED, row),
        HistoryAlarm(15 * SECOND, AlarmState.UNKNOWN, row),
        HistoryAlarm(5 * SECOND, AlarmState.RAISED, row),
        HistoryAlarm(26 * SECOND, AlarmState.CLEARED, row),
    ]


def test_what_comes_and_goes_within_the_hold_time_raises_nothing() -> None:
    known = catalog()
    text = "SELECT device, level FROM heat WHERE level > 1"
    query = bound(text, known)
    placed = bundle(query, known, GATEWAYS)
    alarm = ReplayedAlarm(AlarmDefinition("hot", text, Severity.CRITICAL, hold=3 * SECOND))
    happenings = [
        Readings(at * SECOND, "gw-1", "heat", (SourceEvent(("a", at % 2 * 5), at * SECOND),))
        for at in range(20)
    ]
    messages = run(placed, happenings, SECOND, 19 * SECOND, alarm)
    assert not [message for message in messages if isinstance(message, HistoryAlarm)]
