"""Error, room hits and confidence of the views on recorded signals."""

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks._positions.recorded import (
    SECOND,
    VIEWS,
    WITHOUT_HYSTERESIS,
    Floats,
    Happened,
    cells,
    flat,
    heard,
    levels,
    plan_of,
    rooms,
    tables,
    with_window,
)
from stream_engine.testing.site_runs import SiteRun
from streamsql.data.delta import expand
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row

Figures = Mapping[str, Mapping[str, float]]

READINGS_A_SECOND = 3
NEIGHBOURS = 3
BANDS = ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0))


@dataclass
class Scores:
    """What a method said, beside the truth.

    Attributes:
        metres: Errors.
        hits: Confidence, and whether the room was right.
        changes: How often the room changed from one answer to the next.
    """

    metres: list[float] = field(default_factory=list)
    hits: list[tuple[float, bool]] = field(default_factory=list)
    changes: int = 0

    def add(self, row: Row, room: str, place: Sequence[float] | None) -> None:
        """Count an answer (badge, room, x, y, confidence)."""
        _badge, said, x, y, confidence = row
        self.hits.append((float(str(confidence)), said == room))
        if place is not None:
            self.metres.append(float(np.hypot(float(str(x)) - place[0], float(str(y)) - place[1])))

    def errors(self) -> dict[str, float]:
        """Return median, mean and 90 % quantile in metres."""
        return {
            "median": round(float(np.median(self.metres)), 2),
            "mean": round(float(np.mean(self.metres)), 2),
            "90 %": round(float(np.quantile(self.metres, 0.9)), 2),
        }

    def rate(self) -> float:
        """Return the share of right rooms in percent."""
        return round(100.0 * float(np.mean([right for _, right in self.hits])), 0)

    def bands(self) -> dict[str, float]:
        """Return the share of right rooms in percent, by band of confidence, where there is one."""
        found: dict[str, float] = {}
        for low, high in BANDS:
            inside = [r for c, r in self.hits if low <= c < high or (c == high == 1.0)]
            if inside:
                found[f"{low:g} to {high:g}"] = round(100.0 * float(np.mean(inside)), 0)
                found[f"{low:g} to {high:g}, answers"] = float(len(inside))
        return found


def moments(text: str, stored: Happened, signals: Floats) -> list[Row]:
    """Return the answer to each moment alone: a badge that is heard once."""
    run = SiteRun(plan_of(text))
    found = [e for n, row in enumerate(levels(signals)) for e in heard(f"b{n}", row, 0)]
    run.step(0, [*stored, *found])
    by_badge = {str(row[0]): row for row in expand(run.shown)}
    return [by_badge[f"b{n}"] for n in range(len(signals))]


def replayed(text: str, stored: Happened, signals: Floats, rate: float) -> list[Row]:
    """Return the answer after each moment of one badge, so many a second."""
    run, found = SiteRun(plan_of(text)), []
    run.step(0, stored)
    for number, row in enumerate(levels(signals), start=1):
        now = round(number * SECOND / rate)
        run.step(now, heard("b", row, now))
        (answer,) = expand(run.shown)
        found.append(answer)
    return found


def scores(answers: Sequence[Row], truth: Sequence[str], places: Floats | None) -> Scores:
    """Return the scores of answers whose true rooms, and places in metres, are known."""
    found = Scores()
    for number, (row, room) in enumerate(zip(answers, truth, strict=True)):
        found.add(row, room, None if places is None else places[number])
    found.changes = sum(a[1] != b[1] for a, b in itertools.pairwise(answers))
    return found


def neighbours(signals: Floats, heard_now: Floats) -> tuple[Floats, Floats]:
    """Return indices and weights (n, 3) of the nearest rows of a map, over all receivers."""
    distances = np.linalg.norm(heard_now[:, None, :] - signals[None, :, :], axis=2)
    near = np.argsort(distances, axis=1, kind="stable")[:, :NEIGHBOURS]
    return near.astype(np.float64), 1.0 / (1.0 + np.take_along_axis(distances, near, axis=1))


