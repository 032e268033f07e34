"""The simulated world: a deterministic function of seed, time and what people were told to do.

Slow things (warm spots, visitors' walks, radio quality) are computed from the time alone, so all
gateways of a building agree on them without talking to each other.
"""

import math
import random
import zlib
from dataclasses import dataclass, field

from gateway.connectors.motes.mote_field import Detector, Peer

SECOND = 1_000_000
WARM_PERIOD = 600.0
WARM_RADIUS = 11.0
WARM_RISE = 9.0
WALK_SECONDS = 12.0
HEARING_METRES = 22.0
RADIO_METRES = 25.0
TASKS = ("python3", "latexmk", "firefox", "matlab", "blender", "code", "ffmpeg", "gcc", "R")


@dataclass(slots=True)
class Seat:
    """A seat; `pinned_until` is when a command's effect ends, in microseconds."""

    taken: bool
    weight: float
    pinned_until: int = 0


@dataclass(slots=True)
class World:
    """People, light and warmth as one gateway's motes would sense them.

    Args:
        seed: Of everything random.
        turnover: Mean seconds until a seat changes.
    """

    seed: int
    turnover: float
    seats: dict[str, Seat] = field(default_factory=dict)
    dark_rooms: dict[str, bool] = field(default_factory=dict)
    heat: dict[str, float] = field(default_factory=dict)
    _random: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311  (a simulation)

    def seat(self, mid: str) -> Seat:
        """Return a machine's seat, taken at first with probability 0.35."""
        if mid not in self.seats:
            chance = random.Random(f"{self.seed}:{mid}")  # noqa: S311  (a simulation)
            taken = chance.random() < 0.35
            self.seats[mid] = Seat(taken, self._weight(taken=taken))
        return self.seats[mid]

    def live(self, mid: str, now: int, elapsed: float) -> bool:
        """Let `elapsed` seconds pass at a seat; True when somebody sat down or left."""
        seat = self.seat(mid)
        if now < seat.pinned_until:
            return False
        if self._random.random() >= 1 - math.exp(-elapsed / self.turnover):
            return False
        self.sit(mid, taken=not seat.taken)
        return True

    def sit(self, mid: str, *, taken: bool, until: int = 0) -> None:
        """Take or free a seat; until then it stays so."""
        self.seats[mid] = Seat(taken, self._weight(taken=taken), until)

    def _weight(self, *, taken: bool) -> float:
        low, high = (48.0, 95.0) if taken else (0.0, 0.8)
        return round(self._random.uniform(low, high), 1)

    def light(self, rid: str, now: int) -> float:
        """Return a room's light in lux: on unless switched off, off at random for a while."""
        if rid in self.dark_rooms:
            dark = self.dark_rooms[rid]
        else:
            hour = now // (900 * SECOND)
            dark = _unit(self.seed, "dark", rid, hour) < 0.12
        noise = _unit(self.seed, rid, now // (30 * SECOND))
        return round(8 + 6 * noise, 1) if dark else round(330 + 60 * noise, 1)

    def celsius(self, rid: str, x: float, y: float, level: int, now: int) -> float:
        """Return the temperature at a point: a warm spot wanders along each level."""
        phase = (now / SECOND / WARM_PERIOD + level * 0.37) % 1.0
        centre = 80.0 * abs(2 * phase - 1)
        spot = WARM_RISE * math.exp(-((x - centre) ** 2 + (y - 12.0) ** 2) / (2 * WARM_RADIUS**2))
        noise = _unit(self.seed, rid, now // (5 * SECOND)) - 0.5
        return round(21.5 + spot + noise + self.heat.get(rid, 0.0), 2)

    def load(self, mid: str, now: int) -> tuple[float, str]:
        """Return a machine's load as a share of 1 and its most CPU-hungry task."""
        busy = self.seat(mid).taken
        noise = _unit(self.seed, mid, now // (10 * SECOND))
        cpu = 0.25 + 0.7 * noise if busy else 0.02 + 0.06 * noise
        task = TASKS[int(_unit(self.seed, mid, now // (120 * SECOND)) * len(TASKS))]
        return round(cpu, 3), task if busy else "idle"


def visitor_place(number: int, tour: tuple[Detector, ...], now: int) -> tuple[float, float, int]:
    """Return where a visitor walks at a time: from detector to detector along the tour."""
    steps = now / SECOND / WALK_SECONDS + number * max(len(tour) // 3, 1)
    index, share = int(steps) % len(tour), steps % 1.0
    here, there = tour[index], tour[(index + 1) % len(tour)]
    if here.level != there.level:
        return (here.x, here.y, here.level)
    x = here.x + share * (there.x - here.x)
    return (x, here.y + share * (there.y - here.y), here.level)


def tour_of(detectors: tuple[Detector, ...]) -> tuple[Detector, ...]:
    """Return the detectors level by level, each next the nearest one not yet visited."""
    tour: list[Detector] = []
    for level in sorted({d.level for d in detectors}):
        left = sorted((d for d in detectors if d.level == level), key=lambda d: (d.x, d.y))
        here = left.pop(0)
        tour.append(here)
        while left:
            here = min(left, key=lambda d: math.dist((d.x, d.y), (tour[-1].x, tour[-1].y)))
            left.remove(here)
            tour.append(here)
    return tuple(tour)


def strength(x: float, y: float, detector_x: float, detector_y: float) -> float:
    """Return how strongly a detector hears a badge, in dBm."""
    return round(-40 - 2.0 * math.dist((x, y), (detector_x, detector_y)), 1)


def delivery_ratio(peer: Peer, seed: int, now: int) -> float:
    """Return a radio link's packet delivery ratio; it wanders slowly with time."""
    quality = 1.15 - peer.distance / RADIO_METRES
    wander = 0.35 * (_unit(seed, peer.src, peer.dst, now // (60 * SECOND)) - 0.5)
    return round(min(max(quality + wander, 0.0), 1.0), 3)


def _unit(*parts: object) -> float:
    return zlib.crc32(":".join(map(str, parts)).encode()) / 2**32
