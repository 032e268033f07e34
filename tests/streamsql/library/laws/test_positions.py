"""The points of badges against numpy: readings come, are withdrawn and expire; tables change."""

import random
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from stream_engine.testing.circuit_runs import LocalRun
from streamsql.algebra.operators import Plan
from streamsql.binder.statements.query_warnings import findings
from streamsql.data.delta import expand
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from tests.streamsql.from_text import bound_query, catalog_of

SECOND = 1_000_000
TTL = 45 * SECOND
SOURCES = """
CREATE SOURCE heard (badge TEXT, receiver TEXT, rssi DOUBLE, ts TIMESTAMP) WITH (ttl = '45 s');
CREATE TABLE receiver (receiver TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE);
CREATE TABLE radio_map (point TEXT, receiver TEXT, rssi DOUBLE);
CREATE TABLE calibration_point (point TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE);
"""
Floats = NDArray[np.float64]
Answer = dict[str, Row]
"""The rest of each badge's row."""


@cache
def plan_of(view: str) -> Plan:
    return bound_query(f"SELECT * FROM {view}", catalog_of(SOURCES, library=True)).plan


class World:
    """What is heard and stored now, kept beside the engine."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0
        self.heard: list[Row] = []
        self.receivers: list[Row] = [
            (f"r{n}", f"room-{n % 4}", n % 2, n * 4.0, (n * 7 % 5) * 3.0) for n in range(5)
        ]
        # Of some nobody knows where exactly they are.
        self.receivers += [("r5", "room-1", 1, None, None), ("r7", "room-8", None, 1.0, 2.0)]
        self.points: list[Row] = [
            (f"p{n}", f"room-{n % 4}", n % 2, n * 1.5, (n * 3 % 7) * 2.0) for n in range(10)
        ]
        self.points += [("p10", "room-2", 0, None, 1.0), ("p11", "room-3", 1, 1.0, None)]
        self.signals: list[Row] = [
            (point[0], f"r{n}", self.level())
            for point in self.points
            for n in range(6)
            if self.random.random() < 0.6
        ]

    def level(self) -> float:
        return -self.random.randint(400, 950) / 10

    def tables(self) -> Iterator[tuple[str, SourceEvent]]:
        for name in ("receiver", "radio_map", "calibration_point"):
            for row in self.table(name):
                yield name, SourceEvent(row, 0)

    def table(self, name: str) -> list[Row]:
        return {
            "receiver": self.receivers,
            "radio_map": self.signals,
            "calibration_point": self.points,
        }[name]

    def happening(self) -> tuple[str, SourceEvent]:
        chance = self.random.random()
        if chance < 0.1 and self.heard:
            row = self.heard.pop(self.random.randrange(len(self.heard)))
            ts = row[3]
            assert isinstance(ts, int)
            return "heard", SourceEvent(row, ts, delete=True)
        if chance < 0.2:
            name = self.random.choice(["receiver", "radio_map", "calibration_point"])
            rows = self.table(name)
            if self.random.random() < 0.5 and len(rows) > 1:
                return name, SourceEvent(rows.pop(self.random.randrange(len(rows))), 0, delete=True)
            if name == "radio_map":
                row = (self.random.choice(self.points)[0], f"q{self.random.random()}", self.level())
            else:
                place = f"room-{self.random.randint(0, 3)}", self.random.randint(0, 1)
                spot = self.random.choice([(self.level(), self.level()), (None, self.level())])
                row = (f"n{self.random.random()}", *place, *spot)
            rows.append(row)
            return name, SourceEvent(row, 0)
        rssi = None if chance > 0.97 else self.level()
        receiver = f"r{self.random.randint(0, 7)}"
        ts = self.now - self.random.randint(0, 3 * SECOND)
        row = (f"b{self.random.randint(0, 2)}", receiver, rssi, ts)
        self.heard.append(row)
        return "heard", SourceEvent(row, ts)

    def pass_time(self, by: int) -> None:
        self.now += by
        self.heard = [row for row in self.heard if _number(row[3]) + TTL > self.now]

    def means(self, seconds: int) -> dict[str, dict[str, float]]:
        """Mean RSSI by badge and receiver of the last seconds."""
        found: dict[tuple[str, str], list[float]] = {}
        for badge, receiver, rssi, ts in self.heard:
            if rssi is not None and _number(ts) > self.now - seconds * SECOND:
                found.setdefault((str(badge), str(receiver)), []).append(_number(rssi))
        by_badge: dict[str, dict[str, float]] = {}
        for (badge, receiver), levels in found.items():
            by_badge.setdefault(badge, {})[receiver] = float(np.mean(levels))
        return by_badge

    def places(self) -> dict[str, Row]:
        return {str(row[0]): row[1:] for row in self.receivers}


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return value


def weighted_centroid(world: World) -> Answer:
    places = world.places()
    found: Answer = {}
    for badge, levels in world.means(10).items():
        known = sorted((-level, r) for r, level in levels.items() if r in places)
        if not known:
            continue
        rows = [places[r] for _, r in known]
        weights = 10.0 ** (np.array([-level for level, _ in known]) / 20.0)
        room, floor = rows[0][:2]
        here = np.array([row[1] == floor for row in rows])
        share = float(weights[[row[0] == room for row in rows]].sum() / weights.sum())
        here &= np.array([None not in row[2:] for row in rows])
        if not here.any():
            found[badge] = (room, floor, None, None, None, share)
            continue
        spots = np.array([row[2:] for row in rows], dtype=float)[here]
        centre = np.average(spots, axis=0, weights=weights[here])
        squares = ((spots - centre) ** 2).sum(axis=1)
        spread = float(np.sqrt(np.average(squares, weights=weights[here])))
        found[badge] = (room, floor, float(centre[0]), float(centre[1]), spread, share)
    return found


def radio_map_position(world: World) -> Answer:
    names = sorted({str(row[1]) for row in world.signals} | {f"r{n}" for n in range(8)})
    recorded: dict[str, Floats] = {}
    for point, receiver, rssi in world.signals:
        vector = recorded.setdefault(str(point), np.full(len(names), -100.0))
        vector[names.index(str(receiver))] = _number(rssi)
    places = {str(row[0]): row[1:] for row in world.points}
    found: Answer = {}
    for badge, levels in world.means(10).items():
        vector = np.array([levels.get(name, -100.0) for name in names])
        near = sorted(
            (float(np.linalg.norm(vector - other)), point)
            for point, other in recorded.items()
            if point in places and np.any((vector > -100.0) & (other > -100.0))
        )[:3]
        if near:
            found[badge] = _estimate(near, places)
    return found


def _estimate(near: list[tuple[float, str]], places: dict[str, Row]) -> Row:
    weights = np.array([1.0 / (1.0 + distance) for distance, _ in near])
    rows = [places[point] for _, point in near]
    rooms = {row[:2]: weights[[other[:2] == row[:2] for other in rows]].sum() for row in rows}
    room, floor = min(rooms, key=lambda key: (-rooms[key], key))
    here = np.array([row[1] == floor and None not in row[2:] for row in rows])
    share = float(rooms[room, floor] / weights.sum())
    if not here.any():
        return (room, floor, None, None, near[0][0], share)
    spots = np.array([row[2:] for row in rows], dtype=float)[here]
    x, y = np.average(spots, axis=0, weights=weights[here])
    return (room, floor, float(x), float(y), near[0][0], share)


ORACLES: dict[str, Callable[[World], Answer]] = {
    "weighted_centroid": weighted_centroid,
    "radio_map_position": radio_map_position,
}


@pytest.mark.parametrize("view", ORACLES)
@pytest.mark.parametrize("seed", range(4))
def test_positions_follow_every_change(view: str, seed: int) -> None:
    world, run = World(seed), LocalRun(plan_of(view))
    events, seen = list(world.tables()), 0
    for step in range(60):
        world.pass_time(
            world.random.choice([SECOND, 2 * SECOND, 8 * SECOND, 40 * SECOND * (step % 9 == 8)])
        )
        events += [world.happening() for _ in range(world.random.randint(1, 8))]
        run.step(world.now, events)
        events = []
        rows = list(expand(run.output))
        assert {row[0]: row[1:] for row in rows} == _close(ORACLES[view](world)), (seed, step)
        assert len({row[0] for row in rows}) == len(rows)
        seen += len(rows)
    assert seen > 60
    world.pass_time(TTL)
    run.step(world.now)
    assert not run.output


def _close(answer: Answer) -> dict[str, tuple[object, ...]]:
    return {
        badge: tuple(
            pytest.approx(value, rel=1e-6, abs=1e-6) if isinstance(value, float) else value
            for value in row
        )
        for badge, row in answer.items()
    }


@pytest.mark.parametrize("view", [*ORACLES, "strongest_room"])
def test_nothing_is_warned_of(view: str) -> None:
    assert not findings(plan_of(view))
