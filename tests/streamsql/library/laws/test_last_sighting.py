"""`last_sighting` against a list of all sightings: they come, are withdrawn and grow old."""

import random
from functools import cache

import pytest

from stream_engine.testing.circuit_runs import LocalRun
from streamsql.algebra.operators import Plan
from streamsql.binder.statements.query_warnings import findings
from streamsql.data.delta import expand
from streamsql.data.events import SourceEvent
from tests.streamsql.from_text import bound_query, catalog_of

SECOND = 1_000_000
MINUTE, HOUR = 60 * SECOND, 3_600 * SECOND
FRESHNESS = ((MINUTE, 1.0), (10 * MINUTE, 0.8), (HOUR, 0.5), (24 * HOUR, 0.25))
SOURCES = """
CREATE SOURCE seen (badge TEXT, receiver TEXT, ts TIMESTAMP);
CREATE TABLE receiver (receiver TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE);
"""
RECEIVERS = [(f"r{n}", f"room-{n // 2}", n % 2, n * 2.0, 1.0) for n in range(5)]
Sighting = tuple[str, str, int]
Answer = tuple[str, int, float, float, str, int, float]


@cache
def plan_of() -> Plan:
    return bound_query("SELECT * FROM last_sighting", catalog_of(SOURCES, library=True)).plan


def answer(badge: str, sightings: list[Sighting], now: int) -> Answer | None:
    places = {name: (room, floor, x, y) for name, room, floor, x, y in RECEIVERS}
    mine = [s for s in sightings if s[0] == badge and s[1] in places and s[2] > now - 24 * HOUR]
    if not mine:
        return None
    _, receiver, ts = min(mine, key=lambda s: (-s[2], s[1]))
    room, floor, x, y = places[receiver]
    freshness = next(level for age, level in FRESHNESS if ts > now - age)
    recent = [places[s[1]][0] for s in mine if s[2] > now - MINUTE]
    share = recent.count(room) / len(recent) if recent else 1.0
    return (room, floor, x, y, receiver, ts, round(freshness * share, 9))


@pytest.mark.parametrize("seed", range(4))
def test_the_newest_sighting_counts_by_age_and_share(seed: int) -> None:
    chance, run, now = random.Random(seed), LocalRun(plan_of()), 30 * HOUR
    sightings: list[Sighting] = []
    run.step(now, [("receiver", SourceEvent(row, 0)) for row in RECEIVERS])
    levels: set[float] = set()
    for _ in range(120):
        now += chance.choice((SECOND, 10 * SECOND, MINUTE, 8 * MINUTE, 2 * HOUR, 20 * HOUR))
        events = []
        for _ in range(chance.randint(0, 4)):
            if sightings and chance.random() < 0.15:
                gone = sightings.pop(chance.randrange(len(sightings)))
                events.append(("seen", SourceEvent(gone, gone[2], delete=True)))
                continue
            ts = now - chance.choice((0, 0, 3 * SECOND))
            row = (chance.choice("ab"), f"r{chance.randint(0, 5)}", ts)
            sightings.append(row)
            events.append(("seen", SourceEvent(row, ts)))
        run.step(now, events)
        shown = {r[0]: (*r[1:-1], round(float(str(r[-1])), 9)) for r in expand(run.output)}
        expected = {b: found for b in "ab" if (found := answer(b, sightings, now)) is not None}
        assert shown == expected, (seed, now)
        levels.update(round(float(str(row[-1])), 2) for row in shown.values())
    assert {1.0, 0.8, 0.5, 0.25} <= levels
    assert len(levels) > 4  # shares, too


def test_nothing_is_warned_of() -> None:
    assert not findings(plan_of())
