"""`strongest_room` against a state machine that keeps the room of each badge."""

import random
from collections.abc import Iterator
from functools import cache
from statistics import fmean

import pytest

from stream_engine.testing.site_runs import SiteRun
from streamsql.algebra.operators import Plan
from streamsql.data.delta import expand
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from tests.streamsql.from_text import bound_query, catalog_of

SECOND = 1_000_000
WINDOW = 10 * SECOND
SOURCES = """
CREATE SOURCE heard (badge TEXT, receiver TEXT, rssi DOUBLE, ts TIMESTAMP) WITH (ttl = '1 min');
CREATE TABLE receiver (receiver TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE);
"""
HYSTERESIS = 4.0
ROOMS = {"r0": "hall", "r1": "lab", "r2": "lab", "r3": "attic", "r4": None}
Reading = tuple[str, str, float, int]


@cache
def plan_of(query: str) -> Plan:
    return bound_query(query, catalog_of(SOURCES, library=True)).plan


def levels(readings: list[Reading], now: int) -> dict[str, float]:
    """Return the best mean of 10 s of each room's receivers."""
    heard: dict[str, list[float]] = {}
    for _badge, receiver, rssi, ts in readings:
        if now - WINDOW < ts <= now:
            heard.setdefault(receiver, []).append(rssi)
    found: dict[str, float] = {}
    for receiver, values in heard.items():
        room = ROOMS[receiver]
        if room is not None:
            found[room] = max(found.get(room, -1e9), fmean(values))
    return found


def near(readings: list[Reading], now: int) -> set[str]:
    """Return the rooms that are less than 4 dB worse than the best."""
    by_room = levels(readings, now)
    return {room for room, level in by_room.items() if level > max(by_room.values()) - HYSTERESIS}


class StateMachine:
    """The room of one badge: it stays until another is 4 dB better or it hears nothing."""

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        self.room: str | None = None
        self.since: dict[str, int] = {}
        self.done = -1

    def shown(self, now: int) -> str | None:
        """Return the room at a time; what happened before it is final."""
        times = {t for *_, ts in self.readings for t in (ts, ts + WINDOW) if self.done < t < now}
        for time in sorted(times):
            self.room = self._next(time)
        self.done = now - 1
        candidates = near(self.readings, now)
        if self.room in candidates:
            return self.room
        known = {room: time for room, time in self.since.items() if room in candidates}
        return min(known, key=lambda r: (known[r], r)) if known else min(candidates, default=None)

    def _next(self, time: int) -> str | None:
        candidates = near(self.readings, time)
        self.since = {room: self.since.get(room, time) for room in candidates}
        if self.room in candidates:
            return self.room
        return min(candidates, key=lambda room: (self.since[room], room), default=None)


def walks(seed: int) -> Iterator[tuple[int, list[Reading]]]:
    """Yield times with readings of three badges: levels wander, receivers fall silent."""
    chance, now = random.Random(seed), 0
    base = {(b, r): -60.0 for b in ("ann", "bob", "eve") for r in ROOMS}
    silent: dict[tuple[str, str], int] = {}
    for _ in range(150):
        now += chance.choice((SECOND // 2, SECOND, SECOND, 3 * SECOND))
        found: list[Reading] = []
        for pair, level in base.items():
            base[pair] = level + chance.gauss(0.0, 1.5) - 0.03 * (level + 60.0)
            if chance.random() < 0.01:
                silent[pair] = now + 15 * SECOND
            if silent.get(pair, 0) <= now and chance.random() < 0.8:
                found.append((*pair, level + chance.gauss(0.0, 4.0), now))
        yield now, found


@pytest.mark.parametrize("seed", range(4))
def test_the_room_is_that_of_a_state_machine(seed: int) -> None:
    run = SiteRun(plan_of("SELECT badge, room, receiver, rssi FROM strongest_room"))
    machines = {badge: StateMachine() for badge in ("ann", "bob", "eve")}
    tables = [
        ("receiver", SourceEvent((r, room, 0, 0.0, 0.0), 0)) for r, room in sorted(ROOMS.items())
    ]
    run.step(0, tables)
    changes = differs = 0
    last: dict[str, str | None] = {}
    for now, readings in walks(seed):
        for reading in readings:
            machines[reading[0]].readings.append(reading)
        run.step(now, [("heard", SourceEvent(r, r[3])) for r in readings])
        shown: dict[object, Row] = {row[0]: row for row in expand(run.shown)}
        for badge, machine in machines.items():
            room, by_room = machine.shown(now), levels(machine.readings, now)
            assert (shown[badge][1] if badge in shown else None) == room, (seed, now, badge)
            if room is None:
                continue
            assert shown[badge][3] == pytest.approx(by_room[room])
            assert ROOMS[str(shown[badge][2])] == room
            changes += last.get(badge, room) != room
            differs += by_room[room] < max(by_room.values())
            last[badge] = room
    assert changes > 10  # rooms do change
    assert differs > 20  # and are kept though another one is a little better


def changes_in_an_hour(query: str) -> int:
    """Return how often the room changes between two equal receivers that hear at 1 Hz."""
    run, chance = SiteRun(plan_of(query)), random.Random(1)
    run.step(0, [("receiver", SourceEvent((f"r{n}", f"room{n}", 0, 0.0, 0.0), 0)) for n in (0, 1)])
    changes, last = 0, None
    for now in range(SECOND, 3_601 * SECOND, SECOND):
        rows = [("ann", f"r{n}", chance.gauss(-60.0, 4.0), now) for n in (0, 1)]
        run.step(now, [("heard", SourceEvent(row, now)) for row in rows])
        ((room,),) = run.shown
        changes += last not in (None, room)
        last = room
    return changes


def test_a_badge_between_two_equal_receivers_rarely_jumps() -> None:
    jumping = """SELECT r.room FROM
      (SELECT receiver, AVG(rssi) AS rssi FROM heard [RANGE 10 SECONDS] GROUP BY receiver) AS n
      JOIN receiver r ON r.receiver = n.receiver
      QUALIFY ROW_NUMBER() OVER (ORDER BY n.rssi DESC) = 1"""
    assert changes_in_an_hour(jumping) > 300
    assert changes_in_an_hour("SELECT room FROM strongest_room") < 30