def in_flat() -> dict[str, Figures]:
    """Return errors and hits in the flat, each moment alone and as a drive."""
    places, signals = flat("map")
    true, heard_now = flat("test")
    stored, truth = tables(cells(places), places, signals), cells(true)
    alone: dict[str, dict[str, float]] = {}
    drive: dict[str, dict[str, float]] = {}
    bands: dict[str, dict[str, float]] = {}
    for name, text in VIEWS.items():
        once = scores(moments(text, stored, heard_now), truth, true)
        along = scores(replayed(text, stored, heard_now, READINGS_A_SECOND), truth, true)
        alone[name] = once.errors() | {"cell hit, %": once.rate()}
        drive[name] = along.errors() | {
            "cell hit, %": along.rate(),
            "cell changes": float(along.changes),
        }
        bands[name] = once.bands()
    for seconds in (3, 1):
        text = with_window("radio_map_position", seconds)
        along = scores(replayed(text, stored, heard_now, READINGS_A_SECOND), truth, true)
        drive[f"radio_map_position, mean of {seconds} s"] = along.errors() | {
            "cell hit, %": along.rate(),
            "cell changes": float(along.changes),
        }
    near, weights = neighbours(signals, heard_now)
    points = places[near.astype(np.intp)]
    by_numpy = (points * weights[:, :, None]).sum(axis=1) / weights.sum(axis=1)[:, None]
    middle = np.broadcast_to(places.mean(axis=0), true.shape)
    for name, guessed in (("k nearest neighbours in numpy", by_numpy), ("the middle", middle)):
        rows: list[Row] = [
            ("", room, *map(float, place), 0.0)
            for room, place in zip(cells(guessed), guessed, strict=True)
        ]
        found = scores(rows, truth, true)
        alone[name] = found.errors() | {"cell hit, %": found.rate()}
    true_changes = sum(a != b for a, b in itertools.pairwise(truth))
    drive["the truth"] = {"cell changes": float(true_changes)}
    return {"flat, moments": alone, "flat, drive": drive, "flat, confidence": bands}


def in_rooms() -> dict[str, Figures]:
    """Return hits of rooms: each moment alone, and ten seconds at one reading a second."""
    named, signals = rooms("map")
    truth, heard_now = rooms("test")
    stored = tables(named, np.zeros((len(named), 2)), signals)
    text = VIEWS["radio_map_position"]
    once = scores(moments(text, stored, heard_now), truth, None)
    steady = Scores()
    for room in sorted(set(truth)):
        mine = heard_now[[t == room for t in truth]]
        answers = replayed(text, stored, mine, 1.0)[9:]
        steady.hits += scores(answers, [room] * len(answers), None).hits
    near, weights = neighbours(signals, heard_now)
    votes = []
    for indices, weight in zip(near.astype(np.intp), weights, strict=True):
        by_room: dict[str, float] = {}
        for index, share in zip(indices, weight, strict=True):
            by_room[named[index]] = by_room.get(named[index], 0.0) + float(share)
        votes.append(max(sorted(by_room), key=lambda r: by_room[r]))
    by_numpy = 100.0 * float(np.mean([v == t for v, t in zip(votes, truth, strict=True)]))
    return {
        "rooms": {
            "one reading": {"room hit, %": once.rate()},
            "mean of 10 s": {"room hit, %": steady.rate()},
            "k nearest neighbours in numpy, one reading": {"room hit, %": round(by_numpy, 0)},
        },
        "rooms, confidence": {"radio_map_position": once.bands()},
    }


def between_two_receivers(seconds: int) -> dict[str, Figures]:
    """Return room changes an hour of a badge between two equal receivers: 1 Hz, sigma 4 dB."""
    found: dict[str, dict[str, float]] = {}
    for name, text in (
        ("strongest_room", VIEWS["strongest_room"]),
        ("without hysteresis", WITHOUT_HYSTERESIS),
    ):
        run, chance = SiteRun(plan_of(text)), random.Random(1)
        pair = [("receiver", SourceEvent((f"r{n}", f"r{n}", 0, 5.0 * n, 0.0), 0)) for n in (0, 1)]
        run.step(0, pair)
        answers: list[object] = []
        for second in range(1, seconds + 1):
            now = second * SECOND
            row = [(f"r{n}", chance.gauss(-60.0, 4.0)) for n in (0, 1)]
            run.step(now, heard("b", row, now))
            ((_, room, *_rest),) = expand(run.shown)
            answers.append(room)
        changes = sum(a != b for a, b in itertools.pairwise(answers))
        found[name] = {"room changes an hour": round(changes * 3600.0 / seconds, 0)}
    return {"between two receivers": found}
