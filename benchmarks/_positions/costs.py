"""Cost of a sighting: a step of the running view beside computing it again from all readings."""

import random
from collections.abc import Mapping
from statistics import median
from time import process_time

from benchmarks._positions.recorded import (
    SECOND,
    VIEWS,
    Happened,
    cells,
    flat,
    heard,
    levels,
    plan_of,
    tables,
)
from stream_engine.testing.site_runs import SiteRun
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent

STATEFUL = "strongest_room"
"""Its answer depends on the readings before the last minute: it is not compared."""
LAST = "last_sighting"


def costs(badges: int, turns: int) -> Mapping[str, Mapping[str, float]]:
    """Return CPU microseconds of a sighting per view; each turn does both, one after the other.

    Badges stand still and are heard by all six receivers of the flat once a second for ten seconds;
    then single readings arrive.

    Raises:
        ValueError: The two have different rows.
    """
    return {name: _cost(name, badges, turns) for name in (*VIEWS, LAST)}


def _cost(name: str, badges: int, turns: int) -> dict[str, float]:
    places, signals = flat("map")
    _true, signals_now = flat("test")
    chance, standing = random.Random(7), levels(signals_now)
    stored = tables(cells(places), places, signals)
    plan = plan_of(VIEWS.get(name, f"SELECT badge, room, x, y, confidence FROM {name}"))
    running, history = SiteRun(plan), list(stored)
    running.step(0, stored)
    for second in range(1, 11):
        now = second * SECOND
        arrived = [
            event
            for badge in range(badges)
            for event in _sightings(name, badge, standing[badge % len(standing)], now)
        ]
        history += arrived
        running.step(now, arrived)
    step_times: list[float] = []
    again_times: list[float] = []
    for turn in range(1, turns + 1):
        now = 10 * SECOND + turn * 1_000
        badge = chance.randrange(badges)
        row = chance.choice(standing[badge % len(standing)])
        arrived = _sightings(name, badge, [row], now)
        history += arrived
        begun = process_time()
        running.step(now, arrived)
        step_times.append(process_time() - begun)
        again = SiteRun(plan)
        begun = process_time()
        again.step(now, history)
        again_times.append(process_time() - begun)
        if name != STATEFUL and _rounded(again.shown) != _rounded(running.shown):
            raise ValueError(f"{name}: the running view and the one computed again differ")
    step, again_time = median(step_times) * 1e6, median(again_times) * 1e6
    return {
        "a sighting, µs": round(step, 0),
        "from scratch, µs": round(again_time, 0),
        "times": round(again_time / step, 0),
    }


def _sightings(name: str, badge: int, row: list[tuple[str, float]], now: int) -> Happened:
    if name == LAST:
        return [("seen", SourceEvent((f"b{badge}", receiver, now), now)) for receiver, _ in row]
    return heard(f"b{badge}", row, now)


def _rounded(rows: Delta) -> set[tuple[object, ...]]:
    return {tuple(round(v, 6) if isinstance(v, float) else v for v in row) for row in rows}
